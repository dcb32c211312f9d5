"""Every checker of durable streams catches the broker that is broken in its way, within a few seeds of the swarm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from broken_brokers import (
    Absolving,
    BrokenBroker,
    Failing,
    Forgetful,
    Generous,
    Hasty,
    Hushing,
    Misplacing,
    Muddling,
    Overnoting,
    Pessimistic,
    Refusing,
    Skipping,
    Unassuring,
    Unnoting,
)
from durable_runs import chain, run
from holdfast.broker.broker import Broker
from holdfast.simulator.durable_swarm import run_durable
from holdfast.storage.rows import Rows

SEEDS = range(12)


def kinds_found(broker: type[Broker], seed: int, *, faults: bool) -> set[str]:
    """What the swarm says of a broker in one run."""
    outcome = run_durable(seed, faults=faults, make_broker=broker, wire=False)
    return {violation.kind for violation in outcome.violations}


@pytest.mark.parametrize(
    ("broker", "kind", "faults"),
    [
        (Skipping, "lost", False),  # exactness, I16
        (Hushing, "lost", False),  # exactness, I16
        (Absolving, "I20", False),  # the oracle
        (Unnoting, "I21", False),  # the oracle: a match is missing in the filtering log,
        (Overnoting, "I21", False),  # or one is there too many
        (Muddling, "duplicate", False),  # ticks, I18
        (Muddling, "wrong", False),  # ticks: two events at one place
        (Muddling, "total-order", False),  # I26
        (Misplacing, "duplicate", False),  # ticks, I18
        (Pessimistic, "lost", False),  # gaps, I17
        (Unassuring, "unexplained", False),  # caught_up, I35
        (Hasty, "lost", True),  # completeness: accepted means on disk
        (Refusing, "unaccepted", False),
        (Failing, "crash", False),
    ],
)
def test_a_broken_broker_is_caught(broker: type[Broker], kind: str, faults: bool) -> None:
    assert any(kind in kinds_found(broker, seed, faults=faults) for seed in SEEDS)


def test_bits_of_a_filtering_log_that_leave_out_a_match_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = Rows.columns

    def without_the_first(
        rows: Rows, lists: Sequence[Sequence[int]], bytes_max: int
    ) -> Mapping[int, bytes] | None:
        found = columns(rows, lists, bytes_max)
        return found and {each: bytes([bits[0] & ~1]) + bits[1:] for each, bits in found.items()}

    monkeypatch.setattr(Rows, "columns", without_the_first)
    assert any("I21" in kinds_found(BrokenBroker, seed, faults=False) for seed in SEEDS)


@pytest.mark.parametrize("faults", [False, True])
def test_a_sound_broker_is_not_accused(faults: bool) -> None:
    for seed in SEEDS[:4]:
        assert not kinds_found(BrokenBroker, seed, faults=faults)


def test_a_log_that_forgets_what_somebody_who_is_away_has_not_acknowledged_is_caught() -> None:
    """I17; in the swarm absences are mostly shorter than what is kept anyway."""
    configuration = chain(2, ("p", "publisher", 0), ("u", "subscriber", 1), ("v", "subscriber", 1))
    script = """Subscriber u Subscribe a As mine Durable
    Subscriber v Subscribe a As hers Durable
    Subscriber u Disconnect
    Publisher p Publish 50 Ontopic a Interval 10
    Wait 20000
    """
    with pytest.raises(AssertionError, match=r"I17: scenario@b0/0 forgets up to .* u/mine has acknowledged"):
        run(configuration, script, make_broker=Generous)
    run(configuration, script, make_broker=BrokenBroker)


def test_a_broker_that_begins_with_nothing_although_it_had_logged_something_is_caught() -> None:
    """What is written and not found again is lost to who was away."""
    configuration = chain(2, ("p", "publisher", 0), ("u", "subscriber", 1))
    script = """Subscriber u Subscribe a As mine Durable
    Subscriber u Disconnect
    Publisher p Publish 50 Ontopic a Interval 10
    Wait 1000
    Crash b0
    Crash b1
    Restart b0
    Restart b1
    Subscriber u Reconnect
    Drain 5000
    Wait 2000
    """
    with pytest.raises(AssertionError, match="lost: "):
        run(configuration, script, make_broker=Forgetful)
    run(configuration, script, make_broker=BrokenBroker)
