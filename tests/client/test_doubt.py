"""Doubts against their plain twin: one dict per publisher, one entry per subscription."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.client.doubt import Doubts


class PlainDoubts:
    """The same, written down in full at every break."""

    def __init__(self) -> None:
        self.doubts: dict[str, dict[int, int]] = {}

    def begin(self, highest: dict[str, int], confirmed: list[int]) -> None:
        for pubend, after in highest.items():
            for number in confirmed:
                self.doubts.setdefault(pubend, {}).setdefault(number, after)

    def hear(
        self, pubend: str, tick: int, reached: tuple[int, ...], current: dict[int, bool]
    ) -> dict[int, int]:
        learned = {}
        for number, after in list(self.doubts.get(pubend, {}).items()):
            if number not in current:
                del self.doubts[pubend][number]
            elif tick > after and (current[number] or number in reached):
                learned[number] = after
                self.doubts[pubend][number] = tick
                if current[number]:
                    del self.doubts[pubend][number]
        return learned


publishers = st.sampled_from("pq")
subscriptions = st.integers(1, 3)
reached = st.lists(subscriptions, max_size=2).map(tuple)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("hear"), publishers, st.integers(1, 3), reached),
        st.tuples(st.just("hear"), publishers, st.integers(-2, 3), reached),
        st.tuples(st.just("confirm"), subscriptions),
        st.tuples(st.just("break")),
        st.sampled_from([("end", 3), ("break",), ("confirm", 1)]),
    ),
    max_size=40,
)


@given(moves)
@examples(500)
def test_doubts_are_what_the_plain_twin_says(history: list[Any]) -> None:
    doubts, plain = Doubts(), PlainDoubts()
    highest: dict[str, int] = {}
    current: dict[int, bool] = {}  #: of those that were ever confirmed and have not ended
    ended: set[int] = set()
    for move in history:
        match move:
            case ("break",):
                doubts.begin(dict(highest), list(current))
                plain.begin(highest, list(current))
                current = dict.fromkeys(current, False)
            case ("confirm", number) if number not in ended:
                current[number] = True
            case ("end", number):
                ended.add(number)
                current.pop(number, None)
            case ("hear", publisher, step, reached):
                tick = max(1, highest.get(publisher, 0) + step)
                expected = plain.hear(publisher, tick, reached, current)
                learned = dict(doubts.hear(publisher, tick, reached, current)) if publisher in doubts else {}
                assert learned == expected
                highest[publisher] = max(tick, highest.get(publisher, 0))
    live = {pubend for pubend, each in plain.doubts.items() if each.keys() & current.keys()}
    assert all(pubend in doubts for pubend in live)


def test_whoever_was_out_of_doubt_is_in_doubt_again_after_the_next_break() -> None:
    doubts = Doubts()
    doubts.begin({"p": 5}, [1, 2])
    assert dict(doubts.hear("p", 7, (1,), {1: True, 2: False})) == {1: 5}
    doubts.begin({"p": 7}, [1, 2])
    assert dict(doubts.hear("p", 9, (), {1: True, 2: True})) == {1: 7, 2: 5}
    assert "p" not in doubts


def test_a_newcomer_joins_a_doubt_that_nobody_has_looked_at() -> None:
    doubts = Doubts()
    doubts.begin({"p": 5}, [1])
    doubts.begin({"p": 5}, [1, 2])
    doubts.begin({"p": 5}, [1, 2, 3])
    assert dict(doubts.hear("p", 9, (), {1: True, 2: True, 3: True})) == {1: 5, 2: 5, 3: 5}


def test_whom_an_event_reaches_before_it_is_known_again_stays_in_doubt_after_it() -> None:
    doubts = Doubts()
    doubts.begin({"p": 5}, [1])
    assert dict(doubts.hear("p", 7, (1,), {1: False})) == {1: 5}
    assert dict(doubts.hear("p", 9, (), {1: True})) == {1: 7}
