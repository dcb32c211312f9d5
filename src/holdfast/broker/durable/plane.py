"""The durable data plane of a broker: pubends, the way to them, and those who read [BZA; design.md §3].

Every pubend the broker has to do with is a ``Course``. Between two brokers a pubend is followed hop by hop: whoever is
next on the way to it tells what it knows, and is asked for what is missing. Ways are those of the overlay, around
brokers that have failed; a new way is a new session of the follower's, nothing else. Letters go to a broker by name.

What is to be done is gathered during a step and taken at its end, in order (``settle``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from holdfast.broker.clients import Clients
from holdfast.broker.durable.course import Course
from holdfast.broker.durable.epochs import Epochs
from holdfast.broker.durable.following import Following
from holdfast.broker.durable.letters import Letters
from holdfast.broker.durable.moving import Moving
from holdfast.broker.durable.names import broker_in, is_reserved, owner_in, pubend_in, stream_in
from holdfast.broker.durable.operating import Operating
from holdfast.broker.durable.own import OwnPubend
from holdfast.broker.durable.pubends import OnSafe, Pubends, Recall
from holdfast.broker.durable.reader import Reader
from holdfast.broker.durable.readers import Readers
from holdfast.broker.durable.recovery import recover
from holdfast.broker.durable.saving import Saving
from holdfast.broker.durable.throttle import Throttle
from holdfast.broker.durable.wishes import Wishes
from holdfast.broker.settings import Settings
from holdfast.broker.statistics import Counters
from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.errors import MalformedEvent, PeersFault
from holdfast.events.event import Content
from holdfast.filters.expression import Filter
from holdfast.filters.topic import TopicPattern, parse_pattern
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Letter
from holdfast.messages.message import Message
from holdfast.messages.publications import Publication
from holdfast.messages.streams import Guarantee
from holdfast.messages.subscriptions import Partition, Resume
from holdfast.messages.ticks import (
    ORIGIN,
    Follow,
    Items,
    Nack,
    Start,
    Taken,
    Tick,
    Unfollow,
    Version,
    Wants,
)
from holdfast.node.breach import Breach
from holdfast.node.interest import Interest
from holdfast.node.node import Node
from holdfast.node.station import Station
from holdfast.overlay.transport import Send
from holdfast.routing.port import ClientPort, Port
from holdfast.streams.catchup import Scheduler
from holdfast.streams.storing import AppendEvents, Recovered

__all__ = ["DurablePlane"]

#: Matches are noted when there are so many, or so long after the first. No delivery waits for that, but a log that is
#: to be synced meanwhile does: two syncs at once take twice as long.
NOTE_EVENTS: Final = 2_000
NOTE_WITHIN_NS: Final = 100 * MILLISECOND

#: So whatever is due by the clock waits while events are on their way to the disk, but no longer than this.
PUT_OFF_NS: Final = 10 * MILLISECOND

#: In ticks: so long nothing is said of a pubend to who has nothing of it, at most.
SILENT_FOR: Final = SECOND // 1_000

#: So many events of one pubend are told in one turn, to those who are current and those who catch up (B1.14).
TURN_MAX: Final = 8_000


class DurablePlane:
    """All of it; the broker calls ``settle`` at the end of every step."""

    def __init__(
        self,
        settings: Settings,
        node: Node,
        clients: Clients,
        counters: Counters,
        new_id: Callable[[], SubscriptionId],
        on_safe: OnSafe,
        recall: Recall,
    ) -> None:
        self._settings = settings
        self._me = self.name = settings.name
        self._node = node
        self._counters = counters
        self.new_id = new_id
        self.streams = {each.name: each for each in settings.streams if each.guarantee is Guarantee.DURABLE}
        self._patterns = {
            name: [parse_pattern(each) for each in stream.topics] for name, stream in self.streams.items()
        }
        self.following = Following(self, settings, node, counters)
        self.throttle = Throttle(settings.logging_bytes, self.emit)
        self.saving = Saving()
        self.readers = Readers(settings, self, self.saving, counters)
        self.letters = Letters(self)
        self.moving = Moving(self)
        self.wishes = Wishes(self)
        self.operating = Operating(self, settings.expire_after_ns)
        self.courses: dict[str, Course] = {}
        self.written: dict[str, Tick] = {}  #: up to where each filtering log came in earlier lives
        self.pubends = Pubends(self, settings.brokers, clients, counters, on_safe, recall)
        self.own = self.pubends.own
        self.epochs = Epochs(self, settings)
        self._announced: dict[SubscriptionId, Callable[[bool], None]] = {}  #: who hears that they are known
        self.ways: dict[str, Interest] = {}  #: to pubends
        self.brokers: dict[str, Interest] = {}  #: and to brokers
        #: All other brokers of the network, as far as they are known.
        self.others: frozenset[str] = frozenset(settings.brokers) - {settings.name}
        self._sink = Port("")  #: for what is no client's
        self._effects: list[Any] = []
        self._dirty: dict[str, None] = {}  #: courses to be looked at
        self.now: Instant = 0
        #: When a broker was forgotten last: what it has comes anew, if it does.
        self.forgotten_at: Instant = -(1 << 62)
        self._offset_ns = 0
        self._silence_at: Instant = 0
        self._report_at: Instant = 0
        self._note_at: dict[str, Instant] = {}  #: when matches are to be noted, by pubend, the soonest first
        self._scheduler = Scheduler()
        self._later: dict[str, None] = {}  #: courses to go on with in the next step
        self._version_seen: Version = 0

    # Time

    @property
    def clock(self) -> Tick:
        """The present as a tick."""
        return max(1, (self.now + self._offset_ns) // 1_000)

    def set_clock(self, offset_ns: int) -> None:
        """The wall clock was set."""
        self._offset_ns = offset_ns

    def next_deadline(self, others: Instant) -> Instant:
        """When to be woken at the latest, if that is to be at ``others`` for something else."""
        if self._later:
            return self.now
        due = min(others, self._silence_at, next(iter(self._note_at.values()), others))
        return due + PUT_OFF_NS if self.throttle.waiting else due

    def on_wake(self) -> None:
        """Do what is due by the clock. Nothing else does: whoever waits for a sync would wait for this as well."""
        for pubend in [pubend for pubend, at in self._note_at.items() if self.now >= at]:
            del self._note_at[pubend]
            self._note(self.courses[pubend])
        if self.now >= self._silence_at:
            self._silence_at = self.now + self._settings.silence_every_ns
            self._tick()

    @property
    def held(self) -> int:
        """What is not where it should be: not on disk, not answered, not told to somebody who is there."""
        unstable = sum(own.core.unstable + len(own.held) for own in self.own.values())
        behind = sum(course.hosted.is_behind for course in self.courses.values() if course.is_wanted)
        return unstable + behind + self.pubends.unanswered + sum(map(self._awaited, self.own.values()))

    def _awaited(self, own: OwnPubend) -> int:
        """How many brokers that have subscribers and can be reached have not had everything of a pubend of ours."""
        late = [each.shb for each in own.minima.reports if each.delivered < own.core.stable]
        if not late:
            return 0
        hosts = {*self.hosts_for(own.stream.name), self._me}
        return sum(
            shb in hosts and (shb == self._me or self.toward(self.brokers.get(shb)) is not None)
            for shb in late
        )

    # Starting

    def start(self, recovered: Recovered) -> None:
        """Take up what was on disk, and make ourselves known."""
        recover(self, recovered)
        self.letters.announce()

    def announce(self, filter: Filter, on_known: Callable[[bool], None]) -> None:
        """Make something known to the network, under a topic no event has.

        ``on_known`` hears when it is, and again when more is reached; and whether nobody is out of reach.
        """
        own = self.new_id()
        self._announced[own] = on_known
        self._effects += self._node.spread.subscribe(self._sink, own, filter, None)

    @property
    def announcements(self) -> int:
        """How many subscriptions in the table are nobody's: pubends and brokers that make themselves known."""
        own = sum(self._node.table.get(each) is not None for each in self._announced)
        return own + len(self.ways) + len(self.brokers)

    # The network

    def emit(self, effect: Any) -> None:
        """Have something done."""
        if type(effect) is AppendEvents:
            self.throttle.on_append(effect)
        self._effects.append(effect)

    def touch(self, course: Course) -> None:
        """Something of a course has changed."""
        self._dirty[course.pubend] = None

    def station(self, name: str) -> Station | None:
        """Somebody in session."""
        station = self._node.reach.get(name)
        return station if station is not None and station.is_open else None

    def say(self, name: str, *messages: Message) -> None:
        """Tell a neighbour something, if it is there."""
        station = self.station(name)
        if station is not None and station.connection is not None:
            self.emit(Send(station.connection, list(messages)))

    def toward(self, interest: Interest | None) -> Station | None:
        """Who is next on the way to where something was announced."""
        if interest is None or not isinstance(interest.port, Station):
            return None
        return self._node.reach.next_hop(interest.port.path)

    def on_installed(self, interest: Interest) -> None:
        """A subscription counts from now on. Brokers make known what is theirs, and nobody else does."""
        pubend, broker = pubend_in(interest.filter), broker_in(interest.filter)
        whose = interest.subscription.subscriber
        if pubend is not None:
            if interest.route and stream_in(pubend) in self.streams and owner_in(pubend) == whose:
                self._on_way(pubend, interest)
        elif broker is not None:
            if interest.route and broker == whose:
                self.brokers[broker] = interest
        elif interest.durable is not None and not interest.route:
            reader = self.readers.under(interest.subscription)
            if reader is not None:  # whose client may have been here before it was known again
                self.direct(reader)
        elif interest.durable is not None:
            self.readers.elsewhere.add(interest)
            self.moving.on_rival(interest)

    def on_forgotten(self, interest: Interest) -> None:
        """A subscription is over."""
        names = pubend_in(interest.filter), broker_in(interest.filter)
        for ways, name in zip((self.ways, self.brokers), names, strict=True):
            if name is not None and ways.get(name) is interest:
                del ways[name]
                if ways is self.brokers:
                    self.forgotten_at = self.now
        self.readers.elsewhere.remove(interest)

    def _on_way(self, pubend: str, interest: Interest) -> None:
        self.ways[pubend] = interest
        course = self.course(pubend)
        course.hosted.taken = 0  # it may have been started again, and wants to hear how far we are
        if not course.is_known:  # others may have followed it before we heard of it
            course.is_known = True
            self.letters.on_new(course)
        self.touch(course)

    def course(self, pubend: str) -> Course:
        """What we know of a pubend, from now on at least."""
        course = self.courses.get(pubend)
        if course is None:
            stream = self.streams.get(stream_in(pubend))
            course = self.courses[pubend] = Course(
                pubend,
                stream_in(pubend),
                is_own=pubend in self.own,
                has_lake=stream is not None and stream.lake,
            )
            course.hosted.written = self.written.get(pubend, ORIGIN)
        return course

    def courses_for(self, filter: Filter) -> list[Course]:
        """The pubends whose events a filter may match."""
        streams = {name for name in self.streams if self.is_for(filter.pattern, name)}
        return [course for course in self.courses.values() if course.stream in streams]

    def is_for(self, pattern: TopicPattern, stream: str) -> bool:
        """Whether a pattern may match topics of a durable stream."""
        if is_reserved(pattern.levels):
            return False
        return any(pattern.overlaps(each) for each in self._patterns.get(stream, ()))

    def is_read(self, filter: Filter) -> bool:
        """Whether a filter may match events of any durable stream."""
        return any(self.is_for(filter.pattern, name) for name in self.streams)

    # Readers

    def admit(self, course: Course, since: Tick | None) -> None:
        """See to it that nothing is given up without us."""
        self.letters.admit(course, since)
        self.touch(course)

    def edge_of(self, pubend: str) -> Tick:
        """The highest tick of a pubend that was ever told here."""
        course = self.courses.get(pubend)
        return ORIGIN if course is None else max(course.knowledge.edge, course.hosted.reported[1])

    def claim(self, course: Course, tick: Tick) -> None:
        """Somebody has consumed a pubend up to a tick that it may know nothing of."""
        self.letters.claim(course, tick)

    def fetch(
        self, broker: str, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume
    ) -> None:
        """Ask a broker where a durable subscription stands, and then read it here."""
        self.wishes.fetch(broker, port, subscription, filter, resume)

    def postpone(
        self, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume, until: Instant
    ) -> None:
        """Let a durable subscription be read later."""
        self.wishes.postpone(port, subscription, filter, resume, until)

    def post(self, letter: Letter) -> None:
        """Send a letter to a broker; without a way it is lost."""
        self.letters.post(letter)

    def reaches(self, broker: str) -> bool:
        """Whether there is a way to a broker."""
        return self.toward(self.brokers.get(broker)) is not None

    @property
    def has_heard_all(self) -> bool:
        """Whether every broker of the network has made itself known since we started, as far as they are known."""
        return self.others <= self.brokers.keys()

    def given_to(self, durable: str) -> str | None:
        """The broker that was just told where a durable subscription stands, and is going to read it."""
        return self.moving.given_to(durable)

    def give_up(self, port: ClientPort, subscription: int) -> None:
        """A client does not wait any more for what it wanted to read."""
        self.wishes.give_up(port, subscription)

    def awaited_by_later(self, port: ClientPort, subscription: SubscriptionId, resume: Resume) -> str:
        """Why a client that was interrupted cannot go on: another waits that came after it; empty: none does."""
        return self.wishes.awaited_by_later(port, subscription, resume)

    def supersede(self, durable: str) -> None:
        """Whoever waits for a durable subscription waits in vain: another client reads it."""
        self.moving.take_back(durable)
        self.wishes.oust(durable)

    def spread(self, reader: Reader) -> None:
        """Make a durable reader's subscription known to the network."""
        self._effects += self._node.spread.subscribe(
            self._sink, reader.own, reader.filter, None, reader.durable
        )

    def direct(self, reader: Reader) -> None:
        """Whoever reads a durable subscription gets what is not logged, too, while it is there.

        It leaves by the client's own port: an event that several of its subscriptions match goes to it once.
        """
        entry = self._node.table.get(reader.own) if reader.durable is not None else None
        if entry is not None and reader.port is not None:
            entry.port, entry.numbers = reader.port, (reader.subscription,)
        elif entry is not None:
            entry.port, entry.numbers = self._sink, ()

    def withdraw(self, reader: Reader) -> None:
        """The network need not know it any more."""
        self._effects += self._node.spread.unsubscribe(reader.own)

    def on_subscribed(self, own: SubscriptionId, partial: tuple[Any, ...]) -> bool:
        """The network knows a subscription of ours; whether it is one of the streams'."""
        on_known = self._announced.get(own)
        if on_known is not None:
            on_known(not partial)
            return True
        if self.readers.under(own) is None:
            return False
        is_counted = self._node.spread.interests[own].is_installed  # else it will be, in this step
        self.readers.on_subscribed(own, partial, self._node.table.additions + (not is_counted))
        self._touch_all()
        return True

    def on_upgraded(
        self, own: SubscriptionId, cleared: tuple[Partition, ...], partial: tuple[Partition, ...]
    ) -> bool:
        """More of the network knows a subscription of ours; whether it is one of the streams'."""
        on_known = self._announced.get(own)
        if on_known is not None:
            on_known(not partial)
            return True
        reader = self.readers.under(own)
        if reader is not None:
            self.readers.greeting.on_upgraded(reader, cleared, partial)
        return reader is not None

    def _touch_all(self) -> None:
        for course in self.courses.values():
            self.touch(course)

    # Publishing

    def publish(
        self,
        port: ClientPort,
        stream: str,
        publications: list[Publication],
        contents: Sequence[Content],
        home: str,
    ) -> None:
        """A client's events, all of one stream, and what is in them, to be logged at its home."""
        self.pubends.publish(port, self.streams[stream], publications, contents, home)

    def hosts_for(self, stream: str) -> list[str]:
        """The brokers that have subscribers for a stream."""
        found: dict[str, None] = {}
        for interest in self._node.spread.interests.values():
            is_other = interest.route and interest.is_installed
            if is_other and self.is_for(interest.filter.pattern, stream):
                found[interest.subscription.subscriber] = None
        return list(found)

    # Neighbours

    def on_message(self, sender: Station, message: Message) -> None:
        """A neighbour says something.

        :raises Breach: if no correct one would.
        """
        try:
            self._on_message(sender, message)
        except (PeersFault, MalformedEvent) as fault:
            raise Breach(str(fault)) from fault

    def _on_message(self, sender: Station, message: Message) -> None:
        match message:
            case Items(pubend):
                self.following.flows.on_heard(sender.name, message)
                course = self.courses.get(pubend)
                receiver = None if course is None else course.receivers.get(sender.name)
                if course is None or receiver is None:
                    return  # we followed once, and do no more
                # if not, they were told when we followed before
                if receiver.edge is not None or message.answers:
                    course.read(message)
                    receiver.on_items(message)
                    course.curiosity.on_items(message)
                    self.touch(course)
            case Nack(pubend, version, spans):
                course = self.courses.get(pubend)
                if course is not None:
                    course.asked_by(sender.name, version, list(spans))
                    self.touch(course)
            case Wants(version):
                self.following.on_wants(sender, version)
            case Taken(taken):
                self.following.on_taken(sender, taken)
            case Follow(pubend):
                self.following.on_follow(sender, pubend)
            case Unfollow(pubend):
                course = self.courses.get(pubend)
                if course is not None:
                    course.unfollow(sender.name)
                    self.touch(course)
            case Start(pubend):
                course = self.courses.get(pubend)
                receiver = None if course is None else course.receivers.get(sender.name)
                if course is not None and receiver is not None:
                    receiver.on_start(message)
                    self.touch(course)
            case Letter():
                self.letters.post(message, sender)
            case _:
                raise Breach(f"{type(message).__name__} from a neighbour")

    def on_open(self, station: Station) -> None:
        """A neighbour is there."""
        self._touch_all()

    def on_gone(self, station: Station) -> None:
        """A neighbour is not there any more."""
        self.following.on_gone(station)
        for course in self.courses.values():
            course.on_gone(station.name)
        self._touch_all()

    # Every step

    def settle(self, now: Instant) -> list[Any]:
        """Whatever has become possible; everything that is to be done, in order."""
        self.now = now
        self._dirty |= self._later
        self._later = {}
        if self.following.version != self._version_seen:
            self._version_seen = self.following.version
            self.following.say_all_wants()
        self.epochs.committing.advance()
        while self._dirty:
            dirty, self._dirty = self._dirty, {}
            self.following.find_ways(dirty)
            for pubend in dirty:
                self._advance(self.courses[pubend])
        save = self.saving.next_save()
        if save is not None:
            self.emit(save)
        self.throttle.go_on()
        return self.take_effects()

    def take_effects(self) -> list[Any]:
        """Everything that is to be done and was not taken yet, in order."""
        effects, self._effects = self._effects, []
        return effects

    def _tick(self) -> None:
        """From time to time: silence, leases, repetitions, and what waits for them."""
        vouch_every = self._settings.vouch_every_ns
        for own in self.own.values():
            if own.be_silent(self.clock):
                self.touch(own.course)
            lease = own.next_lease(self.clock, None if vouch_every is None else vouch_every // 1_000)
            if lease is not None:
                self.saving.add(lease, then=own.on_leased)
        for course in self.courses.values():
            for name, sender in course.senders.items():
                silence = sender.silence()
                if len(silence):
                    self.say(name, silence)
            course.hosted.silences(self.readers.audience, self._silent_for(course), self.now)
            if course.curiosity.next_deadline() is not None:
                self.touch(course)
        self.following.say_all_wants()
        self.readers.greeting.greet_late()
        self.pubends.repeat()
        if self.now >= self._report_at:
            self._report_at = self.now + self._settings.report_every_ns
            self.saving.try_again()
            for own in self.own.values():
                if (attempt := own.try_again(self.now)) is not None:
                    self.emit(attempt)
            self.operating.expire()
            self.epochs.staging.sweep(self.clock)
            self.readers.places.save_all()
            self.letters.report()
            for course in self.courses.values():
                self._effects += course.hosted.notes.again()

    def _silent_for(self, course: Course) -> Tick:
        """So long after the last thing it was told of a pubend, a client is told that there was nothing (R1.20).

        It goes elsewhere with a token that is no older: nothing of that may have been given up meanwhile.
        """
        retain_ns = self.streams[stream_in(course.pubend)].retain_ns
        return SILENT_FOR if retain_ns is None else min(SILENT_FOR, retain_ns // 4_000)

    def _advance(self, course: Course) -> None:
        self.following.pass_on(course)
        self.following.answer(course)
        self._serve(course)
        self.following.ask(course)
        course.knowledge.trim(self._settings.cache_bytes if course.is_wanted else 0)
        course.keep_versions()
        course.forget_contents()

    def _serve(self, course: Course) -> None:
        """Those who read here."""
        hosted = course.hosted
        constream = hosted.constream
        if constream is None or not self.readers.places.is_complete(course):
            return
        for version, spans in constream.missing(course.edge_told()):
            course.ask(version, spans)
        audience = self.readers.audience
        live, shares = self._scheduler.split(TURN_MAX, TURN_MAX, hosted.appetites(audience))
        has_more = hosted.hand(audience, live)
        has_more |= hosted.catch_up(audience, shares)
        if has_more:
            self.touch_later(course)
        if len(hosted.notes) >= NOTE_EVENTS:
            self._note_at.pop(course.pubend, None)
            self._note(course)
        elif len(hosted.notes) and course.pubend not in self._note_at:
            self._note_at[course.pubend] = self.now + NOTE_WITHIN_NS

    def _note(self, course: Course) -> None:
        """Have written to the filtering log who matched what since the last time."""
        note = course.hosted.notes.next_note()
        if note is not None:
            self.emit(note)

    def touch_later(self, course: Course) -> None:
        """Go on with a course in the next step: others first."""
        self._later[course.pubend] = None
