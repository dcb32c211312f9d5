"""How those who are current and those who catch up share a broker: B1.14, I35."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.streams.catchup import Scheduler


@examples(200)
@given(
    st.integers(0, 50),
    st.integers(0, 60),
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 30)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_b1_14_each_side_has_its_share_and_what_the_other_leaves(
    budget: int, current: int, behind: dict[str, int], weights: tuple[int, int]
) -> None:
    scheduler = Scheduler(current_weight=weights[0], catchup_weight=weights[1])
    live, shares = scheduler.split(budget, current, behind)
    assert live <= current
    assert all(shares[key] <= behind[key] for key in behind)
    used = live + sum(shares.values())
    assert used == min(budget, current + sum(behind.values())), "nothing is left over that somebody could use"
    assert live >= min(current, budget * weights[0] // sum(weights))
    assert sum(shares.values()) >= min(sum(behind.values()), budget * weights[1] // sum(weights))
    hungry = [share for key, share in shares.items() if share < behind[key]]
    assert not hungry or max(hungry) <= min(hungry) + 1
    assert all(share <= min(hungry, default=99) + 1 for share in shares.values())


def test_b1_14_nobody_starves_where_there_is_less_than_one_each() -> None:
    scheduler = Scheduler()
    total = dict.fromkeys("abc", 0)
    for _ in range(30):
        for key, share in scheduler.split(2, 100, dict.fromkeys("abc", 100))[1].items():
            total[key] += share
    assert list(total.values()) == [10, 10, 10]


class Greedy(Scheduler):
    """Those who are current first (against B1.14)."""

    def split(self, budget, current, behind):  # type: ignore[no-untyped-def]
        live = min(budget, current)
        return live, super().split(budget - live, 0, behind)[1]


@pytest.mark.parametrize(("kind", "does_end"), [(Scheduler, True), (Greedy, False)])
def test_i35_catching_up_ends_although_events_keep_coming(kind: type[Scheduler], does_end: bool) -> None:
    """100 are published a turn, for three subscribers; 400 can be told, and one is 5,000 behind."""
    scheduler, waiting, behind = kind(), 0, 5_000
    for _ in range(100):
        waiting, behind = waiting + 400, behind + 100 if behind else 0
        live, shares = scheduler.split(400, waiting, {"late": behind})
        waiting -= live
        behind -= shares["late"]
        if not behind:
            break
    assert (behind == 0) == does_end
