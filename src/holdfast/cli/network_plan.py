"""The plan of a network, in words and as data: what failures within δ stop, and the first sets of them beyond.

It does not go through all sets: what single failures stop adds up, as ``runtime.network_survival`` says, and a test
holds that against the network itself. So it stays short however many brokers there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations
from typing import Any, Final

from holdfast.cli.words import NAMES_MAX, counted, listed, they_are
from holdfast.messages.streams import Guarantee, Order
from holdfast.runtime.network_file import Network
from holdfast.runtime.network_survival import Apart, Attachment, Client, Failures, Link, Survival, Tree

__all__ = ["Plan", "WhatIf"]

#: So many sets beyond δ are looked at, and so many of them shown: those that part the most.
LOOKED_AT_MAX: Final = 100_000
SHOWN_MAX: Final = 5
IN_JSON_MAX: Final = 1_000


class Plan:
    """What would stop."""

    def __init__(self, network: Network) -> None:
        self.network = network
        tree = Tree({broker.name: broker.parent for broker in network.brokers})
        self.survival = Survival(tree, network.delta)
        found = list(islice(self.survival.first_apart(), LOOKED_AT_MAX + 1))
        self._is_cut_short = len(found) > LOOKED_AT_MAX
        self._beyond = sorted(found[:LOOKED_AT_MAX], key=lambda apart: -apart.pairs)
        self._crossed = list(self.survival.crossed_links()) if network.delta > 1 else []
        self._root = next(broker.name for broker in network.brokers if broker.parent is None)
        self._edge = [name for name in tree.brokers if len(tree.beside(name)) == 1]

    def streams(self, guarantee: Guarantee) -> list[str]:
        """The names of those with a guarantee."""
        return [stream.name for stream in self.network.streams if stream.guarantee is guarantee]

    @property
    def has_members(self) -> bool:
        """Whether clients may be nodes of the network: where a stream is reliable and none durable."""
        return bool(self.streams(Guarantee.RELIABLE)) and not self.streams(Guarantee.DURABLE)

    # In words

    def lines(self) -> Iterator[str]:
        """One paragraph each, the list items indented."""
        count, delta = len(self.network.brokers), self.network.delta
        yield f"Network {self.network.name}: {counted(count, 'broker')}, delta = {delta}."
        if delta:
            yield ""
            failures = counted(delta, "broker or link is", "brokers or links are")
            yield f"While at most {failures} down, whichever {they_are(delta)}:"
            yield from (f"- {line}" for line in self._within())
        yield ""
        yield from self._beyond_lines()
        if durable := self.streams(Guarantee.DURABLE):
            yield ""
            yield from self._durable_lines(durable)

    def _durable_lines(self, durable: list[str]) -> Iterator[str]:
        """Of streams that are logged nothing is lost by failures, only late; but there is one copy of it."""
        total = [each.name for each in self.network.streams if each.order is Order.TOTAL]
        yield (
            f"On {counted(len(durable), 'durable stream')} ({listed(durable)}) every event is on one disk, that of its"
            f" publisher's broker{' or of the sequencer' if total else ''}. While that broker is down, or there is no"
            " way to it, what others have not had yet waits for it, and comes in order when it is back. If its disk is"
            " lost, so is what is only there."
        )
        for stream in self.network.streams:
            if stream.order is Order.TOTAL:
                sequencer = stream.sequencer or self._root
                yield f"- {stream.name} is in total order: while {sequencer} is down nobody publishes there."

    def _within(self) -> Iterator[str]:
        if reliable := self.streams(Guarantee.RELIABLE):
            streams = counted(len(reliable), "reliable stream")
            yield (
                f"Brokers that are up reach each other around those that are not. On {streams} ({listed(reliable)})"
                " their clients get everything, once and in order; what below stops comes later, when it is back."
            )
        yield self._clients_line()
        if self.survival.tree.links:
            listening = ", unless one of the two is a member that listens" if self.has_members else ""
            yield (
                "A link that fails stops what clients of one of its two brokers publish for clients of the other"
                f"{listening}. Everybody else hears everybody."
            )
        if self._crossed:
            (a, b), (c, d) = self._crossed[0]
            yield (
                f"Two links that fail around a third also stop that between their outer ends"
                f" ({counted(len(self._crossed), 'such pair')}, such as {a}:{b} and {c}:{d})."
            )
        if self._edge:
            yield (
                f"A subscription made while a broker at the edge ({listed(self._edge)}) is down is confirmed in part:"
                " what is published there is owed to it only once it has been told so."
            )
        if len(self.network.brokers) <= self.network.delta + 1:
            yield (
                f"There are only {counted(len(self.network.brokers), 'broker')}: one may be left alone with its own"
                " clients, or none at all."
            )
        if effort := self.streams(Guarantee.BEST_EFFORT):
            yield (
                f"On best-effort streams ({listed(effort)}) what is on its way through a broker or link when that fails"
                " is lost. While a link is down, clients of its two brokers hear nothing that comes over it."
            )

    def _clients_line(self) -> str:
        """What the failure of their broker is to clients."""
        if self.has_members:
            return (
                "A broker that fails stops its plain clients. Clients that are members of the overlay go on by the"
                " brokers around it; two of one failed broker hear each other only if one of them listens."
            )
        stopped = (
            "A broker that fails stops its clients until it is back, or they have found another they know of."
        )
        if reliable := self.streams(Guarantee.RELIABLE):
            streams = "that stream" if len(reliable) == 1 else "those streams"
            stopped += (
                f" What they miss of {streams} meanwhile is announced to them by a gap: where a stream is"
            )
            stopped += (
                " durable no client is a member of the overlay, which would go on by the brokers around."
            )
        return stopped

    def _beyond_lines(self) -> Iterator[str]:
        size = self.network.delta + 1
        brokers = counted(size, "broker")
        they, their = ("it", "its") if size == 1 else ("they", "their")
        if not self._beyond:
            failed = f"If {brokers} failed{' at a time' if size > 1 else ''}, whichever {they_are(size)}"
            yield f"{failed}, {they} would stop {their} own clients only."
            return
        at_least = "at least " if self._is_cut_short else ""
        if size == 1:
            single = counted(len(self._beyond), "broker")
            yield f"Any link that failed would part the network, and so would {at_least}{single}:"
        else:
            sets = counted(len(self._beyond), "set of them", "sets of them")
            yield (
                f"If {brokers} failed at a time, {at_least}{sets} would part the network; a link counts as one of the"
                " brokers beside it:"
            )
        yield from (f"- {_apart_line(apart)}" for apart in self._beyond[:SHOWN_MAX])
        if len(self._beyond) > SHOWN_MAX:
            left = len(self._beyond) - SHOWN_MAX
            yield f"- and {counted(left, 'other')}, which part fewer pairs of brokers (--output json lists them)"
        if not self._is_cut_short:
            yield f"Any other {'broker' if size == 1 else brokers} would stop {their} own clients only."

    # As data

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        delta = self.network.delta
        return {
            "network": self.network.name,
            "delta": delta,
            "brokers": list(self.survival.tree.brokers),
            "links": [list(each) for each in self.survival.tree.links],
            "streams": {str(one): self.streams(one) for one in Guarantee},
            "within": {
                "failures": delta,
                "apart_by_links": [_links_json(pair) for pair in self._crossed[:IN_JSON_MAX]],
                "partial_subscriptions_without": self._edge if delta else [],
            },
            "beyond": {
                "failures": delta + 1,
                "sets": len(self._beyond),
                "sets_are_all": not self._is_cut_short,
                "apart": [_apart_json(apart) for apart in self._beyond[:IN_JSON_MAX]],
            },
        }


class WhatIf:
    """What one set of failures would stop."""

    def __init__(self, plan: Plan, down: Failures) -> None:
        self._survival = plan.survival
        self._down = down
        self._up = [name for name in plan.survival.tree.brokers if name not in down.brokers]
        self.silent = plan.survival.silent_pairs(down)
        self._has_best_effort = bool(plan.streams(Guarantee.BEST_EFFORT))
        self._has_members = plan.has_members

    def _names(self) -> list[str]:
        links = (f"the link {one}:{other}" for one, other in sorted(self._down.links))
        return [*sorted(self._down.brokers), *links]

    def _used(self) -> int:
        return max(self._survival.used_near(self._down).values())

    # In words

    def lines(self) -> Iterator[str]:
        """One paragraph each."""
        used, delta = self._used(), self._survival.delta
        verb = "is" if len(self._down) == 1 else "are"
        near = "within delta" if used <= delta else f"{used} near each other, and delta is {delta}"
        yield f"If {listed(self._names())} {verb} down ({near}):"
        for name in sorted(self._down.brokers):
            members = f"plain clients of {name} stop; its members {self._fate_of_members(name)}"
            yield f"- {members if self._has_members else f'clients of {name} stop'}"
        deaf: dict[str, list[str]] = {}
        for one, other in self.silent:
            deaf.setdefault(one, []).append(other)
            deaf.setdefault(other, []).append(one)
        for names, others in _alike(deaf):
            if names[0] < others[0]:
                yield f"- clients of {listed(names)} and those of {listed(others)} do not hear each other"
        for names, others in _alike(self.deaf_on_best_effort()):
            yield f"- on best-effort streams clients of {listed(names)} do not hear those of {listed(others)} either"
        if not self.silent:
            yield "- everybody else hears everybody"

    def _fate_of_members(self, broker: str) -> str:
        member = Client(broker, Attachment.MEMBER)
        heard = [name for name in self._up if self._survival.hears(member, Client(name), self._down)]
        if len(heard) == len(self._up) > 0:
            return "go on"
        return f"are heard by clients of {listed(heard)} only" if heard else "stop too"

    def deaf_on_best_effort(self) -> dict[str, list[str]]:
        """Whose clients do not hear whose on best-effort streams, though they do on reliable ones."""
        found: dict[str, list[str]] = {}
        if self._has_best_effort:
            silent = set(self.silent)
            for one, other in permutations(self._up, 2):
                if (one, other) in silent or (other, one) in silent:
                    continue
                if not self._survival.hears(Client(other), Client(one), self._down, is_reliable=False):
                    found.setdefault(one, []).append(other)
        return found

    # As data

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "down": {
                "brokers": sorted(self._down.brokers),
                "links": [list(each) for each in sorted(self._down.links)],
            },
            "within_delta": self._used() <= self._survival.delta,
            "apart": [list(pair) for pair in self.silent],
            "deaf_on_best_effort": self.deaf_on_best_effort(),
        }


def _alike(deaf: dict[str, list[str]]) -> list[tuple[list[str], tuple[str, ...]]]:
    """Who does not hear the same others, together."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, others in deaf.items():
        alike.setdefault(tuple(others), []).append(name)
    return [(names, others) for others, names in alike.items()]


def _apart_line(apart: Apart) -> str:
    held = f"; what waits at {listed(apart.between)} holds up what follows" if apart.between else ""
    return f"{listed(apart.failed)}: no way between {' | '.join(', '.join(each) for each in _shown(apart.sides))}{held}"


def _shown(sides: tuple[tuple[str, ...], ...]) -> list[list[str]]:
    """The sides, the long ones cut."""
    return [
        [*side[:NAMES_MAX], *([f"{len(side) - NAMES_MAX} others"] if len(side) > NAMES_MAX else [])]
        for side in sides
    ]


def _links_json(pair: tuple[Link, Link]) -> list[list[str]]:
    return [list(each) for each in pair]


def _apart_json(apart: Apart) -> dict[str, Any]:
    return {
        "failed": list(apart.failed),
        "sides": [list(side) for side in apart.sides],
        "between": list(apart.between),
    }
