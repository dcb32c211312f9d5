"""How subscriptions spread over the tree and are confirmed [KJ §3, without failures]; how brokers that meet agree.

A subscription goes outward to every neighbour but the one it came from. When all of them have confirmed, it is
confirmed to where it came from and installed, in one step: STEP-I and STEP-II of [KJ §3.5]. A neighbour that cannot
be reached is not waited for; the confirmation then names the partition. A withdrawal takes effect at once and is
confirmed likewise.

Two brokers that begin a session tell each other the subscriptions on their side, before any publication. A broker
tells its table to one neighbour only once it has heard those of all others, or knows them to be absent: so a table
is whole when it is told, and what is missing from it is over. In a tree this waits for nobody twice: what X needs
of me does not depend on X.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.subscriptions import (
    PARTITIONS_MAX,
    TABLE_ROWS_MAX,
    TABLE_TEXT_MAX,
    Confirmed,
    Partition,
    Row,
    Subscribe,
    Table,
    Unsubscribe,
    Withdrawn,
)
from holdfast.overlay.sequence_vector import cut, extended
from holdfast.overlay.transport import Send, TransportEffect
from holdfast.routing.port import ClientPort, NeighbourPort, Port
from holdfast.routing.table import Entry
from holdfast.routing.table import Table as RoutingTable

__all__ = ["Advertisement", "Reused"]


class Reused(Exception):
    """A subscription came under an id that belongs to another."""


@dataclass(slots=True)
class _Pending:
    """A subscription that waits for confirmations. Invariant: ``waiting`` names neighbours in session."""

    entry: Entry
    is_asked: bool  #: whether the sender wants a confirmation; the rows of a table need none
    waiting: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Withdrawing:
    """A withdrawal that waits for confirmations."""

    sender: Port
    is_asked: bool
    waiting: dict[str, None] = field(default_factory=dict)


class Advertisement:
    """The control plane of one broker."""

    def __init__(
        self, node: str, incarnation: int, table: RoutingTable, neighbours: Sequence[NeighbourPort]
    ) -> None:
        self._node = node
        self._incarnation = incarnation
        self._table = table
        self._neighbours = neighbours
        self._control_seq = 0
        self._pending: dict[SubscriptionId, _Pending] = {}
        self._withdrawing: dict[SubscriptionId, _Withdrawing] = {}

    @property
    def pending(self) -> int:
        """How many subscriptions wait for confirmations."""
        return len(self._pending)

    # Subscriptions

    def on_subscribe(self, sender: Port, message: Subscribe) -> list[TransportEffect]:
        """Somebody behind ``sender`` subscribes.

        :raises FilterError: if the filter is refused; nothing has changed then.
        :raises Reused: if the id belongs to another; nor then.
        """
        filter = self._filter(sender, message)
        self._check_same(sender, message.subscription, filter)
        return self._take(sender, message, filter, is_asked=True)

    def _take(
        self, sender: Port, message: Subscribe | Row, filter: Filter, is_asked: bool
    ) -> list[TransportEffect]:
        subscription = message.subscription
        known = self._table.get(subscription)
        pending = self._pending.get(subscription)
        if known is not None and known.port is sender:
            return self._answer(sender, Confirmed(subscription, known.partial)) if is_asked else []
        if pending is not None and pending.entry.port is sender:
            pending.is_asked = pending.is_asked or is_asked
            return []
        moved = self._forget(subscription)
        vector = cut(message.vector, delta=0)
        entry = Entry(subscription, filter, vector, sender, _numbers(sender, subscription))
        return moved + self._spread(_Pending(entry, is_asked))

    def knows(self, sender: Port, subscription: SubscriptionId) -> bool:
        """Whether a subscription from there is installed or on its way."""
        return self._entry(sender, subscription) is not None

    def _entry(self, sender: Port, subscription: SubscriptionId) -> Entry | None:
        entry = self._table.get(subscription)
        if entry is None and (pending := self._pending.get(subscription)) is not None:
            entry = pending.entry
        return entry if entry is not None and entry.port is sender else None

    def _filter(self, sender: Port, message: Subscribe | Row) -> Filter:
        """The filter of a subscription; one that is known is not parsed again."""
        entry = self._entry(sender, message.subscription)
        return (
            entry.filter
            if entry is not None and entry.text == message.filter
            else parse_filter(message.filter)
        )

    def _check_same(self, sender: Port, subscription: SubscriptionId, filter: Filter) -> None:
        entry = self._entry(sender, subscription)
        if entry is not None and entry.filter != filter:
            raise Reused(f"{subscription} is {entry.text}, and cannot become {filter}")

    def _spread(self, pending: _Pending) -> list[TransportEffect]:
        entry = pending.entry
        effects: list[TransportEffect] = []
        onward = Subscribe(entry.subscription, entry.text, self._stamped(entry.vector))
        for neighbour in self._neighbours:
            if neighbour is entry.port:
                continue
            if neighbour.is_told:
                assert neighbour.connection is not None
                pending.waiting[neighbour.name] = None
                effects.append(Send(neighbour.connection, [onward]))
            else:
                entry.partial += (self._partition(neighbour),)
        self._pending[entry.subscription] = pending
        return effects if pending.waiting else effects + self._complete(pending)

    def _complete(self, pending: _Pending) -> list[TransportEffect]:
        entry = pending.entry
        del self._pending[entry.subscription]
        effects = self._answer(entry.port, Confirmed(entry.subscription, entry.partial))
        self._table.add(entry)
        return effects if pending.is_asked else []

    def on_confirmed(self, sender: NeighbourPort, message: Confirmed) -> list[TransportEffect]:
        """Everybody reachable beyond a neighbour knows a subscription."""
        pending = self._pending.get(message.subscription)
        if pending is None or sender.name not in pending.waiting:
            return []  # withdrawn meanwhile, or told in a table, which needs no confirmation
        del pending.waiting[sender.name]
        pending.entry.partial = (pending.entry.partial + message.partial)[:PARTITIONS_MAX]
        return [] if pending.waiting else self._complete(pending)

    # Withdrawals

    def on_unsubscribe(
        self, sender: Port, subscription: SubscriptionId, *, is_asked: bool = True
    ) -> list[TransportEffect]:
        """Somebody behind ``sender`` is not interested any more."""
        known = self._table.get(subscription)
        pending = self._pending.get(subscription)
        if known is not None and known.port is sender:
            self._table.remove(subscription)
        elif pending is not None and pending.entry.port is sender:
            del self._pending[subscription]
        elif (under_way := self._withdrawing.get(subscription)) is not None and under_way.sender is sender:
            under_way.is_asked = under_way.is_asked or is_asked
            return []
        else:  # unknown, or by now somebody else's
            return self._answer(sender, Withdrawn(subscription)) if is_asked else []
        withdrawing = _Withdrawing(sender, is_asked)
        effects: list[TransportEffect] = []
        for neighbour in self._neighbours:
            if neighbour is not sender and neighbour.is_told:
                assert neighbour.connection is not None
                withdrawing.waiting[neighbour.name] = None
                effects.append(Send(neighbour.connection, [Unsubscribe(subscription)]))
        self._withdrawing[subscription] = withdrawing
        return effects if withdrawing.waiting else effects + self._finish(subscription)

    def _finish(self, subscription: SubscriptionId) -> list[TransportEffect]:
        withdrawing = self._withdrawing.pop(subscription)
        if not withdrawing.is_asked:
            return []
        return self._answer(withdrawing.sender, Withdrawn(subscription))

    def on_withdrawn(self, sender: NeighbourPort, message: Withdrawn) -> list[TransportEffect]:
        """Everybody reachable beyond a neighbour has forgotten a subscription."""
        withdrawing = self._withdrawing.get(message.subscription)
        if withdrawing is None or sender.name not in withdrawing.waiting:
            return []
        del withdrawing.waiting[sender.name]
        return [] if withdrawing.waiting else self._finish(message.subscription)

    def _forget(self, subscription: SubscriptionId) -> list[TransportEffect]:
        """A subscription that was known from elsewhere has moved: its old route goes before its new one comes."""
        known = self._table.get(subscription)
        pending = self._pending.get(subscription)
        old = known.port if known is not None else pending.entry.port if pending is not None else None
        return [] if old is None else self.on_unsubscribe(old, subscription, is_asked=False)

    # Tables

    def tell(self, neighbour: NeighbourPort) -> list[TransportEffect]:
        """Our table, for a neighbour: every subscription that did not come from it, installed or pending."""
        assert neighbour.connection is not None
        assert not neighbour.is_told
        neighbour.is_told = True
        entries = [*self._table, *(pending.entry for pending in self._pending.values())]
        rows = [
            Row(entry.subscription, entry.text, self._stamped(entry.vector))
            for entry in entries
            if entry.port is not neighbour and self._neighbours
        ]
        return [Send(neighbour.connection, _pieces(rows))]

    def on_table(
        self, sender: NeighbourPort, rows: Sequence[Row], *, last: bool = True
    ) -> list[TransportEffect]:
        """A piece of a neighbour's table. What it adds is taken up at once: a large table is no long step.

        What the whole table lacks is over.

        :raises FilterError: if the filter of a row is refused; nothing has changed then.
        :raises Reused: if the id of a row belongs to another; nor then.
        """
        filters = [self._filter(sender, row) for row in rows]
        new: dict[SubscriptionId, Filter] = {}
        for row, filter in zip(rows, filters, strict=True):
            self._check_same(sender, row.subscription, filter)
            if new.setdefault(row.subscription, filter) != filter:
                raise Reused(f"{row.subscription} stands twice in a table")
        sender.listed.update(new)
        effects: list[TransportEffect] = []
        for row, filter in zip(rows, filters, strict=True):
            effects += self._take(sender, row, filter, is_asked=False)
        return effects + self._withdraw_unlisted(sender) if last else effects

    def _withdraw_unlisted(self, sender: NeighbourPort) -> list[TransportEffect]:
        held = [entry.subscription for entry in self._table.behind(sender)]
        held += [each for each, pending in self._pending.items() if pending.entry.port is sender]
        effects: list[TransportEffect] = []
        for subscription in held:
            if subscription not in sender.listed:
                effects += self.on_unsubscribe(sender, subscription, is_asked=False)
        sender.listed = set()
        return effects

    def on_absent(self, neighbour: NeighbourPort) -> list[TransportEffect]:
        """A session with a neighbour is over: nobody waits for its confirmations any more."""
        effects: list[TransportEffect] = []
        for pending in list(self._pending.values()):
            if neighbour.name in pending.waiting:
                del pending.waiting[neighbour.name]
                pending.entry.partial += (self._partition(neighbour),)
                effects += [] if pending.waiting else self._complete(pending)
        for subscription, withdrawing in list(self._withdrawing.items()):
            if withdrawing.waiting.pop(neighbour.name, 0) is None and not withdrawing.waiting:
                effects += self._finish(subscription)
        return effects

    # Small things

    def _next_seq(self) -> int:
        self._control_seq += 1
        return self._control_seq

    def _stamped(self, vector: tuple[Element, ...]) -> tuple[Element, ...]:
        return extended(vector, Element(self._node, self._incarnation, self._next_seq()), delta=0)

    def _partition(self, neighbour: NeighbourPort) -> Partition:
        return Partition(self._node, self._incarnation, self._next_seq(), (neighbour.name,))

    def _answer(self, port: Port, message: Message) -> list[TransportEffect]:
        return [] if port.connection is None else [Send(port.connection, [message])]


def _numbers(sender: Port, subscription: SubscriptionId) -> tuple[int, ...]:
    return (subscription.number,) if isinstance(sender, ClientPort) else ()


def _pieces(rows: list[Row]) -> list[Message]:
    """A table as messages none of which is large; an empty one is a message too."""
    pieces: list[list[Row]] = [[]]
    text = 0
    for row in rows:
        if len(pieces[-1]) == TABLE_ROWS_MAX or text > TABLE_TEXT_MAX:
            pieces.append([])
            text = 0
        pieces[-1].append(row)
        text += len(row.filter)
    return [Table(tuple(piece), piece is pieces[-1]) for piece in pieces]
