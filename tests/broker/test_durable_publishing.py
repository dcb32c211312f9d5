"""Publishing on a stream that is logged: accepted means on disk, and a repeat finds its first tick [R1.5, B1.4]."""

from __future__ import annotations

from durable_desk import ORDERS, OWN, UNHEARD_NS, Desk

from by_hand import publish
from holdfast.broker.durable.publishing import pubend_for
from holdfast.clock import MILLISECOND, SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Logged, Report, Reported, Run
from holdfast.messages.publications import PUBLICATIONS_MAX, Accepted, Rejected
from holdfast.messages.subscriptions import Confirmed, Subscribe, Unsubscribe
from holdfast.streams.storing import AppendEvents, EventsRefused, EventsStable, Save


def accepted(desk: Desk, connection: int) -> int:
    """Up to where a publisher's events are accepted."""
    return max((each.upto for each in desk.said(connection, Accepted)), default=0)


# Accepting


def test_nothing_is_accepted_before_it_is_on_disk_and_nobody_hears_of_it_earlier() -> None:
    """R1.3: the append is asked for at once; its acceptance and its delivery wait for the sync."""
    desk = Desk()
    reader = desk.reader()
    publisher = desk.publisher("p", 1)
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 2, 3))
    assert [list(each.ticks) for each in desk.queue if isinstance(each, AppendEvents)] == [
        [desk.clock + 1, desk.clock + 2]
    ]
    assert (accepted(desk, publisher), desk.got(reader)) == (1, [1])
    desk.hold()
    assert (accepted(desk, publisher), desk.got(reader)) == (3, [1, 2, 3])


def test_a_publisher_hears_where_its_events_are_before_it_hears_that_they_are_accepted() -> None:
    desk = Desk()
    publisher = desk.publisher("p", 1)
    logged, acceptance = desk.say(publisher, publish("p", 2, 3, 4))
    assert logged == Logged(OWN, 1, (Run(2, desk.clock + 1, 3),))
    assert acceptance == Accepted(4)


def test_appends_that_share_a_sync_are_accepted_together_each_with_its_own_ticks() -> None:
    desk = Desk()
    publishers = [desk.publisher(name) for name in ("p", "q")]
    desk.hold(AppendEvents)
    for publisher, name in zip(publishers, ("p", "q"), strict=True):
        desk.say(publisher, publish(name, 1), publish(name, 2))
    desk.hold()
    runs = [run for each in publishers for logged in desk.said(each, Logged) for run in logged.runs]
    ticks = [tick for _, first, length in runs for tick in range(first, first + length)]
    assert len(set(ticks)) == 4, "no two events share a tick (R1.5)"
    assert [accepted(desk, each) for each in publishers] == [2, 2]


def test_more_answers_than_a_message_holds_are_told_in_several() -> None:
    """Numbers with holes make no runs: a sync that many appends share may answer more than one message can."""
    desk = Desk()
    publisher = desk.publisher("p")
    desk.hold(AppendEvents)
    numbers = range(1, 2 * PUBLICATIONS_MAX + 100, 2)
    for first in range(0, len(numbers), 1_000):
        desk.say(publisher, publish("p", *numbers[first : first + 1_000]))
    desk.step(EventsStable(OWN, len(desk.take(AppendEvents)), 0))
    told = desk.said(publisher, Logged)
    assert max(len(each.runs) for each in told) <= PUBLICATIONS_MAX
    assert [run.n for each in told for run in each.runs] == list(numbers)
    assert accepted(desk, publisher) == numbers[-1]


def test_what_nobody_wants_is_not_kept_in_memory() -> None:
    """Whoever comes later begins with the log; while somebody is there, as much is kept as the settings allow."""
    desk = Desk()
    publisher = desk.publisher("p", 1, 2, 3)
    known = desk.course().knowledge
    assert (known.bytes, known.edge) == (0, desk.own.core.stable)
    reader = desk.reader("u", start=1)
    desk.wait(SECOND)
    assert desk.got(reader) == [1, 2, 3], "from the log"
    desk.say(publisher, publish("p", 4, 5))
    assert desk.got(reader) == [1, 2, 3, 4, 5]
    assert known.bytes > 0
    desk.say(reader, Unsubscribe(SubscriptionId("u", 1, 1)))
    desk.wait(SECOND)
    assert known.bytes == 0, "nobody is there any more"
    desk.say(publisher, publish("p", 6))
    again = desk.reader("v", start=1)
    desk.wait(SECOND)
    assert desk.got(again) == [1, 2, 3, 4, 5, 6]


def test_publishers_of_one_broker_are_spread_over_its_pubends_and_each_stays_with_its_own() -> None:
    """R1.5: assigned by the publisher's name, whatever else is going on."""
    stream = ORDERS.__class__("orders", ("#",), guarantee=ORDERS.guarantee, pubends=3)
    desk = Desk(streams=(stream,))
    for i in range(9):
        desk.publisher(f"p{i}", 1, 2)
    assert sorted(desk.plane.own) == [f"orders@b/{k}" for k in range(3)]
    for i in range(9):
        chosen = pubend_for(stream, f"p{i}", "b")
        assert [n for n in (1, 2) if (f"p{i}", n) in logged_ids(desk, chosen)] == [1, 2]


def logged_ids(desk: Desk, pubend: str) -> list[tuple[str, int]]:
    return [
        publication.id
        for append in desk.done_of(AppendEvents)
        if append.pubend == pubend
        for publication in append.publications
    ]


# Repeats


def test_an_event_sent_again_after_the_broker_died_is_answered_with_its_first_tick() -> None:
    """B1.4, I18: the publisher cannot know whether it was logged, and it is logged once."""
    desk = Desk()
    first = desk.said(desk.publisher("p", 1), Logged)[0].runs[0]
    desk.restart()
    again = desk.publisher("p", 1, 2)
    repeats = [run for logged in desk.said(again, Logged) for run in logged.repeats]
    news = [run for logged in desk.said(again, Logged) for run in logged.runs]
    assert repeats == [first]
    assert [run.n for run in news] == [2]
    assert logged_ids(desk, OWN) == [("p", 2)]
    assert accepted(desk, again) == 2


def test_what_was_not_on_disk_when_the_power_went_is_logged_when_it_is_sent_again() -> None:
    desk = Desk()
    publisher = desk.publisher("p", 1)
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 2))
    desk.restart()
    again = desk.publisher("p", 1, 2)
    assert logged_ids(desk, OWN) == [("p", 2)]
    assert accepted(desk, again) == 2


def test_a_repeat_of_what_is_still_on_its_way_to_the_disk_waits_for_it() -> None:
    desk = Desk()
    publisher = desk.publisher("p", 1)
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 2))
    desk.lose(publisher)
    again = desk.client("p")
    desk.say(again, publish("p", 2))
    assert accepted(desk, again) == 0
    desk.hold()
    assert accepted(desk, again) == 2
    assert logged_ids(desk, OWN) == [("p", 1), ("p", 2)]


# A disk that will not


def test_what_a_full_disk_refuses_is_rejected_by_name_and_with_room_events_are_taken_again() -> None:
    """Publishing is refused with the reason, and heals; a refused event is certainly not there."""
    desk = Desk()
    reader = desk.reader()
    publisher = desk.publisher("p", 1)
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 2))
    desk.say(publisher, publish("p", 3))
    desk.disk.capacity = 0
    desk.hold()
    rejected = desk.said(publisher, Rejected)
    assert [each.n for each in rejected] == [2, 3]
    assert all("no space" in each.problem and each.code == "" for each in rejected)
    assert {log.level for log in desk.logs if log.text == "events cannot be logged"} == {"warning"}
    desk.disk.capacity = 1 << 62
    desk.wait(2 * SECOND)
    desk.say(publisher, publish("p", 4, heard=3))
    assert desk.done_of(AppendEvents)[-1].refusals == desk.own.refusals > 0
    assert desk.got(reader) == [1, 4]
    assert accepted(desk, publisher) == 4


def test_after_a_sync_that_failed_nothing_is_acknowledged_and_the_reason_is_said() -> None:
    """Nobody knows what became of the last appends: no answer. What comes later is refused."""
    desk = Desk()
    publisher = desk.publisher("p", 1)
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 2))
    desk.take(AppendEvents)
    desk.step(EventsRefused(OWN, "the disk has failed", is_final=True))
    assert desk.said(publisher, Rejected) == []
    desk.say(publisher, publish("p", 3))
    assert [(each.n, each.problem) for each in desk.said(publisher, Rejected)] == [(3, "the disk has failed")]
    assert accepted(desk, publisher) == 1, "2 is not known to be anywhere"
    assert desk.take(AppendEvents) == []
    assert [log.level for log in desk.logs if log.text == "events cannot be logged"] == ["error"]


# Not before everybody knows


def test_a_new_pubend_takes_events_when_it_is_on_disk_and_the_network_knows_it() -> None:
    """B1.11: whoever subscribed before will hear of them; so its row and its announcement come first."""
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.hold(Save)
    publisher = desk.publisher("p", 1)
    assert f"$pubend/{OWN}" not in [each.filter for each in desk.said(left, Subscribe)]
    assert desk.done_of(AppendEvents) == []
    desk.hold()
    assert f"$pubend/{OWN}" in [each.filter for each in desk.said(left, Subscribe)]
    assert accepted(desk, publisher) == 1


def test_a_pubend_waits_for_the_confirmation_of_its_neighbours() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.confirms = False
    publisher = desk.publisher("p", 1)
    assert desk.done_of(AppendEvents) == []
    desk.say(left, Confirmed(desk.said(left, Subscribe)[-1].subscription))
    assert accepted(desk, publisher) == 1


def restarted_with_a_report(*, reports: bool) -> tuple[Desk, int, int]:
    """A pubend that had a subscriber-hosting broker beside it, and was started again."""
    desk = Desk(["left"])
    left = desk.meet("left", filters=["a"])
    desk.publisher("p", 1)
    desk.wait(UNHEARD_NS)
    desk.say(left, Report("b", "left", OWN, 1, desk.clock, desk.clock))
    desk.restart()
    left = desk.meet("left", filters=["a"], incarnation=2)
    publisher = desk.publisher("p", 2)
    if reports:
        desk.say(left, Report("b", "left", OWN, 2, desk.clock, desk.clock))
    return desk, left, publisher


def test_a_pubend_that_was_started_again_hears_those_who_may_know_more_before_it_takes_events() -> None:
    """Its log may be an older copy of itself: a tick they have had must not be given twice [design.md §4]."""
    desk, left, publisher = restarted_with_a_report(reports=False)
    assert accepted(desk, publisher) == 0
    claimed = desk.clock + 10 * SECOND // 1_000
    desk.say(left, Report("b", "left", OWN, 2, desk.clock, claimed))
    assert accepted(desk, publisher) == 2
    [run] = desk.said(publisher, Logged)[0].runs
    assert run.tick > claimed
    assert desk.own.core.incarnation == 2
    assert desk.said(left, Reported)[-1].incarnation == 2


def test_who_does_not_report_is_waited_for_two_seconds_and_no_longer() -> None:
    desk, _, publisher = restarted_with_a_report(reports=False)
    desk.wait(1_900 * MILLISECOND)
    assert accepted(desk, publisher) == 0
    desk.wait(300 * MILLISECOND)
    assert accepted(desk, publisher) == 2


def test_a_clock_that_was_set_back_gives_no_tick_that_was_said_to_be_silent() -> None:
    """B1.3, I19: silence was told under a lease, and the next life begins above it."""
    desk = Desk()
    reader = desk.reader()
    desk.publisher("p", 1)
    desk.wait(SECOND)
    silent = desk.course().knowledge.edge
    assert silent > desk.events(reader)[0][0]
    desk.wall -= 3_600 * SECOND
    desk.restart()
    publisher = desk.publisher("p", 2)
    assert desk.said(publisher, Logged)[0].runs[0].tick > silent


def test_silence_is_not_said_beyond_what_is_leased_on_disk() -> None:
    desk = Desk()
    desk.publisher("p", 1)
    last = desk.own.core.stable
    desk.hold(Save)
    desk.wait(SECOND)
    assert desk.course().knowledge.edge <= max(last, desk.own.core.lease)
    assert desk.own.core.lease == 0
    desk.hold()
    desk.wait(SECOND)
    assert desk.course().knowledge.edge > last + SECOND // 1_000
