"""Epochs of a sink in the simulated world: tasks, drivers and brokers die between any two steps, and disks forget.

Issue 6 §3. An application writes epochs; what its tasks compute is different each time, as after a shuffle. At the end
every epoch is there once, as one of its attempts computed it, whole, and in order. After every crash of the broker the
log holds whole epochs, too, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from random import Random
from typing import Any
from urllib.parse import quote

import pytest

from holdfast.broker.broker import Broker
from holdfast.broker.durable.committing import Committing
from holdfast.broker.durable.own import OwnPubend
from holdfast.broker.settings import Settings, Stream
from holdfast.client.epoch_writer import EpochWriter
from holdfast.clock import MICROSECOND, MILLISECOND, SECOND, Instant
from holdfast.events.event import make_event
from holdfast.events.packed import pack, unpack
from holdfast.identity import SubscriptionId
from holdfast.messages.session import Hello, Kind, Welcome
from holdfast.messages.staging import Commit, Epoch, Share
from holdfast.messages.streams import Guarantee
from holdfast.messages.subscriptions import Resume, Subscribe
from holdfast.overlay.transport import Connect, Connected, Received, Send, Wake
from holdfast.routing.port import ClientPort
from holdfast.simulator.world import World, address_of
from holdfast.storage.block import Batch
from holdfast.storage.files import Subfolder
from holdfast.storage.opening import NoLog
from holdfast.storage.reader import LogReader
from holdfast.storage.survey import Survey
from holdfast.streams import epochs
from holdfast.streams.records import read_record
from holdfast.streams.storing import EventsRead

ORDERS = Stream("orders", ("#",), guarantee=Guarantee.DURABLE)
VERSIONS = 3
TASKS = 2
EVENTS = 1_100  #: of one task: an epoch takes several blocks of the log


class Keeper:
    """A durable subscriber that reads nothing: what there is, is kept."""

    name = "keeper"

    def __init__(self, incarnation: int) -> None:
        self._incarnation = incarnation
        self._is_dialled = False

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        match stimulus:
            case Wake() if not self._is_dialled:
                self._is_dialled = True
                return [Connect("b", address_of("b"))]
            case Connected(connection):
                hello = Hello(self.name, Kind.CLIENT, self._incarnation, 1, "anonymous", 60 * SECOND)
                return [Send(connection, [hello])]
            case Received(connection, [Welcome(), *_]):
                own = SubscriptionId(self.name, self._incarnation, 1)
                return [Send(connection, [Subscribe(own, "#", (), None, Resume(1, self.name))])]
        return []

    def next_deadline(self) -> Instant | None:
        return None


class Application:
    """Writes its epochs one after the other; what is under way when its driver dies it computes anew."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self._names = count()
        self._attempts = count()
        self.marks: dict[int, list[list[str]]] = {version: [] for version in range(VERSIONS)}
        self.kills_at = -1  #: the step at which the driver dies
        self.steps = 0
        self.appended: list[Instant] = []  #: when the broker has appended epochs
        self.world.add("b", self._broker, store=True)
        self.world.add("keeper", Keeper)
        self.world.run_for(SECOND)

    def _broker(self, incarnation: int) -> Broker:
        store = self.world.nodes["b"].store
        assert store is not None
        broker = Broker(Settings("b", incarnation, streams=(ORDERS,)), recovered=store.recovered)
        assert broker.durable is not None
        committing = broker.durable.epochs.committing
        sound = committing.on_read

        def noted(read: EventsRead, now: int) -> None:
            self.appended.append(self.world.now)
            sound(read, now)

        committing.on_read = noted  # type: ignore[method-assign]
        return broker

    def run(self) -> None:
        for version in range(VERSIONS):
            while not self._epoch(Epoch("orders", "app", version)):
                pass

    def _epoch(self, epoch: Epoch) -> bool:
        """Whether it is done: the driver has not died."""
        shares: list[Share] = []
        marks: list[str] = []
        for _ in range(TASKS):
            attempt = f"t{next(self._attempts)}"
            events = [f"{attempt}.{i}" for i in range(EVENTS)]
            packed = [pack(make_event("a", {"m": mark})) for mark in events]
            writer = self._writer(partial(_stage, attempt, epoch, packed))
            if writer is None:
                return False
            shares.append(Share(attempt, len(events)))
            marks += events
        self.marks[epoch.version].append(marks)
        writer = self._writer(lambda each: each.commit(epoch, shares))
        if writer is None:
            return False
        assert writer.committed is not None
        return True

    def _writer(self, wanted: Callable[[EpochWriter], None]) -> EpochWriter | None:
        """A process that wants something; None: it was killed before it had its answer, or right after."""
        name = f"w{next(self._names)}"
        writer = EpochWriter(name, 1, "b", address_of("b"))
        wanted(writer)
        self.world.add(name, lambda _: writer)
        self.steps += 1
        if self.steps == self.kills_at:  # in the midst of it
            self.world.run_for(self.steps * 3_500 * MICROSECOND % (40 * MILLISECOND))
            return None
        assert self.world.run_while(lambda: not writer.is_answered, 30 * SECOND)
        assert writer.problem is None, writer.problem
        self.steps += 1
        return None if self.steps == self.kills_at else writer

    # What there is

    def visible(self) -> list[str]:
        """The log as it is on disk."""
        folder = "events-" + quote("orders@b/0", safe="@")
        try:
            log = LogReader(Subfolder(self.world.nodes["b"].disk, folder), unsynced=True)
        except NoLog:
            return []
        batches = [item for item in log.view.scan() if isinstance(item, Batch)]
        publications = [read_record(record) for batch in batches for record in batch.records]
        return [str(unpack(each.event).attributes["m"]) for each in publications]

    def check(self, *, is_over: bool) -> None:
        """Whole epochs, each once, in order."""
        left = self.visible()
        for version in range(VERSIONS):
            if not left and not is_over:
                return
            found = [marks for marks in self.marks[version] if left[: len(marks)] == marks]
            assert len(found) == 1, f"version {version}: {len(left)} events from {left[:1]}"
            left = left[len(found[0]) :]
        assert not left


class Torn(Random):
    """The power goes right after something was written, and two thirds of that survive."""

    def randrange(self, start: int, *_: Any) -> int:
        return min(1, start - 1)

    def randint(self, a: int, b: int) -> int:
        return (a + 2 * b) // 3


def crashed_at(moment_ns: int, application: Application, *, is_torn: bool = False) -> None:
    """The broker's power goes at a moment, and comes back."""

    def crash(world: World) -> None:
        node = world.nodes["b"]
        if is_torn:
            assert node.store is not None
            node.store._random = node.disk._random = Torn()
        world.crash("b")
        application.check(is_over=False)
        world.clock.at(world.now + 30 * MILLISECOND, lambda each: each.restart("b"), world)

    application.world.clock.at(moment_ns, crash, application.world)


def test_every_epoch_is_there_once_and_in_order() -> None:
    application = Application(0)
    application.run()
    application.check(is_over=True)
    assert [len(each) for each in application.marks.values()] == [1] * VERSIONS


def _stage(attempt: str, epoch: Epoch, events: list[bytes], writer: EpochWriter) -> None:
    writer.stage(attempt, epoch, events)


def calm(seed: int) -> Application:
    """A run in which nobody dies: until somebody does, the same seed makes the same run."""
    application = Application(seed)
    application.run()
    return application


@pytest.mark.parametrize("part", range(4))
def test_a_broker_that_dies_at_any_moment_leaves_whole_epochs_and_goes_on(part: int) -> None:
    """It is down for a moment; whoever has no answer says everything again."""
    end = calm(part).world.now
    for i in range(6):
        application = Application(part)
        crashed_at(SECOND + (end - SECOND) * (4 * i + part) // 24, application)
        application.run()
        application.check(is_over=True)


@pytest.mark.parametrize("is_torn", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_of_an_epoch_that_is_on_its_way_to_the_disk_a_crash_leaves_all_or_nothing(
    seed: int, *, is_torn: bool
) -> None:
    for moment in calm(seed).appended:
        application = Application(seed)
        crashed_at(moment + 400 * MICROSECOND, application, is_torn=is_torn)
        application.run()
        application.check(is_over=True)


STEPS = 2 * VERSIONS * (TASKS + 1)


@pytest.mark.parametrize("with_broker", [False, True])
def test_a_driver_that_dies_at_any_step_computes_its_epoch_anew_and_it_is_there_once(
    *, with_broker: bool
) -> None:
    """Before and after each task has staged, before and after the commit was answered; the broker dies with it."""
    end = calm(0).world.now
    for step in range(1, STEPS + 1):
        application = Application(step)
        application.kills_at = step
        if with_broker:
            crashed_at(SECOND + (end - SECOND) * step // STEPS, application)
        application.run()
        application.check(is_over=True)
        assert max(len(each) for each in application.marks.values()) <= 2


# Broken brokers


def test_a_replay_that_is_not_dropped_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.broker.durable.committing.is_done", lambda version, last: False)
    monkeypatch.setattr("holdfast.broker.durable.committing.first_number", _any_number())
    application = Application(1)
    application.kills_at = 6  # right after the first commit was answered
    application.run()
    with pytest.raises(AssertionError):
        application.check(is_over=True)


def _any_number() -> Callable[[int], int]:
    versions = count(1)
    return lambda version: epochs.first_number(next(versions))


def test_an_epoch_that_is_appended_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Committing.on_read

    def twice(self: Committing, read: EventsRead, now: int) -> None:
        commit = self._reading
        sound(self, read, now)
        self._reading = commit
        assert commit is not None
        commit.epoch = commit.epoch._replace(version=commit.epoch.version + 100)
        sound(self, read, now)
        commit.epoch = commit.epoch._replace(version=commit.epoch.version - 100)

    monkeypatch.setattr(Committing, "on_read", twice)
    application = Application(1)
    application.run()
    with pytest.raises(AssertionError):
        application.check(is_over=True)


def test_attempts_that_were_not_named_and_are_committed_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Committing.commit

    def greedy(self: Committing, port: ClientPort, message: Commit, own: OwnPubend) -> None:
        attempts = self._staging.attempts
        shares = tuple(Share(name, each.stable) for name, each in attempts.items())
        sound(self, port, Commit(message.epoch, shares), own)

    monkeypatch.setattr(Committing, "commit", greedy)
    application = Application(1)
    application.kills_at = 4
    application.run()
    with pytest.raises(AssertionError):
        application.check(is_over=True)


def test_an_append_of_which_a_crash_leaves_a_part_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Survey, "_whole_blocks", _whole_but_for_batches)
    application = Application(0)
    crashed_at(calm(0).appended[1] + 400 * MICROSECOND, application, is_torn=True)
    with pytest.raises(AssertionError, match="version 1"):
        application.run()


def _whole_but_for_batches(survey: Survey) -> int:
    broken = [place for place, found in enumerate(survey._waiting) if found.broken]
    return broken[0] if broken else len(survey._waiting)


def test_a_writer_without_an_answer_gives_up_and_says_so_and_one_that_wants_nothing_does_not() -> None:
    application = Application(0)
    writer = EpochWriter("w", 1, "b", address_of("b"))
    application.world.add("w", lambda _: writer)
    application.world.run_for(100 * SECOND)
    assert writer.problem is None
    writer.commit(Epoch("orders", "app", 0), ())
    application.world.submit("w", Wake())
    assert application.world.run_while(lambda: not writer.is_answered, SECOND)
    application.world.crash("b")
    writer.commit(Epoch("orders", "app", 1), ())
    application.world.submit("w", Wake())
    assert application.world.run_while(lambda: writer.problem is None, 100 * SECOND)
    assert "has not answered for 60 s" in str(writer.problem)
