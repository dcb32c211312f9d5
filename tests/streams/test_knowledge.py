"""What a node knows of a pubend: R1.3, R1.4, R1.11, R1.18, B1.2, I20; against a naive map of ticks to facts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.intervals import Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, Items, Lost
from holdfast.streams import knowledge as module
from holdfast.streams.knowledge import KEEPING_BYTES, Contradiction, Knowledge
from holdfast.streams.records import read_record, record_of
from holdfast.streams.tick import BadItems, checked

LAST: Final = 30
VERSIONS: Final = [1, 2, 3, ABSOLUTE]


def event(tick: int) -> Publication:
    return Publication("p", tick, b"x" * 10)


class Fact(NamedTuple):
    """An item, or lost ticks."""

    lo: int
    tick: int
    is_event: bool
    under: int
    is_lost: bool

    def items(self) -> Items:
        if self.is_lost:
            return Items("P", 0, [], [], [], [Lost(self.lo, self.tick, "")])
        return Items("P", self.under, [self.lo], [self.tick], [event(self.tick) if self.is_event else None])


@st.composite
def facts(draw: st.DrawFn) -> list[Fact]:
    """Facts that are all true of one log: where its events are, absolute silence does not reach."""
    events = draw(st.sets(st.integers(1, LAST), max_size=8))
    found = []
    for _ in range(draw(st.integers(0, 15))):
        lo, tick = sorted(draw(st.tuples(st.integers(0, LAST), st.integers(0, LAST))))
        if lo == tick:
            continue
        kind = draw(st.sampled_from(["D", "Sf", "S0", "L"]))
        lo = max([lo, *(e for e in events if e < tick)]) if kind == "S0" else lo
        is_event = kind == "D" and tick in events
        if kind == "S0" and tick in events:
            lo, is_event = tick - 1, True
        under = ABSOLUTE if kind == "S0" else draw(st.sampled_from([1, 2, 3]))
        found.append(Fact(lo, tick, is_event, under, is_lost=kind == "L"))
    return found


def told(facts: Sequence[Fact], kind: type[Knowledge] = Knowledge) -> Knowledge:
    knowledge = kind("P")
    for fact in facts:
        knowledge.add(checked(fact.items()))
    return knowledge


def naive(facts: Sequence[Fact], tick: int) -> tuple[str, int]:
    """What is known of one tick, and under which version: the most of what any fact says."""
    best = ("Q", 0)
    for fact in facts:
        if fact.lo < tick <= fact.tick:
            if fact.is_lost:
                return "L", ABSOLUTE
            says = ("D", ABSOLUTE) if fact.is_event and tick == fact.tick else ("S", fact.under)
            best = max(best, says, key=lambda each: (each[1], each[0] == "D"))
    return best


def check(knowledge: Knowledge, facts: Sequence[Fact]) -> None:
    expected = {tick: naive(facts, tick) for tick in range(1, LAST + 1)}
    ticks, publications = knowledge.events(0, LAST)
    assert ticks == [tick for tick in expected if expected[tick][0] == "D"]
    assert publications == [event(tick) for tick in ticks]
    assert knowledge.bytes == (KEEPING_BYTES + 10) * len(ticks)
    assert [t for t in expected if t in knowledge.lost] == [t for t in expected if expected[t][0] == "L"]
    for version in VERSIONS:
        known = {tick for tick in expected if expected[tick][1] >= version}
        assert {tick for tick in expected if tick in knowledge.known(version)} == known, version
        for after in (0, LAST // 2):
            horizon = next(t for t in range(after, LAST + 1) if t + 1 not in known)
            assert knowledge.doubt_horizon(after, version) == horizon
    assert knowledge.edge == max((fact.tick for fact in facts), default=0)


@examples(300)
@given(facts(), st.data())
def test_i20_facts_may_come_in_any_order_and_again(drawn: list[Fact], data: st.DataObject) -> None:
    check(told(drawn), drawn)
    check(told([*data.draw(st.permutations(drawn)), *drawn]), drawn)


class Unversioned(Knowledge):
    """Silence under any version is silence under the latest."""

    def _hush(self, spans: Sequence[Span], under: int) -> None:
        super()._hush(spans, max(under, 3))


class LastWord(Knowledge):
    """What comes last is believed, loss or event."""

    def add_events(self, ticks: Sequence[int], publications: Sequence[Publication]) -> None:
        for tick in ticks:
            self.lost.remove(tick - 1, tick)
        super().add_events(ticks, publications)


@pytest.mark.parametrize("kind", [Unversioned, LastWord])
def test_the_property_can_fail(kind: type[Knowledge]) -> None:
    drawn = [Fact(0, 5, False, 1, False), Fact(4, 9, False, 0, True), Fact(6, 8, True, 2, False)]
    check(told(drawn), drawn)
    with pytest.raises(AssertionError):
        check(told(drawn, kind), drawn)


@examples(200)
@given(facts(), st.integers(0, LAST), st.integers(0, 6 * (KEEPING_BYTES + 10)))
def test_r1_3_what_is_forgotten_is_unknown_and_never_silent(drawn: list[Fact], upto: int, size: int) -> None:
    knowledge = told(drawn)
    events = set(knowledge.events(0, LAST)[0])
    knowledge.trim(size)
    assert knowledge.bytes <= size
    kept = set(knowledge.events(0, LAST)[0])
    assert kept <= events
    for version in VERSIONS:
        known = knowledge.known(version)
        assert not [tick for tick in events - kept if tick in known]
        assert all(naive(drawn, tick)[1] >= version for tick in range(1, LAST + 1) if tick in known)
    knowledge.forget(upto)
    for tick in range(1, upto + 1):
        assert (tick in knowledge.known(1)) == (tick in knowledge.lost)
    for fact in drawn:
        knowledge.add(fact.items())
    check(knowledge, drawn)


@pytest.mark.parametrize("size", [10, 400])
def test_what_a_cache_may_hold_is_what_it_takes_of_memory_however_small_events_are(size: int) -> None:
    """Counted by their bytes alone, small ones would take twenty times as much as was allowed."""
    allowed = 1 << 20
    knowledge = Knowledge("P")
    tracemalloc.start()
    try:
        for n in range(1, 8_001):
            data = record_of(Publication(f"sensor-{n % 20}", n, bytes(size)))
            knowledge.extend(knowledge.edge, range(n * 1_000, n * 1_000 + 1), [read_record(data)])
            knowledge.trim(allowed)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert allowed / 2 < taken < 1.25 * allowed


class Forgetful(Knowledge):
    """A cache that takes what it lost for silence."""

    def _evict(self, cache_bytes: int) -> None:
        known = self.known(1).copy()
        super()._evict(cache_bytes)
        for span in known:
            self.add_silence(*span, 1)


def test_a_cache_that_invents_silence_is_caught() -> None:
    knowledge = Forgetful("P")
    knowledge.add(Items("P", 1, [0, 5], [5, 9], [event(5), event(9)]))
    knowledge.trim(KEEPING_BYTES + 10)
    assert 5 in knowledge.known(1), "the fault that the property above looks for"
    honest = told([Fact(0, 5, True, 1, False), Fact(5, 9, True, 1, False)])
    honest.trim(KEEPING_BYTES + 10)
    assert 5 not in honest.known(1)


def test_i20_contradictions_name_both_facts() -> None:
    knowledge = Knowledge("P")
    knowledge.add(Items("P", ABSOLUTE, [0], [5], [event(5)]))
    with pytest.raises(Contradiction, match=r"P@5: known as p#5, told as p#6") as two_events:
        knowledge.add_events([5], [event(6)])
    assert (two_events.value.known, two_events.value.told) == (event(5), event(6))
    with pytest.raises(Contradiction, match="P@5: known as p#5, told as silence"):
        knowledge.add_silence(4, 7)
    with pytest.raises(Contradiction, match="P@3: known as silence, told as p#3"):
        knowledge.add(Items("P", 1, [1], [3], [event(3)]))
    knowledge.add_silence(4, 7, under=2)  # filtered: no contradiction (B1.2)
    assert knowledge.events(0, 9)[0] == [5]


def test_i20_items_that_contradict_leave_no_silence_behind() -> None:
    knowledge = Knowledge("P")
    knowledge.add_silence(9, 10)
    with pytest.raises(Contradiction):
        knowledge.add(Items("P", 1, [0], [10], [event(10)]))
    assert knowledge.doubt_horizon(0, 1) == 0


def test_b1_2_silence_under_a_version_says_nothing_of_later_ones() -> None:
    knowledge = Knowledge("P")
    knowledge.add_silence(0, 10, under=3)
    assert knowledge.holes(0, 12, version=3) == [(10, 12)]
    assert knowledge.holes(0, 12, version=2) == [(10, 12)]
    assert knowledge.holes(0, 12, version=4) == [(0, 12)]
    assert knowledge.holes(0, 12) == [(0, 12)], "nor of what everybody could want"


def test_r1_11_lost_is_a_prefix_that_grows_and_stands_above_the_rest() -> None:
    knowledge = Knowledge("P")
    knowledge.add(Items("P", ABSOLUTE, [0], [5], [event(5)]))
    knowledge.add_lost(0, 4)
    assert knowledge.lost.reach(0) == 4
    knowledge.add_lost(0, 6)
    knowledge.add_lost(8, 9)  # a damaged log
    assert knowledge.lost.reach(0) == 6
    assert knowledge.events(0, 9) == ([], [])
    assert knowledge.doubt_horizon(0) == 6


def test_versions_and_ranges_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RANGES_MAX", 50)
    knowledge = Knowledge("P")
    for version in range(1, 500):
        knowledge.add_silence(version * 10, version * 10 + 5, version)
        knowledge.trim(0)
    assert len(knowledge._known) <= module.VERSIONS_MAX
    assert all(len(known) <= 50 for known in knowledge._known.values())
    assert knowledge.holes(4990, 4996, version=499) == [(4995, 4996)], "the latest is what is kept"
    knowledge.forget(10_000)
    assert len(knowledge._known) == 1, "where versions do not differ one is enough"


def test_a_version_that_nobody_asks_for_any_more_is_forgotten_and_what_was_silent_for_it_alone_is_unknown() -> (
    None
):
    knowledge = Knowledge("P")
    knowledge.add_silence(0, 10, 1)
    knowledge.add_silence(10, 20, 2)
    knowledge.add_events([25], [event(25)])
    knowledge.keep_versions([2])
    assert knowledge.holes(0, 25, version=2) == knowledge.holes(0, 25, version=1) == [(0, 10), (20, 24)]
    knowledge.add_silence(30, 40, 9)
    knowledge.keep_versions([ABSOLUTE])
    assert knowledge.holes(0, 25, version=1) == [(0, 24)]
    assert len(knowledge._known) == 2, "the last is what comes is said under"


def test_what_is_silent_under_too_old_a_version_is_unknown() -> None:
    knowledge = Knowledge("P")
    for version in range(1, 200):
        knowledge.add_silence(version * 10, version * 10 + 5, version)
    assert len(knowledge._known) == module.VERSIONS_MAX
    assert knowledge.holes(10, 15, version=1) == [(10, 15)]
    assert knowledge.holes(1990, 1995, version=199) == []
    assert knowledge.holes(1980, 1985, version=199) == [(1980, 1985)]


@pytest.mark.parametrize(
    "items",
    [
        Items("P", 1, [5], [5], [None]),
        Items("P", 1, [0, 4], [5, 6], [None, None]),
        Items("P", 1, [0], [5], []),
        Items("P", -1, [0], [5], [None]),
        Items("P", 1, [], [], [], [Lost(5, 4, "")]),
        Items("P", 1, [-1], [5], [None]),
    ],
)
def test_items_that_cannot_be_are_refused(items: Items) -> None:
    with pytest.raises(BadItems):
        checked(items)


def test_each_loss_keeps_the_reason_it_first_had() -> None:
    """A gap tells its subscriber why (R1.15)."""
    knowledge = Knowledge("P")
    knowledge.add_lost(0, 10, "age")
    knowledge.add_lost(5, 20, "room")
    knowledge.add_lost(20, 25, "room")
    knowledge.add_lost(40, 50, "age")
    assert knowledge.losses(0, 100) == [Lost(0, 10, "age"), Lost(10, 25, "room"), Lost(40, 50, "age")]
    assert knowledge.losses(8, 12) == [Lost(8, 10, "age"), Lost(10, 12, "room")]
    assert knowledge.reason_of(3, 45) == "age, room"
    assert knowledge.losses(25, 40) == []


def test_what_is_passed_over_is_not_known_and_what_comes_after_it_is() -> None:
    """A log has it, and whoever wants it asks for it there."""
    knowledge = Knowledge("P")
    knowledge.extend(0, range(3, 5), [event(3), event(4)])
    knowledge.pass_over(8)
    assert (knowledge.edge, knowledge.doubt_horizon(0), knowledge.holes(0, 8)) == (8, 4, [(4, 8)])
    knowledge.extend(8, range(10, 11), [event(10)])
    assert knowledge.holes(0, 10) == [(4, 8)]
    knowledge.add_events([6], [event(6)])
    assert knowledge.events(0, 10)[0] == [3, 4, 6, 10]
