"""A broker with subscribers, and a pubend elsewhere: it asks to be waited for, reports, and resigns [R1.13, B1.8].

Letters may be lost: whatever has no answer is written again; what a letter tells is on disk before it is sent.
"""

from __future__ import annotations

from durable_desk import FAR, Desk, admitted, followed, items

from by_hand import a_publication
from holdfast.broker.durable.letters import RESIGN_AFTER
from holdfast.broker.durable.records import HOSTED
from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.durable import Admit, Claim, Report, Reported, Resign
from holdfast.messages.subscriptions import Confirmed, Unsubscribe
from holdfast.messages.ticks import ABSOLUTE, Start
from holdfast.streams.storing import ChopMatches, NoteMatches, Save

EVENT = a_publication("q", 1)
ROUND = 300 * MILLISECOND  #: a round of reports, at least


def test_whoever_wants_a_pubend_asks_until_it_is_admitted_and_is_confirmed_then() -> None:
    """B1.1: nothing may be given up from the confirmation on."""
    desk = Desk(["left"])
    left = desk.meet("left", FAR)
    reader = desk.reader(durable="mine")
    desk.wait(4 * ROUND)
    assert len(desk.said(left, Admit)) >= 3
    assert set(desk.said(left, Admit)) == {Admit("left", "b", FAR, None)}
    assert desk.said(reader, Confirmed) == []
    desk.say(left, admitted(100))
    assert desk.said(reader, Confirmed)[0].token == {FAR: (1, 100)}
    count = len(desk.said(left, Admit))
    desk.wait(4 * ROUND)
    assert len(desk.said(left, Admit)) == count


def test_an_admission_nobody_asked_for_changes_nothing() -> None:
    desk, left, reader = followed()
    desk.say(left, admitted(500), items(FAR, ABSOLUTE, 100, [(150, EVENT)], 200))
    assert desk.got(reader) == [1], "150 is below 500, and still for it"


def test_what_was_delivered_and_acknowledged_is_reported_when_it_is_on_disk() -> None:
    desk, left, reader = followed(durable="mine")
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, EVENT)], 200))
    desk.wait(ROUND)
    [first] = {*desk.said(left, Report)}
    assert (first.released < 150, first.delivered) == (True, 200)
    desk.hold(Save)
    desk.acknowledge(reader)
    before = len(desk.said(left, Report))
    desk.say(left, Reported("b", "left", FAR, first.number, 1))
    desk.wait(2 * ROUND)
    assert len(desk.said(left, Report)) == before
    desk.hold()
    last = desk.said(left, Report)[-1]
    assert (last.released, last.delivered, last.number) == (150, 200, first.number + 1)
    desk.wait(2 * SECOND)
    last = desk.said(left, Report)[-1]
    assert (last.released, last.delivered) == (200, 200), "it was told that nothing followed"


def test_a_report_is_repeated_until_it_counts_and_then_only_news_is_reported() -> None:
    desk, left, _ = followed()
    desk.say(left, items(FAR, ABSOLUTE, 100, [], 200))
    desk.wait(4 * ROUND)
    reports = desk.said(left, Report)
    assert len(reports) >= 3
    assert len({each.number for each in reports}) == 1
    desk.say(left, Reported("b", "left", FAR, reports[-1].number, 1))
    desk.wait(4 * ROUND)
    assert len(desk.said(left, Report)) == len(reports)


def test_numbers_of_reports_grow_over_all_lives() -> None:
    """A report of the last life that is still on its way must not overtake the first of this one."""
    desk, left, _ = followed(durable="mine")
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, EVENT)], 200))
    desk.wait(ROUND)
    last = desk.said(left, Report)[-1]
    desk.restart()
    left = desk.meet("left", FAR, incarnation=2)
    desk.wait(ROUND)
    desk.say(left, Start(FAR, 300), items(FAR, ABSOLUTE, 300, [], 400))
    desk.say(left, items(FAR, ABSOLUTE, 200, [], 300, answers=True))
    desk.wait(ROUND)
    news = desk.said(left, Report)[-1]
    assert news.delivered == 400
    assert news.number > last.number


def test_delivered_is_what_the_filtering_log_has_on_disk() -> None:
    """R1.19: enqueued to a client is not yet delivered."""
    desk, left, reader = followed(durable="mine")
    desk.hold(NoteMatches)
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, EVENT)], 200))
    desk.say(left, items(FAR, ABSOLUTE, 200, [], 300))
    assert desk.got(reader) == [1]
    desk.wait(ROUND)
    assert {each.delivered for each in desk.said(left, Report)} <= {100}, "nor the silence behind it"
    desk.hold()
    desk.wait(ROUND)
    assert desk.said(left, Report)[-1].delivered == 300


def test_who_is_away_pins_what_matches_it_and_who_has_had_all_pins_nothing() -> None:
    """I17, R1.18."""
    desk, left, reader = followed(durable="mine")
    desk.lose(reader)
    desk.say(left, items(FAR, ABSOLUTE, 100, [], 140))
    desk.wait(ROUND)
    assert desk.said(left, Report)[-1].released == 140, "nothing was for it so far"
    desk.say(left, items(FAR, ABSOLUTE, 140, [(150, EVENT)], 200))
    desk.wait(ROUND)
    assert 140 <= desk.said(left, Report)[-1].released < 150
    assert desk.said(left, Report)[-1].delivered == 200


def test_a_passing_reader_pins_nothing_while_it_is_current() -> None:
    desk, left, _ = followed()
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, EVENT)], 200))
    desk.wait(ROUND)
    assert (desk.said(left, Report)[-1].released, desk.said(left, Report)[-1].delivered) == (200, 200)


def test_a_filtering_log_forgets_what_nobody_here_needs() -> None:
    """B1.7: chopped at what was released, from time to time."""
    desk, left, _ = followed(durable="mine")
    desk.say(left, items(FAR, ABSOLUTE, 100, [], 20_000_000))
    desk.wait(2 * ROUND)
    assert [each.through for each in desk.done_of(ChopMatches)] == [20_000_000]
    desk.say(left, items(FAR, ABSOLUTE, 20_000_000, [(20_000_001, EVENT)], 40_000_000))
    desk.wait(2 * ROUND)
    assert len(desk.done_of(ChopMatches)) == 1, "somebody needs 20,000,001"


def test_a_filtering_log_forgets_nothing_before_it_is_on_disk_that_nobody_needs_it() -> None:
    """A broker that died in between would find its readers where the log does not reach any more."""
    desk, left, _ = followed(durable="mine")
    desk.hold(Save)
    desk.say(left, items(FAR, ABSOLUTE, 100, [], 20_000_000))
    desk.wait(2 * SECOND)
    assert desk.take(ChopMatches) == desk.done_of(ChopMatches) == []
    desk.hold()
    assert [each.through for each in desk.done_of(ChopMatches)] == [20_000_000]


def test_who_has_no_subscribers_any_more_resigns_after_a_while_and_says_so_until_it_is_heard() -> None:
    desk, left, reader = followed()
    desk.say(left, items(FAR, ABSOLUTE, 100, [], 200))
    subscription = desk.said(reader, Confirmed)[0].subscription
    desk.say(reader, Unsubscribe(subscription))
    desk.wait((RESIGN_AFTER - 2) * ROUND)
    assert desk.said(left, Resign) == []
    desk.wait(6 * ROUND)
    letters = desk.said(left, Resign)
    assert len(letters) > 1
    assert letters[0].number > desk.said(left, Report)[-1].number, "it overrules what was reported"
    assert FAR in desk.rows(HOSTED)
    desk.say(left, Reported("b", "left", FAR, letters[0].number, 1))
    assert FAR not in desk.rows(HOSTED)
    desk.wait(4 * ROUND)
    assert len(desk.said(left, Resign)) == len(letters)


def test_who_comes_while_its_broker_resigns_waits_for_that_and_is_admitted_anew() -> None:
    desk, left, reader = followed()
    desk.say(reader, Unsubscribe(desk.said(reader, Confirmed)[0].subscription))
    desk.wait((RESIGN_AFTER + 4) * ROUND)
    [letter] = {*desk.said(left, Resign)}
    asked = len(desk.said(left, Admit))
    late = desk.reader("v")
    assert len(desk.said(left, Admit)) == asked, "the resignation might overtake it"
    desk.say(left, Reported("b", "left", FAR, letter.number, 1))
    assert len(desk.said(left, Admit)) == asked + 1
    desk.say(left, admitted(900, letter.number))
    assert desk.place(late, FAR) == 900


def test_a_token_the_pubend_knows_nothing_of_is_claimed() -> None:
    """A log older than the tokens it handed out: its broker is told what its reader has had [design.md §4]."""
    desk = Desk(["left"])
    left = desk.meet("left", FAR)
    desk.reader(durable="mine", token={FAR: 500})
    desk.say(left, admitted(100), Start(FAR, 100))
    desk.wait(ROUND)
    assert 500 in {each.tick for each in desk.said(left, Claim)}
