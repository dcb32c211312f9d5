from __future__ import annotations

from typing import Any

import pytest

from holdfast.clock import MILLISECOND, Instant
from holdfast.overlay.transport import Wake
from holdfast.simulator.transcript import Transcript
from holdfast.simulator.world import WAKES_AT_ONCE_MAX, World
from toy_cores import Heard, Listener, Talk, Talker


class Stage:
    """A talker and a listener in a world."""

    def __init__(self, **options: Any) -> None:
        self.lines: list[tuple[float, str, str]] = []
        self.effects: list[Any] = []
        self.world = World(
            0,
            on_trace=lambda node, kind, fields: self.lines.append((self.world.now / MILLISECOND, node, kind)),
            on_effect=lambda node, effect: self.effects.append(effect),
            **options,
        )
        self.world.add("ear", lambda incarnation: Listener("ear", incarnation))
        self.world.add("mouth", lambda incarnation: Talker("mouth", "ear"))

    def run(self, ms: float) -> None:
        self.world.run_for(int(ms * MILLISECOND))

    @property
    def ear(self) -> Listener:
        core = self.world.nodes["ear"].core
        assert isinstance(core, Listener)
        return core


def test_a_core_is_started_by_a_wake_and_woken_at_its_deadlines() -> None:
    stage = Stage()
    stage.run(40)
    assert stage.ear.heard[0] == (0.0, Wake())
    assert stage.lines == [(20.0 + 5 * i, "mouth", "said") for i in range(5)]
    assert stage.ear.numbers == [1, 2, 3]


def test_effects_the_world_does_not_know_go_to_the_application() -> None:
    stage = Stage()
    stage.run(30)
    assert [effect.count for effect in stage.effects if isinstance(effect, Heard)] == [0, 0, 1]


def test_an_input_of_the_application_reaches_the_core_in_its_turn() -> None:
    stage = Stage()
    stage.run(1)
    stage.world.submit("mouth", Talk())
    assert not stage.lines
    stage.run(0)
    assert stage.lines == [(1.0, "mouth", "asked")]


def test_messages_as_bytes_and_as_objects_make_the_same_run() -> None:
    runs = []
    for wire in (False, True):
        stage = Stage(wire=wire)
        stage.run(500)
        runs.append((stage.lines, stage.ear.numbers))
    assert runs[0] == runs[1]


def test_each_life_has_its_own_incarnation_and_no_memory() -> None:
    stage = Stage()
    stage.run(40)
    stage.world.crash("ear")
    stage.run(40)
    stage.world.restart("ear")
    stage.run(1)
    assert stage.ear.incarnation == 2
    assert not stage.ear.numbers


def test_inputs_for_an_earlier_life_are_not_heard_by_the_next() -> None:
    stage = Stage()
    stage.run(1)
    stage.world.submit("mouth", Talk())
    stage.world.crash("mouth")
    stage.world.restart("mouth")
    stage.run(1)
    assert not stage.lines


def test_the_timers_of_a_crashed_core_are_gone() -> None:
    stage = Stage()
    stage.run(40)
    stage.world.crash("mouth")
    stage.lines.clear()
    stage.run(1000)
    assert not stage.lines


def test_a_frozen_core_does_nothing_and_then_goes_on_where_it_was() -> None:
    stage = Stage()
    stage.run(22)
    stage.world.freeze("mouth")
    stage.world.freeze("ear")
    stage.world.submit("mouth", Talk())
    stage.run(100)
    assert len(stage.lines) == 1
    assert not stage.ear.numbers
    stage.world.unfreeze("mouth")
    stage.world.unfreeze("ear")
    assert stage.ear.numbers == [1]
    stage.run(4)
    assert stage.lines[1:] == [(122.0, "mouth", "asked"), (122.0, "mouth", "said")]


def test_isolation_cuts_a_node_off_from_everybody() -> None:
    stage = Stage()
    stage.world.isolate("ear")
    stage.run(100)
    assert not stage.lines
    stage.world.network.heal("ear")
    stage.world.submit("mouth", Wake())
    stage.run(100)
    assert stage.ear.numbers


def test_a_core_that_never_gets_past_an_instant_is_caught() -> None:
    class Stuck(Listener):
        def next_deadline(self) -> Instant:
            return 0

    world = World(0)
    world.add("stuck", lambda incarnation: Stuck("stuck", incarnation))
    with pytest.raises(AssertionError, match="over and over"):
        world.run_for(1)
    core = world.nodes["stuck"].core
    assert isinstance(core, Stuck)
    assert len(core.heard) == WAKES_AT_ONCE_MAX + 1


def test_the_transcript_tells_what_was_heard_said_and_became() -> None:
    transcript = Transcript()
    stage = Stage(transcript=transcript)
    stage.run(31)
    stage.world.crash("ear")
    lines = [line.strip() for line in str(transcript).splitlines()]
    for line in [
        "0.000000  mouth        = started, incarnation 1",
        "0.000000  mouth        > dial ear",
        "0.020000  mouth        < connected to ear",
        "0.020000  mouth        = said n=1",
        "0.020000  mouth        > ear: Accepted(1)",
        "0.030000  ear          < mouth: Accepted(1)",
        "0.031000  ear          = crashed",
    ]:
        assert line in lines
