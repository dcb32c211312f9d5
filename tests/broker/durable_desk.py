"""A broker's core with durable streams, driven by hand: its clients, its neighbours and its disk are the test's.

The disk is a real ``Store`` over a simulated one. What the core asks of it is done at once, unless a test holds it
(``hold``), to look at it, to answer it otherwise, or to let the power go before it is done (``restart``). Neighbours
confirm every subscription they are told of, and everybody beats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final, TypeVar

from by_hand import ByHand, publish
from holdfast.broker.broker import Broker
from holdfast.broker.durable.course import Course
from holdfast.broker.durable.names import broker_filter, pubend_filter
from holdfast.broker.durable.own import OwnPubend
from holdfast.broker.durable.plane import DurablePlane
from holdfast.broker.durable.reader import Reader
from holdfast.broker.effect import Operated
from holdfast.broker.input import ClockSet
from holdfast.broker.settings import Neighbour, Settings, Stream
from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.errors import MalformedFrame
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.durable import Acknowledge, Admitted, Fetched, Portion, Stand
from holdfast.messages.message import Message
from holdfast.messages.publications import Publication
from holdfast.messages.session import Heartbeat
from holdfast.messages.streams import Guarantee, Order
from holdfast.messages.subscriptions import (
    NO_SEAT,
    Confirmed,
    Durable,
    Known,
    Resume,
    Seat,
    Subscribe,
    Unsubscribe,
    Withdrawn,
)
from holdfast.messages.ticks import Items, Lost, Start, Tick
from holdfast.overlay.transport import Received, Send, Wake
from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.files import Files, Subfolder
from holdfast.storage.log import LogSettings
from holdfast.storage.tables import SimulatedTables
from holdfast.streams.store import LANES, Store
from holdfast.streams.storing import DiskEffect, Recovered
from holdfast.wire.frame import FrameReader
from raw_peer import frames

E = TypeVar("E")

#: What the wall clock shows at time 0, in nanoseconds.
WALL: Final = 1_000_000 * SECOND

OWN: Final = "orders@b/0"  #: the first pubend of the broker under test
FAR: Final = "orders@left/0"  #: and that of its neighbour left
ORDERS: Final = Stream("orders", ("#",), guarantee=Guarantee.DURABLE)
TOTAL: Final = Stream("orders", ("#",), Order.TOTAL, Guarantee.DURABLE, sequencer="b")

#: So long a pubend waits for brokers that have subscribers, and may know more of it than itself; and a little more.
UNHEARD_NS: Final = 2_200 * MILLISECOND

EPOCH: Final = 50  #: of a subscription at the neighbour left

#: So often everybody beats while time passes.
BEAT_NS: Final = 200 * MILLISECOND


class _Folders:
    """Folders of one simulated disk."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk

    def names(self) -> list[str]:
        return sorted({name.split("/")[0] for name in self._disk.names()})

    def files(self, name: str) -> Files:
        return Subfolder(self._disk, name)


class Desk(ByHand):
    """A broker, ``b`` unless told otherwise; ``children`` dial it, others lie ``beyond`` these."""

    def __init__(
        self,
        children: Sequence[str] = (),
        streams: Sequence[Stream] = (ORDERS,),
        *,
        beyond: Sequence[tuple[str, str]] = (),
        log: LogSettings | None = None,
        name: str = "b",
        **settings: Any,
    ) -> None:
        neighbours = [Neighbour(name, None) for name in children]
        neighbours += [Neighbour(name, f"{name}:1", beside) for name, beside in beyond]
        self._settings = {"neighbours": tuple(neighbours), "streams": tuple(streams), **settings}
        self.disk = SimulatedDisk(Random(0))
        self.tables = SimulatedTables()
        self._log_settings = log
        self.now: Instant = 0
        self.wall = WALL
        self.name = name
        self.confirms = True  #: whether neighbours confirm what they are told of
        self._lives = 0
        self._last = 0
        self._numbers: dict[str, int] = {}
        self.restart()

    def restart(self) -> None:
        """Begin a life, without whatever was not done in the last one; every connection is another."""
        self._lives += 1
        self.heard = {}
        self.closed = {}
        self.dialled = []
        self.logs = []
        self.queue: list[DiskEffect] = []  #: asked of the disk, and not done
        self.done: list[DiskEffect] = []
        self.operated: list[Operated] = []
        self._held: tuple[type, ...] = ()
        self._replies: list[Received] = []
        self._is_working = False
        self.lost: set[int] = set()
        self.disk.crash()
        settings = Settings(self.name, self._lives, **self._settings)
        self._store = Store(
            _Folders(self.disk),
            self.tables,
            lambda: bytes(range(16)),
            self._log_settings,
            limit_of=settings.retain_bytes_of,
        )
        self.broker = Broker(settings, recovered=self._store.recover())
        self.step(ClockSet(self.wall))
        self.step(Wake())

    def begin_with(self, recovered: Recovered) -> Broker:
        """A broker that finds this on its disk; it is not started."""
        return Broker(Settings(self.name, 1, **self._settings), recovered=recovered)

    # What it is made of

    @property
    def plane(self) -> DurablePlane:
        assert self.broker.durable is not None
        return self.broker.durable

    @property
    def own(self) -> OwnPubend:
        return self.plane.own[OWN]

    def course(self, pubend: str = OWN) -> Course:
        return self.plane.courses[pubend]

    def durable(self, name: str) -> Reader:
        return self.plane.readers.durable[name]

    def epoch(self, name: str) -> int:
        """By which a durable subscription is here."""
        durable = self.durable(name).durable
        assert durable is not None
        return durable.epoch

    @property
    def clock(self) -> Tick:
        """What the wall clock shows, as a tick."""
        return (self.now + self.wall) // 1_000

    # The disk

    def step(self, stimulus: Any) -> list[Any]:
        effects = super().step(stimulus)
        for effect in effects:
            if isinstance(effect, DiskEffect):
                self.queue.append(effect)
            elif isinstance(effect, Operated):
                self.operated.append(effect)
            elif isinstance(effect, Send):
                self._reply(effect)
        if not self._is_working:
            self._is_working = True
            self._work()
            self._is_working = False
        return effects

    def _reply(self, send: Send) -> None:
        """Whoever is told of a subscription confirms it."""
        for message in send.messages if self.confirms else ():
            if isinstance(message, Subscribe):
                self._replies.append(Received(send.connection, [Confirmed(message.subscription)]))
            elif isinstance(message, Unsubscribe):
                self._replies.append(Received(send.connection, [Withdrawn(message.subscription)]))

    def _work(self) -> None:
        while self._replies or any(not isinstance(each, self._held) for each in self.queue):
            while self._replies:
                self.step(self._replies.pop(0))
            effect = next((each for each in self.queue if not isinstance(each, self._held)), None)
            if effect is not None:
                self.queue.remove(effect)
                self.done.append(effect)
                lane = LANES[type(effect)]
                for answer in (*self._store.turn(lane, [effect]), *self._store.rest(lane, is_idle=False)):
                    self.step(answer)

    def hold(self, *kinds: type) -> None:
        """Whatever is asked for of these kinds from now on waits; without kinds, nothing does, and all is done."""
        self._held = kinds
        self._is_working = True
        self._work()
        self._is_working = False

    def take(self, kind: type[E]) -> list[E]:
        """What waits of a kind, to be answered by the test."""
        found: list[E] = [each for each in self.queue if isinstance(each, kind)]
        self.queue = [each for each in self.queue if not isinstance(each, kind)]
        return found

    def done_of(self, kind: type[E]) -> list[E]:
        return [each for each in self.done if isinstance(each, kind)]

    def rows(self, table: str) -> list[str]:
        """The keys of what is on disk."""
        return sorted(self.tables.read(table))

    # Time

    def wait(self, duration_ns: int) -> None:
        """Time passes, and everybody beats."""
        end = self.now + duration_ns
        while self.now < end:
            super().wait(min(BEAT_NS, end - self.now))
            for connection in self.heard:
                if connection not in self.closed and connection not in self.lost:
                    self.step(Received(connection, [Heartbeat()]))

    def lose(self, connection: int) -> None:
        self.lost.add(connection)
        super().lose(connection)

    # Other brokers

    def meet(self, name: str, *pubends: str, filters: Sequence[str] = (), incarnation: int = 1) -> int:
        """A neighbour that has these pubends, and subscribers for these filters."""
        texts = [str(broker_filter(name)), *(str(pubend_filter(each)) for each in pubends), *filters]
        rows = [Known(SubscriptionId(name, incarnation, n), each, ()) for n, each in enumerate(texts, 1)]
        self._numbers[name] = len(rows)
        return self.neighbour(name, rows, incarnation=incarnation)

    def tell(
        self, connection: int, name: str, filter: str, durable: Durable | None = None, incarnation: int = 1
    ) -> SubscriptionId:
        """A neighbour makes something known."""
        self._numbers[name] = number = self._numbers.get(name, 0) + 1
        known = SubscriptionId(name, incarnation, number)
        self.say(connection, Subscribe(known, filter, (Element(name, incarnation, number),), durable))
        return known

    # Clients

    def publisher(self, name: str = "p", *numbers: int, topic: str = "a") -> int:
        """A client, and what it publishes first."""
        connection = self.client(name)
        if numbers:
            self.say(connection, publish(name, *numbers, topic=topic))
        return connection

    def subscribe(
        self,
        connection: int,
        name: str,
        filter: str = "a",
        *,
        number: int = 1,
        durable: str | None = None,
        credit: int = 1_000,
        start: Tick | None = None,
        token: Mapping[str, Tick] | None = None,
        consumed: Mapping[str, Tick] | None = None,
        born: tuple[int, str] | None = None,
        seat: Seat = NO_SEAT,
        incarnation: int = 1,
    ) -> list[Message]:
        """A client wants to read; what it hears at once."""
        places = None if token is None else {pubend: (1, tick) for pubend, tick in token.items()}
        resume = Resume(
            credit, durable, start, places, None if consumed is None else dict(consumed), born, seat
        )
        wish = Subscribe(SubscriptionId(name, incarnation, number), filter, (), None, resume)
        return self.say(connection, wish)

    def reader(self, name: str = "u", filter: str = "a", *, incarnation: int = 1, **how: Any) -> int:
        """A client that reads."""
        connection = self.client(name, incarnation)
        self.subscribe(connection, name, filter, incarnation=incarnation, **how)
        return connection

    def acknowledge(self, connection: int, number: int = 0, **places: Tick) -> list[Message]:
        """A client has consumed everything it was told of the broker's own pubend, or as is said."""
        told = {portion.pubend: portion.upto for portion in self.said(connection, Portion)}
        return self.say(connection, Acknowledge(1, places or told, number))

    # What readers heard

    def got(self, connection: int, number: int = 1) -> list[int]:
        """The numbers of the events a subscription was told, in order."""
        return [publication.n for _, publication in self.events(connection, number)]

    def events(self, connection: int, number: int = 1) -> list[tuple[Tick, Publication]]:
        return [
            (portion.ticks[i], portion.batch.publications[i])
            for portion in self.said(connection, Portion)
            for i in portion.at
            if portion.subscription == number
        ]

    def gaps(self, connection: int) -> list[tuple[str, str]]:
        """Pubend and reason of each gap."""
        return [(each.pubend, each.reason) for each in self.said(connection, Portion) if each.lost_through]

    def place(self, connection: int, pubend: str = OWN) -> Tick:
        """Where the last confirmation says that a subscription stands."""
        token = self.said(connection, Confirmed)[-1].token
        assert token is not None
        return token[pubend][1]


def shop(*numbers: int, **how: Any) -> tuple[Desk, int, int]:
    """A broker with a publisher that has published so much, and then a reader that begins now."""
    desk = Desk()
    publisher = desk.publisher("p", *(numbers or (1,)))
    return desk, publisher, desk.reader("u", **how)


def admitted(tick: Tick, number: int = 0, created: Tick = 0, incarnation: int = 1) -> Admitted:
    """The neighbour left waits for us from now on."""
    return Admitted("b", "left", FAR, incarnation, tick, number, created)


def followed(**how: Any) -> tuple[Desk, int, int]:
    """A broker with a reader, confirmed at tick 100 of its neighbour's pubend; the neighbour has told up to there."""
    desk = Desk(["left"])
    left = desk.meet("left", FAR)
    reader = desk.reader(**how)
    desk.say(left, admitted(100), Start(FAR, 100))
    return desk, left, reader


def items(
    pubend: str,
    under: int,
    after: Tick,
    events: Sequence[tuple[Tick, Publication]],
    upto: Tick,
    *,
    lost: Sequence[Lost] = (),
    answers: bool = False,
) -> Items:
    """What somebody upstream says of (after, upto]: these events, and nothing else."""
    pairs: list[tuple[Tick, Publication | None]] = list(events)
    if not pairs or pairs[-1][0] < upto:
        pairs.append((upto, None))
    ticks = [tick for tick, _ in pairs]
    return Items(pubend, under, [after, *ticks[:-1]], ticks, [each for _, each in pairs], lost, answers)


def as_read(message: Message) -> list[Message]:
    """The message as it comes from the wire; none, if it is refused there."""
    try:
        return FrameReader().feed(frames(message))
    except MalformedFrame:
        return []


def at_left(*numbers: int) -> tuple[Desk, int, int, int]:
    """The subscription mine is at left; the broker under test has a pubend with these events, and a publisher.

    The connections of left, of right, and of the publisher.
    """
    desk = Desk(["left", "right"])
    left, right = desk.meet("left"), desk.meet("right")
    publisher = desk.publisher("p", *(numbers or (1,)))
    desk.tell(left, "left", "a", Durable("mine", EPOCH))
    return desk, left, right, publisher


def stands(at: Tick, start: Tick | None = None, *, origin: str = "left") -> Fetched:
    """A broker says where mine stands there."""
    stand = Stand(at if start is None else start, at, at)
    return Fetched("b", origin, "mine", {OWN: stand}, EPOCH, EPOCH, origin)


def end(desk: Desk, connection: int, name: str = "u") -> None:
    """A client ends what it reads, or waits for."""
    desk.say(connection, Unsubscribe(SubscriptionId(name, 1, 1)))
