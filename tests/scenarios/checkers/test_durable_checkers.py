"""What durable runs promise, on traces written by hand: each promise kept, and each broken in one place."""

from __future__ import annotations

from math import inf

import pytest

from durable_traces import PUBEND, Durable, good_durable
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.checkers.caught_up import caught_up
from holdfast.scenarios.checkers.completeness import completeness
from holdfast.scenarios.checkers.exactness import exactness
from holdfast.scenarios.checkers.gaps import gaps
from holdfast.scenarios.checkers.ticks import ticks
from holdfast.scenarios.checkers.total_order import total_order
from holdfast.scenarios.checkers.violation import Violation


def told(violations: list[Violation]) -> list[str]:
    return [str(violation) for violation in violations]


def test_a_good_run_passes() -> None:
    assert told(check_all(good_durable().trace(), retain_seconds=inf)) == []
    assert told(check_all(good_durable(order="TOTAL").trace(), retain_seconds=inf)) == []


def test_other_guarantees_have_no_ticks_to_judge() -> None:
    lines = good_durable(guarantee="reliable")
    lines.got(7, 1)
    trace = lines.trace()
    assert not [*ticks(trace), *exactness(trace), *gaps(trace), *caught_up(trace)]


# Ticks: I18, I19


def test_an_event_at_two_ticks_is_caught() -> None:
    lines = good_durable()
    lines.got(7, 4, tick=60)
    assert told(ticks(lines.trace())) == [
        "duplicate: p#4 is at tick 60 of scenario@b0/0, and at tick 40 of scenario@b0/0"
    ]


def test_an_event_in_two_pubends_is_caught() -> None:
    lines = good_durable()
    lines.add(7, "p", "accepted", publisher="p", n=4, pubend="scenario@b1/0", tick=40)
    assert [violation.kind for violation in ticks(lines.trace())] == ["duplicate"]


def test_two_events_at_one_tick_are_caught() -> None:
    lines = good_durable()
    lines.log(7, 5, tick=40)
    assert told(ticks(lines.trace())) == ["wrong: p#5 is at tick 40 of scenario@b0/0, and so is p#4"]


def test_the_receipt_of_a_repeat_need_not_know_its_tick() -> None:
    lines = good_durable()
    lines.add(7, "p", "accepted", publisher="p", n=4, pubend="scenario@b0/0", tick=0)
    assert not ticks(lines.trace())


# Exactness: I16


def problems(lines: Durable) -> list[str]:
    return told(exactness(lines.trace()))


def test_an_event_passed_over_by_the_next_one_is_caught_at_once() -> None:
    lines = Durable()
    for n in (1, 2, 3):
        lines.log(1 + n, n)
    lines.got(5, 1)
    lines.got(5, 3)
    assert problems(lines) == [
        "lost: s1 for all of scenario@b0/0: p#2 at tick 20 was passed over by a deliver"
    ]


def test_silence_where_something_matched_is_caught() -> None:
    lines = Durable()
    lines.log(2, 1, x=5)
    lines.silence(3, 5, 15, subscriber="s2")
    assert problems(lines) == [
        "lost: s2 for dear of scenario@b0/0: p#1 at tick 10 was passed over by a silence"
    ]


def test_silence_over_what_does_not_match_is_right() -> None:
    lines = Durable()
    lines.log(2, 1, x=1)
    lines.silence(3, 5, 15, subscriber="s2")
    assert problems(lines) == []


def test_what_a_gap_covers_is_not_missing() -> None:
    lines = Durable()
    lines.log(2, 1)
    lines.log(3, 2)
    lines.gap(4, 0, 10)
    lines.got(4, 2)
    assert problems(lines) == []


def test_an_event_that_only_others_have_seen_is_in_the_log_too() -> None:
    """Its publisher crashed before it had the receipt."""
    lines = Durable()
    lines.publish(2, 1, accepted=False, x=5)
    lines.log(3, 2, x=5)
    lines.got(4, 1)
    lines.got(4, 2)
    lines.silence(4, 5, 25, subscriber="s2")
    assert [line.split(":")[0] for line in problems(lines)] == ["lost", "lost"]


@pytest.mark.parametrize("crashed", [True, False])
def test_an_event_again_is_caught_across_lives_and_sessions(crashed: bool) -> None:
    lines = Durable()
    lines.log(2, 1)
    lines.got(3, 1)
    (lines.restart if crashed else lines.away)(4, 5)
    lines.got(6, 1)
    assert problems(lines) == ["duplicate: s1 for all of scenario@b0/0: p#1 at tick 10 again"]


def test_a_subscription_that_is_not_kept_begins_anew_in_each_life() -> None:
    lines = Durable(durable=False)
    lines.log(2, 1)
    lines.got(3, 1)
    lines.fault(4, "crash", "s1")
    lines.fault(5, "restart", "s1")
    lines.subscribe(5.1)
    lines.got(6, 1)
    assert problems(lines) == []


def test_a_subscription_that_is_not_kept_goes_on_in_the_same_life_wherever_it_is_made_again() -> None:
    lines = Durable(durable=False)
    lines.log(2, 1)
    lines.got(3, 1)
    lines.away(4, 5)
    lines.subscribe(5.1)
    lines.got(6, 1)
    assert problems(lines) == ["duplicate: s1 for all of scenario@b0/0: p#1 at tick 10 again"]


def test_ticks_that_go_back_are_caught() -> None:
    lines = Durable()
    lines.log(2, 1)
    lines.log(3, 2)
    lines.got(4, 2)
    lines.got(5, 1)
    lines.silence(6, 10, 30)
    assert problems(lines) == [
        "misorder: s1 for all of scenario@b0/0: p#1 at tick 10 behind tick 20",
        "misorder: s1 for all of scenario@b0/0: a silence of (10, 30] behind tick 20",
    ]


def test_a_jump_is_caught_although_nothing_matched_there() -> None:
    lines = Durable()
    lines.silence(2, 0, 10)
    lines.silence(3, 15, 20)
    assert problems(lines) == ["unexplained: s1 for all of scenario@b0/0: nothing was said of (10, 15]"]


def test_an_item_of_nothing_is_malformed() -> None:
    lines = Durable()
    lines.gap(2, 10, 10)
    assert problems(lines) == ["malformed: s1 for all of scenario@b0/0: a gap of (10, 10]"]


# Gaps: I16, I17


def a_gap(reason: str = "max_retain", *, away: bool = True, durable: bool = True) -> Durable:
    """An event published at 2 is told as gone at 20."""
    lines = Durable(durable=durable)
    lines.log(2, 1)
    if away:
        lines.away(1.5, 19)
    lines.gap(20, 0, 10, reason)
    return lines


def test_early_release_is_announced_to_who_was_away() -> None:
    assert not gaps(a_gap().trace())
    assert not gaps(a_gap().trace(), retain_seconds=17)


def test_a_gap_without_a_policy_is_caught() -> None:
    assert told(gaps(a_gap().trace(), retain_seconds=inf)) == [
        "lost: s1 for all of scenario@b0/0: a gap (0, 10], max_retain, which nobody may give up"
    ]


def test_a_gap_of_what_was_acknowledged_means_that_release_has_passed_somebody() -> None:
    assert told(gaps(a_gap("acknowledged").trace())) == [
        "lost: s1 for all of scenario@b0/0: a gap (0, 10], acknowledged, which nobody may give up"
    ]


def test_who_was_there_all_the_time_has_no_gap() -> None:
    assert told(gaps(a_gap(away=False).trace())) == [
        "lost: s1 for all of scenario@b0/0: a gap (0, 10], max_retain, although it was there all the time"
    ]


def test_who_is_slow_is_as_good_as_away() -> None:
    """The trace does not say that an application takes its time; whoever made it so does."""
    lines = a_gap(away=False).trace()
    assert not gaps(lines, slow={"s1"})
    assert gaps(lines, slow={"s2"})
    assert told(gaps(lines, slow={"s1"}, retain_seconds=19)) == [
        "lost: s1 for all of scenario@b0/0: a gap (0, 10], max_retain, covers p#1, which was younger"
    ]


@pytest.mark.parametrize("reason", ["max_retain", "acknowledged"])
@pytest.mark.parametrize("published", [0.5, 3])
def test_what_is_older_than_the_subscription_may_be_gone(published: float, reason: str) -> None:
    """Its broker was cut off, and behind, when it subscribed: a later event is older than the subscription, too.

    Or it was not waited for yet, and all others had acknowledged that (seed 2594 with faults, tight).
    """
    lines = Durable()
    lines.log(published, 1, tick=20)
    if reason == "acknowledged":
        lines.away(3.5, 19)
    lines.gap(20, 0, 10, reason)
    assert bool(gaps(lines.trace())) == (published > 1)


@pytest.mark.parametrize("is_late", [True, False])
def test_what_is_younger_than_the_subscription_may_not(is_late: bool) -> None:
    """Also if another event, which is older, was logged behind it: its home was down."""
    lines = Durable()
    if is_late:
        lines.publish(0.5, 1, accepted=False)
        lines.add(6, "p", "accepted", publisher="p", n=1, pubend=PUBEND, tick=20)
    lines.log(3, 2, tick=5)
    lines.away(3.5, 19)
    lines.gap(20, 0, 10, "acknowledged")
    assert told(gaps(lines.trace())) == [
        "lost: s1 for all of scenario@b0/0: a gap (0, 10], acknowledged, which nobody may give up"
    ]


def test_what_was_released_too_early_is_caught_give_or_take_the_clocks() -> None:
    assert told(gaps(a_gap().trace(), retain_seconds=19)) == [
        "lost: s1 for all of scenario@b0/0: a gap (0, 10], max_retain, covers p#1, which was younger"
    ]
    assert not gaps(a_gap().trace(), retain_seconds=19, clock_seconds=2)


def test_a_subscription_that_is_not_kept_may_miss_what_came_while_it_was_away() -> None:
    assert not gaps(a_gap("away", durable=False).trace(), retain_seconds=inf)
    assert gaps(a_gap("away", durable=False, away=False).trace())


@pytest.mark.parametrize("confirmed", ["in part", "at last", "at once"])
def test_a_pubend_that_could_not_be_reached_begins_with_a_gap(confirmed: str) -> None:
    """B1.11; also if it is reached before the client is told that its subscription stands (seed 2836 with faults)."""
    lines = Durable()
    asked = {"subscriber": "s1", "subscription": "late", "filter": "a", "durable": True}
    partition = {"lead": "b1", "seq": 1, "fragment": ["b0"]}
    lines.add(2, "s1", "subscribe", **asked)
    if confirmed == "at last":
        lines.add(2, "s1", "upgraded", subscriber="s1", subscription="late", cleared=[partition], partial=[])
    lines.add(2, "s1", "subscribed", **asked, partial=[partition] if confirmed == "in part" else [])
    told_of = {"subscriber": "s1", "subscription": "late", "pubend": "scenario@b0/0", "reason": "unreachable"}
    lines.add(3, "s1", "gap", **told_of, after=0, upto=10)
    assert bool(gaps(lines.trace())) == (confirmed == "at once")
    lines = good_durable()
    lines.gap(7, 50, 60, "unreachable")
    assert gaps(lines.trace())


# Total order: I26


def in_total_order(*pairs: tuple[str, int]) -> list[str]:
    lines = Durable(order="TOTAL")
    lines.log(2, 1, x=5)
    lines.log(3, 2, x=5)
    for subscriber, n in pairs:
        lines.got(5, n, subscriber=subscriber)
    return [violation.kind for violation in total_order(lines.trace())]


def test_the_same_order_for_everybody_passes() -> None:
    assert in_total_order(("s1", 1), ("s1", 2), ("s2", 1), ("s2", 2)) == []
    assert in_total_order(("s1", 1), ("s2", 2)) == []


def test_two_orders_are_caught() -> None:
    assert in_total_order(("s1", 1), ("s1", 2), ("s2", 2), ("s2", 1)) == ["total-order"] * 2


def test_an_order_against_the_sequencers_is_caught_although_all_agree() -> None:
    assert in_total_order(("s1", 2), ("s1", 1), ("s2", 2), ("s2", 1)) == ["total-order"] * 2


def test_orders_are_compared_without_the_help_of_ticks() -> None:
    lines = Durable(order="TOTAL")
    for subscriber, order in (("s1", (1, 2)), ("s2", (2, 1))):
        for tick, n in enumerate(order, start=1):
            lines.got(5, n, tick=tick, subscriber=subscriber)
    assert told(total_order(lines.trace())) == [
        "total-order: s1 got p#1 before p#2 for all, and s2 the other way round for dear"
    ]


def test_one_pubend_has_all_of_a_total_order() -> None:
    lines = Durable(order="TOTAL")
    lines.log(2, 1)
    lines.log(3, 2, pubend="scenario@b1/0")
    assert told(total_order(lines.trace())) == ["total-order: events are in scenario@b0/0, scenario@b1/0"]


# Completeness, and catching up: I35


def lost(lines: Durable, **options: float) -> list[str]:
    return [violation.message for violation in completeness(lines.trace(), **options)]


def test_what_is_published_while_a_durable_subscriber_is_away_is_owed() -> None:
    for is_back in (True, False):
        lines = Durable()
        lines.log(2, 1)
        lines.got(2.1, 1)
        lines.fault(3, "disconnect", "s1")
        lines.log(4, 2)
        if is_back:
            lines.fault(5, "reconnect", "s1")
        assert lost(lines) == (["p#2 never reached s1 for all"] if is_back else [])


def test_what_is_published_while_a_durable_subscriber_is_down_is_owed() -> None:
    lines = Durable()
    lines.fault(3, "crash", "s1")
    lines.log(4, 1)
    assert lost(lines) == []
    lines = Durable()
    lines.log(3.5, 1)
    lines.restart(3, 5)
    assert lost(lines) == ["p#1 never reached s1 for all"]


def test_a_gap_stands_for_what_it_covers_by_ticks() -> None:
    lines = Durable()
    lines.log(2, 1)
    lines.away(1.5, 19)
    lines.gap(20, 0, 9)
    assert lost(lines) == ["p#1 never reached s1 for all"]
    lines = Durable()
    lines.log(2, 1)
    lines.away(1.5, 19)
    lines.gap(20, 0, 10)
    assert lost(lines) == []


def test_after_a_durable_subscription_has_ended_nothing_is_owed() -> None:
    lines = Durable()
    lines.restart(2, 3)
    lines.ask(5, "unsubscribe", durable=True)
    lines.ask(5.1, "unsubscribed", durable=True)
    lines.log(6, 1)
    assert lost(lines) == []


def test_a_network_that_was_left_broken_owes_nothing_at_its_end() -> None:
    lines = Durable()
    lines.log(2, 1)
    lines.fault(2.5, "crash", "b0")
    assert lost(lines) == []
    lines = Durable()
    lines.log(2, 1)
    lines.fault(2.5, "crash", "b0")
    lines.fault(3.5, "restart", "b0")
    assert lost(lines) == ["p#1 never reached s1 for all"]


def test_who_lags_behind_what_did_not_match_is_caught() -> None:
    lines = good_durable()
    assert not caught_up(lines.trace())
    lines = good_durable()
    lines.log(10, 5, tick=70, x=1)
    lines.got(11, 5, tick=70)
    assert told(caught_up(lines.trace())) == [
        "unexplained: s2 for dear of scenario@b0/0 stands at 50, and 70 is known"
    ]


def test_what_is_too_fresh_need_not_be_known() -> None:
    lines = good_durable()
    lines.log(99, 6, x=1)
    assert not caught_up(lines.trace())
    lines = good_durable()
    lines.log(90, 6, x=1)
    assert [violation.kind for violation in caught_up(lines.trace())] == ["unexplained"] * 2
