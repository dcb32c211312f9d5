"""Every checker catches the broker that is broken in its way, within a few seeds of the swarm."""

from __future__ import annotations

import pytest

from broken_brokers import (
    BrokenBroker,
    Careless,
    Doubling,
    Dropping,
    Failing,
    Mute,
    NotForwarding,
    Refusing,
    Repeating,
    Resurrecting,
    Silent,
    Swapping,
)
from holdfast.broker.broker import Broker
from holdfast.ordering.fifo import Fifo
from holdfast.ordering.unordered import Unordered
from holdfast.ordering.watchful import Watchful
from holdfast.simulator.swarm import run_seed

SEEDS = range(12)


def kinds_found(broker: type[Broker], seed: int, *, faults: bool = False) -> set[str]:
    """What the swarm says of a broker in one run."""
    outcome = run_seed(seed, faults=faults, make_broker=broker, wire=False)
    return {violation.kind for violation in outcome.violations}


def is_caught(broker: type[Broker], kind: str, *, faults: bool = False) -> bool:
    return any(kind in kinds_found(broker, seed, faults=faults) for seed in SEEDS)


def test_a_sound_broker_is_not_accused() -> None:
    for seed in SEEDS[:4]:
        assert not kinds_found(BrokenBroker, seed)
        assert not kinds_found(BrokenBroker, seed, faults=True)


@pytest.mark.parametrize(
    ("broker", "kind"),
    [
        (Doubling, "duplicate"),
        (Dropping, "lost"),
        (NotForwarding, "lost"),
        (Careless, "wrong"),
        (Silent, "stuck"),
        (Mute, "stuck"),
        (Refusing, "unaccepted"),
        (Failing, "crash"),
        (Resurrecting, "no-interest"),
        (Resurrecting, "diverged"),
    ],
)
@pytest.mark.parametrize("faults", [False, True])
def test_a_broken_broker_is_caught(broker: type[Broker], kind: str, faults: bool) -> None:
    assert is_caught(broker, kind, faults=faults)


@pytest.mark.parametrize(("broker", "kind"), [(Repeating, "duplicate"), (Swapping, "misorder")])
def test_what_the_client_would_put_right_is_caught_where_it_does_not(
    broker: type[Broker], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for edge in (Fifo, Watchful, Unordered):
        monkeypatch.setattr(edge, "admits", lambda self, pubend, tick: True)
    assert is_caught(broker, kind)


def test_a_client_keeps_its_promise_although_its_broker_repeats_itself() -> None:
    assert not any(kinds_found(Repeating, seed) for seed in SEEDS[:4])


def test_what_a_client_does_with_stragglers_is_turn_them_away() -> None:
    assert set().union(*(kinds_found(Swapping, seed) for seed in SEEDS)) == {"lost"}
