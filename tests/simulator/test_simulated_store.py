"""A node's store in virtual time: turns take a moment, and a crash falls anywhere within them.

Issue 5 §8: crashes at every point between append, sync and metadata; a clock that goes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.broker.input import ClockSet
from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.messages.publications import Publication
from holdfast.overlay.transport import Wake
from holdfast.simulator.store import COMMIT_NS, READ_NS
from holdfast.simulator.world import EPOCH_NS, Node, World
from holdfast.storage.tables import Change
from holdfast.streams.storing import (
    AppendEvents,
    DiskEffect,
    EventsRead,
    EventsRefused,
    EventsStable,
    NoteMatches,
    ReadEvents,
    Save,
    Saved,
    SaveFailed,
)


class Keeper:
    """A core that asks for what it is told to ask for, and remembers what it hears and when."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[tuple[Instant, Any]] = []

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        if isinstance(stimulus, list):
            return stimulus
        self.heard.append((now, stimulus))
        return []

    def next_deadline(self) -> Instant | None:
        return None


class Stage:
    """A world with one node that has a store."""

    def __init__(self, seed: int = 0) -> None:
        self.effects: list[Any] = []
        self.world = World(seed, on_effect=lambda node, effect: self.effects.append(effect))
        self.node: Node = self.world.add("b", lambda incarnation: Keeper("b"), store=True)
        self.run(0)

    def run(self, ms: float) -> None:
        self.world.run_for(int(ms * MILLISECOND))

    def ask(self, *effects: DiskEffect) -> None:
        self.world.submit("b", list(effects))

    def append(self, *ticks: int) -> None:
        self.ask(*(AppendEvents("p", [tick], [Publication("x", tick, b"e" * 40)], 0) for tick in ticks))

    @property
    def heard(self) -> list[Any]:
        assert isinstance(self.node.core, Keeper)
        return [stimulus for _, stimulus in self.node.core.heard if not isinstance(stimulus, Wake | ClockSet)]

    def crash(self) -> None:
        self.world.crash("b")
        self.world.restart("b")
        self.run(0)

    @property
    def logged(self) -> list[int]:
        """What its last start has found."""
        assert self.node.store is not None
        state = self.node.store.recovered.logs.get("p")
        return [] if state is None else [tick for tick, _ in state.tail]


def test_a_turn_takes_a_moment_and_what_was_asked_for_at_once_is_one() -> None:
    stage = Stage()
    stage.append(1, 2, 3)
    stage.run(COMMIT_NS * 0.4 / MILLISECOND)
    assert stage.heard == []
    stage.append(4)
    stage.run(1.2)
    [first] = stage.heard
    assert isinstance(first, EventsStable)
    assert first.appends == 3
    stage.run(2)
    assert [each.appends for each in stage.heard] == [3, 1], "and what is asked for meanwhile is the next"
    assert stage.effects == []


def test_lanes_do_not_wait_for_each_other() -> None:
    stage = Stage()
    stage.append(1)
    stage.run(5)
    stage.append(2)
    stage.ask(ReadEvents("p", [(0, 9)], 5))
    stage.run(2 * READ_NS / MILLISECOND)
    read = stage.heard[-1]
    assert isinstance(read, EventsRead)
    assert list(read.ticks) == [1], "the commit is not done"


def test_what_became_of_it_is_not_heard_by_the_next_life() -> None:
    stage = Stage()
    stage.append(1)
    stage.ask(Save(1, [Change("t", "k", b"v")]), ReadEvents("p", [(0, 9)], 5))
    stage.run(0.01)
    stage.crash()
    stage.run(10)
    assert stage.heard == []


def test_a_frozen_node_hears_it_later() -> None:
    stage = Stage()
    stage.append(1)
    stage.run(0.1)
    stage.world.freeze("b")
    stage.run(50)
    assert stage.heard == []
    stage.world.unfreeze("b")
    stage.run(0)
    assert [type(stimulus) for stimulus in stage.heard] == [EventsStable]


def outcome(seed: int, *, during_ms: float) -> tuple[list[int], bool, bool]:
    """What is left of a crash with work of all kinds under way, beyond what was told before it."""
    stage = Stage(seed)
    stage.append(1, 2)
    stage.run(10)
    assert [type(stimulus) for stimulus in stage.heard] == [EventsStable]
    stage.append(*range(3, 30))
    stage.ask(NoteMatches("p", [(3, [1])], 3, 0), Save(1, [Change("t", "k", b"v")]))
    stage.run(during_ms)
    assert len(stage.heard) == 1
    stage.crash()
    assert stage.node.store is not None
    found = stage.node.store.recovered
    assert stage.logged[:2] == [1, 2], "what was told to be stable is there, always"
    assert stage.logged == [*range(1, len(stage.logged) + 1)]
    stage.append(len(stage.logged) + 1)
    stage.run(10)
    assert [type(stimulus) for stimulus in stage.heard] == [EventsStable], "and it goes on"
    return stage.logged, bool(found.matches and found.matches["p"].last_timestamp), bool(found.tables)


def test_of_what_is_under_way_in_a_crash_anything_may_have_happened() -> None:
    outcomes = [outcome(seed, during_ms=0.3) for seed in range(120)]
    counts = {len(logged) for logged, _, _ in outcomes}
    assert {2, 29} <= counts, "nothing of it, or all of it without anybody having heard"
    assert {(noted, saved) for _, noted, saved in outcomes} == {(False, False), (True, False), (True, True)}
    assert outcomes[:10] == [outcome(seed, during_ms=0.3) for seed in range(10)], "the seed decides"


def test_what_has_not_begun_did_not_happen() -> None:
    stage = Stage()
    stage.append(1)
    stage.run(0.1)
    stage.append(2)
    stage.run(0.1)
    stage.crash()
    assert 2 not in stage.logged


def test_disks_run_full_and_fail_node_by_node() -> None:
    stage = Stage()
    other = stage.world.add("c", lambda incarnation: Keeper("c"), store=True)
    assert stage.node.store is not None
    stage.node.disk.capacity = 0
    stage.node.store.tables.is_full = True
    for name in ("b", "c"):
        stage.world.submit(name, [AppendEvents("p", [1], [Publication("x", 1, b"")], 0)])
        stage.world.submit(name, [Save(1, [Change("t", "k", b"v")])])
    stage.run(5)
    assert {type(stimulus) for stimulus in stage.heard} == {EventsRefused, SaveFailed}
    assert isinstance(other.core, Keeper)
    assert {type(stimulus) for _, stimulus in other.core.heard[2:]} == {EventsStable, Saved}


def test_a_node_that_is_taken_out_of_the_world_with_work_under_way_is_gone() -> None:
    stage = Stage()
    stage.append(1)
    stage.run(0.1)
    stage.world.remove("b")
    stage.run(10)


def test_a_node_without_a_store_has_nobody_who_takes_its_disk_work() -> None:
    stage = Stage()
    stage.world.add("plain", lambda incarnation: Keeper("plain"))
    stage.world.submit("plain", [save := Save(1, [])])
    stage.run(1)
    assert stage.effects == [save]


# The wall clock


def clock_heard(node: Node) -> Sequence[Any]:
    assert isinstance(node.core, Keeper)
    return [stimulus for _, stimulus in node.core.heard]


@pytest.mark.parametrize("ms", [90_000, -90_000])
def test_the_wall_clock_is_told_first_and_whenever_it_is_set(ms: int) -> None:
    stage = Stage()
    assert clock_heard(stage.node) == [ClockSet(1_700_000_000 * SECOND), Wake()]
    stage.run(1_000)
    stage.world.shift_clock("b", ms)
    stage.run(0)
    moved = ClockSet(EPOCH_NS + ms * MILLISECOND)
    assert clock_heard(stage.node)[2:] == [moved]
    stage.crash()
    assert clock_heard(stage.node) == [moved, Wake()], "it is the machine's, not the program's"
