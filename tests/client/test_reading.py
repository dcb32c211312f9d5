"""Where a subscription stands in logged streams, and what it may be sent [R1.7, R1.8, B1.15]."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from portions import portion, said

from holdfast.client.item import Gap, Silence
from holdfast.client.reading import NOT_RESUMED, Reading
from holdfast.messages.credit import CREDIT_BYTES
from holdfast.messages.durable import Portion
from holdfast.messages.publications import Batch, Publication
from holdfast.messages.subscriptions import Resume, Seat
from holdfast.messages.ticks import ORIGIN
from holdfast.streams.checkpoint_token import Place, Token

PUBEND = "s@b/1"


def taken(reading: Reading, *portions: Portion) -> list[int | Gap | Silence]:
    return said([stretch for each in portions if (stretch := reading.take(each)) is not None])


def test_ticks_go_on_where_the_last_portion_ended() -> None:
    reading = Reading(100)
    assert reading.begin(1, {PUBEND: (1, 10)}) == []
    assert taken(reading, portion(12, 15, upto=20), portion(25), portion(upto=30)) == [
        12,
        15,
        Silence(PUBEND, 15, 20),
        25,
        Silence(PUBEND, 25, 30),
    ]
    assert reading.token == Token({PUBEND: Place(1, 30)})


def test_r1_7_what_is_not_above_where_it_stood_is_turned_away() -> None:
    reading = Reading(100)
    reading.begin(1, {PUBEND: (1, 10)})
    assert taken(reading, portion(8, 10, 12), portion(12), portion(11, 12, 13), portion(upto=9)) == [12, 13]


def test_a_portion_out_of_order_gives_only_what_increases() -> None:
    reading = Reading(100)
    assert taken(reading, portion(5, 3, 5, 7, upto=9)) == [5, 7, Silence(PUBEND, 7, 9)]


def test_b1_15_what_is_lost_is_a_gap_and_events_come_behind_it() -> None:
    reading = Reading(100)
    reading.begin(1, {PUBEND: (1, 10)})
    assert taken(reading, portion(18, 25, lost=20, reason="retention")) == [
        Gap(PUBEND, 10, 20, "retention"),
        25,
    ], "an event in the gap is none"
    assert taken(reading, portion(30, lost=22, reason="retention")) == [30], "a gap behind us is none"
    assert taken(reading, portion(lost=40, reason="retention")) == [Gap(PUBEND, 30, 40, "retention")]


def test_b1_11_a_pubend_nobody_has_told_of_begins_at_its_origin() -> None:
    reading = Reading(100)
    reading.begin(1, {PUBEND: (1, 10)})
    stretch = reading.take(portion(3, pubend="s@new/1"))
    assert stretch is not None
    assert stretch.after == ORIGIN
    assert reading.token == Token({PUBEND: Place(1, 10), "s@new/1": Place(1, 3)})


def test_pubends_do_not_concern_each_other() -> None:
    reading = Reading(100)
    assert taken(reading, portion(10), portion(5, pubend="other"), portion(11)) == [10, 5, 11]


def test_a_new_incarnation_goes_on_above_with_a_gap() -> None:
    reading = Reading(100)
    reading.begin(1, {PUBEND: (1, 10)})
    lost = portion(30, lost=20, reason="restored", incarnation=2)
    assert taken(reading, lost) == [Gap(PUBEND, 10, 20, "restored"), 30]
    reading.take(portion(31, incarnation=1))
    assert reading.token[PUBEND] == Place(2, 31), "an incarnation never goes back"


# Beginning, and beginning again


@pytest.mark.parametrize("start", [None, ORIGIN, 77])
def test_a_new_one_begins_where_it_is_told_to(start: int | None) -> None:
    assert Reading(8, durable="d", start=start).resume({}) == Resume(8, "d", start, None)


def test_r1_8_what_was_received_is_presented_and_how_much_of_it_was_consumed() -> None:
    reading = Reading(8, durable="d")
    reading.begin(1, {PUBEND: (1, 10), "other": (2, 5)})
    reading.take(portion(12, 15, upto=20))
    token = {PUBEND: (1, 20), "other": (2, 5)}
    assert reading.resume({}) == Resume(6, "d", ORIGIN, token, {PUBEND: 10, "other": 5})
    assert reading.resume({PUBEND: 12}) == Resume(6, "d", ORIGIN, token, {PUBEND: 12, "other": 5})
    reading.consume(1)
    assert reading.resume({}).credit == 7


def test_what_it_reads_and_since_when_is_presented_as_it_was_told() -> None:
    reading = Reading(8, durable="d")
    reading.begin(1, {PUBEND: (1, 10)}, (7, "b"), Seat(9, "u"))
    resume = reading.resume({})
    assert (resume.born, resume.seat, resume.has_own_token) == ((7, "b"), Seat(9, "u"), False)


def test_a_token_that_names_nothing_is_a_place_to_go_on_from_too() -> None:
    reading = Reading(8)
    reading.begin(1, {})
    assert reading.resume({}) == Resume(8, None, ORIGIN, {}), "what comes later begins at its origin"


def test_a_given_token_is_presented_at_once() -> None:
    reading = Reading(8, token=Token({PUBEND: Place(3, 10)}))
    assert reading.resume({}) == Resume(8, None, ORIGIN, {PUBEND: (3, 10)})
    assert reading.begin(1, {PUBEND: (3, 10), "other": (1, 7)}) == []
    assert taken(reading, portion(10, 11, incarnation=3)) == [11]


def test_a_broker_that_goes_on_behind_where_we_stood_makes_a_gap() -> None:
    reading = Reading(8)
    reading.begin(1, {PUBEND: (1, 10)})
    assert said(reading.begin(1, {PUBEND: (1, 10)})) == []
    assert said(reading.begin(1, {PUBEND: (1, 7)})) == []
    assert said(reading.begin(1, {PUBEND: (1, 15)})) == [Gap(PUBEND, 10, 15, NOT_RESUMED)]
    assert taken(reading, portion(15, 16)) == [16]


# Credit


def test_credit_goes_out_when_half_of_the_buffer_is_owed() -> None:
    reading = Reading(10)
    reading.take(portion(*range(1, 11)))
    given = []
    for _ in range(10):
        reading.consume(1)
        given.append(reading.next_credit())
    assert given == [0, 0, 0, 0, 5, 0, 0, 0, 0, 5]


def test_a_buffer_of_one_is_given_back_event_by_event() -> None:
    reading = Reading(1)
    for tick in (1, 2, 3):
        reading.take(portion(tick))
        assert reading.next_credit() == 0
        reading.consume(1)
        assert reading.next_credit() == 1


def test_what_is_turned_away_gives_its_credit_back() -> None:
    reading = Reading(4)
    reading.take(portion(1, 2, 3, 4))
    reading.take(portion(1, 2))
    assert reading.next_credit() == 2


def large(*ticks: int) -> Portion:
    """Each takes the room of four."""
    publications = [Publication("p", tick, bytes(3 * CREDIT_BYTES)) for tick in ticks]
    return Portion(1, PUBEND, 1, Batch(publications), ticks, range(len(ticks)), ticks[-1])


def test_large_events_take_and_give_back_the_credit_of_several() -> None:
    reading = Reading(10)
    reading.take(large(1, 2))
    reading.take(portion(3, 4))
    reading.consume(1)
    assert reading.next_credit() == 0
    reading.consume(3)
    assert reading.next_credit() == 10
    reading.take(large(5))
    reading.take(large(5))
    assert reading.next_credit() == 0, "four are owed of ten"
    reading.consume(1)
    assert reading.next_credit() == 8


def test_what_took_more_room_than_there_was_is_paid_back_first() -> None:
    reading = Reading(2)
    reading.begin(1, {})
    reading.take(large(1))
    assert reading.resume({}).credit == 0
    reading.consume(1)
    assert reading.next_credit() == 2, "and not four: the buffer is of two"


def test_who_sends_more_than_it_may_is_given_no_credit_for_it() -> None:
    reading = Reading(2)
    reading.begin(1, {})
    reading.take(portion(1, 2, 3, 4))
    assert reading.resume({}).credit == 0


def test_consuming_what_was_never_delivered_is_the_callers_bug() -> None:
    reading = Reading(2)
    reading.take(portion(1))
    with pytest.raises(AssertionError):
        reading.consume(2)


def test_a_share_of_a_batch_gives_only_what_is_picked() -> None:
    whole = portion(1, 2, 3, 4, 5)
    shared = Portion(1, PUBEND, 1, Batch(whole.batch.publications), whole.ticks, [1, 3], 6)
    assert taken(Reading(9), shared) == [2, 4, Silence(PUBEND, 4, 6)]


def test_the_columns_of_a_stretch_belong_together() -> None:
    stretch = Reading(9).take(portion(3, 4))
    assert stretch is not None
    columns: Sequence[Sequence[object]] = (stretch.publications, stretch.ticks)
    assert [len(each) for each in columns] == [2, 2]
