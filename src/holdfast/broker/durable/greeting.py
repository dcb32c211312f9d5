"""How a reader begins: when the network knows it, and the pubends wait for it, and it is on disk, its client is told.

A pubend that does not answer is gone without; when it does, the client hears of it, and of the gap that may be there
(B1.11). One that is new is had from its first event on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.broker.durable.audience import Audience
from holdfast.broker.durable.course import Course
from holdfast.broker.durable.joining import SKEW_MAX, acknowledged
from holdfast.broker.durable.network import Network
from holdfast.broker.durable.places import Places
from holdfast.broker.durable.reader import Reader, consumed_in
from holdfast.broker.durable.records import HOSTED, change
from holdfast.broker.durable.saving import Saving
from holdfast.broker.settings import Settings
from holdfast.clock import SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Stand
from holdfast.messages.subscriptions import Confirmed, Partition, Upgraded
from holdfast.messages.ticks import ORIGIN, Tick, Version
from holdfast.overlay.transport import Send
from holdfast.routing.port import ClientPort

__all__ = ["ADMIT_WITHIN_NS", "Greeting", "others"]

#: Clocks of two brokers differ by less where they are as they should be: a pubend that seems older was there before.
AGREED_MAX: Final = 60 * SECOND // 1_000

#: Why something may be missing before the first event of a pubend.
UNREACHED: Final = "could not be reached"

#: A new subscription is confirmed without the pubends, and brokers that began it too, that have not answered by then.
ADMIT_WITHIN_NS: Final = 2 * SECOND


class Greeting:
    """Of all readers of a broker."""

    def __init__(
        self, settings: Settings, network: Network, saving: Saving, audience: Audience, places: Places
    ) -> None:
        self._settings = settings
        self._network = network
        self._saving = saving
        self._audience = audience
        self._places = places
        self._absences = 0  #: how many pubends were ever missing when a reader began

    def on_subscribed(self, reader: Reader, partial: tuple[Partition, ...], version: Version) -> None:
        """The network knows a subscription: from now on its events come."""
        reader.version, reader.partial = version, partial
        reader.confirmed_at, reader.confirmed_on = self._network.now, self._network.clock
        for course in self._network.courses_for(reader.filter):
            self.meet(reader, course, None)
        reader.is_confirmed = True  # not before: it is told when all is in place
        self._places.save_reader(reader)
        self.greet(reader)

    def on_upgraded(
        self, reader: Reader, cleared: tuple[Partition, ...], partial: tuple[Partition, ...]
    ) -> None:
        """Partitions are over; who has not begun yet will hear what is left."""
        reader.partial = partial
        if reader.is_greeted:
            self._say_upgraded(reader, cleared)

    def _say_upgraded(self, reader: Reader, cleared: tuple[Partition, ...]) -> None:
        port = reader.port
        if port is not None and port.connection is not None:
            subscription = SubscriptionId(port.name, port.incarnation, reader.subscription)
            left = (*reader.partial, *reader.absent.values())
            self._network.emit(Send(port.connection, [Upgraded(subscription, cleared, left)]))

    def meet(self, reader: Reader, course: Course, since: Tick | None) -> None:
        """A pubend is, or will be, read by a reader, from a tick on; None: from now on, or from its token on."""
        hosted = course.hosted
        if since is None:
            since = self._since(reader, course)
        if hosted.constream is None:
            hosted.waiting[reader.number] = None
            reader.awaited[course.pubend] = since
            self._network.admit(course, since)
        elif reader.number not in hosted.constream:
            reader.awaited[course.pubend] = since
            self._admit(reader, course)

    def meet_late(self, reader: Reader, course: Course) -> None:
        """A pubend has become known. A new one is read from its first event on.

        One that was there before, and could not be heard of, is read from when the subscription was made (B1.11).
        """
        since = self._since(reader, course)
        if since is None:
            since = self._unheard(reader, course) if reader.is_confirmed else ORIGIN
        self.meet(reader, course, since)

    def _since(self, reader: Reader, course: Course) -> Tick | None:
        resume, stood = reader.resume, reader.stood
        since: Tick | None = None
        if resume is not None and resume.token is not None:
            since = consumed_in(resume, course.pubend)
        elif stood is not None:  # whoever brought it may have gone
            since = stood[course.pubend].released if course.pubend in stood else None
        elif not reader.is_restored:
            return None
        return self._unheard(reader, course) if since is None else since

    def _unheard(self, reader: Reader, course: Course) -> Tick:
        """From where on a pubend is read that nobody had told of when a subscription was made."""
        if reader.has_own_token or self._places.stand(reader, course) is not None:
            return ORIGIN
        since = others(reader.start, reader.confirmed_on if reader.durable is None else reader.born[0])
        if reader.start is None:
            reader.unheard[course.pubend] = since
        return since

    def stands(self, reader: Reader) -> dict[str, Stand] | None:
        """Where a durable subscription stands, by pubend; a pubend that is left out is new to it.

        None: that is not settled yet.
        """
        found = dict(reader.stood or {})
        for course in self._network.courses_for(reader.filter):
            stand = self._places.stand(reader, course)
            if stand is not None:
                found[course.pubend] = stand
            elif course.pubend not in found and not reader.is_restored and reader.stood is None:
                begins = self._begins(reader, course)
                if begins is None:
                    return None
                found[course.pubend] = Stand(begins, begins, begins)
        return found

    def _begins(self, reader: Reader, course: Course) -> Tick | None:
        """Where one that is not there yet will begin; None: when it is."""
        since = reader.awaited.get(course.pubend)
        if since is None:
            since = reader.start
        if since is None and reader.is_confirmed and self._is_late(reader):
            since = max(ORIGIN, reader.confirmed_on - SKEW_MAX)
        return since

    def promise(self, reader: Reader, places: Mapping[str, Stand]) -> None:
        """Another broker was told where a subscription stands: there it begins here, too, where it is not yet."""
        for course in self._network.courses_for(reader.filter):
            if course.pubend in reader.awaited and course.pubend in places:
                since = reader.awaited[course.pubend] = places[course.pubend].released
                self._network.admit(course, since)

    def on_admitted(self, course: Course) -> None:
        """A pubend waits for us from now on."""
        for number in list(course.hosted.waiting):
            self._admit(self._audience.readers[number], course)

    def _admit(self, reader: Reader, course: Course) -> None:
        self._install(reader, course)
        self._places.save_reader(reader)
        if reader.is_greeted:
            self._start_late(reader, course)
        else:
            self.greet(reader)

    def _install(self, reader: Reader, course: Course) -> None:
        hosted = course.hosted
        kept = self._places.take(reader, course)
        since = reader.awaited.pop(course.pubend, None)
        unheard = reader.unheard.pop(course.pubend, None)
        if unheard is not None and hosted.constream is not None:
            since = min(unheard, hosted.constream.handed)  # or by its clock it has not come so far
            if since > hosted.created:
                reader.unheard[course.pubend] = since
        position = self._position(reader, course)
        if kept is not None:
            hosted.restore(reader, kept)
        else:
            if position is None and since is not None:  # it had subscribed before the pubend was known here
                position = max(since, hosted.created)
            elif position is not None and reader.resume is not None and reader.durable is not None:
                consumed = consumed_in(reader.resume, course.pubend)
                position = position if consumed is None else min(position, max(consumed, hosted.created))
            hosted.install(reader, position, self._acknowledged(reader, course))
            if position is not None and hosted.pin(position):
                self._saving.add(change(HOSTED, course.pubend, hosted.row()))
        if reader.stood is not None:
            reader.stood.pop(course.pubend, None)
        if reader.durable is not None:
            reader.pins[course.pubend] = hosted.next_number()
        self._places.touch(reader, course)

    def _acknowledged(self, reader: Reader, course: Course) -> Tick | None:
        """What one that comes from elsewhere has acknowledged, if that is known to be less than where it goes on."""
        stood = (reader.stood or {}).get(course.pubend)
        presented = reader.presented if reader.port is not None else None  # who has left has changed nothing
        consumed = None if presented is None else consumed_in(presented, course.pubend)
        if consumed is None:
            return None if stood is None else stood.acknowledged
        return consumed if stood is None else acknowledged(consumed, stood)

    def _position(self, reader: Reader, course: Course) -> Tick | None:
        """Where a reader's client wants to go on; None: from now, or from where it had acknowledged."""
        resume, is_known = reader.resume, self._is_known(reader, course)
        position: Tick | None = None
        if resume is not None and resume.token is not None:
            is_new = reader.has_own_token and (not is_known or self._has_acknowledged(reader, course))
            _, position = resume.token.get(course.pubend, (0, ORIGIN if is_new else None))
        elif not is_known and reader.stood is None:
            position = reader.start
        return None if position is None else max(position, course.hosted.created)

    def _has_acknowledged(self, reader: Reader, course: Course) -> bool:
        """Whether anything that came here was: an application whose token does not know of it has gone back."""
        stand = self._places.stand(reader, course)
        return stand is not None and stand.start < stand.acknowledged

    def _is_known(self, reader: Reader, course: Course) -> bool:
        constream = course.hosted.constream
        return constream is not None and reader.number in constream

    def greet(self, reader: Reader) -> None:
        """Tell a client that its subscription stands, and go on where it was, if everything is in place."""
        if reader.connection is None or reader.is_greeted or not reader.is_confirmed:
            return
        if reader.awaited and not self._is_late(reader):
            return
        if not reader.has_begun and any(self._network.now < until for until in reader.unmerged.values()):
            return  # who has begun would only be ousted by what they say: it goes on meanwhile
        reader.absent = {}
        for course in self._network.courses_for(reader.filter):
            if course.pubend in reader.awaited and reader.awaited[course.pubend] is None:
                self._go_without(reader, course)
        reader.is_greeted, reader.is_new = True, False
        self._places.save_reader(reader)
        port, number = reader.port, reader.subscription
        if reader.durable is None or reader.is_stored:  # a full disk keeps nobody from reading on
            self._begin(reader, port, number)
        else:
            self._saving.add(then=lambda: self._begin(reader, port, number))

    def _is_late(self, reader: Reader) -> bool:
        return self._network.now >= reader.confirmed_at + ADMIT_WITHIN_NS

    def _go_without(self, reader: Reader, course: Course) -> None:
        """A pubend does not answer; once it does, what came meanwhile is made up for."""
        since = reader.confirmed_on - SKEW_MAX if reader.start is None else reader.start
        self._network.admit(course, max(ORIGIN, since))
        self._absences += 1
        here = self._settings.name, self._settings.incarnation
        reader.absent[course.pubend] = Partition(*here, -self._absences, (course.pubend,))

    def greet_late(self) -> None:
        """Those who have waited long enough for pubends or brokers that do not answer."""
        for reader in self._audience.readers.values():
            if (reader.awaited or reader.unmerged) and not reader.is_greeted:
                self.greet(reader)

    def _begin(self, reader: Reader, port: ClientPort | None, number: int) -> None:
        """It is on disk: say so, and begin."""
        reader.is_stored = reader.durable is not None
        if (reader.port, reader.subscription) != (port, number) or reader.connection is None:
            return  # somebody else came meanwhile, or nobody is there any more
        assert port is not None
        courses = [
            course for course in self._network.courses_for(reader.filter) if self._is_known(reader, course)
        ]
        stands = {} if reader.presented is None else reader.presented.token or {}
        for pubend in stands:
            reader.unheard.pop(pubend, None)
        places = {
            course: self._place(reader, course) for course in courses if course.pubend not in reader.unheard
        }
        token = {course.pubend: (course.hosted.incarnation, tick) for course, tick in places.items()}
        # There its client stands; of what there is not, it will be told.
        token.update({each: place for each, place in stands.items() if each in token})
        self._network.emit(Send(reader.connection, [self._confirmed(reader, port, token)]))
        for course, tick in places.items():
            if tick > course.knowledge.edge:  # a life of the pubend's whose log is lost has told it so
                self._network.claim(course, tick)
            course.hosted.start(reader, token[course.pubend][1], tick, self._audience)
            self._network.touch(course)
        for course in courses:
            if course not in places:
                self._start_late(reader, course)
        if len(courses) > len(places):
            self._places.save_reader(reader)

    def say_born(self, reader: Reader) -> None:
        """What a client reads has another birth now: it says so when it comes back."""
        port = reader.port
        if reader.is_greeted and reader.is_stored and port is not None and port.connection is not None:
            self._network.emit(Send(port.connection, [self._confirmed(reader, port, {})]))

    def _confirmed(self, reader: Reader, port: ClientPort, token: dict[str, tuple[int, Tick]]) -> Confirmed:
        subscription = SubscriptionId(port.name, port.incarnation, reader.subscription)
        born = None if reader.durable is None or reader.has_own_token else reader.born
        partial = (*reader.partial, *reader.absent.values())
        return Confirmed(subscription, partial, token, born, reader.seat)

    def _place(self, reader: Reader, course: Course) -> Tick:
        constream = course.hosted.constream
        assert constream is not None
        position = self._position(reader, course)
        return constream.released_by(reader.number) if position is None else position

    def _start_late(self, reader: Reader, course: Course) -> None:
        """A pubend that came later: because it is new, or could not be reached, and then something may be missing."""
        port, constream = reader.port, course.hosted.constream
        assert constream is not None
        if port is None or port.connection is None:
            return
        released = constream.released_by(reader.number)
        absent = reader.absent.pop(course.pubend, None)
        is_missed = absent is not None and reader.start is None  # else what is gone is told of as any loss
        missing = reader.unheard.pop(course.pubend, released if is_missed else None)
        if missing is not None:
            reader.told[course.pubend] = ORIGIN
            course.hosted.tell_gap(reader, missing, UNREACHED, self._audience)
        if absent is not None:
            self._say_upgraded(reader, (absent,))
        course.hosted.start(reader, released if missing is None else missing, released, self._audience)
        self._network.touch(course)


def others(start: Tick | None, made: Tick) -> Tick:
    """From where a subscription reads a pubend that nobody could hear of when it was made."""
    return max(ORIGIN, made - AGREED_MAX) if start is None else start
