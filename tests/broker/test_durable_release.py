"""What a pubend may give up, and when: never what somebody may still want, unless a policy says so [R1.13-R1.15, B1.8].

Here the broker under test has the pubend, and its neighbour left has subscribers; where both are elsewhere see
``test_durable_reports``.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from durable_desk import ORDERS, OWN, UNHEARD_NS, Desk

from by_hand import publish
from holdfast.broker.durable.own import KEEP
from holdfast.broker.durable.pubends import CUT_OFF_MAX_NS
from holdfast.broker.durable.records import PUBENDS, REPORTS, joined
from holdfast.broker.input import ForgetBroker, Operate
from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.durable import Admit, Admitted, Logged, Report, Reported, Resign
from holdfast.messages.subscriptions import Heal, Healed
from holdfast.storage.log import LogSettings
from holdfast.streams.pubend import Kept
from holdfast.streams.release import Reason
from holdfast.streams.storing import ChopEvents, Save

KEEP_NS = 1_000 * KEEP
LEFT = joined(OWN, "left")


def hosting(filters: tuple[str, ...] = ("a",), **settings: object) -> tuple[Desk, int, int]:
    """A pubend with one event, at whose birth a neighbour had subscribers; and the publisher."""
    desk = Desk(["left"], **settings)  # type: ignore[arg-type]
    left = desk.meet("left", filters=filters)
    publisher = desk.publisher("p", 1)
    desk.wait(UNHEARD_NS)
    return desk, left, publisher


def report(desk: Desk, left: int, number: int, released: int, delivered: int | None = None) -> None:
    delivered = released if delivered is None else delivered
    desk.say(left, Report("b", "left", OWN, number, released, delivered))


def forgotten(desk: Desk) -> bool:
    """Whether everything that was logged is given up."""
    return desk.own.core.forgotten >= desk.own.core.stable


# Who is waited for


def cut_off(*neighbours: str) -> Desk:
    """A pubend with one event, at whose birth its neighbours, left unless others are named, could not be reached."""
    desk = Desk(neighbours or ["left"])
    desk.wait(5 * SECOND)
    desk.publisher("p", 1)
    desk.wait(SECOND)
    assert desk.own.core.stable
    return desk


def test_a_pubend_made_while_a_neighbour_is_away_gives_nothing_up_for_a_minute() -> None:
    """There may be subscribers beyond it, who are owed all of it (B1.11; seed 2607 with faults)."""
    desk = cut_off()
    desk.wait(KEEP_NS + 5 * SECOND)
    assert not forgotten(desk)
    desk.wait(CUT_OFF_MAX_NS)
    assert forgotten(desk), "it may never come"


def test_that_minute_is_not_longer_because_one_of_two_has_come() -> None:
    desk = cut_off("left", "right")
    desk.wait(CUT_OFF_MAX_NS // 2)
    left = desk.meet("left")
    [heal] = desk.said(left, Heal)
    desk.say(left, Healed(heal.partition))
    desk.wait(CUT_OFF_MAX_NS // 2)
    assert forgotten(desk)


def test_who_is_heard_of_late_is_waited_for_before_it_has_asked() -> None:
    """All others have released it, and the partition is over: what is there still does not go."""
    desk = Desk(["left", "right"])
    left = desk.meet("left", filters=("a",))
    desk.wait(5 * SECOND)
    desk.publisher("p", 1)
    desk.wait(UNHEARD_NS)
    report(desk, left, 1, desk.own.core.stable)
    right = desk.meet("right", filters=("a",))
    [heal] = desk.said(right, Heal)
    desk.say(right, Healed(heal.partition))
    desk.wait(KEEP_NS + 5 * SECOND)
    assert not forgotten(desk)


@pytest.mark.parametrize("filters", [("a",), ()])
def test_when_it_comes_its_subscribers_are_waited_for_if_it_has_any(filters: tuple[str, ...]) -> None:
    desk = cut_off()
    left = desk.meet("left", filters=filters)
    [heal] = desk.said(left, Heal)
    desk.say(left, Healed(heal.partition))
    desk.wait(KEEP_NS + 5 * SECOND)
    assert forgotten(desk) == (not filters)


def test_nothing_is_kept_for_nobody_once_its_publisher_must_have_heard_of_it() -> None:
    desk = Desk()
    desk.publisher("p", 1)
    desk.wait(KEEP_NS - SECOND)
    assert not forgotten(desk)
    desk.wait(2 * SECOND)
    assert forgotten(desk)


def test_a_broker_that_had_subscribers_before_the_pubend_was_is_waited_for_unheard() -> None:
    """B1.8: one that never reported counts as having nothing."""
    desk, left, _ = hosting()
    assert LEFT in desk.rows(REPORTS), "and it is on disk that it is"
    desk.wait(70 * SECOND)
    assert not forgotten(desk)
    report(desk, left, 1, desk.own.core.stable)
    desk.wait(SECOND)
    assert forgotten(desk)


def test_who_is_waited_for_is_waited_for_by_the_next_life_too() -> None:
    desk, _, _ = hosting()
    desk.restart()
    desk.wait(3 * KEEP_NS)
    assert not forgotten(desk), "left is not even there"


def test_an_expected_broker_that_never_came_is_given_up_after_a_minute_without_subscribers() -> None:
    desk, left, _ = hosting()
    desk.restart()
    left = desk.meet("left", incarnation=2)
    desk.wait(50 * SECOND)
    assert LEFT in desk.rows(REPORTS)
    desk.wait(15 * SECOND)
    assert LEFT not in desk.rows(REPORTS)
    assert forgotten(desk), left


def test_an_operator_may_have_a_broker_that_is_gone_forgotten_but_not_one_that_is_there() -> None:
    desk, left, _ = hosting()
    desk.step(Operate(1, ForgetBroker("left")))
    assert "can be reached" in str(desk.operated[-1].problem)
    desk.lose(left)
    desk.wait(2 * SECOND)
    desk.hold(Save)
    desk.step(Operate(2, ForgetBroker("left")))
    assert [each.ticket for each in desk.operated] == [1], "not before it is on disk"
    desk.hold()
    assert (desk.operated[-1].ticket, desk.operated[-1].problem) == (2, None)
    desk.wait(KEEP_NS + SECOND)
    assert forgotten(desk)
    desk.step(Operate(3, ForgetBroker("left")))
    assert desk.operated[-1].problem == "no log here waits for left"


# Admission


def test_who_is_admitted_is_told_so_when_it_is_on_disk() -> None:
    """From then on nothing above its tick is given up without it, whatever happens here."""
    desk, left, _ = hosting(filters=())
    desk.hold(Save)
    desk.say(left, Admit("b", "left", OWN, None))
    assert desk.said(left, Admitted) == []
    desk.hold()
    [answer] = desk.said(left, Admitted)
    assert (answer.tick >= desk.own.core.stable, answer.created) == (True, desk.own.core.created)
    desk.restart()
    desk.meet("left", incarnation=2)
    desk.publisher("p", 2)
    desk.wait(3 * KEEP_NS)
    assert not forgotten(desk)


def test_who_wants_what_was_before_is_admitted_there_as_far_as_it_is_still_there() -> None:
    """B1.11."""
    desk, left, publisher = hosting(filters=())
    first = desk.own.core.stable
    desk.wait(KEEP_NS + SECOND)
    assert forgotten(desk)
    desk.say(publisher, publish("p", 2))
    desk.say(left, Admit("b", "left", OWN, 0))
    assert desk.said(left, Admitted)[-1].tick == first, "what is gone is gone"
    desk.wait(3 * KEEP_NS)
    assert not forgotten(desk)


def test_who_wants_what_was_before_is_not_admitted_to_what_is_about_to_go() -> None:
    """It is given up once that is on disk: who began there would be told of a gap (seed 145 with faults)."""
    desk, left, _ = hosting(filters=())
    desk.hold(Save)
    desk.wait(KEEP_NS + SECOND)
    desk.say(left, Admit("b", "left", OWN, 0))
    assert not forgotten(desk)
    desk.hold()
    assert forgotten(desk)
    assert desk.said(left, Admitted)[-1].tick == desk.own.core.forgotten


def test_the_first_to_come_finds_what_was_kept_for_its_publisher_and_nobody_else_did() -> None:
    """Where nobody subscribes everything is released, and still there for a while: from now on that stays."""
    desk, left, publisher = hosting(filters=())
    desk.wait(SECOND)
    desk.say(publisher, publish("p", 2))
    second = desk.own.core.stable
    desk.wait(KEEP_NS // 2)
    desk.say(left, Admit("b", "left", OWN, 0))
    assert desk.said(left, Admitted)[-1].tick < second
    desk.wait(3 * KEEP_NS)
    assert desk.own.core.forgotten < second


def test_who_had_subscribers_before_it_was_heard_of_finds_what_all_others_have_released() -> None:
    """B1.8: it should have been waited for; what is still there does not go under its feet (seeds 145, 2573)."""
    desk, left, publisher = hosting()
    first = desk.own.core.stable
    desk.wait(SECOND)
    desk.say(publisher, publish("p", 2))
    report(desk, left, 1, desk.own.core.stable)
    desk.say(left, Admit("b", "far", OWN, 0))
    desk.wait(3 * KEEP_NS)
    assert desk.own.core.forgotten < first


def test_who_asks_again_because_it_did_not_hear_may_believe_either_answer() -> None:
    desk, left, publisher = hosting(filters=())
    desk.say(left, Admit("b", "left", OWN, None))
    desk.say(publisher, publish("p", 2))
    desk.say(left, Admit("b", "left", OWN, None))
    first, second = desk.said(left, Admitted)
    [pinned] = desk.own.minima.reports
    assert pinned.released == first.tick <= second.tick, "whichever of the two it heard"


def test_a_broker_that_has_forgotten_its_reports_is_told_their_number_and_its_place() -> None:
    desk, left, publisher = hosting()
    at = desk.own.core.stable
    report(desk, left, 7, at)
    desk.say(publisher, publish("p", 2))
    desk.say(left, Admit("b", "left", OWN, None))
    assert (desk.said(left, Admitted)[-1].number, desk.said(left, Admitted)[-1].tick) == (7, at)


# Reports


def test_a_report_is_answered_when_it_is_on_disk_and_an_older_one_changes_nothing() -> None:
    desk, left, _ = hosting()
    at = desk.own.core.stable
    desk.hold(Save)
    report(desk, left, 5, at - 1)
    assert desk.said(left, Reported) == []
    desk.hold()
    assert [each.number for each in desk.said(left, Reported)] == [5]
    report(desk, left, 4, at)
    assert [(each.number, each.released) for each in desk.own.minima.reports] == [(5, at - 1)]


def test_the_log_forgets_what_all_have_released_and_not_what_one_has_not() -> None:
    """R1.13, I17: T_r is the least of all."""
    desk, left, publisher = hosting()
    reader = desk.reader("u", durable="mine")
    for n in (2, 3, 4):
        desk.wait(SECOND)
        desk.say(publisher, publish("p", n))
    second, third, last = [tick for tick, _ in desk.events(reader)]
    report(desk, left, 1, last)
    desk.wait(2 * KEEP_NS)
    assert desk.own.core.forgotten < second, "the reader here has not acknowledged any of them"
    desk.acknowledge(reader, **{OWN: third})
    desk.wait(2 * SECOND)
    assert third <= desk.own.core.forgotten < last, "and 4 stays"
    desk.acknowledge(reader)
    desk.wait(2 * SECOND)
    assert forgotten(desk)


def test_who_says_that_it_has_released_more_than_it_has_delivered_is_not_believed() -> None:
    """I17: T_r is never above T_d."""
    desk, left, _ = hosting()
    at = desk.own.core.stable
    report(desk, left, 1, at, at - 1)
    desk.wait(2 * KEEP_NS)
    assert desk.own.minima.released <= desk.own.minima.delivered == at - 1
    assert not forgotten(desk)


def test_a_broker_without_subscribers_is_waited_for_no_longer_when_it_says_so_last() -> None:
    """A resignation that was overtaken by a report counts for nothing."""
    desk, left, _ = hosting()
    report(desk, left, 5, desk.own.core.created)
    desk.say(left, Resign("b", "left", OWN, 5))
    assert LEFT in desk.rows(REPORTS)
    desk.say(left, Resign("b", "left", OWN, 6))
    assert LEFT not in desk.rows(REPORTS)
    assert [each.number for each in desk.said(left, Reported)] == [5, 5, 6]


# Policies


def test_early_release_goes_as_far_as_everybody_has_had_it_and_no_farther() -> None:
    """R1.14, R1.15: t ≤ T_d and older than max_retain; who is current sees no gap."""
    stream = replace(ORDERS, retain_ns=SECOND)
    desk, left, publisher = hosting(streams=[stream])
    desk.wait(SECOND)
    desk.say(publisher, publish("p", 2))
    delivered = desk.own.core.stable
    desk.wait(SECOND)
    desk.say(publisher, publish("p", 3))
    report(desk, left, 1, desk.own.core.created, delivered)
    desk.wait(5 * SECOND)
    assert desk.own.core.forgotten == delivered
    [log] = desk.broker.status()["durable"]["pubends"]
    assert log["given_up"] == delivered, "for whoever looks"
    assert [each.reason for each in desk.own.core.released] == [Reason.MAX_RETAIN]


def test_a_log_that_is_too_large_gives_up_its_oldest_parts() -> None:
    desk = Desk(["left"], [replace(ORDERS, retain_bytes=4_000)], log=LogSettings(segment_bytes=1_000))
    left = desk.meet("left", filters=["a"])
    publisher = desk.publisher("p", 1)
    desk.wait(UNHEARD_NS)
    for n in range(2, 100):
        desk.say(publisher, publish("p", n))
        desk.wait(50 * MILLISECOND)
    report(desk, left, 1, desk.own.core.created, desk.own.core.stable)
    desk.wait(5 * SECOND)
    assert desk.own.size <= 4_000 + 1_000
    assert not forgotten(desk)
    assert {each.reason for each in desk.own.core.released} == {Reason.MAX_BYTES}


def test_what_came_last_is_kept_however_little_that_is_to_be() -> None:
    """Segments go as a whole: of a small log they are small, or nothing would be left of what somebody waits for."""
    desk, left, publisher = hosting(streams=[replace(ORDERS, retain_bytes=20_000)])
    for n in range(2, 400):
        desk.say(publisher, publish("p", n))
        desk.wait(20 * MILLISECOND)
    report(desk, left, 1, desk.own.core.created, desk.own.core.stable)
    desk.wait(5 * SECOND)
    assert 20_000 * 3 / 4 < desk.own.size <= 20_000 * 5 / 4


# Before it is gone


def test_marks_and_reasons_are_on_disk_before_the_log_is_chopped() -> None:
    """B1.4: what a publisher may ask for outlives its events."""
    desk = Desk()
    desk.publisher("p", 1)
    last = desk.own.core.stable
    desk.wait(KEEP_NS - SECOND)
    desk.hold(Save)
    desk.wait(2 * SECOND)
    assert desk.done_of(ChopEvents) == []
    assert not forgotten(desk), "nobody is told that it is lost before that is on disk"
    desk.hold()
    assert [each.through for each in desk.done_of(ChopEvents)] == [last]
    kept = msgspec.msgpack.decode(desk.tables.read(PUBENDS)[OWN], type=Kept)
    assert (kept.marks["p"].last, kept.released[-1].upto) == (1, last)
    desk.restart()
    again = desk.publisher("p", 1)
    assert [run.n for run in desk.said(again, Logged)[0].repeats] == [1]


def test_a_power_cut_between_the_row_and_the_chop_does_no_harm() -> None:
    desk = Desk()
    desk.publisher("p", 1)
    desk.wait(KEEP_NS - SECOND)
    desk.hold(ChopEvents)
    desk.wait(2 * SECOND)
    forgotten_before = desk.own.core.forgotten
    desk.restart()
    assert desk.own.core.forgotten == forgotten_before
    publisher = desk.publisher("p", 2)
    assert publisher not in desk.closed
    assert desk.own.core.stable > forgotten_before
