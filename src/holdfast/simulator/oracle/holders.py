"""I12, its second half: how many hold a publication that somebody still waits for.

While it is on its way δ+1 nodes of the way hold it, or all of a short one, less those that crashed with it. A node
that comes back is given back what it held by those beyond it who still do [B0.16], and counts again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.clock import Instant
from holdfast.identity import EventId
from holdfast.node.segment import Segment, Share
from holdfast.node.station import Station
from holdfast.simulator.oracle.annals import Annals, Step

__all__ = ["Holders"]


@dataclass(slots=True)
class _Copy:
    """What one life of a node holds of a publication: by segment and target."""

    life: int
    since: Instant
    targets: set[tuple[int, str]] = field(default_factory=set)


class Holders:
    """By publication who holds it. Who crashed with it stays among them until it holds it again."""

    def __init__(self, annals: Annals) -> None:
        self._annals = annals
        self._copies: dict[EventId, dict[str, _Copy]] = {}

    def take(self, step: Step, segment: Segment) -> None:
        """A node queues a segment."""
        for target, share in segment.shares.items():
            for i in share.at:
                copies = self._copies.setdefault(segment.batch.publications[i].id, {})
                copy = copies.get(step.name)
                if copy is None or copy.life != step.life:
                    copy = copies[step.name] = _Copy(step.life, step.now)
                copy.targets.add((segment.first, target.name))

    def drop(self, name: str, segment: Segment, target: Station, share: Share) -> None:
        """A node discards what it held for a target."""
        for i in share.at:
            event = segment.batch.publications[i].id
            copies = self._copies[event]
            copies[name].targets.discard((segment.first, target.name))
            if not copies[name].targets:
                del copies[name]

    def too_few(self, event: EventId, subscriber: str) -> Iterator[str]:
        """Whether fewer hold a publication, for a subscriber that waits for it, than must."""
        way = self._annals.tree.path(event.publisher, subscriber)[:-1]
        holding = [name for name in way if self._holds(name, event, subscriber)]
        if len(holding) < min(self._annals.delta + 1, len(way)):
            yield f"I12: of {event}, for which {subscriber} waits, there are copies at {holding} only"

    def not_given_back(self, step: Step, event: EventId, subscriber: str, *, born: Instant) -> Iterator[str]:
        """Whether a node that is back from a crash lacks what it held, and somebody who told it all he knows has it."""
        copy = self._copies.get(event, {}).get(step.name)
        if copy is not None and copy.life == step.life:
            return
        for name in self._annals.tree.path(step.name, subscriber)[1:-1]:
            station = step.node.reach.get(name)
            has_told = station is not None and station.has_told
            if (
                has_told
                and self._is_alive(name, event, subscriber)
                and self._copies[event][name].since < born
            ):
                yield f"I12: {step.name} came back without {event}, which {name} holds"

    def _holds(self, name: str, event: EventId, subscriber: str) -> bool:
        """Whether a node has a copy that is on its way to a subscriber, or had one when it crashed."""
        copy = self._copies.get(event, {}).get(name)
        if copy is None:
            return False
        way = self._annals.tree.path(name, subscriber)
        return any(target in way for _, target in copy.targets)

    def _is_alive(self, name: str, event: EventId, subscriber: str) -> bool:
        annals = self._annals
        is_held = self._holds(name, event, subscriber) and not annals.is_down(name)
        return is_held and self._copies[event][name].life == annals.lives[name]
