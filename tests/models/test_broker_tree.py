"""Trees of brokers under any interleaving: subscriptions, withdrawals and events, with and without faults.

[KJ §3, I9]: when a confirmation has reached the subscriber, every broker has the tuple, so whatever is accepted
anywhere from then on finds its way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from grown_tree import TOPICS, Tree
from holdfast.broker.settings import Routing
from holdfast.messages.streams import Order
from holdfast.messages.subscriptions import Lore
from holdfast.node.graves import Graves, is_of_life
from holdfast.node.spread import Spread
from holdfast.ordering.fifo import Fifo
from holdfast.ordering.watchful import Watchful
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


def waits_for_the_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spread, "replan", lambda self: self.heal())


def confirms_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = Spread._advance

    def impatient(self: Spread, key: object, under_way: Any) -> Any:
        effects = advance(self, key, under_way)
        if self._rounds.pop(key, None) is None:
            return effects
        return effects + self._end(under_way, [])

    monkeypatch.setattr(Spread, "_advance", impatient)


def tells_of_no_graves(monkeypatch: pytest.MonkeyPatch) -> None:
    on_lore = Spread.on_lore
    monkeypatch.setattr(Spread, "on_lore", lambda self, sender, lore: on_lore(self, sender, Lore(lore.rows)))


def lets_the_dead_return(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Graves, "__contains__", lambda self, subscription: False)


def knows_nothing_of_earlier_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Graves.add
    monkeypatch.setattr(Spread, "_is_lost", lambda self, row: False)
    monkeypatch.setattr(Graves, "add", lambda self, grave: None if is_of_life(grave) else add(self, grave))


def lets_everything_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for edge in (Fifo, Watchful):
        monkeypatch.setattr(edge, "admits", lambda self, pubend, tick: True)


@pytest.mark.parametrize(
    ("plant", "faults"),
    [
        (waits_for_the_lost, True),
        (confirms_at_once, False),
        (tells_of_no_graves, True),
        (lets_the_dead_return, True),
        (knows_nothing_of_earlier_lives, True),
        (lets_everything_pass, True),
    ],
)
def test_a_planted_fault_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], faults: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_many(400, faults=faults)
