"""A pubend: every event once and under one tick, whatever is repeated, lost, refused or crashes [R1.3, R1.5, I18, I19].

The model is a publisher that sends its window again and again, until it has its receipts; requests are lost, doubled
and late. The log is the real one on a disk that forgets what was not synced.
"""

from __future__ import annotations

import gc
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.messages.durable import BEGIN
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Lost
from holdfast.simulator.disk import SimulatedDisk
from holdfast.storage.block import Batch
from holdfast.storage.commits import Commits, CommitState
from holdfast.storage.log import LogSettings, SegmentLog
from holdfast.storage.view import Chopped
from holdfast.streams import pubend as pubend_module
from holdfast.streams.pubend import (
    LEASE_TICKS,
    REFUSED_FOR,
    Answer,
    Hole,
    Kept,
    Mark,
    Pubend,
    Receipt,
    Refusal,
    Request,
)
from holdfast.streams.records import read_record, record_of

NAMES = ("p", "q")


def publication(publisher: str, n: int) -> Publication:
    return Publication(publisher, n, f"{publisher}{n}".encode())


def requests(publisher: str, *numbers: int, after: int = 0) -> list[Request]:
    previous = (after, *numbers)
    return [Request(before, publication(publisher, n)) for before, n in zip(previous, numbers, strict=False)]


# By hand


def test_ticks_are_times_made_unique() -> None:
    pubend = Pubend("e", Kept())
    assert list(pubend.publish(requests("p", 1, 2), now=1000).append.ticks) == [1000, 1001]  # type: ignore[union-attr]
    assert list(pubend.publish(requests("q", 1), now=1000).append.ticks) == [1002]  # type: ignore[union-attr]
    assert list(pubend.publish(requests("q", 5, after=1), now=10).append.ticks) == [1003]  # type: ignore[union-attr]


def test_nobody_hears_of_an_event_before_it_is_stable() -> None:
    pubend = Pubend("e", Kept(lease=10_000))
    outcome = pubend.publish(requests("p", 1), now=500)
    assert outcome.answers == []
    assert pubend.silent_upto(9_000) == 10_000
    append, answers = pubend.on_stable()
    assert append == outcome.append
    assert answers == [Receipt("p", 1, 10_001, is_repeat=False)]
    assert pubend.silent_upto(9_000) == 10_001


def test_a_repeat_is_told_the_tick_it_has() -> None:
    pubend = Pubend("e", Kept())
    pubend.publish(requests("p", 1, 2, 4), now=100)
    # when it is stable, its receipt will come
    assert pubend.publish(requests("p", 1, 2), now=150).answers == []
    pubend.on_stable()
    again = pubend.publish(requests("p", 1, 2, 4, 5), now=200)
    assert again.answers == [
        Receipt("p", n, tick, is_repeat=True) for n, tick in ((1, 100), (2, 101), (4, 102))
    ]
    assert again.append is not None
    assert [each.n for each in again.append.publications] == [5]


def published_one_by_one(pubend: Pubend, publishers: int, each: int) -> list[Receipt]:
    """Each a moment after the one before, in turns."""
    receipts: list[Receipt] = []
    for n in range(1, each + 1):
        for i in range(publishers):
            pubend.take([publication(f"p{i}", n)], pubend.stable + 1_000)
            receipts += [answer for answer in pubend.on_stable()[1] if isinstance(answer, Receipt)]
    return receipts


def test_where_the_latest_events_of_all_publishers_stand_is_remembered_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand sensors that publish once a second must not fill a broker's memory in a day."""
    monkeypatch.setattr(pubend_module, "RUNS_MAX", 30)
    pubend = Pubend("e", Kept())
    receipts = published_one_by_one(pubend, 4, 100)
    asked = [Request(BEGIN, publication(each.publisher, each.n)) for each in receipts]
    answers = pubend.publish(asked, now=pubend.stable + 1_000).answers
    ticks = [each.tick if i >= len(receipts) - 30 else 0 for i, each in enumerate(receipts)]
    assert [answer.tick for answer in answers if isinstance(answer, Receipt) and answer.is_repeat] == ticks


def test_what_came_together_is_remembered_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pubend_module, "RUNS_MAX", 3)
    pubend = Pubend("e", Kept())
    for first in range(1, 41, 10):
        pubend.take([publication("p", n) for n in range(first, first + 10)], first * 1_000)
        pubend.on_stable()
    answers = pubend.publish(
        [Request(BEGIN, publication("p", n)) for n in (10, 11, 25, 40)], now=10**6
    ).answers
    ticks = [0, 11_000, 21_004, 31_009]
    assert answers == [
        Receipt("p", n, tick, is_repeat=True) for n, tick in zip((10, 11, 25, 40), ticks, strict=True)
    ]


def test_what_is_remembered_of_events_is_nothing_that_pythons_collector_has_to_look_at() -> None:
    """It would stop the broker for as long as it looks, and so would every event after it."""
    pubend = Pubend("e", Kept())
    published_one_by_one(pubend, 2, 100)
    gc.collect()
    before = len(gc.get_objects())
    for n in range(101, 5_001):
        pubend.take([publication("p0", n)], pubend.stable + 1_000)
        pubend.on_stable()
    gc.collect()
    assert len(gc.get_objects()) < before + 100


def test_nothing_behind_a_hole_is_taken() -> None:
    pubend = Pubend("e", Kept())
    outcome = pubend.publish([*requests("p", 3, 4, after=2), *requests("q", 1)], now=100)
    assert outcome.answers == [Hole("p", 0)]
    assert outcome.append is not None
    assert [each.publisher for each in outcome.append.publications] == ["q"]


def test_numbers_may_have_holes_that_their_publisher_knows_of() -> None:
    assert Pubend("e", Kept()).publish(requests("p", 7, 1000), now=1).append is not None


def test_two_publishers_under_one_name_are_told() -> None:
    pubend = Pubend("e", Kept(marks={"p": Mark(5, 50)}, upto=50))
    [refusal] = pubend.publish(requests("p", 9, after=3), now=100).answers
    assert isinstance(refusal, Refusal)
    assert "p sent 9 after 3, and 5 was logged" in refusal.reason
    assert refusal.code == "event"


def test_what_a_full_disk_refused_may_come_again() -> None:
    pubend = Pubend("e", Kept())
    pubend.publish(requests("p", 1), now=100)
    pubend.publish(requests("p", 2, after=1), now=200)
    assert pubend.on_refused("full", 100) == [Refusal("p", 1, "full"), Refusal("p", 2, "full")]
    pubend.refusal = None
    again = pubend.take([publication("p", 1), publication("p", 2)], now=50, heard=2).append
    assert again is not None, "from its publisher, who has heard of it"
    assert list(again.ticks) == [201, 202]


def test_until_there_is_room_everything_is_refused_so_that_nothing_overtakes_what_was() -> None:
    """3 and 4 were sent before anybody had heard of the refusal; logged now, 1 and 2 could only come behind them."""
    pubend = Pubend("e", Kept())
    pubend.publish(requests("q", 1), now=50)
    pubend.on_stable()
    pubend.take([publication("p", 1), publication("p", 2)], now=100)
    pubend.on_refused("full", 100)
    assert pubend.take([publication("p", 3)], now=150) == (None, [Refusal("p", 3, "full")])
    again = pubend.publish([*requests("p", 4, after=3), *requests("q", 1, 2)], now=160)
    assert again.append is None
    assert again.answers == [Refusal("p", 4, "full"), Receipt("q", 1, 50, True), Refusal("q", 2, "full")]
    pubend.refusal = None
    late = pubend.publish(requests("p", 1, 2, 3, 4), now=200)
    assert late == (None, [Refusal("p", n, "full") for n in (1, 2, 3, 4)]), "copies on their way"


def test_what_was_sent_before_its_publisher_had_heard_is_refused_though_there_is_room_by_now() -> None:
    """However long that takes; who is never silent is taken again all the same."""
    pubend = Pubend("e", Kept())
    pubend.take([publication("p", 1), publication("p", 2)], now=100)
    pubend.on_refused("full", 100)
    pubend.refusal = None
    assert pubend.take([publication("p", 3)], now=200, heard=0).answers == [Refusal("p", 3, "full")]
    assert pubend.take([publication("p", 4)], now=300, heard=1).answers == [Refusal("p", 4, "full")]
    again = pubend.take([publication("p", 5), publication("p", 6)], now=400, heard=2).append
    assert again is not None, "though it has not heard of 3 and 4: whoever wants them in order waits for that"
    assert pubend.take([publication("q", 1)], now=400).append is not None


def test_publishers_that_were_refused_are_forgotten_one_after_the_other() -> None:
    pubend = Pubend("e", Kept())
    for n, now in enumerate((100, 200, 300)):
        pubend.publish(requests("pqp"[n], n + 1), now=now, heard=n)
        pubend.on_refused("full", now)
        pubend.refusal = None
    late = [Request(BEGIN, publication("q", 9)), Request(BEGIN, publication("p", 9))]
    outcome = pubend.publish(late, now=200 + REFUSED_FOR)
    assert outcome.answers == [Refusal("p", 9, "full")]
    assert outcome.append is not None


def test_silence_before_an_event_that_is_not_stable_is_asserted_under_the_lease_too() -> None:
    """B1.3, I19: the event may be lost in a crash, and the clock may have gone back by then."""
    pubend = Pubend("e", Kept())
    pubend.on_leased(1_000)
    pubend.publish(requests("p", 1), now=5_000)
    assert pubend.silent_upto(5_000) == 1_000
    pubend.on_leased(9_000)
    assert pubend.silent_upto(5_000) == 4_999


def test_what_was_refused_for_certain_is_not_taken_from_a_letter_that_comes_late() -> None:
    """A copy was on its way when the disk had no room, and arrives when it has: its publisher was told of the first."""
    pubend = Pubend("e", Kept())
    pubend.publish(requests("p", 1, 2), now=100)
    pubend.on_refused("full", 100)
    pubend.refusal = None
    late = pubend.publish([*requests("p", 1, 2), *requests("q", 1)], now=200)
    assert late.answers == [Refusal("p", 1, "full"), Refusal("p", 2, "full")]
    assert late.append is not None
    assert [each.publisher for each in late.append.publications] == ["q"]
    after = pubend.publish([Request(BEGIN, publication("p", 3))], now=300, heard=2).append
    assert after is not None, "what follows is not refused, once its publisher has heard"


def test_a_refusal_is_forgotten_when_no_copy_can_be_on_its_way() -> None:
    pubend = Pubend("e", Kept())
    pubend.publish(requests("p", 1), now=100)
    pubend.on_refused("full", 100)
    pubend.refusal = None
    assert pubend.publish(requests("p", 1), now=100 + REFUSED_FOR).append is not None


def test_who_starts_again_begins_above_its_lease() -> None:
    """B1.3: the clock has gone back, and silence was asserted."""
    pubend = Pubend("e", Kept())
    lease = pubend.lease_wanted(1_000)
    assert lease == 1_000 + LEASE_TICKS
    pubend.on_leased(lease)
    assert pubend.silent_upto(5_000) == 5_000
    again = Pubend("e", Kept(lease=lease))
    append = again.publish(requests("p", 1), now=10).append
    assert append is not None
    assert append.ticks[0] == lease + 1


def test_silence_is_asserted_only_as_far_as_it_is_leased() -> None:
    pubend = Pubend("e", Kept(lease=3_000))
    assert pubend.silent_upto(50_000) == 3_000
    assert pubend.lease_wanted(3_000) == 3_000 + LEASE_TICKS
    assert Pubend("e", Kept(lease=3_000 + LEASE_TICKS)).lease_wanted(3_000) is None


def test_a_token_from_the_future_shows_that_the_log_is_a_backup() -> None:
    pubend = Pubend("e", Kept(marks={"p": Mark(5, 50)}, upto=50, lease=60))
    assert pubend.on_token(60) is None
    robbed = Lost(50, 900, "restored from a backup")
    assert pubend.on_token(900) == robbed
    assert (pubend.incarnation, pubend.lost) == (2, [robbed])
    append = pubend.publish(requests("p", 6, after=5), now=100).append
    assert append is not None
    assert append.ticks[0] == 901
    assert Pubend("e", pubend.kept()).publish(requests("p", 6, after=5), now=100).append == append


# Whatever happens


class Publishing(RuleBasedStateMachine):
    """Two publishers, a pubend, its log and its crashes."""

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.disk = SimulatedDisk(Random(seed))
        self.kept = Kept()
        self.now = 1_000
        self.silent = 0
        self.sent = {name: [0] for name in NAMES}  #: numbers a publisher has used
        self.receipts: dict[tuple[str, int], int] = {}
        self._start()

    def _start(self) -> None:
        self.log = SegmentLog(self.disk, bytes(16), LogSettings(segment_bytes=300))
        self.commits = Commits(self.log)
        self.pubend = Pubend("e", self.kept, self._logged())

    def _logged(self, after: int = 0) -> list[tuple[int, Publication]]:
        found: list[tuple[int, Publication]] = []
        for item in self.log.view.scan(after):
            if isinstance(item, Chopped):
                continue
            assert isinstance(item, Batch), item
            found += zip(item.indexes, map(read_record, item.records), strict=True)
        return found

    def _hear(self, answers: list[Answer]) -> None:
        for answer in answers:
            if isinstance(answer, Receipt):
                known = self.receipts.setdefault((answer.publisher, answer.n), answer.tick)
                is_long_ago = answer.is_repeat and not answer.tick and known <= self.log.view.chopped
                assert known == answer.tick or is_long_ago
            elif isinstance(answer, Hole):
                assert answer.last in self.sent[answer.publisher]

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 3), skipped=st.integers(0, 2))
    def use_numbers(self, name: str, count: int, skipped: int) -> None:
        first = self.sent[name][-1] + 1 + skipped
        self.sent[name] += range(first, first + count)

    @rule(
        name=st.sampled_from(NAMES),
        back=st.integers(0, 8),
        count=st.integers(1, 8),
        passed=st.integers(-50, 500),
    )
    def send(self, name: str, back: int, count: int, passed: int) -> None:
        """Some of the window: perhaps again, perhaps without what came before it."""
        self.now += passed
        numbers = self.sent[name]
        first = max(1, len(numbers) - back)
        some = numbers[first : first + count]
        outcome = self.pubend.publish(requests(name, *some, after=numbers[first - 1]), self.now)
        self._hear(outcome.answers)
        if outcome.append is not None:
            ticks, publications, _ = outcome.append
            self.commits.append(ticks, list(map(record_of, publications)))

    @rule()
    def sync(self) -> None:
        progress = self.commits.commit()
        if progress is None:
            return
        assert progress.state is CommitState.OPEN
        assert progress.stable == self.commits.position
        while self.pubend._appended:
            self._hear(self.pubend.on_stable()[1])

    @rule()
    def be_silent(self) -> None:
        self.silent = max(self.silent, self.pubend.silent_upto(self.now))

    @rule()
    def lease(self) -> None:
        if (lease := self.pubend.lease_wanted(self.now)) is not None:
            self.kept.lease = lease
            self.pubend.on_leased(lease)

    @rule()
    def save(self) -> None:
        self.kept = self.pubend.kept()

    @precondition(lambda self: self.kept.upto)
    @rule()
    def chop(self) -> None:
        self.log.chop(self.kept.upto)

    @rule()
    def crash(self) -> None:
        self.disk.crash()
        self._start()

    @invariant()
    def one_tick_for_every_event(self) -> None:
        if not hasattr(self, "log"):
            return
        logged = self._logged()
        ids = [each.id for _, each in logged]
        assert len({*ids}) == len(ids)
        for name in NAMES:
            numbers = [each.n for _, each in logged if each.publisher == name]
            assert numbers == sorted(numbers)
        for tick, each in logged:
            assert self.receipts.get(each.id, tick) == tick
        for (publisher, n), tick in self.receipts.items():
            if tick > self.log.view.chopped:
                assert (tick, publication(publisher, n)) in logged

    @invariant()
    def silence_is_kept(self) -> None:
        """I19: what was asserted to be silent or passed stays as it was."""
        if hasattr(self, "log"):
            assert all(append.ticks[0] > self.silent for append in self.pubend._appended)

    def teardown(self) -> None:
        """In the end everybody gets a receipt for everything."""
        if not hasattr(self, "log"):
            return
        for name in NAMES:
            numbers = self.sent[name]
            for _ in range(2):  # all of it; and what came back from behind a hole once more
                outcome = self.pubend.publish(requests(name, *numbers[1:]), self.now)
                if outcome.append is not None:
                    self.commits.append(
                        outcome.append.ticks, list(map(record_of, outcome.append.publications))
                    )
                self._hear(outcome.answers)
                self.sync()
            assert all((name, n) in self.receipts for n in numbers[1:]), outcome


Publishing.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestPublishing = Publishing.TestCase


def test_what_another_of_the_same_name_overtook_is_refused_and_not_called_a_repeat() -> None:
    """Two publishers have one name, at two brokers: what was never logged is not acknowledged."""
    pubend = Pubend("e", Kept())
    for n in (5, 9):
        pubend.publish([Request(BEGIN, publication("p", n))], 100 * n)
        pubend.on_stable()
    outcome = pubend.publish([Request(5, publication("p", 6)), Request(BEGIN, publication("p", 5))], 1_000)
    refusal, repeat = outcome.answers
    assert isinstance(refusal, Refusal)
    assert refusal.n == 6
    assert repeat == Receipt("p", 5, 500, is_repeat=True)
