"""What a subscriber reads: events, and in their order what is not there.

An event matched. A silence says that nothing did, a gap that something may have and is gone, with the reason. Both
cover the ticks (after, upto] of a pubend; on best-effort and reliable streams that is the publisher, and a tick is
its number. On streams that are logged an event has a place of its own there.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.events.event import Event
from holdfast.events.packed import unpack
from holdfast.messages.publications import Publication, Tag

__all__ = ["Gap", "Item", "LoggedEvent", "Silence", "TaggedEvent"]


class TaggedEvent(Event, frozen=True, gc=False):
    """An event that came from behind a partition [KJ §7]: others from there may be missing before it.

    A tag with ``bar`` says that nothing from there is missing after this one.
    """

    tags: tuple[Tag, ...] = ()

    @classmethod
    def of(cls, event: Event, tags: tuple[Tag, ...]) -> TaggedEvent:
        """An event with its tags."""
        return cls(
            event.topic,
            event.attributes,
            event.payload,
            event.content_type,
            event.publisher,
            event.n,
            event.time,
            tags,
        )


class LoggedEvent(Event, frozen=True, gc=False):
    """An event of a stream that is logged: nothing else matched in its pubend since the item before it [R1.7]."""

    pubend: str = ""
    incarnation: int = 0  #: of the pubend's log
    tick: int = 0

    @classmethod
    def of(cls, publication: Publication, pubend: str, incarnation: int, tick: int) -> LoggedEvent:
        """An event with its place."""
        packed = unpack(publication.event)
        return cls(
            packed.topic,
            packed.attributes,
            packed.payload,
            packed.content_type,
            publication.publisher,
            publication.n,
            packed.time,
            pubend,
            incarnation,
            tick,
        )


@dataclass(frozen=True, slots=True)
class Gap:
    """Something may have matched here, and is gone."""

    pubend: str
    after: int
    upto: int
    reason: str


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing matched here, certainly."""

    pubend: str
    after: int
    upto: int


Item = Event | Gap | Silence
