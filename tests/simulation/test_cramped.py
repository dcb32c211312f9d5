"""The durable swarm with limits drawn small: as many seeds as fit; and what goes wrong only at a limit is caught."""

from __future__ import annotations

from importlib import import_module
from itertools import count

import pytest

from cramped import ALSO_IN, CACHE, LIMITS, SEGMENT, SETTINGS, cramped, draw_limits, run_cramped
from holdfast.messages.ticks import Version
from holdfast.simulator.durable_swarm import Report
from holdfast.streams import catchup, curiosity, knowledge, store
from holdfast.streams.curiosity import Curiosity
from holdfast.streams.knowledge import Knowledge
from swarm_time import for_seconds

SECONDS = 6.0
RUNS_MIN = 4

#: What found something, each in its time: silence that was asked for again for ever, being older than all that is told
#: apart; a log that could not be opened, since its last segments had just as many events as are read at start.
ONCE_FAILED = (
    (520008, False, {"streams.knowledge.VERSIONS_MAX": 3}),
    (510009, True, {"streams.knowledge.VERSIONS_MAX": 2}),
    (530041, True, {"streams.store_events.RECENT_EVENTS": 5, SEGMENT: 300}),
)


@pytest.mark.parametrize("tight", [False, True])
def test_no_seed_breaks_a_promise_however_small_its_limits_are(tight: bool) -> None:
    is_time_up, report = for_seconds(SECONDS, RUNS_MIN), Report()
    for seed in count():
        if is_time_up():
            break
        report.add(run_cramped(seed, draw_limits(seed), faults=True, tight=tight))
    assert not report.failures, "\n".join(map(str, report.failures))
    assert report.tally.runs >= RUNS_MIN


@pytest.mark.parametrize(("seed", "faults", "limits"), ONCE_FAILED)
def test_what_failed_once_does_not_fail_again(seed: int, faults: bool, limits: dict[str, int]) -> None:
    outcome = run_cramped(seed, limits, faults=faults)
    assert not outcome.violations, str(outcome)


def test_what_goes_wrong_only_at_a_limit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_wanted(self: Knowledge, version: Version) -> Version:
        return version

    monkeypatch.setattr(Knowledge, "asked_under", as_wanted)
    limits = {"streams.knowledge.VERSIONS_MAX": 2}
    assert any(run_cramped(seed, limits, faults=True).violations for seed in range(510000, 510040))
    assert not run_cramped(510009, {}, faults=True).violations, "nobody comes near the limit there is"


def test_limits_are_there_and_as_they_were_afterwards() -> None:
    def values() -> list[int]:
        homes = [(name.rpartition("."), ALSO_IN.get(name, ())) for name in LIMITS]
        return [
            getattr(import_module(f"holdfast.{module}"), constant)
            for (home, _, constant), others in homes
            for module in (home, *others)
        ]

    before = values()
    every = {name: small[0] for name, small in (LIMITS | SETTINGS).items()}
    with cramped(every):
        assert all(lower < usual for lower, usual in zip(values(), before, strict=True))
        assert Curiosity("P").window == LIMITS["streams.curiosity.WINDOW"][0]
        assert vars(store)["LogSettings"]().segment_bytes == every[SEGMENT]
    assert values() == before
    assert Curiosity("P").window == curiosity.WINDOW == catchup.WINDOW
    assert vars(store)["LogSettings"]().segment_bytes == 64 << 20
    assert knowledge.VERSIONS_MAX == 64


def test_a_seed_draws_few_limits_or_many_and_each_of_them_in_some_seed() -> None:
    drawn = [draw_limits(seed) for seed in range(100)]
    assert set().union(*drawn) == LIMITS.keys() | {CACHE, SEGMENT}
    assert min(map(len, drawn)) < 10 < 35 < max(map(len, drawn))
    assert draw_limits(7) == draw_limits(7)
