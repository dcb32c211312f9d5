"""What every matching engine offers: subscriptions come and go, batches of events go in, matching ids come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.events.event import Content
from holdfast.filters.expression import Filter

__all__ = ["MatchingIndex"]


class MatchingIndex(Protocol):
    """A set of subscriptions that can be asked which of them match an event.

    The index hands out the ids: small integers, taken again after a removal, so that a caller keeps what belongs
    to a subscription in a list. All implementations give the same answer; a conformance suite and a property
    test hold them to it.
    """

    def add(self, filter: Filter) -> int:
        """Add a subscription and return its id. Equal filters are separate subscriptions."""

    def remove(self, subscription: int) -> None:
        """Remove a subscription; its id may be handed out again.

        :raises KeyError: if no subscription has this id.
        """

    def match(self, events: Sequence[Content]) -> list[list[int]]:
        """For each event the ids of the matching subscriptions, ascending."""

    def __len__(self) -> int: ...
