"""The streams that are logged, for all subscriptions of a client: portions in, credit and acknowledgements out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from holdfast.client.effect import Committed, Effect, Placed
from holdfast.client.inbox import Inbox
from holdfast.messages.durable import Credit, Logged, Portion, Saved
from holdfast.messages.message import Message
from holdfast.messages.ticks import Tick

__all__ = ["Answer", "LoggedStreams"]

#: What the application hears, and what the broker is told, if there is one.
Answer = tuple[list[Effect], list[Message]]


class LoggedStreams:
    """On top of the subscriptions of an inbox."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def hear(self, message: Portion | Saved | Logged) -> Answer:
        """A broker says something."""
        match message:
            case Portion():
                return self._on_portion(message)
            case Logged(pubend, incarnation, runs, repeats):
                return [Placed(pubend, incarnation, runs, repeats)], []
            case Saved(number, ticket):
                return self._on_saved(number, ticket)
            case _:
                assert_never(message)

    def _on_portion(self, portion: Portion) -> Answer:
        subscription = self._inbox.subscriptions.get(portion.subscription)
        if subscription is None:
            return [], []  # it has ended meanwhile
        stretch = subscription.reading.take(portion)
        self._inbox.turned_away += len(portion.at) - (0 if stretch is None else len(stretch.ticks))
        return [] if stretch is None else [stretch], self._credit(portion.subscription)

    def _on_saved(self, number: int, ticket: int) -> Answer:
        subscription = self._inbox.subscriptions.get(number)
        if subscription is None or not subscription.acknowledging.on_saved(ticket):
            return [], []
        return [Committed(number, ticket)], self.acknowledge(number)

    def consume(self, number: int, events: int) -> list[Message]:
        """The application has taken events."""
        subscription = self._inbox.subscriptions.get(number)
        if subscription is None or not events:
            return []
        subscription.reading.consume(events)
        return self._credit(number)

    def _credit(self, number: int) -> list[Message]:
        credit = self._inbox.subscriptions[number].reading.next_credit()
        return [Credit(number, credit)] if credit else []

    def commit(self, number: int, places: Mapping[str, Tick], ticket: int) -> None:
        """The application has consumed."""
        subscription = self._inbox.subscriptions.get(number)
        if subscription is not None:
            subscription.acknowledging.commit(places, ticket)

    def acknowledge(self, number: int) -> list[Message]:
        """What is to be said of that now; nothing before the broker knows the subscription."""
        subscription = self._inbox.subscriptions.get(number)
        if subscription is None or not subscription.is_current:
            return []
        message = subscription.acknowledging.next_message(number)
        return [] if message is None else [message]

    def acknowledge_all(self, number: int) -> list[Message]:
        """The same, of everything that has no answer yet: a subscription is about to be left."""
        if number in self._inbox.subscriptions:
            self._inbox.subscriptions[number].acknowledging.begin_again()
        return self.acknowledge(number)
