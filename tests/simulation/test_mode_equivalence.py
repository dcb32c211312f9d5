"""I36: dack or conf, filter or flooding, the same is delivered, with failures within δ too.

The networks and their troubles are those of the reliable swarm, less what makes two runs owe different things:
subscriptions that come and go meanwhile, and clients that crash.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.messages.overlay import Relay
from holdfast.node.plane import Plane
from holdfast.node.reach import Reach
from holdfast.node.station import Station
from holdfast.scenarios.checkers.equivalence import equivalence
from holdfast.scenarios.checkers.history import History
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.simulator.reliable_scenarios import draw_reliable
from holdfast.simulator.run import simulate
from scenario_traces import good_run

#: Until all are confirmed who subscribe at the beginning.
CONFIRMED_MS = 4_000
#: δ of 1, 3 and 2; crashes and freezes, two crashes at once, cuts and crashes.
SEEDS = (29, 24, 28)

_CHURN = re.compile(r"At \d+ (Subscriber \w+ (Subscribe|Unsubscribe)|(Crash|Restart) [pu]\d+)")


def steady(script: str) -> str:
    """A drawn script in which everybody subscribes first, and for good; and clients keep their memory."""
    lines = [line for line in script.splitlines() if not _CHURN.match(line)]
    later = [re.sub(r"^At (\d+)", lambda found: f"At {int(found[1]) + CONFIRMED_MS}", line) for line in lines]
    first_wait = next(i for i, line in enumerate(later) if line.startswith("Wait "))
    later.insert(first_wait, f"Wait {CONFIRMED_MS}")
    return "".join(f"{line}\n" for line in later)


def run(seed: int, acknowledge: str, routing: str) -> History:
    scenario = draw_reliable(seed, wild=False, acknowledge=acknowledge, routing=routing)
    configuration = parse_configuration(scenario.configuration, "configuration")
    script = parse_script(steady(scenario.script), "script", configuration)
    return History(simulate(configuration, script).trace)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_the_mode_the_same_is_delivered(seed: int) -> None:
    reference = run(seed, "dack", "filter")
    assert reference.faults
    assert sum(map(len, reference.delivered.values())) > 100
    for acknowledge, routing in (("conf", "filter"), ("dack", "flooding"), ("conf", "flooding")):
        other = run(seed, acknowledge, routing)
        assert other.published.keys() == reference.published.keys()
        assert equivalence(other, reference) == []


def test_what_came_twice_differs_from_what_came_once() -> None:
    """Multisets, not sets; and who got it, for what."""
    once, twice = good_run(), good_run()
    twice.deliver(20, 2)
    (violation,) = equivalence(twice.trace(), once.trace())
    assert str(violation) == "differs: p#2 came to s1 for all 2 times, and 1 times in the other run"
    assert len(violation.lines) == 3
    assert equivalence(once.trace(), once.trace()) == []


# Faults that one mode has and the other has not

Plant = Callable[[pytest.MonkeyPatch], None]


def _rash(patch: pytest.MonkeyPatch) -> None:
    """Whoever takes a publication confirms it at once."""
    take = Plane.take

    def and_confirm(
        plane: Plane, relay: Relay, new: list[int], events: Any, tags: Any, sender: Station
    ) -> Any:
        numbers = [relay.trail.numbers[-1][place] for place in new]
        return take(plane, relay, new, events, tags, sender) + plane.confirm(sender, numbers)

    patch.setattr(Plane, "take", and_confirm)


def _short(patch: pytest.MonkeyPatch) -> None:
    """A flood does not reach the last of those it should."""
    rim = Reach.rim
    patch.setattr(Reach, "rim", lambda reach: rim(reach)[:-1])


@pytest.mark.parametrize(
    ("plant", "acknowledge", "routing"), [(_rash, "conf", "filter"), (_short, "dack", "flooding")]
)
def test_a_mode_that_is_broken_by_itself_is_caught(
    plant: Plant, acknowledge: str, routing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = SEEDS[-1]
    sound = run(seed, "dack", "filter")
    plant(monkeypatch)
    assert equivalence(run(seed, "dack", "filter"), sound) == []
    found = equivalence(run(seed, acknowledge, routing), sound)
    assert {violation.kind for violation in found} == {"differs"}
