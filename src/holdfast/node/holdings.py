"""Depth-acknowledgements: who is known to hold what [KJ §8].

Every node tells, over all its sessions, how far it has received and how far it has discarded what others within δ+1
hops numbered, and passes on what it was told of others. From that a node knows when a publication is safe on a way:
all nodes of the way have it, or one of them has discarded it because it was safe beyond.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.messages.overlay import Holding
from holdfast.node.station import Station
from holdfast.node.topology import Path, Topology

__all__ = ["Holdings"]

Pair = tuple[str, str]


class Holdings:
    """The topology cache [KJ §9]: the last report of each pair ⟨A, B⟩, and what each session has been told."""

    def __init__(self, topology: Topology, incarnation: int, *, relays: bool) -> None:
        self._relays = relays  #: a client tells of nobody but itself
        self._topology = topology
        self._incarnation = incarnation
        self._reports: dict[Pair, Holding] = {}
        self._told: dict[str, dict[Pair, Holding]] = {}  #: by station
        self._lives: dict[str, int] = {}  #: by node, the latest incarnation anybody reported of

    def hear(self, sender: Station, holdings: Iterable[Holding], open_names: set[str]) -> None:
        """Reports have come. That a node we speak with ourselves has lost something, nobody else is believed."""
        for report in holdings:
            about = report.node
            if not self._is_near(about) or not self._is_near(report.numbered_by):
                continue  # it has left meanwhile
            if about == self._topology.me:
                continue
            pair = about, report.numbered_by
            if about != sender.name and about in open_names and not self._is_more(report, pair):
                continue
            self._lives[about] = max(report.incarnation, self._lives.get(about, 0))
            known = self._reports.get(pair)
            if known is not None and report.life == known.life and report.discarded < known.discarded:
                # What was discarded stays so, also in a later life [B0.15].
                report = Holding(
                    about,
                    report.incarnation,
                    report.numbered_by,
                    report.life,
                    report.arrived,
                    known.discarded,
                )
            self._reports[pair] = report

    def _is_more(self, report: Holding, pair: Pair) -> bool:
        """Whether a report says more than we know, of the same life or a later one."""
        known = self._reports.get(pair)
        if known is None or report.incarnation > known.incarnation or report.life > known.life:
            return True
        is_same = (report.incarnation, report.life) == (known.incarnation, known.life)
        return is_same and report.arrived >= known.arrived and report.discarded >= known.discarded

    def _is_near(self, node: str) -> bool:
        return node == self._topology.me or node in self._topology

    def doubt(self, station: Station) -> None:
        """Nobody knows whether a node still lives, nor those beyond it: their copies do not count [B0.15]."""
        for pair, report in list(self._reports.items()):
            place = self._topology.get(pair[0])
            if report.arrived and (place is None or place.path[: station.distance] == station.path):
                self._reports[pair] = Holding(
                    report.node,
                    report.incarnation,
                    report.numbered_by,
                    report.life,
                    0,
                    report.discarded,
                )

    def forget(self, node: str) -> None:
        """A node has left."""
        self._told.pop(node, None)
        self._lives.pop(node, None)
        for pair in [pair for pair in self._reports if node in pair]:
            del self._reports[pair]
        for told in self._told.values():
            for pair in [pair for pair in told if node in pair]:
                del told[pair]

    def begin(self, station: Station) -> None:
        """A session has begun: nothing was told on it."""
        self._told[station.name] = {}

    def retell(self) -> None:
        """Everything is told anew, in case somebody did not hear, or has doubted since what nobody would repeat."""
        for told in self._told.values():
            told.clear()

    def counted_on_earlier_life(self, station: Station) -> bool:
        """Whether reports of a station that has lost its memory since may have been counted on."""
        return 0 < self._lives.get(station.name, 0) < station.incarnation

    def is_doubted(self, node: str) -> bool:
        """Whether nobody knows that a node lives, or it has never had anything of ours."""
        report = self._reports.get((node, self._topology.me))
        return report is None or report.life != self._incarnation or not report.arrived

    def arrived(self, node: str) -> int:
        """The highest of our own numbers that a node is known to have seen in this life of ours."""
        report = self._reports.get((node, self._topology.me))
        return 0 if report is None or report.life != self._incarnation else report.arrived

    def safe(self, path: Path) -> tuple[int, int]:
        """Up to which of our own numbers everything sent on a way is safe, and up to which it is so for good.

        Safe: all nodes of the way have it. For good: one has discarded it, since it was safe beyond [KJ §8, B0.13].
        """
        arrived: int | None = None
        discarded = 0
        for name in path:
            report = self._reports.get((name, self._topology.me))
            if report is None or report.life != self._incarnation:
                arrived = 0
                continue
            arrived = report.arrived if arrived is None else min(arrived, report.arrived)
            discarded = max(discarded, report.discarded)
        return max(arrived or 0, discarded), discarded

    def news_for(self, station: Station, own: dict[str, Holding]) -> list[Holding]:
        """What a station needs to be told: reports about what was numbered by it, or beyond it, that are new to it."""
        topology = self._topology
        told = self._told[station.name]
        news: list[Holding] = []
        for numbered_by, report in own.items():
            place = topology.get(numbered_by)
            if place is not None and place.path[: station.distance] == station.path:
                self._tell(told, news, (topology.me, numbered_by), report)
        for pair, report in self._reports.items() if self._relays else ():
            about, by = topology.get(pair[0]), topology.get(pair[1])
            if about is None or by is None or about.distance + by.distance > topology.reach:
                continue
            beyond = by.path[: station.distance] == station.path
            if beyond and about.path[: station.distance] != station.path:
                self._tell(told, news, pair, report)
        return news

    def _tell(self, told: dict[Pair, Holding], news: list[Holding], pair: Pair, report: Holding) -> None:
        if told.get(pair) != report:
            told[pair] = report
            news.append(report)
