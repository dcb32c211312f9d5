"""The routing table: every subscription known here, and the port its subscriber lies behind [KJ §2.2]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.events.event import Content
from holdfast.filters.expression import Filter
from holdfast.identity import SubscriptionId
from holdfast.matching.engine import new_index
from holdfast.matching.index import MatchingIndex
from holdfast.routing.port import Port

__all__ = ["Entry", "Table"]


class Entry:
    """A tuple ⟨pred, from⟩ of the table; ``from`` is a port: a client of ours, or a station δ+1 hops away at most."""

    __slots__ = ("filter", "numbers", "port", "subscription")

    def __init__(
        self, subscription: SubscriptionId, filter: Filter, port: Port, numbers: tuple[int, ...]
    ) -> None:
        self.subscription = subscription
        self.filter = filter
        self.port = port
        self.numbers = numbers  #: where the port is the subscriber's own: its number for it; else none


class Table:
    """The entries, found by their id, by their port, and by what matches them."""

    def __init__(self, index: MatchingIndex | None = None) -> None:
        self._index = index if index is not None else new_index()
        self._entries: dict[SubscriptionId, Entry] = {}
        self._slots: dict[SubscriptionId, int] = {}
        self.by_slot: list[Entry | None] = []  #: what the numbers that ``match`` gives stand for
        self.additions = 0  #: how many entries were ever added

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, subscription: SubscriptionId) -> Entry | None:
        """The entry of a subscription."""
        return self._entries.get(subscription)

    def add(self, entry: Entry) -> None:
        """Install an entry; there must be none under its id."""
        assert entry.subscription not in self._entries
        self.additions += 1
        slot = self._index.add(entry.filter)
        if slot == len(self.by_slot):
            self.by_slot.append(entry)
        else:
            self.by_slot[slot] = entry
        self._slots[entry.subscription] = slot
        self._entries[entry.subscription] = entry

    def remove(self, subscription: SubscriptionId) -> None:
        """Take an entry out."""
        slot = self._slots.pop(subscription)
        self._index.remove(slot)
        self.by_slot[slot] = None
        del self._entries[subscription]

    def match(self, events: Sequence[Content]) -> list[list[int]]:
        """For each event the slots of the entries that match it."""
        return self._index.match(events)
