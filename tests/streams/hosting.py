"""A subscriber-hosting broker without a network, beside its pubend, for those who come back and catch up.

The parts are the real ones, the filtering log included. What they must agree with is a dictionary of ticks to labels; a
subscriber wants one label. Nacks are answered, or lost; the cache forgets; the pubend releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from holdfast.intervals import Intervals
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Items, Lost
from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.filtering_log import CatchUpRead, FilteringLog
from holdfast.storage.log import LogSettings
from holdfast.streams.catchup import CatchUp
from holdfast.streams.constream import Constream
from holdfast.streams.curiosity import Curiosity
from holdfast.streams.knowledge import Knowledge
from holdfast.streams.tick import Stretch, laid_out

Step = tuple[str, int, int]
LABELS = 3
READING = 4
VERSION = 1
WHAT = (
    *("publish", "hand", "serve", "catch up") * 6,
    *("stable", "connect", "disconnect", "trim") * 3,
    *("install", "move in", "old token", "release", "chop"),
)


def event(tick: int, label: int) -> Publication:
    return Publication("p", tick, bytes([label]))


def filtering_log() -> FilteringLog:
    return FilteringLog(SimulatedDisk(Random(0)), bytes(16), LogSettings(segment_bytes=400))


class Subscriber:
    """What one subscriber was told since it last came with a token."""

    def __init__(self, label: int, start: int, token: int) -> None:
        self.label = label
        self.start = start  #: of its matches in the filtering log
        self.token = self.position = token
        self.events: list[int] = []
        self.gaps = Intervals()
        self.catch_up: CatchUp | None = None
        self.read: CatchUpRead | None = None
        self.is_attached = False

    def begin(self, token: int) -> None:
        self.token = self.position = token
        self.events = []
        self.gaps = Intervals()
        self.is_attached = False
        self.catch_up = self.read = None

    def tell(self, stretch: Stretch) -> None:
        assert stretch.after == self.position
        assert stretch.after <= stretch.lost_through <= stretch.upto
        self.gaps.add(stretch.after, stretch.lost_through)
        assert all(stretch.lost_through < tick <= stretch.upto for tick in stretch.ticks), "B1.15"
        self.events += stretch.ticks
        self.position = stretch.upto


class Host:
    """An SHB beside its pubend: one knows the log, the other only its cache, its filtering log and what it asks for."""

    def __init__(self, kind: type[CatchUp]) -> None:
        self.kind = kind
        self.log: dict[int, Publication] = {}  #: all there ever was
        self.tick = 0
        self.lost = Intervals()
        self.knowledge = Knowledge("P")
        self.curiosity = Curiosity("P", window=3, repeat_ns=5)
        self.constream = Constream(self.knowledge, 0)
        self.matches = filtering_log()
        self.subscribers: dict[int, Subscriber] = {}
        self.now = 0

    # The pubend

    def publish(self, label: int, distance: int, is_heard: bool) -> None:
        before, self.tick = self.tick, self.tick + distance
        self.log[self.tick] = event(self.tick, label)
        if is_heard:
            self.tell(before, self.tick)

    def tell(self, after: int, upto: int) -> None:
        """Everything is wanted here: only what it is under differs from what is raw."""
        parts = self.lost.gaps(after, upto)
        ticks = [t for t in self.log if any(a < t <= b for a, b in parts)]
        columns = laid_out(parts, ticks, [self.log[t] for t in ticks])
        lost = [Lost(*self.lost.around(upto), "gone") for _, upto in self.lost.within(after, upto)]
        items = Items("P", VERSION, *columns, lost, answers=True)
        self.knowledge.add(items)
        self.curiosity.on_items(items)

    def serve(self, is_answered: bool = True) -> None:
        """The nacks are answered, or are lost on their way."""
        self.now += 1
        for version, spans in self.constream.missing(self.tick):
            self.curiosity.ask(None, spans, version)
        for nack in self.curiosity.next_nacks(self.knowledge, self.now):
            for span in nack.spans if is_answered else ():
                self.tell(*span)
        self.curiosity.answers(self.knowledge, 1000)  # all askers are here, and look for themselves

    # The SHB

    def hand(self, limit: int) -> None:
        stretch = self.constream.next_stretch(limit)
        if stretch is None:
            return
        found = [
            [n for n, each in self.subscribers.items() if each.label == publication.event[0]]
            for publication in stretch.publications
        ]
        handing = self.constream.hand(stretch, found)
        self.matches.write(handing.records)
        self.matches.advance(stretch.upto)
        for number, after in handing.gaps:
            each = self.subscribers[number]
            each.tell(Stretch(each.position, each.position, (), (), after))
            each.tell(Stretch(after, stretch.lost_through, (), (), stretch.lost_through))
        for number, at in handing.deliveries.items():
            each, ticks = self.subscribers[number], [stretch.ticks[i] for i in at]
            each.tell(Stretch(each.position, each.position, ticks, (), ticks[-1]))

    def sync(self) -> None:
        self.matches.commit()
        self.constream.on_stable(self.constream.handed)

    def install(self, label: int, token: int | None) -> None:
        """A new subscription, or one that moved here and is to be filtered again up to its start (R1.32)."""
        number = len(self.subscribers)
        start = self.constream.install(number, VERSION, self.tick, token=token)
        self.subscribers[number] = Subscriber(label, start, start if token is None else token)
        self.connect(number, self.subscribers[number])

    def connect(self, number: int, each: Subscriber) -> None:
        each.begin(each.position)
        if not self.attach(number, each):
            each.catch_up = self.kind(each.position, each.start, VERSION, window=3)

    def attach(self, number: int, each: Subscriber) -> bool:
        stretches = self.constream.attach(number, each.position)
        if stretches is None:
            return False
        each.is_attached = True
        each.catch_up = each.read = None
        for stretch in stretches:
            each.tell(stretch)
        return True

    def turn(self, number: int, each: Subscriber, limit: int) -> None:
        """One turn of one that catches up: read, ask, tell, and try to go on with the others."""
        catch_up = each.catch_up
        if catch_up is None:
            return
        if catch_up.wants_reading:
            self.sync()
            if each.read is None:
                each.read = self.matches.read(number, each.position, READING)
            reading = next(iter(each.read), None)
            if reading is None or reading.known_through <= each.position:
                each.read = None
            else:
                catch_up.on_reading(reading)
        self.curiosity.ask(None, catch_up.next_wanted(self.knowledge, limit, self.tick), VERSION)
        is_sure = catch_up.is_sure
        stretch = catch_up.next_stretch(self.knowledge, limit)
        if stretch is None:
            return
        assert len(stretch.ticks) <= limit
        if not is_sure:
            wanted = [t for t in stretch.ticks if self.log[t].event[0] == each.label]
            stretch = Stretch(stretch.after, stretch.lost_through, wanted, (), stretch.upto)
        each.tell(stretch)
        catch_up.on_told(stretch)
        self.constream.on_told(number, each.position)
        self.attach(number, each)

    def happen(self, step: Step) -> None:
        what, a, b = step
        number = a % len(self.subscribers) if self.subscribers else -1
        each = self.subscribers.get(number)
        match what:
            case "publish":
                self.publish(a % LABELS, 1 + a % 2, b % 4 > 0)
            case "serve":
                self.serve(b % 4 > 0)
            case "hand":
                self.hand(1 + b % 4)
            case "stable":
                self.sync()
            case "install":
                self.install(b % LABELS, None)
            case "move in":
                self.install(b % LABELS, b % (self.tick + 1))
            case "connect" if each is not None and not each.is_attached and each.catch_up is None:
                self.connect(number, each)
            case "disconnect" if each is not None:
                self.constream.detach(number)
                each.begin(each.position)
            case "old token" if each is not None and not each.is_attached and each.catch_up is None:
                each.begin(max(each.start, each.position - b % 5))
            case "catch up" if each is not None:
                self.turn(number, each, 1 + b % 3)
            case "trim":
                self.knowledge.trim(b % 4)
            case "release":
                upto = min(self.constream.latest_delivered, a % 12)
                self.lost.add(0, upto)
            case "chop":
                self.matches.chop(min(self.constream.latest_delivered, a % 6))
        self.check()

    def check(self) -> None:
        """Every subscriber was told all that matches, once, in order, but for gaps, where something is lost (I16)."""
        for number, each in self.subscribers.items():
            owed = [
                t for t in self.log if each.token < t <= each.position and self.log[t].event[0] == each.label
            ]
            assert each.events == [t for t in owed if t not in each.gaps], f"{number}"
            for after, upto in each.gaps:
                assert self.lost.within(after, upto) or after < self.matches.chopped
                # What is told as lost may be silent, but for a match nobody can have there is no other cause.
                missed = [t for t in owed if after < t <= upto]
                assert all(t in self.lost or t <= self.matches.chopped for t in missed)

    def finish(self) -> None:
        """All connect, and all become current (I35)."""
        for number, each in self.subscribers.items():
            if not each.is_attached and each.catch_up is None:
                self.connect(number, each)
        for _ in range(30 + 8 * len(self.log)):
            self.serve()
            self.hand(5)
            for number, each in self.subscribers.items():
                self.turn(number, each, 3)
        self.check()
        assert self.constream.handed == self.tick
        assert all(each.is_attached for each in self.subscribers.values()), "I35"


def run(steps: Sequence[Step], kind: type[CatchUp] = CatchUp) -> None:
    host = Host(kind)
    for step in steps:
        host.happen(step)
    host.finish()


def drawn(seed: int) -> list[Step]:
    random = Random(seed)
    return [
        (random.choice(WHAT), random.randrange(100), random.randrange(100))
        for _ in range(random.randint(50, 300))
    ]
