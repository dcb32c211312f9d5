"""Partition information, and the tags publications get from it [KJ §3.5, §7].

*Open*: a subscription known here could not be told to the nodes of a fragment. What comes from there meanwhile is
tagged: it may be for the subscription too, but more may have been lost. *Crossed*: here, on the other side, the
subscriptions have been told since. What was accepted before keeps, or gets, the plain tag; what is accepted
afterwards gets the barred one: nothing is missing after it [B0.31]. When every subscriber knows, both are forgotten
[B0.32]. After a lapse those who would have tagged may have forgotten: then a subscriber tags everything itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from holdfast.identity import SubscriptionId
from holdfast.messages.overlay import Trail
from holdfast.messages.publications import Tag
from holdfast.messages.subscriptions import Partition

__all__ = ["OVER_MAX", "Crossing", "Open", "Partitions"]

#: So many partitions that are over are remembered.
OVER_MAX: Final = 1_000


@dataclass(slots=True)
class Open:
    """A partition some subscriptions known here are stopped by."""

    subscriptions: dict[SubscriptionId, None] = field(default_factory=dict)
    is_ending: bool = False  #: those beyond are being told of these, or some of them have been


@dataclass(slots=True)
class Crossing:
    """A partition that ends, seen from beyond it."""

    lead_direction: str  #: the neighbour towards its lead
    is_crossed: bool = False  #: the subscriptions are installed here, and everywhere beyond


class Partitions:
    """The partition information table of a node."""

    def __init__(self, me: str, incarnation: int) -> None:
        self._me = me
        self._incarnation = incarnation
        self._number = 0
        self.open: dict[Partition, Open] = {}
        self._doubted: dict[Partition, None] = {}  #: open ones nobody else may know of
        self.crossings: dict[Partition, Crossing] = {}
        self._barred: dict[tuple[str, int, int], set[str]] = {}  #: publishers heard with the barred tag
        self._over: dict[Partition, None] = {}  #: those last known to be over, for who was away then
        self._past: set[str] = set()  #: publishers that are past all of those, and came without a tag since

    def is_over(self, partition: Partition) -> bool:
        """Whether it is remembered to be over."""
        return partition in self._over

    def remember_over(self, partition: Partition) -> None:
        """It is over; the one known so for longest is forgotten."""
        self._over[partition] = None
        self._past.clear()
        if len(self._over) > OVER_MAX:
            del self._over[next(iter(self._over))]

    def lead(self, fragment: tuple[str, ...]) -> Partition:
        """The partition of a fragment nobody of which we can reach: the one that is open, or a new one.

        One that began to end is not joined: what crossed it, and is barred, has been told of the others only.
        """
        for partition, state in self.open.items():
            if partition.lead == self._me and partition.fragment == fragment and not state.is_ending:
                return partition
        self._number += 1
        return Partition(self._me, self._incarnation, self._number, fragment)

    def add(self, partition: Partition, subscription: SubscriptionId) -> None:
        """A subscription known here is stopped by it."""
        self.open.setdefault(partition, Open()).subscriptions[subscription] = None

    def drop(self, partition: Partition, subscription: SubscriptionId) -> None:
        """It is not any more, or is over."""
        state = self.open.get(partition)
        if state is not None:
            state.subscriptions.pop(subscription, None)
            if not state.subscriptions:
                del self.open[partition]
                self._doubted.pop(partition, None)

    def doubt(self, partitions: Iterable[Partition]) -> None:
        """There was a lapse: who is behind these, and who not, cannot be told any more; everybody may be."""
        self._doubted.update(dict.fromkeys(each for each in partitions if each in self.open))

    def tags_for(self, trail: Trail, tags: tuple[Tag, ...], upstream: str | None) -> tuple[Tag, ...]:
        """The tags of publications that are accepted now; what they were tagged with stays.

        But for bars of partitions that are not crossed here yet, as they are farther out: what is accepted now may not
        go on to subscriptions that are not installed here, and then something is missing after it.
        """
        if not self.open and not self.crossings:
            return tags
        for partition, crossing in self.crossings.items():
            if not crossing.is_crossed and crossing.lead_direction != upstream:
                tags = _unbarred(tags, partition)
        passed = {step.node for step in trail.steps}
        known = {(tag.lead, tag.incarnation, tag.number) for tag in tags}
        more: list[Tag] = []
        for partition, crossing in self.crossings.items():
            if crossing.lead_direction != upstream and _key(partition) not in known:
                more.append(_tag(partition, bar=crossing.is_crossed))
                known.add(_key(partition))
        for partition in self.open:
            may_be_behind = partition in self._doubted or not passed.isdisjoint(partition.fragment)
            if may_be_behind and _key(partition) not in known:
                more.append(_tag(partition, bar=False))
        return (*tags, *more)

    def tags_of_own(self) -> tuple[Tag, ...]:
        """The tags of publications that begin here: subscribers may not have heard yet that we know of them."""
        return tuple(_tag(each, bar=crossing.is_crossed) for each, crossing in self.crossings.items())

    def tags_at_edge(self, publisher: str, tags: tuple[Tag, ...]) -> tuple[Tag, ...]:
        """What of the tags of a publisher's events concerns our own subscriptions: partitions they have, or had.

        Once a publisher's were barred they stay so [KJ Lemma 3]; of a partition that is over the first that is barred,
        or not tagged, is the end. Somebody who was away may tag with what he does not know to be over. A publisher that
        was the whole of a partition, and comes with no word of it, is in its next life: it knew of us from the first.
        """
        if not tags and not self.open and (not self._over or publisher in self._past):
            return tags
        open_keys = {_key(partition) for partition in self.open}
        over_keys = {_key(partition) for partition in self._over} - open_keys
        reborn = [_key(partition) for partition in self.open if partition.fragment == (publisher,)]
        found = dict.fromkeys(reborn, True) | {
            (tag.lead, tag.incarnation, tag.number): tag.bar for tag in tags
        }
        seen: list[Tag] = []
        for key, bar in found.items():
            if key not in open_keys and key not in over_keys:
                continue
            barred = self._barred.setdefault(key, set())
            if key in over_keys and publisher in barred:
                continue
            if bar:
                barred.add(publisher)
            seen.append(Tag(*key, publisher in barred))
        for key in over_keys:
            if key not in found:
                self._barred.setdefault(key, set()).add(publisher)
        if not found:
            self._past.add(publisher)
        for key in [each for each in self._barred if each not in open_keys and each not in over_keys]:
            del self._barred[key]
        return tuple(seen)

    def tags_before(
        self, partition: Partition, tags: tuple[Tag, ...], upstream: str | None
    ) -> tuple[Tag, ...]:
        """The tags of what was accepted before the subscriptions of a partition were installed here."""
        crossing = self.crossings[partition]
        if crossing.lead_direction == upstream:
            return tags
        if any(_is_of(tag, partition) for tag in tags):
            return _unbarred(tags, partition)
        return (*tags, _tag(partition, bar=False))


def _key(partition: Partition) -> tuple[str, int, int]:
    return partition.lead, partition.incarnation, partition.number


def _tag(partition: Partition, *, bar: bool) -> Tag:
    return Tag(*_key(partition), bar)


def _unbarred(tags: tuple[Tag, ...], partition: Partition) -> tuple[Tag, ...]:
    plain = _tag(partition, bar=False)
    return tuple(plain if _is_of(tag, partition) else tag for tag in tags)


def _is_of(tag: Tag, partition: Partition) -> bool:
    return (tag.lead, tag.incarnation, tag.number) == _key(partition)
