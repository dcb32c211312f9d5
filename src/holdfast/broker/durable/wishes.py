"""Clients that wait for a durable subscription: to read what another broker has, or to hear that it is over.

Of each name there is one wish, the last; whoever is superseded hears so, and so does whoever gives up. It is asked for
until there is an answer (``moving``), or its time is up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holdfast.broker.durable.elsewhere import claim_of
from holdfast.broker.durable.reader import informed, withheld
from holdfast.clock import SECOND, Instant
from holdfast.filters.expression import Filter
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Fetch, Fetched, Ousted, Withheld
from holdfast.messages.message import Message
from holdfast.messages.subscriptions import NO_SEAT, Refused, Resume, Seat, Withdrawn
from holdfast.messages.ticks import Tick
from holdfast.overlay.transport import Send
from holdfast.routing.port import ClientPort

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["Wishes"]

#: So long a broker is asked where a subscription stands; less, if its client has a token.
FETCH_WITHIN_NS: Final = 5 * SECOND
CHECK_WITHIN_NS: Final = 3 * SECOND // 2

#: So long it is waited for brokers that are to hear that one is over, before its client is told so.
OVER_WITHIN_NS: Final = 2 * SECOND


@dataclass(frozen=True, slots=True)
class _Wish:
    """A client wants to read what another broker has, or may have."""

    port: ClientPort
    connection: int | None
    subscription: SubscriptionId
    filter: Filter
    resume: Resume
    broker: str | None  #: that is asked; None: it is waited for what others say by themselves
    until: Instant
    came: Tick = 0  #: when, by the wall clock: what is ended after that is ended for it, too
    is_ending: bool = False  #: its client does not want to read it any more, but to have it ended

    @property
    def durable(self) -> str:
        """The name it is about."""
        assert self.resume.durable is not None
        return self.resume.durable

    @property
    def client(self) -> tuple[ClientPort, int]:
        """Who wants it, under which number."""
        return self.port, self.subscription.number

    @property
    def is_there(self) -> bool:
        """Whether its client is."""
        return self.connection is not None and self.port.connection == self.connection


@dataclass(frozen=True, slots=True)
class _Over:
    """A client has ended a subscription, and waits to hear that."""

    durable: str
    port: ClientPort
    connection: int | None
    subscription: SubscriptionId
    until: Instant


class Wishes:
    """Of one broker's clients."""

    def __init__(self, plane: DurablePlane) -> None:
        self._plane = plane
        self._wishes: dict[str, _Wish] = {}  #: by durable name
        #: Which one a client waits for, by its own number.
        self._names: dict[tuple[ClientPort, int], str] = {}
        self._over: list[_Over] = []

    def __contains__(self, durable: str) -> bool:
        return durable in self._wishes

    def waits_for(self, durable: str, broker: str) -> bool:
        """Whether a broker is asked for one that somebody waits for here."""
        wish = self._wishes.get(durable)
        return wish is not None and wish.broker == broker

    # To read

    def fetch(
        self, broker: str, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume
    ) -> None:
        """Ask a broker where a subscription stands; then it is read here."""
        until = self._plane.now + (FETCH_WITHIN_NS if resume.token is None else CHECK_WITHIN_NS)
        clock = self._plane.clock
        wish = _Wish(port, port.connection, subscription, filter, resume, broker, until, clock)
        self._wait(wish)
        self._ask(wish)

    def postpone(
        self, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume, until: Instant
    ) -> None:
        """Whether a subscription is still here is not known yet: it is read later."""
        clock = self._plane.clock
        self._wait(_Wish(port, port.connection, subscription, filter, resume, None, until, clock))

    def _wait(self, wish: _Wish) -> None:
        known = self._wishes.get(wish.durable)
        if known is None or known.client != wish.client:
            self.oust(wish.durable)
        self._wishes[wish.durable] = wish
        self._names[wish.client] = wish.durable

    def oust(self, durable: str) -> None:
        """Another client reads a subscription here: whoever else waits for it waits in vain."""
        wish = self._drop(durable)
        if wish is not None:
            ousted = Ousted(wish.subscription.number, f"another client reads {durable}")
            self._say(wish.port, wish.connection, ousted)

    def give_up(self, port: ClientPort, subscription: int) -> None:
        """A client does not wait any more."""
        wish = self._wish_of(port, subscription)
        if wish is not None:
            self._drop(wish.durable)

    def answer(self, letter: Fetched) -> bool:
        """A broker has said where a subscription stands; whether somebody wanted to know."""
        wish = self._wishes.get(letter.durable)
        if wish is None or wish.broker != letter.origin:
            return False
        self._drop(letter.durable)
        brokers = {broker for _, broker in map(claim_of, self._plane.readers.elsewhere.of(letter.durable))}
        if not wish.is_there:
            return True
        born, resume = (letter.born, letter.born_at), wish.resume
        reason = withheld(wish.durable, letter.seat, born, had=resume.seat, read=resume.born)
        if reason:  # it was said to somebody else, who has gone
            self._say(wish.port, wish.connection, Ousted(wish.subscription.number, reason))
        elif wish.is_ending:
            self._end(wish, letter.seat)
        elif letter.places is not None and not self._is_over(letter):
            known = informed(wish.resume, letter.places)
            unborn = replace(letter, born=0, born_at="", start=None)
            self._take_over(wish, known, unborn if wish.resume.has_own_token else letter)
        elif brokers - {letter.origin}:  # it has moved on
            self._plane.readers.read(wish.port, wish.subscription, wish.filter, wish.resume)
        else:
            self._take_over(wish, wish.resume)
        return True

    def _is_over(self, letter: Fetched) -> bool:
        """Whether what a broker has said was overtaken by an end: then it is new here."""
        return self._plane.readers.endings.has_ended(letter.durable, (letter.epoch, letter.origin))

    def withhold(self, letter: Withheld) -> None:
        """A broker has it, but not for who wanted to go on; whoever has come here meanwhile is another matter."""
        wish = self._wishes.get(letter.durable)
        if wish is not None and (wish.broker, wish.resume.seat) == (letter.origin, letter.seat):
            self._drop(letter.durable)
            self._say(wish.port, wish.connection, Ousted(wish.subscription.number, letter.reason))

    def awaited_by_later(self, port: ClientPort, subscription: SubscriptionId, resume: Resume) -> str:
        """Why a client that was interrupted cannot go on: another waits that came after it; empty: none does."""
        wish = self._wishes.get(resume.durable or "")
        if wish is None or not wish.is_there or wish.client == (port, subscription.number):
            return ""
        if resume.seat == NO_SEAT:
            return ""
        is_later = wish.resume.seat == NO_SEAT or wish.resume.seat.is_after(resume.seat)
        return f"another client waits to read {wish.durable}" if is_later else ""

    def _take_over(self, wish: _Wish, resume: Resume, fetched: Fetched | None = None) -> None:
        presented = wish.resume
        self._plane.readers.take_over(
            wish.port, wish.subscription, wish.filter, resume, presented, fetched, wish.came
        )

    def repeat(self) -> None:
        """From time to time: whatever has no answer."""
        for over in self._over.copy():
            self._say_over(over)
        for wish in list(self._wishes.values()):
            if not wish.is_there:
                self._drop(wish.durable)
            elif self._plane.now >= wish.until:
                self._drop(wish.durable)
                self._wait_no_longer(wish)
            elif wish.broker is not None:
                self._ask(self._where_it_is(wish))

    def _where_it_is(self, wish: _Wish) -> _Wish:
        """It may have moved on since it was asked for: who had it knows only how it stood there."""
        _, elsewhere = self._plane.readers.find(wish.durable)
        if elsewhere is not None and elsewhere.subscription.subscriber != wish.broker:
            wish = replace(wish, broker=elsewhere.subscription.subscriber)
            self._wishes[wish.durable] = wish
        return wish

    def _wait_no_longer(self, wish: _Wish) -> None:
        if wish.is_ending:
            self._end(wish)
        elif wish.broker is None:
            self._plane.readers.read(wish.port, wish.subscription, wish.filter, wish.resume)
        elif wish.resume.token is not None:
            self._take_over(wish, wish.resume)
        else:
            problem = f"{wish.durable!r} is kept at {wish.broker}, which does not answer: come later, or with its token"
            self._say(wish.port, wish.connection, Refused(wish.subscription, problem))

    # To end

    def end(self, port: ClientPort, subscription: SubscriptionId) -> bool:
        """A client wants to have ended what it waits for; whether it waits for anything."""
        wish = self._wish_of(port, subscription.number)
        if wish is None:
            return False
        if wish.broker is None or wish.resume.seat != NO_SEAT:  # whoever has come since may read it
            self._wishes[wish.durable] = replace(wish, is_ending=True)
        else:
            self._drop(wish.durable)
            self._end(wish)
        return True

    def _end(self, wish: _Wish, seat: Seat = NO_SEAT) -> None:
        """It is over, here and wherever else it is; whoever had it last there had a seat."""
        durable = wish.durable
        self._plane.readers.end(durable, f"{durable} was ended", seat)
        self._plane.saving.add(then=lambda: self.on_over(durable, wish.port, wish.subscription))

    def on_over(self, durable: str, port: ClientPort, subscription: SubscriptionId) -> None:
        """A subscription is over here, as its client wished; it hears so when it is everywhere.

        For a broker that does not answer it does not wait: that will be told when it comes back.
        """
        over = _Over(durable, port, port.connection, subscription, self._plane.now + OVER_WITHIN_NS)
        self._over.append(over)
        self._say_over(over)

    def _say_over(self, over: _Over) -> None:
        is_over = self._plane.readers.endings.is_over(over.durable)
        if is_over or self._plane.now >= over.until or over.port.connection != over.connection:
            self._over.remove(over)
            self._say(over.port, over.connection, Withdrawn(over.subscription))

    def on_taken(self, durable: str) -> None:
        """A broker has let go of one."""
        for over in [each for each in self._over if each.durable == durable]:
            self._say_over(over)

    # Both

    def _wish_of(self, port: ClientPort, subscription: int) -> _Wish | None:
        name = self._names.get((port, subscription))
        return None if name is None else self._wishes.get(name)

    def _drop(self, durable: str) -> _Wish | None:
        wish = self._wishes.pop(durable, None)
        if wish is not None and self._names.get(wish.client) == durable:  # not if it has used a number twice
            del self._names[wish.client]
        return wish

    def _say(self, port: ClientPort, connection: int | None, message: Message) -> None:
        if connection is not None and port.connection == connection:
            self._plane.emit(Send(connection, [message]))

    def _ask(self, wish: _Wish) -> None:
        assert wish.broker is not None
        seat, born = wish.resume.seat, wish.resume.born
        self._plane.letters.post(Fetch(wish.broker, self._plane.name, wish.durable, seat, born))
