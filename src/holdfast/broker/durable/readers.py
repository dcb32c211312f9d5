"""Everybody who reads streams that are logged, at one broker: subscriptions of its clients, here or away [BZA §4].

A durable subscription belongs to a name, not to a client: whoever presents the name reads it, at any broker. It is
known in the whole network where each of them is; one that comes from elsewhere is taken over there first, so that what
it has not acknowledged stays in the logs, and then forgotten where it was (B1.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from holdfast.broker.durable.audience import Audience
from holdfast.broker.durable.elsewhere import Elsewhere, claim_of, rank
from holdfast.broker.durable.endings import Endings
from holdfast.broker.durable.greeting import ADMIT_WITHIN_NS, Greeting, others
from holdfast.broker.durable.joining import acknowledged, begun, had, joined
from holdfast.broker.durable.network import Network
from holdfast.broker.durable.places import Places
from holdfast.broker.durable.reader import Reader, consumed_in, informed, withheld
from holdfast.broker.durable.records import READERS, PlaceRow, ReaderRow, change
from holdfast.broker.durable.saving import Saving
from holdfast.broker.settings import Settings
from holdfast.broker.statistics import Counters
from holdfast.clock import SECOND, Instant
from holdfast.filters.expression import Filter
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Acknowledge, Ended, Fetched, Ousted, Saved, Stand
from holdfast.messages.subscriptions import NO_SEAT, Durable, Partition, Refused, Resume, Seat
from holdfast.messages.ticks import ORIGIN, Tick, Version
from holdfast.node.interest import Interest
from holdfast.overlay.transport import Send
from holdfast.routing.port import ClientPort

__all__ = ["Readers"]

#: A token may be so far ahead of our clock; beyond that it is none of this network's.
AHEAD_MAX: int = 60 * SECOND // 1_000

#: And so far a seat may be, which no clock gives but one that is wrong.
SEAT_AHEAD_MAX: int = 366 * 24 * 3_600 * SECOND // 1_000

#: So long after a start a subscription may turn out to have moved while we were down, or to be kept at a broker that we
#: have not heard of yet; who has no token waits for that.
SURE_AFTER_NS: int = 2 * SECOND


class Readers:
    """The subscriptions of a broker's clients, by who reads them; the durable ones by name."""

    def __init__(self, settings: Settings, network: Network, saving: Saving, counters: Counters) -> None:
        self._me = settings.name
        self._network = network
        self._saving = saving
        self.audience = Audience(settings, network, counters)
        self.places = Places(network, saving)
        self.greeting = Greeting(settings, network, saving, self.audience, self.places)
        self.endings = Endings(settings.name, network, saving)
        self.durable: dict[str, Reader] = {}
        self.elsewhere = Elsewhere()
        self._by_own: dict[SubscriptionId, Reader] = {}
        self._by_port: dict[ClientPort, dict[int, Reader]] = {}
        self._started_at: Instant = 0
        self._last_number = 0

    # Who there is

    def of(self, port: ClientPort, subscription: int) -> Reader | None:
        """What a client reads under a number of its own."""
        return self._by_port.get(port, {}).get(subscription)

    def under(self, own: SubscriptionId) -> Reader | None:
        """Whose a subscription of this broker is; None: no reader's."""
        return self._by_own.get(own)

    def coming(self) -> set[str]:
        """Pubends that somebody who has come here will read from where it stood, and cannot yet.

        Also those that are new to it: it reads all of them, if they are known here before it is confirmed.
        """
        return {
            course.pubend
            for reader in self.durable.values()
            if reader.stood or (reader.stood is not None and not reader.is_confirmed)  # which is seldom
            for course in self._network.courses_for(reader.filter)
            if course.pubend in reader.stood or not reader.is_confirmed
        }

    def _add(self, reader: Reader) -> None:
        self.audience.add(reader)
        self._by_own[reader.own] = reader
        if reader.durable is not None:
            self.durable[reader.durable.name] = reader

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    # Subscribing

    def pass_by(
        self,
        port: ClientPort,
        subscription: SubscriptionId,
        own: SubscriptionId,
        filter: Filter,
        resume: Resume,
    ) -> None:
        """A subscription that is not durable, made by its client's own broker as any other."""
        reader = Reader(self._next_number(), filter, None, own)
        reader.start = resume.start
        self._add(reader)
        self._seat(reader, port, subscription.number, resume, resume, self._network.clock)

    def read(self, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume) -> None:
        """Somebody presents the name of a durable subscription."""
        assert resume.durable is not None
        problem = self.ahead(resume)
        if problem is not None:
            self._refuse(port, subscription, problem, "token-ahead")
            return
        reader, elsewhere = self.find(resume.durable)
        began = self._started_at if reader is not None else max(self._started_at, self._network.forgotten_at)
        sure_at = began + SURE_AFTER_NS
        if resume.token is None and self._network.now < sure_at and self._is_unsure(reader, elsewhere):
            self._network.postpone(port, subscription, filter, resume, sure_at)
            return
        known = reader.filter if reader is not None else None if elsewhere is None else elsewhere.filter
        reason = self._network.awaited_by_later(port, subscription, resume)
        if reader is not None:
            had, read = resume.seat, resume.born
            reason = withheld(reader.name, reader.seat, reader.born, had=had, read=read) or reason
        if reason:
            assert port.connection is not None
            self._network.emit(Send(port.connection, [Ousted(subscription.number, reason)]))
        elif known is not None and known != filter:
            problem = f"{resume.durable!r} is a durable subscription to {known}, and not to {filter}"
            self._refuse(port, subscription, problem, "durable")
        elif elsewhere is not None:
            self._network.fetch(elsewhere.subscription.subscriber, port, subscription, filter, resume)
        elif (given_to := self._network.given_to(resume.durable)) is not None:
            self._network.fetch(given_to, port, subscription, filter, resume)
        else:
            self.take_over(port, subscription, filter, resume, resume)

    def _is_unsure(self, reader: Reader | None, elsewhere: Interest | None) -> bool:
        """Whether others may have more to say of where a subscription is, shortly after a start."""
        if reader is not None:
            return reader.is_restored
        return elsewhere is None and not self._network.has_heard_all

    def find(self, name: str) -> tuple[Reader | None, Interest | None]:
        """A durable subscription that is here, or else where it is."""
        reader = self.durable.get(name)
        others = self._elsewhere(name)
        if not others or (reader is not None and rank(reader.durable, self._me) > claim_of(others[0])):
            return reader, None
        return None, others[0]

    def _elsewhere(self, name: str) -> list[Interest]:
        """Where else a durable subscription is, the last claim first; but for what is over, and is still to hear so."""
        return [each for each in self.elsewhere.of(name) if not self.endings.covers(name, claim_of(each))]

    def take_over(
        self,
        port: ClientPort,
        subscription: SubscriptionId,
        filter: Filter,
        resume: Resume,
        presented: Resume,
        fetched: Fetched | None = None,
        came: Tick | None = None,
    ) -> None:
        """Whoever presents a name reads from now on, and nobody else does.

        ``presented`` is what it has said itself; ``resume`` what is known besides, if it was ``fetched``: another
        broker has said where the subscription stands. It ``came`` at a time, if that is not now: what is ended after
        that is ended for it, too.
        """
        name = resume.durable
        assert name is not None
        came = self._network.clock if came is None else came
        self._network.supersede(name)
        left = self.durable.get(name)
        if left is not None and (left.port, left.subscription) == (port, subscription.number):
            self._unseat(left)
        elif left is not None:
            self.oust(left, f"another client reads {left.name}")
        reader, _ = self.find(name)
        if reader is not None and fetched is not None:
            if rank(reader.durable, self._me) < (fetched.epoch, fetched.origin):
                reader = None
            else:  # who was asked has not read it since it was here
                resume = presented
        is_new = reader is None
        if reader is not None and resume.token is not None:
            resume = informed(resume, reader.stood or {})  # where it is not in place yet
        if reader is None:
            if left is not None:  # from before it moved away
                resume, fetched = self._joined(left, resume, fetched)
                self._let_go(left, f"another client reads {name}")
            reader = self._create(name, filter, resume, fetched, left, came)
        self._seat(reader, port, subscription.number, resume, presented, came)
        if is_new and left is not None:  # a crash finds one or the other
            self.places.save_reader(reader)
        if is_new:  # not before: where nobody else can be reached it is confirmed at once, and begins
            self._network.spread(reader)
            self._network.direct(reader)
        if fetched is not None and _is_behind(resume, presented):
            self.put_back(reader, fetched)

    def _joined(self, left: Reader, resume: Resume, fetched: Fetched | None) -> tuple[Resume, Fetched | None]:
        """If what was fetched had begun by itself, while we could not be reached: with what is known here."""
        born = (0, "") if fetched is None else (fetched.born, fetched.born_at)
        if fetched is None or fetched.places is None or not born[0] or left.born == born:
            return resume, fetched
        mine, is_first = self.greeting.stands(left), born == (fetched.epoch, fetched.origin)
        if mine is None:
            return resume, fetched
        token, consumed = dict(resume.token or {}), dict(resume.consumed or {})
        places: dict[str, Stand] = {}
        for pubend in mine.keys() | fetched.places.keys():
            here = mine.get(pubend, begun(left.born))
            there = fetched.places.get(pubend, begun(born))
            position = joined(had(here, is_first=left.stood is None), had(there, is_first=is_first))
            places[pubend] = Stand(position, acknowledged(position, here, there), position)
            token[pubend] = 0, position
            consumed[pubend] = min(position, consumed.get(pubend, position))
        start, left_start = fetched.start, others(left.start, left.born[0])
        if left_start < others(start, born[0]):
            start = left.start if left.born[0] else left_start
        resume = replace(resume, token=token, consumed=None if resume.consumed is None else consumed)
        return resume, replace(fetched, start=start, places=places)

    def _create(
        self,
        name: str,
        filter: Filter,
        resume: Resume,
        fetched: Fetched | None,
        left: Reader | None,
        came: Tick,
    ) -> Reader:
        """A durable subscription begins, or goes on, here; wherever else it is, it is to be forgotten.

        Also where what was ``left`` here had come from: there it is kept until this one is in place (B1.9).
        """
        claims = [claim_of(each) for each in self._elsewhere(name)]
        before = {} if left is None else left.moved_from
        if fetched is not None and fetched.places is not None:
            claims.append((fetched.epoch, fetched.origin))
        moved_from = {**before, **{broker: epoch for epoch, broker in sorted(claims)}}
        latest = max(self.endings.last_of(name), *moved_from.values(), -1)
        epoch = max(came, latest + 1)
        reader = Reader(self._next_number(), filter, Durable(name, epoch), self._network.new_id())
        reader.moved_from = moved_from
        reader.start = resume.start if fetched is None else fetched.start
        reader.seat = NO_SEAT if fetched is None else fetched.seat
        if resume.token is None:
            reader.born = epoch, self._me
            reader.is_new = not moved_from
        else:
            places = {} if fetched is None else fetched.places or {}
            reader.stood = {pubend: _stood(resume, pubend, places) for pubend in resume.token}
            reader.born = (resume.born or (0, "")) if fetched is None else (fetched.born, fetched.born_at)
        if reader.born[0]:  # others may have begun it by themselves: they are asked
            known = None if fetched is None else fetched.origin
            unmerged = {broker for _, broker in claims} | (set() if left is None else left.unmerged.keys())
            unasked = [each for each in moved_from if each != known and each in unmerged]
            reader.unmerged = dict.fromkeys(unasked, self._network.now + ADMIT_WITHIN_NS)
        self._add(reader)
        return reader

    def ahead(self, resume: Resume) -> str | None:
        """What is wrong with a start, a seat or a token: it is ahead of our clock, and of all we were told."""
        clock = self._network.clock
        if resume.start is not None and not 0 <= resume.start <= clock + AHEAD_MAX:
            return "it is to begin at a time that has not come yet, by this broker's clock"
        known = self.durable.get(resume.durable or "")
        if resume.seat.taken_on > max(clock + SEAT_AHEAD_MAX, 0 if known is None else known.seat.taken_on):
            return "it was read at a time that has not come yet, by this broker's clock"
        for pubend, (_, tick) in (resume.token or {}).items():
            if tick > max(clock, self._network.edge_of(pubend)) + AHEAD_MAX:
                return f"the token stands at {tick} in {pubend}, and the clock here at {clock}"
        return None

    def begun(self, resume: Resume) -> Resume:
        """A start that has not come yet is now: the client's clock is ahead, and no log is where that says."""
        is_ahead = (
            resume.start is not None and self._network.clock < resume.start <= self._network.clock + AHEAD_MAX
        )
        return replace(resume, start=None) if is_ahead else resume

    def _refuse(self, port: ClientPort, subscription: SubscriptionId, problem: str, code: str) -> None:
        assert port.connection is not None
        self._network.emit(Send(port.connection, [Refused(subscription, problem, code)]))

    def _seat(
        self,
        reader: Reader,
        port: ClientPort,
        number: int,
        resume: Resume,
        presented: Resume,
        came: Tick,
    ) -> None:
        """A client that came at some time reads from now on, as soon as everything is in place."""
        if reader.is_held:
            self.places.hold(reader, is_held=False)
        reader.port, reader.subscription = port, number
        reader.credit, reader.resume = max(0, resume.credit), resume
        self._network.direct(reader)
        reader.is_greeted = False
        reader.presented = presented
        reader.away_since, reader.seated_on = 0, came
        anew = Seat(max(came, reader.seat.taken_on + 1), port.name, port.incarnation)
        reader.seat = anew if presented.seat == NO_SEAT else presented.seat
        self._by_port.setdefault(port, {})[number] = reader
        if reader.is_confirmed:
            self.greeting.greet(reader)

    def _unseat(self, reader: Reader) -> None:
        """Its client does not read any more."""
        assert reader.port is not None
        for course in self._network.courses_for(reader.filter):
            course.hosted.stop(reader)
        self._leave(reader)
        reader.port, reader.resume, reader.is_greeted = None, None, False
        self._network.direct(reader)
        reader.away_since = self._network.clock
        self.places.save_reader(reader)

    def put_back(self, reader: Reader, fetched: Fetched, *, is_ousted: bool = True) -> None:
        """It was begun at another broker, too, and goes on from there: who has been farther cannot go on with it.

        Nobody has come, so that is nobody's seat; and by no clock, or an end would be taken to be before it.
        """
        if reader.presented is None or not reader.presented.has_own_token:
            reader.seat = Seat(max(reader.seat.taken_on, fetched.seat.taken_on) + 1, "")
        if is_ousted and reader.has_begun:
            self.oust(reader, f"{reader.name} was begun at {fetched.origin}, too, and goes on from there")

    def oust(self, reader: Reader, reason: str) -> None:
        """Whoever reads it does not any more."""
        if reader.connection is not None:
            self._network.emit(Send(reader.connection, [Ousted(reader.subscription, reason)]))
        if reader.port is not None:
            self._unseat(reader)

    def on_subscribed(self, own: SubscriptionId, partial: tuple[Partition, ...], version: Version) -> None:
        """The network knows a subscription."""
        self.greeting.on_subscribed(self._by_own[own], partial, version)

    # Reading

    def credit(self, port: ClientPort, subscription: int, count: int) -> None:
        """A client has room for more."""
        reader = self.of(port, subscription)
        if reader is not None:
            reader.credit += count
            courses = self._network.courses_for(reader.filter)
            behind = [course for course in courses if reader.number in course.hosted.catchups]
            # One may have enough to tell for all the room there is: the next is the first now.
            for course in sorted(behind, key=lambda course: (course.pubend <= reader.served, course.pubend)):
                self._network.touch(course)

    def acknowledge(self, port: ClientPort, message: Acknowledge) -> None:
        """A client has consumed something."""
        reader = self.of(port, message.subscription)
        if reader is None:
            return
        for course in self._network.courses_for(reader.filter):
            tick = message.places.get(course.pubend)
            constream = course.hosted.constream
            if tick is None or constream is None or reader.number not in constream:
                continue
            if constream.acknowledge(reader.number, tick, reader.had(course.pubend, tick)):
                self.places.touch(reader, course)
        if message.number:
            self.places.save(reader)
            connection, saved = port.connection, Saved(message.subscription, message.number)
            assert connection is not None
            self._saving.add(then=lambda: self._say(port, connection, saved))

    def _say(self, port: ClientPort, connection: int, message: Saved) -> None:
        if port.connection == connection:
            self._network.emit(Send(connection, [message]))

    # Leaving

    def detach(self, port: ClientPort, subscription: int) -> None:
        """A client does not read a durable subscription any more for now."""
        self._network.give_up(port, subscription)
        reader = self.of(port, subscription)
        if reader is not None and reader.durable is not None:
            self._unseat(reader)

    def on_lost(self, port: ClientPort) -> None:
        """A client is away: who is not durable keeps its place as long as the client's port is kept."""
        for reader in list(self._by_port.get(port, {}).values()):
            if reader.durable is not None:
                self._unseat(reader)
            else:
                for course in self._network.courses_for(reader.filter):
                    course.hosted.stop(reader)

    def resume(self, port: ClientPort, subscription: int, resume: Resume) -> bool:
        """A client is back, and goes on with a subscription that is not durable; whether there is one."""
        reader = self.of(port, subscription)
        if reader is None or reader.durable is not None:
            return False
        self._seat(reader, port, subscription, resume, resume, self._network.clock)
        return True

    def end_own(self, own: SubscriptionId) -> None:
        """A subscription that is not durable is over."""
        reader = self._by_own.get(own)
        if reader is not None and reader.durable is None:
            self._forget(reader)

    def end(self, name: str, reason: str, seat: Seat = NO_SEAT) -> None:
        """A durable subscription is over, here and everywhere, for whoever has come until now.

        Every broker is told: any may have been out of reach, for us or on the way, and have begun it, too. Clocks
        differ: what is known to have happened is before the end, also the ``seat`` of who had it last elsewhere.
        """
        claims = [claim_of(each) for each in self._elsewhere(name)]
        others = self._network.others | {broker for _, broker in claims}
        known = max([seat.taken_on, *(epoch + 1 for epoch, _ in claims)])
        reader = self.durable.get(name)
        if reader is not None and reader.durable is not None:
            known = max(known, reader.durable.epoch, reader.seat.taken_on)
            others |= reader.moved_from.keys()
            self._let_go(reader, reason)
        self.endings.owe(name, sorted(others), max(self._network.clock, known), known)

    def on_ended(self, reader: Reader, letter: Ended) -> None:
        """It was ended at another broker: for whoever had come here until then, and where it had come from to us."""
        assert reader.durable is not None
        over_on = max(letter.known, min(letter.epoch, self._network.clock - letter.ago))
        has_come = reader.port is not None and reader.seated_on > over_on
        if has_come or reader.seat.taken_on > over_on:
            return
        self._let_go(reader, f"{reader.name} was ended at {letter.origin}")
        known = max(letter.known, reader.durable.epoch)
        self.endings.owe(reader.name, sorted(reader.moved_from), max(over_on, known), known)

    def give_away(self, reader: Reader, reason: str) -> None:
        """A durable subscription is elsewhere now, and so not where it had come from to us.

        But those who have begun it by themselves are to be asked there first.
        """
        assert reader.durable is not None
        self._let_go(reader, reason)
        others = reader.moved_from.keys() - reader.unmerged.keys()
        epoch = reader.durable.epoch
        self.endings.owe(reader.name, sorted(others), epoch, epoch)

    def _let_go(self, reader: Reader, reason: str) -> None:
        self.oust(reader, reason)
        self._forget(reader)
        self._network.withdraw(reader)

    def _forget(self, reader: Reader) -> None:
        self._leave(reader)
        for course in self._network.courses_for(reader.filter):
            course.hosted.remove(reader, self.audience)
        self.places.forget(reader)
        self.audience.remove(reader)
        del self._by_own[reader.own]
        if reader.durable is not None:
            del self.durable[reader.durable.name]

    def _leave(self, reader: Reader) -> None:
        if reader.port is not None:
            seats = self._by_port.get(reader.port, {})
            seats.pop(reader.subscription, None)
            if not seats:
                self._by_port.pop(reader.port, None)

    # After a start

    def restore(
        self,
        rows: Iterable[tuple[str, ReaderRow, Filter]],
        places: Iterable[tuple[int, str, PlaceRow]],
    ) -> None:
        """Those who were here before we were started again; they are to be spread anew.

        But for new ones, of which nobody has heard: who asks again asks for itself where it begins.
        """
        self._started_at = self._network.now
        for name, row, filter in rows:
            self._last_number = max(self._last_number, row.number)
            if row.is_new:
                self._saving.add(change(READERS, name, None))
                continue
            reader = Reader(row.number, filter, Durable(name, row.epoch), self._network.new_id())
            reader.moved_from = dict(row.moved_from)
            reader.away_since = row.away_since or self._network.clock
            reader.stood, reader.is_held, reader.born = row.stood, row.is_held, row.born
            reader.seat, reader.start, reader.unheard = row.seat, row.start, dict(row.unheard)
            reader.unmerged = dict.fromkeys(row.unmerged, self._network.now + ADMIT_WITHIN_NS)
            reader.is_restored = reader.is_stored = True
            self._add(reader)
        self.places.keep(places, self.audience.readers)


def _stood(resume: Resume, pubend: str, places: Mapping[str, Stand]) -> Stand:
    """Where one goes on, with what its old broker knows of that; if nobody does, it may have begun anywhere."""
    position, known = consumed_in(resume, pubend) or ORIGIN, places.get(pubend)
    if known is None:
        return Stand(ORIGIN, position, position)
    return Stand(known.start, acknowledged(position, known), position)


def _is_behind(resume: Resume, presented: Resume) -> bool:
    """Whether one that has begun would go on behind where it has been."""
    had = presented.token or {}
    return any(pubend in had and tick < had[pubend][1] for pubend, (_, tick) in (resume.token or {}).items())
