"""Trees of brokers under any interleaving: subscriptions, withdrawals and events, with and without faults.

[KJ §3, I9]: when a confirmation has reached the subscriber, every broker has the tuple, so whatever is accepted
anywhere from then on finds its way.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from grown_tree import TOPICS, Tree
from holdfast.broker.settings import Routing
from holdfast.messages.streams import Order
from holdfast.ordering.fifo import Fifo
from holdfast.routing.advertisement import Advertisement
from tree_claims import check_complete, check_rest, check_safe, check_undisturbed

SEEDS = st.integers(min_value=0, max_value=2**32)


def choices(tree: Tree, *, faults: bool) -> list[Callable[[], None]]:
    """What may happen next, the common things more often."""
    common = [tree.arrive] * 6 + [tree.subscribe] * 2 + [tree.publish] * 4 + [tree.unsubscribe]
    if not faults:
        return common
    rare = [tree.cut_brokers, tree.cut_client, tree.crash_broker, tree.restart_client]
    rare += [tree.crash_while_publishing] * 2
    return common * 2 + rare + [tree.restart_broker] * 2 + [tree.pass_time] * 4


def run(seed: int, *, faults: bool, routing: Routing, order: Order, steps: int = 60) -> Tree:
    """A history, healed and checked, and then one more event on every topic by everybody."""
    tree = Tree(seed, routing=routing, order=order)
    possible = choices(tree, faults=faults)
    for _ in range(steps):
        tree.random.choice(possible)()
    tree.heal()
    check_safe(tree)
    check_rest(tree)
    if not faults:
        check_complete(tree)
        check_undisturbed(tree)
    since = tree.moment
    for name in tree.homes:
        tree.publish(TOPICS, name)
    tree.wires.settle()
    check_safe(tree)
    check_complete(tree, since)
    return tree


def run_many(count: int, *, faults: bool) -> None:
    for seed in range(count):
        run(seed, faults=faults, routing=Routing.FILTER, order=Order.FIFO)


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("routing", list(Routing))
@given(seed=SEEDS)
@examples(25)
def test_without_faults_everything_owed_arrives_once(routing: Routing, order: Order, seed: int) -> None:
    run(seed, faults=False, routing=routing, order=order)


@pytest.mark.parametrize("routing", list(Routing))
@given(seed=SEEDS)
@examples(60)
def test_with_faults_nothing_is_wrong_and_what_heals_is_whole(routing: Routing, seed: int) -> None:
    run(seed, faults=True, routing=routing, order=Order.FIFO)


# Planted faults: what the claims must catch.


def forgets_who_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Advertisement, "on_absent", lambda self, neighbour: [])


def confirms_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spread = Advertisement._spread

    def impatient(self: Advertisement, pending: object) -> object:
        effects = spread(self, pending)  # type: ignore[arg-type]
        subscription = pending.entry.subscription  # type: ignore[attr-defined]
        return effects + (self._complete(pending) if subscription in self._pending else [])  # type: ignore[arg-type]

    monkeypatch.setattr(Advertisement, "_spread", impatient)


def never_withdraws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Advertisement, "on_table", lambda self, sender, rows, last=True: [])


def lets_everything_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fifo, "admits", lambda self, pubend, tick: True)


@pytest.mark.parametrize(
    ("plant", "faults"),
    [
        (forgets_who_is_absent, True),
        (confirms_at_once, False),
        (never_withdraws, True),
        (lets_everything_pass, True),
    ],
)
def test_a_planted_fault_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], faults: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_many(100, faults=faults)
