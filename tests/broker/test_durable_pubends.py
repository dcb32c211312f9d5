"""Pubends that come later than a subscription: new ones, late ones, and such as could not be reached [B1.1, B1.11]."""

from __future__ import annotations

import pytest
from durable_desk import FAR, OWN, Desk, admitted, followed, items

from by_hand import a_publication, publish
from holdfast.broker.durable.greeting import AGREED_MAX
from holdfast.broker.durable.names import pubend_filter
from holdfast.clock import SECOND
from holdfast.messages.durable import Admit, Fetched, Portion, Report
from holdfast.messages.publications import Publication
from holdfast.messages.subscriptions import Confirmed, Durable, Partition, Subscribe, Upgraded
from holdfast.messages.ticks import ABSOLUTE, ORIGIN, Start

EVENT = a_publication("q", 1)


def test_a_pubend_of_this_broker_that_comes_later_is_read_from_its_beginning() -> None:
    """B1.11: no gap, and nothing is missing; the subscriber's token did not know of it."""
    desk = Desk()
    durable, passing = desk.reader("u", durable="mine"), desk.reader("v")
    assert desk.said(durable, Confirmed)[0].token == {}
    desk.publisher("p", 1, 2)
    for reader in (durable, passing):
        assert desk.got(reader) == [1, 2]
        assert desk.gaps(reader) == []


def test_a_pubend_elsewhere_that_comes_later_is_asked_for_all_it_has() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    reader = desk.reader(durable="mine")
    confirmed = desk.clock
    desk.tell(left, "left", str(pubend_filter(FAR)))
    assert desk.said(left, Admit) == [Admit("left", "b", FAR, confirmed - AGREED_MAX)]
    new = desk.clock
    desk.say(left, admitted(new, created=new), Start(FAR, new))
    desk.say(left, items(FAR, ABSOLUTE, new, [(new + 50, EVENT)], new + 100))
    assert desk.got(reader) == [1]
    assert desk.gaps(reader) == []


def test_what_it_had_before_it_admitted_us_is_made_up_for() -> None:
    """It was subscribed to before it was known here: whatever it has had since its creation is owed."""
    desk = Desk(["left"])
    left = desk.meet("left")
    reader = desk.reader(durable="mine")
    desk.tell(left, "left", str(pubend_filter(FAR)))
    new = desk.clock
    desk.say(left, admitted(new + 50, created=new), Start(FAR, new + 50))
    desk.say(left, items(FAR, ABSOLUTE, new, [(new + 10, EVENT)], new + 50, answers=True))
    assert desk.got(reader) == [1]
    assert desk.gaps(reader) == []


def test_who_was_away_when_a_pubend_came_reads_it_from_its_beginning() -> None:
    desk = Desk()
    reader = desk.reader(durable="mine")
    desk.lose(reader)
    publisher = desk.publisher("p", 1)
    reader = desk.reader("u", incarnation=2, durable="mine", token={})
    desk.say(publisher, publish("p", 2))
    assert desk.got(reader) == [1, 2]
    assert desk.gaps(reader) == []


def test_a_pubend_that_does_not_answer_holds_a_subscription_up_for_two_seconds_and_is_named() -> None:
    """The subscription is partial: something of this pubend may be missing."""
    desk = Desk(["left"])
    desk.meet("left", FAR)
    desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    desk.wait(SECOND)
    assert desk.said(reader, Confirmed) == []
    desk.wait(2 * SECOND)
    [confirmed] = desk.said(reader, Confirmed)
    assert [each.fragment for each in confirmed.partial] == [(FAR,)]
    assert list(confirmed.token or ()) == [OWN]


@pytest.mark.parametrize("durable", ["mine", None])
def test_while_a_pubend_is_missing_a_subscription_is_not_whole_whatever_else_is_over(
    durable: str | None,
) -> None:
    """And who has not begun yet hears of it when it does (seed 7933 with faults)."""
    desk = Desk(["left"])
    left = desk.meet("left", FAR)
    desk.confirms = False
    reader = desk.reader(durable=durable)
    [first, second] = (Partition("left", 1, n, (f"far{n}",)) for n in (1, 2))
    [mine] = [each.subscription for each in desk.said(left, Subscribe) if each.filter == "a"]
    desk.say(left, Confirmed(mine, (first, second)))
    desk.say(left, Upgraded(mine, (first,), (second,)))
    assert desk.said(reader, Upgraded) == []
    desk.wait(3 * SECOND)
    [confirmed] = desk.said(reader, Confirmed)
    assert [each.fragment for each in confirmed.partial] == [("far2",), (FAR,)]
    desk.say(left, Upgraded(mine, (second,), ()))
    [upgraded] = desk.said(reader, Upgraded)
    assert upgraded.cleared == (second,)
    assert [each.fragment for each in upgraded.partial] == [(FAR,)]


def late(start: int | None = None) -> tuple[Desk, int, int]:
    """A reader that was confirmed without its neighbour's pubend, which answers now."""
    desk = Desk(["left"])
    left = desk.meet("left", FAR)
    reader = desk.reader(durable="mine", start=start)
    desk.wait(3 * SECOND)
    return desk, left, reader


def test_when_it_answers_what_may_be_missing_is_told_as_a_gap_and_the_subscription_is_whole() -> None:
    """B1.11: it starts with a gap up to its install tick."""
    desk, left, reader = late()
    [confirmed] = desk.said(reader, Confirmed)
    asked = desk.said(left, Admit)[-1]
    assert asked.since is not None, "what came since the confirmation is for it"
    assert asked.since < desk.clock
    desk.say(left, admitted(asked.since), Start(FAR, asked.since))
    [gap] = desk.said(reader, Portion)
    assert (gap.pubend, gap.reason, gap.lost_through) == (FAR, "could not be reached", asked.since)
    assert desk.said(reader, Upgraded) == [Upgraded(confirmed.subscription, confirmed.partial, ())]
    desk.say(left, items(FAR, ABSOLUTE, asked.since, [(asked.since + 5, EVENT)], asked.since + 9))
    assert desk.got(reader) == [1]


def test_nothing_is_missing_for_who_wants_all_there_is() -> None:
    """Found by users' programs (seed 4): what is not there any more is told of as any loss."""
    desk, left, reader = late(start=0)
    [confirmed] = desk.said(reader, Confirmed)
    assert desk.said(left, Admit)[-1].since == ORIGIN
    created = desk.clock - SECOND // 1_000
    desk.say(left, admitted(created + 500, created=created), Start(FAR, created))
    assert desk.said(reader, Upgraded) == [Upgraded(confirmed.subscription, confirmed.partial, ())]
    desk.say(left, items(FAR, ABSOLUTE, created, [(created + 5, EVENT)], created + 900, answers=True))
    assert (desk.got(reader), desk.gaps(reader)) == ([1], [])


@pytest.mark.parametrize("older_s", [30, 3600])
def test_one_that_was_there_before_and_could_not_be_heard_of_is_not_read_from_its_beginning(
    older_s: int,
) -> None:
    """B1.11; one that seems less than a minute older than the subscription may be new, by another clock."""
    desk = Desk(["left"])
    left = desk.meet("left")
    reader = desk.reader(durable="mine")
    confirmed = desk.clock
    desk.wait(3 * SECOND)
    desk.tell(left, "left", str(pubend_filter(FAR)))
    asked, created = confirmed - AGREED_MAX, desk.clock - older_s * SECOND // 1_000
    assert desk.said(left, Admit)[-1].since == asked
    desk.say(left, admitted(max(asked, created), created=created), Start(FAR, desk.clock))
    begins, reasons = (created, []) if older_s < 60 else (asked, [(FAR, "could not be reached")])
    assert desk.gaps(reader) == reasons
    event = begins + 1, EVENT
    desk.say(left, items(FAR, ABSOLUTE, begins, [event], desk.clock, answers=True))
    assert desk.events(reader) == [event]


def old_one_answers(desk: Desk, left: int, made: int, start: int | None) -> tuple[int, Publication]:
    """A pubend that is an hour old can be reached at last; the first event that is owed of it."""
    since = desk.said(left, Admit)[-1].since
    assert since == (ORIGIN if start == 0 else made - AGREED_MAX)
    created = made - 3600 * SECOND // 1_000
    begins = max(since, created)
    desk.say(left, admitted(begins, created=created), Start(FAR, begins))
    desk.say(left, items(FAR, ABSOLUTE, begins, [(begins + 1, EVENT)], begins + 9))
    return begins + 1, EVENT


def missing(start: int | None) -> list[tuple[str, str]]:
    return [] if start == 0 else [(FAR, "could not be reached")]


@pytest.mark.parametrize("was_known", [True, False])
@pytest.mark.parametrize("start", [None, 0])
def test_nor_is_it_after_a_restart_unless_that_was_asked_for(was_known: bool, start: int | None) -> None:
    """The subscription was made while it could not be reached; then both brokers are started again."""
    desk = Desk(["left"])
    desk.meet("left", *[FAR] * was_known)
    desk.reader(durable="mine", start=start)
    made = desk.clock
    desk.wait(3 * SECOND)
    desk.restart()
    left = desk.meet("left", FAR, incarnation=2)
    desk.wait(3 * SECOND)
    reader = desk.reader(incarnation=2, durable="mine")
    event = old_one_answers(desk, left, made, start)
    assert desk.events(reader) == [event]
    assert desk.gaps(reader) == missing(start)


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("start", [None, 0])
def test_nor_by_who_was_away_then_and_it_hears_of_the_gap_once(start: int | None, restarts: bool) -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    reader = desk.reader(durable="mine", start=start)
    made = desk.clock
    desk.wait(SECOND)
    desk.lose(reader)
    desk.tell(left, "left", str(pubend_filter(FAR)))
    tick, event = old_one_answers(desk, left, made, start)
    if restarts:
        desk.wait(SECOND)
        desk.restart()
        left = desk.meet("left", FAR, incarnation=2)
        desk.say(left, Start(FAR, tick - 1), items(FAR, ABSOLUTE, tick - 1, [(tick, event)], tick + 9))
        desk.wait(3 * SECOND)
    reader = desk.reader(incarnation=2, durable="mine")
    desk.say(left, items(FAR, ABSOLUTE, tick - 1, [(tick, event)], tick, answers=True))
    assert desk.events(reader) == [(tick, event)]
    assert desk.gaps(reader) == missing(start)
    desk.lose(reader)
    again = desk.reader(incarnation=3, durable="mine")
    desk.say(left, items(FAR, ABSOLUTE, tick - 1, [(tick, event)], tick, answers=True))
    assert desk.gaps(again) == []
    assert desk.events(again) == [(tick, event)]


@pytest.mark.parametrize("start", [None, 0])
def test_nor_by_one_that_has_moved_before_it_was_heard_of(start: int | None) -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.tell(left, "left", "a", Durable("mine", 50))
    reader = desk.reader(durable="mine")
    made = desk.clock - SECOND // 1_000
    desk.say(left, Fetched("b", "left", "mine", {}, 50, made, "left", start=start))
    desk.tell(left, "left", str(pubend_filter(FAR)))
    event = old_one_answers(desk, left, made, start)
    assert desk.events(reader) == [event]
    assert desk.gaps(reader) == missing(start)


def test_who_reconnects_after_it_has_answered_is_confirmed_with_it() -> None:
    desk, left, reader = late()
    desk.lose(reader)
    desk.say(left, admitted(500), Start(FAR, 500))
    reader = desk.reader("u", incarnation=2, durable="mine")
    [confirmed] = desk.said(reader, Confirmed)
    assert (confirmed.partial, confirmed.token) == ((), {FAR: (1, 500)})


def test_a_pubend_that_was_started_again_is_told_again_how_far_we_are() -> None:
    desk, left, _ = followed(durable="mine")
    desk.say(left, items(FAR, ABSOLUTE, 100, [], 200))
    desk.wait(SECOND)
    desk.course(FAR).hosted.taken = desk.course(FAR).hosted.number
    desk.lose(left)
    desk.wait(SECOND)
    again = desk.meet("left", FAR, incarnation=2)
    desk.wait(SECOND)
    assert {(each.pubend, each.delivered) for each in desk.said(again, Report)} == {(FAR, 200)}
