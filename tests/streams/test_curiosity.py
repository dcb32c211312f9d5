"""What is wanted, and by whom: R1.4, B1.2, B1.14 (the window); against a log of labelled events."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.intervals import Intervals, Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, Items, Lost, Nack
from holdfast.streams.curiosity import Answer, Curiosity, Wish
from holdfast.streams.knowledge import VERSIONS_MAX, Knowledge
from holdfast.streams.tick import checked, laid_out

LAST: Final = 40
VERSIONS: Final = (1, 2, ABSOLUTE)


def event(tick: int) -> Publication:
    return Publication("p", tick, b"x")


def is_wanted(tick: int, version: int) -> bool:
    """In version 1 every third event is wanted, in version 2 every second one too; raw is all."""
    return version == ABSOLUTE or tick % 3 == 0 or (version == 2 and tick % 2 == 0)


def ticks_of(spans: list[Span]) -> set[int]:
    return {tick for after, upto in spans for tick in range(after + 1, upto + 1)}


class Log:
    """Upstream: it answers as whoever has the log does."""

    def __init__(self, events: set[int], lost: int) -> None:
        self.events = events
        self.lost = lost
        self.times_asked: Counter[tuple[int, int]] = Counter()

    def items(self, nack: Nack) -> Items:
        for tick in ticks_of(list(nack.spans)):
            self.times_asked[tick, nack.version] += 1
        lost = [Lost(after, min(upto, self.lost), "gone") for after, upto in nack.spans if after < self.lost]
        parts = [(max(after, self.lost), upto) for after, upto in nack.spans if upto > self.lost]
        ticks = [t for t in sorted(self.events & ticks_of(parts)) if is_wanted(t, nack.version)]
        return checked(
            Items("P", nack.version, *laid_out(parts, ticks, [event(t) for t in ticks]), lost, answers=True)
        )

    def check(self, wish: Wish, answer: Answer) -> None:
        """All of the answer is true for the asker."""
        assert ticks_of([(after, upto) for after, upto, _ in answer.lost]) <= set(range(1, self.lost + 1))
        parts = ticks_of(list(answer.parts))
        assert set(answer.ticks) <= parts
        for tick in parts & self.events - set(answer.ticks):
            assert not is_wanted(tick, wish[1]), f"{tick} is hidden from {wish}"


ASKS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(VERSIONS),
        st.tuples(st.integers(0, LAST), st.integers(0, LAST)),
    ),
    min_size=1,
    max_size=12,
)


def exchange(
    asks: list[tuple[str, int, Span]], log: Log, limit: int, window: int, kind: type[Curiosity] = Curiosity
) -> dict[Wish, set[int]]:
    """Everybody asks, upstream answers until nothing is left; what each was told."""
    curiosity, knowledge = kind("P", window=window), Knowledge("P")
    told: dict[Wish, set[int]] = {}

    def tell(news: Items | None) -> None:
        for wish, answer in curiosity.answers(knowledge, limit, news):
            log.check(wish, answer)
            told.setdefault(wish, set()).update(
                ticks_of([*answer.parts, *((after, upto) for after, upto, _ in answer.lost)])
            )

    pending: list[Nack] = []
    for asker, version, span in asks:
        curiosity.ask(asker, [span], version)
        pending += curiosity.next_nacks(knowledge, now=0)
        if len(pending) > 2:
            items = log.items(pending.pop(0))
            knowledge.add(items)
            curiosity.on_items(items)
            tell(items)
    for _ in range(60):
        for nack in pending:
            items = log.items(nack)
            knowledge.add(items)
            curiosity.on_items(items)
            tell(None)
        tell(None)  # the limit may have kept something back
        pending = curiosity.next_nacks(knowledge, now=0)
    return told


@examples(150)
@given(ASKS, st.sets(st.integers(1, LAST)), st.integers(0, 8), st.integers(1, 5), st.integers(1, 4))
def test_r1_4_everybody_is_told_the_truth_and_a_tick_is_asked_for_once(
    asks: list[tuple[str, int, Span]], events: set[int], lost: int, limit: int, window: int
) -> None:
    log = Log(events, lost)
    told = exchange(asks, log, limit, window)
    for asker, version, span in asks:
        assert ticks_of([span]) <= told.get((asker, version), set())
    assert set(log.times_asked.values()) <= {1}, "consolidated"


class Credulous(Curiosity):
    """Takes silence under any version for an answer."""

    def _answer(self, wish: Wish, *others: Any, **more: Any) -> Answer:
        return super()._answer((wish[0], 1), *others, **more)

    def _close(self, wish: Wish, wanted: object) -> None:
        pass


def test_b1_2_silence_that_does_not_cover_the_asker_is_no_answer() -> None:
    asks = [("a", 1, (0, 10)), ("b", 2, (0, 10))]
    log = Log({4}, 0)
    assert exchange(asks, log, limit=10, window=10)["b", 2] == set(range(1, 11))
    with pytest.raises(AssertionError, match="4 is hidden"):
        exchange(asks, Log({4}, 0), limit=10, window=10, kind=Credulous)


def test_b1_2_what_was_wanted_before_all_versions_that_are_told_apart_is_asked_for_under_the_first_of_these() -> (
    None
):
    """Silence under an older one would not be kept, and be asked for again for ever."""
    curiosity, knowledge = Curiosity("P", repeat_ns=100), Knowledge("P")
    versions = range(10, 10 + 2 * VERSIONS_MAX)
    for version in versions:
        knowledge.add_silence(version, version + 1, version)
    oldest = versions[-VERSIONS_MAX + 1]  # the last of the sets is for raw
    for wanted_in in (1, oldest - 1, oldest):
        knowledge.forget(5)
        curiosity.ask(None, [(0, 5)], wanted_in)
        [nack] = curiosity.next_nacks(knowledge, now=0)
        assert nack.version == oldest
        silence = Items("P", nack.version, [0], [5], [None], answers=True)
        knowledge.add(silence)
        curiosity.on_items(silence)
        assert not knowledge.holes(0, 5, wanted_in)
        assert not curiosity.answers(knowledge, limit=1)
        assert curiosity.wanted(None) == []


def test_r1_4_a_nack_for_a_later_version_stands_for_the_earlier_ones() -> None:
    curiosity, knowledge = Curiosity("P"), Knowledge("P")
    curiosity.ask("a", [(0, 10)], version=1)
    curiosity.ask("b", [(5, 15)], version=3)
    curiosity.ask("c", [(8, 20)])
    assert curiosity.next_nacks(knowledge, now=0) == [
        Nack("P", ABSOLUTE, [(8, 20)]),
        Nack("P", 3, [(5, 8)]),
        Nack("P", 1, [(0, 5)]),
    ]


def test_it_is_asked_again_after_a_time_or_on_a_new_way_and_not_when_answered() -> None:
    curiosity, knowledge = Curiosity("P", repeat_ns=100), Knowledge("P")
    curiosity.ask("a", [(0, 10)], version=1)
    assert curiosity.next_deadline() is None
    asked = curiosity.next_nacks(knowledge, now=0)
    assert asked == [Nack("P", 1, [(0, 10)])]
    assert curiosity.next_deadline() == 100
    assert curiosity.next_nacks(knowledge, now=99) == []
    assert curiosity.next_nacks(knowledge, now=100) == asked, "a wish is kept while nobody answers"
    curiosity.become_reopened()
    assert curiosity.next_nacks(knowledge, now=101) == asked
    items = Items("P", 1, [0], [6], [None], answers=True)
    knowledge.add(items)
    curiosity.on_items(items)
    assert curiosity.answer("a", 1, knowledge, limit=9).parts == [(0, 6)]
    assert curiosity.next_nacks(knowledge, now=300) == [Nack("P", 1, [(6, 10)])]
    curiosity.withdraw("a")
    assert not curiosity.answer("a", 1, knowledge, limit=9)
    assert curiosity.next_nacks(knowledge, now=900) == []
    assert curiosity.next_deadline() is None


def test_r1_3_what_the_cache_lost_before_it_was_passed_on_is_asked_for_again_at_once() -> None:
    """Seed 1162 of the durable swarm with a lake: every few events it had to be repeated, after 5 s each time."""
    curiosity, knowledge = Curiosity("P", repeat_ns=100), Knowledge("P")
    curiosity.ask("slow", [(0, 10)])
    curiosity.next_nacks(knowledge, now=0)
    items = Items("P", ABSOLUTE, [0, 4], [4, 10], [event(4), event(10)])
    knowledge.add(items)
    curiosity.on_items(items)
    assert curiosity.answer("slow", ABSOLUTE, knowledge, limit=1).ticks == [4]
    assert curiosity.next_nacks(knowledge, now=1) == [], "it is here"
    knowledge.trim(0)
    assert curiosity.next_nacks(knowledge, now=2) == [Nack("P", ABSOLUTE, [(9, 10)])]


def test_b1_14_an_asker_has_only_a_window_of_ranges_on_the_way() -> None:
    curiosity, knowledge = Curiosity("P", window=3), Knowledge("P")
    curiosity.ask("a", [(t - 1, t) for t in range(10, 101, 10)])
    asked = Intervals()
    for _ in range(4):
        nacks = curiosity.next_nacks(knowledge, now=0)
        assert len(nacks[0].spans) <= 3
        assert not asked.intersection(Intervals(nacks[0].spans))
        asked.add_all(nacks[0].spans)
        assert curiosity.next_nacks(knowledge, now=0) == []
        ticks = [upto for _, upto in nacks[0].spans]
        items = Items("P", ABSOLUTE, [t - 1 for t in ticks], ticks, [event(t) for t in ticks])
        knowledge.add(items)
        curiosity.on_items(items)
        assert curiosity.answers(knowledge, 100, items)[0][1].ticks == ticks
    assert curiosity.wanted("a") == []
    assert asked.size == 10


def test_an_answer_becomes_items_for_what_the_asker_wants() -> None:
    answer = Answer(
        "P", [(0, 10), (20, 30)], [3, 10, 25], [event(3), event(10), event(25)], [Lost(12, 15, "age")]
    )
    items = checked(answer.items(under=7, at=[1, 2]))
    assert (items.los, items.ticks) == ([0, 20, 25], [10, 25, 30])
    assert items.publications == [event(10), event(25), None]
    assert (items.under, items.lost, items.answers) == (7, [Lost(12, 15, "age")], True)


def test_the_node_itself_is_not_answered_and_has_no_window() -> None:
    curiosity, knowledge = Curiosity("P", window=1), Knowledge("P")
    curiosity.ask(None, [(9, 10), (4, 5), (7, 7), (4, 6)], version=1)
    curiosity.ask("other", [(4, 5), (9, 10)], version=1)
    assert curiosity.next_nacks(knowledge, now=0) == [Nack("P", 1, [(4, 6), (9, 10)])]
    items = Items("P", 1, [4], [6], [event(6)], answers=True)
    knowledge.add(items)
    curiosity.on_items(items)
    assert [wish for wish, _ in curiosity.answers(knowledge, 10, items)] == [("other", 1)]
    assert curiosity.wanted(None) == [(9, 10)]
