"""Brokers broken on purpose, one fault each: a checker that does not catch its own is no checker.

Each changes what a sound broker says on its way out. Much of what a broker does wrong a sound client puts right or
cannot see (it turns repeats away, and drops what it did not ask for), so some need a client whose edge lets
everything pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Settings
from holdfast.clock import Instant
from holdfast.messages.durable import Logged, Portion, Report
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted, Batch, Deliveries, Publications, Rejected
from holdfast.messages.subscriptions import Confirmed, Unsubscribe, Withdrawn
from holdfast.messages.ticks import ABSOLUTE, Items
from holdfast.overlay.transport import Received, Send
from holdfast.streams.storing import AppendEvents, EventsStable, NoteMatches


class BrokenBroker(Broker):
    """Sound but for ``spoil``, which sees every message that goes out."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.seen = 0

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        effects: list[Any] = []
        for effect in super().step(stimulus, now):
            if isinstance(effect, Send):
                messages = [said for message in effect.messages for said in self.spoil(message)]
                effect = Send(effect.connection, messages)
            effects.append(effect)
        return effects

    def spoil(self, message: Message) -> Sequence[Message]:
        return [message]

    def is_time(self) -> bool:
        """Every third time it is asked."""
        self.seen += 1
        return self.seen % 3 == 0


class Repeating(BrokenBroker):
    """Delivers an event twice to the same subscription."""

    def spoil(self, message: Message) -> Sequence[Message]:
        return [message, message] if isinstance(message, Deliveries) and self.is_time() else [message]


class Doubling(BrokenBroker):
    """Names a subscription twice in one delivery."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if not isinstance(message, Deliveries):
            return [message]
        return [replace(message, subscriptions=[(*each, each[0]) for each in message.subscriptions])]


class Swapping(BrokenBroker):
    """Lets an event overtake the one before it."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        self.kept: dict[int, Message] = {}

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        effects: list[Any] = []
        for effect in Broker.step(self, stimulus, now):
            if isinstance(effect, Send) and isinstance(effect.messages[0], Deliveries):
                kept = self.kept.pop(effect.connection, None)
                if kept is not None:
                    effect = Send(effect.connection, [*effect.messages, kept])
                elif self.is_time():
                    self.kept[effect.connection] = effect.messages[0]
                    effect = Send(effect.connection, effect.messages[1:])
            effects.append(effect)
        return effects


class Dropping(BrokenBroker):
    """Does not deliver some events."""

    def spoil(self, message: Message) -> Sequence[Message]:
        return [] if isinstance(message, Deliveries) and self.is_time() else [message]


class NotForwarding(BrokenBroker):
    """Does not pass some events on to its neighbours."""

    def spoil(self, message: Message) -> Sequence[Message]:
        return [] if isinstance(message, Publications) and self.is_time() else [message]


class Careless(BrokenBroker):
    """Delivers to all subscriptions of a subscriber what matches one of them."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if not isinstance(message, Deliveries):
            return [message]
        return [replace(message, subscriptions=[(1, 2, 3, 4)] * len(message.at))]


class Silent(BrokenBroker):
    """Forgets to pass some confirmations on."""

    def spoil(self, message: Message) -> Sequence[Message]:
        return [] if isinstance(message, Confirmed) and self.is_time() else [message]


class Mute(BrokenBroker):
    """Acknowledges nothing."""

    def spoil(self, message: Message) -> Sequence[Message]:
        return [] if isinstance(message, Accepted) else [message]


class Refusing(BrokenBroker):
    """Refuses an event now and then, for no reason."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if not isinstance(message, Accepted) or not self.is_time():
            return [message]
        return [Rejected(message.upto, "no reason"), message]


class Failing(BrokenBroker):
    """Lets an exception escape."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if isinstance(message, Deliveries | Portion):
            raise ZeroDivisionError("the broker's own fault")
        return [message]


class Resurrecting(BrokenBroker):
    """Says that a subscription is over, and keeps it."""

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        if not isinstance(stimulus, Received):
            return super().step(stimulus, now)
        ended = [message for message in stimulus.messages if isinstance(message, Unsubscribe)]
        others: list[Message] = [
            message for message in stimulus.messages if not isinstance(message, Unsubscribe)
        ]
        effects = super().step(Received(stimulus.connection, others), now) if others else []
        if ended:
            effects.append(Send(stimulus.connection, [Withdrawn(message.subscription) for message in ended]))
        return effects


# Of durable networks


class Skipping(BrokenBroker):
    """Leaves an event out of what a subscriber is told, as if it had not matched."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if isinstance(message, Portion) and message.at and self.is_time():
            return [replace(message, at=message.at[1:])]
        return [message]


class Hushing(BrokenBroker):
    """Passes an event on as silence: what it has not understood did not happen [lo]."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if isinstance(message, Items) and any(message.publications) and self.is_time():
            return [replace(message, publications=[None] * len(message))]
        return [message]


class Absolving(BrokenBroker):
    """Passes an event on as silence for whoever asks."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if isinstance(message, Items) and any(message.publications) and self.is_time():
            return [replace(message, publications=[None] * len(message), under=ABSOLUTE)]
        return [message]


class Muddling(BrokenBroker):
    """Gives the events of a portion each other's ticks."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if not isinstance(message, Portion) or len(message.at) < 2:
            return [message]
        first, second = message.at[0], message.at[1]
        swapped = list(message.batch.publications)
        swapped[first], swapped[second] = swapped[second], swapped[first]
        return [replace(message, batch=Batch(swapped))]


class Misplacing(BrokenBroker):
    """Writes another tick on the receipt than into the log."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if not isinstance(message, Logged) or not self.is_time():
            return [message]
        return [replace(message, runs=tuple(run._replace(tick=run.tick + 1) for run in message.runs))]


class Pessimistic(BrokenBroker):
    """Tells of a gap where nothing is gone."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if not isinstance(message, Portion) or not message.at or not self.is_time():
            return [message]
        lost_through = message.ticks[message.at[0]] - 1
        return [replace(message, lost_through=lost_through, reason="max_retain")]


class Unassuring(BrokenBroker):
    """Never says that there was nothing."""

    def spoil(self, message: Message) -> Sequence[Message]:
        return [] if isinstance(message, Portion) and not message.at else [message]


class Generous(BrokenBroker):
    """Reports everything that was delivered as acknowledged, whoever is away [I17]."""

    def spoil(self, message: Message) -> Sequence[Message]:
        if isinstance(message, Report):
            return [replace(message, released=message.delivered)]
        return [message]


class Hasty(BrokenBroker):
    """Takes for stable what it has only said it would write."""

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        if isinstance(stimulus, EventsStable):
            return []
        effects = super().step(stimulus, now)
        for append in [effect for effect in effects if isinstance(effect, AppendEvents)]:
            effects += super().step(EventsStable(append.pubend, 1, 0), now)
        return effects


class Forgetful(BrokenBroker):
    """Begins each life with an empty disk."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings)


class Unnoting(BrokenBroker):
    """Leaves a match out of its filtering log [I21]."""

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        return [self.noted(effect) for effect in super().step(stimulus, now)]

    def noted(self, effect: Any) -> Any:
        if isinstance(effect, NoteMatches) and effect.records and self.is_time():
            (tick, readers), *others = effect.records
            return replace(effect, records=[*([(tick, readers[1:])] if readers[1:] else []), *others])
        return effect


class Overnoting(Unnoting):
    """Notes for every durable subscription what matched one of them [I21]."""

    def noted(self, effect: Any) -> Any:
        if not isinstance(effect, NoteMatches) or self.durable is None:
            return effect
        all_of_them = sorted(reader.number for reader in self.durable.readers.durable.values())
        return replace(effect, records=[(tick, all_of_them) for tick, _ in effect.records])
