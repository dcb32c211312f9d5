"""Durable subscriptions that are read at another broker than before (B1.9).

Whoever presents the name reads it, at any broker. A client that keeps its own token says where it stands; for one that
does not, the broker that has the subscription is asked; and of one that does, too, since that broker knows up to where
nothing was for it. Only when the pubends wait for it at its new place is it
forgotten at the old one: nothing that it has not acknowledged goes in between. Each move has its number, the epoch, so
that an old one, heard of late, undoes nothing. It is a time by the wall clock, and above the last one's: so a broker
that was down, and has not heard of the last move, knows whether its client came after it.

Two clients may come at once to two brokers. The one that is asked gives it to the first. Where nobody could be asked,
because it is new or those who have it are out of reach, both begin it; they hear of each other, and the later claim
asks the other how far it is there, goes on where neither has been, and ousts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holdfast.broker.durable.elsewhere import claim_of, rank
from holdfast.broker.durable.greeting import ADMIT_WITHIN_NS
from holdfast.broker.durable.joining import had, joined
from holdfast.broker.durable.reader import Reader
from holdfast.clock import SECOND, Instant
from holdfast.filters.expression import Filter
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Fetch, Fetched, Letter, Moved, MovedTaken, Ousted, Stand
from holdfast.messages.message import Message
from holdfast.messages.subscriptions import Durable, Refused, Resume, Withdrawn
from holdfast.messages.ticks import Tick
from holdfast.node.interest import Interest
from holdfast.overlay.transport import Send
from holdfast.routing.port import ClientPort

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["Moving"]

#: So long a broker is asked where a subscription stands; less, if its client has a token.
FETCH_WITHIN_NS: Final = 5 * SECOND
CHECK_WITHIN_NS: Final = 3 * SECOND // 2


#: So long it is waited for brokers that are to hear that one is over, before its client is told so.
OVER_WITHIN_NS: Final = 2 * SECOND

#: Whoever was told where a subscription stands has so long to read it before another is told.
GIVEN_FOR_NS: Final = SECOND

#: So long what it stands before is kept for them; a broker that has it has said so by then.
HELD_FOR_NS: Final = 60 * SECOND


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
    is_ending: bool = False  #: its client does not want to read it any more, but to have it ended

    @property
    def durable(self) -> str:
        """The name it is about."""
        assert self.resume.durable is not None
        return self.resume.durable

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


class Moving:
    """Of one broker."""

    def __init__(self, plane: DurablePlane) -> None:
        self._plane = plane
        self._wishes: dict[str, _Wish] = {}  #: by durable name
        self._over: list[_Over] = []
        self._given: dict[str, tuple[str, Instant]] = {}  #: who was told last where one stands, and when

    # Who waits

    def fetch(
        self, broker: str, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume
    ) -> None:
        """Ask a broker where a subscription stands; then it is read here."""
        until = self._plane.now + (FETCH_WITHIN_NS if resume.token is None else CHECK_WITHIN_NS)
        wish = _Wish(port, port.connection, subscription, filter, resume, broker, until)
        self._wait(wish)
        self._ask(wish)

    def postpone(
        self, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume, until: Instant
    ) -> None:
        """Whether a subscription is still here is not known yet: it is read later."""
        self._wait(_Wish(port, port.connection, subscription, filter, resume, None, until))

    def _wait(self, wish: _Wish) -> None:
        known = self._wishes.get(wish.durable)
        if known is None or (known.port, known.subscription) != (wish.port, wish.subscription):
            self._oust(wish.durable)
        self._wishes[wish.durable] = wish

    def supersede(self, durable: str) -> None:
        """Another client reads a subscription here: whoever else waits for it waits in vain."""
        self._given.pop(durable, None)
        self._oust(durable)

    def _oust(self, durable: str) -> None:
        wish = self._wishes.pop(durable, None)
        if wish is not None and wish.is_ending:
            self._end(wish)
        elif wish is not None:
            self._say(
                wish.port,
                wish.connection,
                Ousted(wish.subscription.number, f"another client reads {durable}"),
            )

    def give_up(self, port: ClientPort, subscription: int) -> None:
        """A client does not wait any more."""
        wish = self._wish_of(port, subscription)
        if wish is not None:
            del self._wishes[wish.durable]

    def end(self, port: ClientPort, subscription: SubscriptionId) -> bool:
        """A client wants to have ended what it waits for; whether it waits for anything."""
        wish = self._wish_of(port, subscription.number)
        if wish is None:
            return False
        if wish.broker is None:
            self._wishes[wish.durable] = replace(wish, is_ending=True)
        else:
            del self._wishes[wish.durable]
            self._end(wish)
        return True

    def _end(self, wish: _Wish) -> None:
        """It is over, here and wherever else it is."""
        readers, durable = self._plane.readers, wish.durable
        reader, others = readers.durable.get(durable), readers.elsewhere.of(durable)
        if reader is not None:
            if reader.port is not None:
                readers.oust(reader, f"{durable} was ended")
            readers.remove(reader)
        if others:
            last, _ = claim_of(others[0])
            brokers = [each.subscription.subscriber for each in others]
            readers.endings.owe(durable, brokers, max(self._plane.clock, last + 1))
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

    def _wish_of(self, port: ClientPort, subscription: int) -> _Wish | None:
        whose = port, subscription
        found = (each for each in self._wishes.values() if (each.port, each.subscription.number) == whose)
        return next(found, None)

    def _say(self, port: ClientPort, connection: int | None, message: Message) -> None:
        if connection is not None and port.connection == connection:
            self._plane.emit(Send(connection, [message]))

    def _ask(self, wish: _Wish) -> None:
        assert wish.broker is not None
        self._plane.letters.post(Fetch(wish.broker, self._plane.name, wish.durable))

    def receive(self, letter: Letter) -> None:
        """Another broker has written."""
        match letter:
            case Fetch():
                self._on_fetch(letter)
            case Fetched():
                self._on_fetched(letter)
            case Moved():
                self._on_moved(letter)
            case MovedTaken():
                self._on_moved_taken(letter)

    def repeat(self) -> None:
        """From time to time: whatever has no answer."""
        for reader in self._plane.readers.durable.values():
            if reader.moved_from:
                self._tell(reader)
        self._plane.readers.endings.repeat()
        self._let_go()
        for over in self._over.copy():
            self._say_over(over)
        for wish in list(self._wishes.values()):
            if not wish.is_there:
                del self._wishes[wish.durable]
            elif self._plane.now >= wish.until:
                del self._wishes[wish.durable]
                self._wait_no_longer(wish)
            elif wish.broker is not None:
                self._ask(wish)

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

    # Where it stands

    def _on_fetch(self, letter: Fetch) -> None:
        readers, durable = self._plane.readers, letter.durable
        if durable in self._wishes:
            return  # it is about to be here; it will be asked again
        reader, places = readers.durable.get(durable), None
        if reader is not None:
            if reader.port is not None:
                readers.oust(reader, f"{durable} is read at {letter.origin}")
            places = readers.greeting.stands(reader)
            if places is None or self.given_to(durable) not in (None, letter.origin):
                return  # it will ask again
            readers.places.hold(reader, is_held=True)
            self._given[durable] = letter.origin, self._plane.now
        answer = Fetched(letter.origin, self._plane.name, durable, places)
        if reader is not None and reader.durable is not None:
            born, born_at = reader.born
            answer = replace(answer, epoch=reader.durable.epoch, born=born, born_at=born_at)
        self._plane.saving.add(then=lambda: self._plane.letters.post(answer))

    def given_to(self, durable: str) -> str | None:
        """The broker that was just told where a subscription stands, and is going to read it."""
        broker, at = self._given.get(durable, ("", 0))
        return broker if broker and self._plane.now < at + GIVEN_FOR_NS else None

    def _let_go(self) -> None:
        """What was told to somebody who has made nothing of it is kept for them no longer."""
        now, places = self._plane.now, self._plane.readers.places
        held = [reader for reader in self._plane.readers.durable.values() if reader.is_held]
        self._given = {reader.name: self._given.get(reader.name, ("", now)) for reader in held}
        for reader in held:
            _, at = self._given[reader.name]
            if now >= at + HELD_FOR_NS:
                places.hold(reader, is_held=False)

    def _on_fetched(self, letter: Fetched) -> None:
        wish = self._wishes.get(letter.durable)
        if wish is None or wish.broker != letter.origin:
            reader = self._plane.readers.durable.get(letter.durable)
            if reader is not None and letter.origin in reader.unmerged and not reader.is_held:
                self._merge(reader, letter)
            return
        del self._wishes[letter.durable]
        if not wish.is_there:
            return
        if letter.places is not None:
            known = _known(wish.resume, letter.places)
            self._take_over(wish, known, letter if wish.resume.token is None else replace(letter, born=0))
        elif {claim_of(each)[1] for each in self._plane.readers.elsewhere.of(letter.durable)} - {
            letter.origin
        }:
            self._plane.readers.read(
                wish.port, wish.subscription, wish.filter, wish.resume
            )  # it has moved on
        else:
            self._take_over(wish, wish.resume)

    def _take_over(self, wish: _Wish, resume: Resume, fetched: Fetched | None = None) -> None:
        presented = wish.resume
        self._plane.readers.take_over(wish.port, wish.subscription, wish.filter, resume, presented, fetched)

    # That it is here now

    def on_rival(self, interest: Interest) -> None:
        """A broker has made a subscription known: if it is here by a later claim, it is to be forgotten there."""
        assert interest.durable is not None
        readers, (epoch, broker) = self._plane.readers, claim_of(interest)
        reader = readers.durable.get(interest.durable.name)
        if reader is None or rank(reader.durable, self._plane.name) < (epoch, broker):
            return
        known = reader.moved_from.get(broker, -1)
        if (epoch, broker) < reader.born and known <= epoch:  # else it is one that is over
            reader.unmerged.setdefault(broker, self._plane.now + ADMIT_WITHIN_NS)
        if known < epoch:
            reader.moved_from[broker] = epoch
            readers.places.save_reader(reader)

    def _merge(self, reader: Reader, letter: Fetched) -> None:
        """It was begun at another broker, too: it goes on here where nobody has been at either."""
        readers, broker = self._plane.readers, letter.origin
        claim = reader.moved_from.get(broker, 0), broker
        is_first = reader.durable is not None and reader.born == rank(reader.durable, self._plane.name)
        theirs_is_first = (letter.born, letter.born_at) == claim
        places: dict[str, Tick] = {}
        goes_back = False
        for course in self._plane.courses_for(reader.filter):
            mine, theirs = readers.places.stand(reader, course), (letter.places or {}).get(course.pubend)
            if mine is not None and theirs is not None:
                position = joined(had(mine, is_first=is_first), had(theirs, is_first=theirs_is_first))
                places[course.pubend] = position
                goes_back = goes_back or position < mine.released
        del reader.unmerged[broker]
        reader.born = min(reader.born, claim)
        if goes_back and reader.is_greeted:
            readers.oust(reader, f"{reader.name} was begun at {broker}, too, and goes on from there")
        if not reader.is_greeted:
            self._plane.operating.seeking.put(reader, places)
        readers.places.save_reader(reader)
        readers.greeting.greet(reader)

    def _tell(self, reader: Reader) -> None:
        """Where a subscription came from it need not be kept, once it is waited for here.

        Of one that was given away that is for those to say who have it now.
        """
        if (
            reader.is_held
            or not reader.moved_from
            or not reader.is_confirmed
            or reader.awaited
            or reader.durable is None
        ):
            return
        courses = self._plane.courses_for(reader.filter)
        if all(course.hosted.taken >= reader.pins.get(course.pubend, 0) for course in courses):
            me, (name, epoch) = self._plane.name, (reader.durable.name, reader.durable.epoch)
            for broker in reader.moved_from:
                if broker not in reader.unmerged:
                    self._plane.letters.post(Moved(broker, me, name, epoch))
            if reader.unmerged:  # the latest first
                _, broker = max((reader.moved_from.get(each, 0), each) for each in reader.unmerged)
                self._plane.letters.post(Fetch(broker, me, name))

    def _on_moved(self, letter: Moved) -> None:
        readers = self._plane.readers
        reader = readers.durable.get(letter.durable)
        answer = MovedTaken(letter.origin, self._plane.name, letter.durable, letter.epoch)
        if reader is None or rank(reader.durable, self._plane.name) > (letter.epoch, letter.origin):
            self._plane.letters.post(answer)
            return
        if reader.port is not None and reader.seated_on > letter.epoch:  # its client has come back since
            reader.durable = Durable(letter.durable, reader.seated_on)
            reader.moved_from[letter.origin] = letter.epoch
            readers.places.save_reader(reader)
            return
        if reader.port is not None:
            readers.oust(reader, f"{letter.durable} is read at {letter.origin}")
        readers.remove(reader, has_moved=True)
        self._plane.saving.add(then=lambda: self._plane.letters.post(answer))

    def _on_moved_taken(self, letter: MovedTaken) -> None:
        readers, broker = self._plane.readers, letter.origin
        readers.endings.on_taken(letter.durable, broker, letter.epoch)
        for over in [each for each in self._over if each.durable == letter.durable]:
            self._say_over(over)
        reader = readers.durable.get(letter.durable)
        if reader is None or broker not in reader.moved_from:
            return
        if (letter.epoch, self._plane.name) > (reader.moved_from[broker], broker):
            del reader.moved_from[broker]
            readers.places.save_reader(reader)


def _known(resume: Resume, stands: Mapping[str, Stand]) -> Resume:
    """Where a subscription goes on: what its client says counts, and what is known to be nothing is left out."""
    if resume.token is None:
        return replace(resume, token={pubend: (0, stand.released) for pubend, stand in stands.items()})
    token, consumed = dict(resume.token), None if resume.consumed is None else dict(resume.consumed)
    for pubend, (start, acknowledged, released) in stands.items():
        incarnation, tick = token.get(pubend, (0, min(start, acknowledged)))
        if tick >= acknowledged:
            token[pubend] = incarnation, max(tick, released)
        if consumed is not None and consumed.get(pubend, tick) >= acknowledged:
            consumed[pubend] = max(consumed.get(pubend, tick), released)
    return replace(resume, token=token, consumed=consumed)
