"""Who an event is: its publisher and the publisher's own number for it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EventId"]


class EventId(NamedTuple):
    """The identity of an event, unique for ever; ids of one publisher sort in the order of publication.

    ``n`` is the catenation number [NB §4.3], from 1. Holes are allowed: a publisher reserves numbers in blocks.
    """

    publisher: str
    n: int

    def __str__(self) -> str:
        return f"{self.publisher}#{self.n}"
