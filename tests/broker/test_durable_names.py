"""One name, and more than one client, broker or wish: who reads it, from where, and what becomes of the others.

The broker under test is b; left and right are its neighbours. What is found by hand here ``names_swarm`` looks for.
"""

from __future__ import annotations

import pytest
from durable_desk import EPOCH, OWN, Desk, at_left, end, shop, stands

from by_hand import publish
from holdfast.broker.durable.inspection import durable_status
from holdfast.broker.durable.names import broker_filter
from holdfast.broker.durable.records import ENDED, READERS, joined
from holdfast.broker.settings import Stream
from holdfast.clock import SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import (
    Detach,
    Ended,
    Fetch,
    Fetched,
    Moved,
    MovedTaken,
    Ousted,
    Stand,
)
from holdfast.messages.streams import Guarantee
from holdfast.messages.subscriptions import Confirmed, Durable, Subscribe, Unsubscribe, Withdrawn

# Who waits for what another broker has


def test_of_two_who_wait_for_the_same_the_later_one_reads_and_the_other_is_told() -> None:
    desk, left, _, _ = at_left(1, 2)
    first = desk.reader("u", durable="mine")
    second = desk.reader("v", durable="mine")
    assert [each.reason for each in desk.said(first, Ousted)] == ["another client reads mine"]
    desk.say(left, stands(desk.own.core.stable - 1))
    assert desk.got(second) == [2]
    assert desk.got(first) == []


def test_who_asks_again_under_the_same_number_ousts_nobody() -> None:
    desk, left, _, _ = at_left(1, 2)
    reader = desk.reader(durable="mine")
    desk.subscribe(reader, "u", durable="mine")
    desk.say(left, stands(desk.own.core.stable - 1))
    assert desk.said(reader, Ousted) == []
    assert desk.got(reader) == [2]


def test_who_leaves_while_it_waits_is_answered_and_nothing_is_taken_over_for_it() -> None:
    desk, left, _, _ = at_left()
    reader = desk.reader(durable="mine")
    assert desk.say(reader, Detach(1)) == [Withdrawn(SubscriptionId("u", 1, 1))]
    desk.say(left, stands(desk.own.core.stable))
    desk.wait(SECOND)
    assert desk.rows(READERS) == []
    assert desk.said(left, Moved) == []


def test_who_leaves_what_was_just_taken_from_it_is_answered() -> None:
    """They cross: it would wait for ever."""
    desk, _, first = shop(durable="mine")
    desk.reader("v", durable="mine")
    assert len(desk.said(first, Ousted)) == 1
    assert desk.say(first, Detach(1)) == [Withdrawn(SubscriptionId("u", 1, 1))]


def test_what_is_ended_while_it_is_waited_for_is_over_where_it_is() -> None:
    """So does a client that comes back at another broker, and had not heard that what it ended was over."""
    desk, left, _, _ = at_left()
    reader = desk.reader(durable="mine")
    end(desk, reader)
    assert desk.said(reader, Withdrawn) == [], "left may still have it"
    [moved, *_] = desk.said(left, Ended)
    assert (moved.to, moved.durable) == ("left", "mine")
    assert moved.epoch > EPOCH
    desk.say(left, MovedTaken("b", "left", "mine", moved.epoch))
    assert desk.said(reader, Withdrawn) == [Withdrawn(SubscriptionId("u", 1, 1))]
    assert desk.rows(READERS) == desk.rows(ENDED) == []
    told = len(desk.said(left, Ended))
    desk.say(left, stands(desk.own.core.stable))
    desk.wait(SECOND)
    assert len(desk.said(left, Ended)) == told


def test_whoever_ends_one_does_not_wait_for_a_broker_that_does_not_answer_but_that_is_told() -> None:
    desk, left, _, _ = at_left()
    reader = desk.reader(durable="mine")
    end(desk, reader)
    desk.wait(3 * SECOND)
    assert len(desk.said(reader, Withdrawn)) == 1
    assert desk.rows(ENDED) == [joined("mine", "left")]
    desk.restart()
    left = desk.meet("left", incarnation=2)
    desk.wait(SECOND)
    [moved, *_] = desk.said(left, Ended)
    desk.say(left, MovedTaken("b", "left", "mine", moved.epoch - 1))
    assert desk.rows(ENDED) == [joined("mine", "left")], "an answer to something earlier"
    desk.say(left, MovedTaken("b", "left", "mine", moved.epoch))
    assert desk.rows(ENDED) == []


def test_what_is_ended_before_its_old_broker_has_heard_of_the_move_is_over_there_too() -> None:
    """Else it would go on there: hold the log, and begin again for the next who presents the name."""
    desk, left, _, _ = at_left(1, 2)
    reader = desk.reader(durable="mine")
    desk.say(left, stands(desk.own.core.stable - 1))
    assert desk.got(reader) == [2]
    end(desk, reader)
    assert desk.rows(READERS) == []
    [moved, *_] = desk.said(left, Ended)
    assert desk.said(reader, Withdrawn) == []
    desk.say(left, MovedTaken("b", "left", "mine", moved.epoch))
    assert len(desk.said(reader, Withdrawn)) == 1


def test_what_is_ended_while_a_broker_is_out_of_reach_is_over_there_too_when_it_comes_back() -> None:
    """It may have begun it by itself, behind a partition (seed 1950 of the names swarm, with faults)."""
    desk = Desk(["left"], brokers=("b", "left"))
    left = desk.neighbour("left", [])
    desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    desk.wait(3 * SECOND)
    epoch, known = desk.clock, desk.epoch("mine")
    assert epoch > known, "it may have begun it later than we did (seed 7015)"
    end(desk, reader)
    assert desk.rows(READERS) == []
    desk.wait(SECOND)
    assert desk.said(left, Ended) == []
    assert durable_status(desk.plane)["subscriptions"]["ending"] == 1
    desk.tell(left, "left", str(broker_filter("left")))
    desk.wait(SECOND)
    over = desk.said(left, Ended)[0]
    assert over == Ended("left", "b", "mine", epoch, known, over.ago)
    assert SECOND // 1_000 <= over.ago <= 2 * SECOND // 1_000
    desk.say(left, MovedTaken("b", "left", "mine", epoch))
    assert desk.rows(ENDED) == []
    assert durable_status(desk.plane)["subscriptions"]["ending"] == 0


def test_every_broker_is_told_that_it_is_over_since_any_may_have_been_out_of_reach_for_others() -> None:
    """Seed 3573 of the names swarm, with faults, narrow: one behind another had begun it by itself."""
    desk = Desk(["left", "right"], brokers=("b", "left", "right"))
    brokers = {name: desk.meet(name) for name in ("left", "right")}
    desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    assert desk.said(reader, Confirmed)
    end(desk, reader)
    for name, connection in brokers.items():
        assert desk.said(reader, Withdrawn) == []
        assert desk.said(connection, Ended) == [Ended(name, "b", "mine", desk.clock, desk.clock)]
        desk.say(connection, MovedTaken("b", name, "mine", desk.clock))
    assert len(desk.said(reader, Withdrawn)) == 1


def test_a_name_that_was_ended_is_new_though_a_broker_that_does_not_answer_still_has_it() -> None:
    desk, left, _, publisher = at_left(1, 2)
    ending = desk.reader(durable="mine")
    end(desk, ending)
    asked = len(desk.said(left, Fetch))
    reader = desk.reader("v", durable="mine")
    desk.say(publisher, publish("p", 3))
    assert desk.got(reader) == [3]
    assert len(desk.said(left, Fetch)) == asked
    desk.wait(2 * SECOND)
    over = desk.said(left, Ended)[-1]
    assert EPOCH < over.epoch < desk.epoch("mine")
    desk.say(left, MovedTaken("b", "left", "mine", EPOCH))
    assert desk.rows(ENDED), "an answer to something earlier"
    [kept] = desk.plane.readers.elsewhere.of("mine")
    desk.say(left, Unsubscribe(kept.subscription))
    desk.say(left, MovedTaken("b", "left", "mine", over.epoch))
    assert desk.rows(ENDED) == []
    assert not desk.durable("mine").moved_from
    assert len(desk.said(left, Fetch)) == asked


def test_what_was_ended_and_begun_anew_at_a_broker_that_had_not_heard_so_goes_on_for_who_came_there() -> None:
    """Else nobody would read what came between (seed 8520 of the names swarm, with faults)."""
    desk, left, _, publisher = at_left(1, 2)
    end(desk, desk.reader(durable="mine"))
    reader = desk.reader("v", durable="mine")
    desk.say(publisher, publish("p", 3))
    assert desk.got(reader) == [3]
    asked = len(desk.said(left, Fetch))
    [over, *_] = desk.said(left, Ended)
    desk.say(left, MovedTaken("b", "left", "mine", over.epoch))
    desk.wait(SECOND)
    assert len(desk.said(left, Fetch)) > asked, "it is still there"
    at = desk.own.core.stable - 2
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(at, at, at)}, EPOCH, EPOCH, "left"))
    assert desk.said(reader, Ousted), "it goes back, for another"
    desk.wait(SECOND)
    assert desk.got(desk.reader("w", durable="mine")) == [2, 3]


def test_an_end_is_passed_on_as_one_to_where_it_had_come_from() -> None:
    """Who has come there anew since the end keeps it; a move would take it away."""
    desk, left, right, _ = at_left(1, 2)
    reader = desk.reader(durable="mine")
    desk.say(left, stands(desk.own.core.stable - 1))
    assert desk.got(reader) == [2]
    over = desk.clock + 1
    desk.wait(SECOND)
    desk.say(right, Ended("b", "right", "mine", over))
    assert desk.rows(READERS) == []
    passed_on = desk.said(left, Ended)[-1]
    assert (passed_on.epoch, passed_on.ago) == (over, desk.clock - over)


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_reading", [False, True])
def test_an_end_elsewhere_ends_nothing_for_who_came_after_it(*, is_reading: bool, is_restarted: bool) -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    desk.lose(desk.reader(durable="mine"))
    over = desk.clock
    desk.wait(SECOND)
    reader = desk.reader("u", incarnation=2, durable="mine")
    if not is_reading:
        desk.lose(reader)
    if is_restarted:
        desk.restart()
        left = desk.meet("left")
    desk.say(left, Ended("b", "left", "mine", over))
    assert desk.rows(READERS) == ["mine"]
    assert desk.said(left, MovedTaken) == [MovedTaken("left", "b", "mine", over)]
    desk.say(left, Ended("b", "left", "mine", desk.clock + 1))
    assert desk.rows(READERS) == []
    if is_reading and not is_restarted:
        assert desk.said(reader, Ousted) == [Ousted(1, "mine was ended at left")]


def test_what_is_ended_while_nobody_is_sure_where_it_is_is_over_when_they_are() -> None:
    desk, _, _ = shop(durable="mine")
    desk.restart()
    reader = desk.reader("u", incarnation=2, durable="mine")
    desk.say(reader, Unsubscribe(SubscriptionId("u", 2, 1)))
    assert desk.rows(READERS) == ["mine"]
    desk.wait(3 * SECOND)
    assert desk.rows(READERS) == []
    assert len(desk.said(reader, Withdrawn)) == 1


def test_one_that_has_moved_on_is_asked_for_where_it_is_now() -> None:
    """Else it would begin anew, and nobody would hear of what it had not read."""
    desk, left, right, _ = at_left(1, 2, 3)
    reader = desk.reader(durable="mine")
    desk.tell(right, "right", "a", Durable("mine", EPOCH + 1))
    desk.say(left, Fetched("b", "left", "mine", None))
    assert desk.said(reader, Confirmed) == []
    assert desk.said(right, Fetch) == [Fetch("right", "b", "mine")]
    at = desk.own.core.stable - 1
    desk.say(right, Fetched("b", "right", "mine", {OWN: Stand(at, at, at)}, EPOCH + 1, EPOCH, "left"))
    desk.wait(SECOND)
    desk.say(left, Fetched("b", "left", "mine", None))
    assert desk.got(reader) == [3]


def test_who_waits_for_one_that_has_moved_on_asks_where_it_is_now() -> None:
    """Else it would go on from where it was before others read it (seed 1225 of the names swarm)."""
    desk, left, right, _ = at_left(1, 2, 3)
    reader = desk.reader(durable="mine")
    desk.tell(right, "right", "a", Durable("mine", EPOCH + 1))
    desk.wait(SECOND)
    asked = len(desk.said(left, Fetch))
    assert desk.said(right, Fetch) != []
    desk.say(left, stands(desk.own.core.stable - 3))
    desk.wait(SECOND)
    assert len(desk.said(left, Fetch)) == asked
    assert desk.said(reader, Confirmed) == []
    at = desk.own.core.stable - 1
    desk.say(right, Fetched("b", "right", "mine", {OWN: Stand(at, at, at)}, EPOCH + 1, EPOCH, "left"))
    desk.wait(SECOND)
    desk.say(left, Fetched("b", "left", "mine", None))
    assert desk.got(reader) == [3]


def test_shortly_after_a_start_an_unknown_name_may_be_kept_at_a_broker_that_was_not_heard_of_yet() -> None:
    desk = Desk(["left"], brokers=("b", "left"))
    left = desk.neighbour("left", [])
    desk.publisher("p", 1, 2, 3)
    reader = desk.reader(durable="mine")
    assert desk.said(reader, Confirmed) == []
    desk.tell(left, "left", str(broker_filter("left")))
    desk.tell(left, "left", "a", Durable("mine", EPOCH))
    desk.wait(3 * SECOND)
    assert desk.said(left, Fetch) != []
    desk.say(left, stands(desk.own.core.stable - 1))
    assert desk.got(reader) == [3]


def test_a_name_that_nobody_can_know_of_is_new_at_once_and_otherwise_two_seconds_after_a_start() -> None:
    for brokers, is_sure in (("b", "left"), True), (("b", "left", "far"), False):
        desk = Desk(["left"], brokers=brokers)
        desk.meet("left")
        desk.publisher("p", 1)
        reader = desk.reader(durable="mine")
        assert bool(desk.said(reader, Confirmed)) == is_sure
        desk.wait(3 * SECOND)
        assert desk.said(reader, Confirmed)


# Who is asked


def test_where_it_stands_is_told_to_one_broker_at_a_time() -> None:
    """The first has so long to read it; else both would."""
    desk = Desk(["left", "right"])
    left, right = desk.meet("left"), desk.meet("right")
    desk.publisher("p", 1)
    desk.lose(desk.reader(durable="mine"))
    desk.say(left, Fetch("b", "left", "mine"))
    desk.say(right, Fetch("b", "right", "mine"))
    assert (len(desk.said(left, Fetched)), len(desk.said(right, Fetched))) == (1, 0)
    desk.say(left, Fetch("b", "left", "mine"))
    assert len(desk.said(left, Fetched)) == 2, "letters may be lost"
    desk.wait(2 * SECOND)
    desk.say(right, Fetch("b", "right", "mine"))
    assert len(desk.said(right, Fetched)) == 1


def test_who_comes_here_when_it_was_just_given_away_gets_it_from_there() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    desk.lose(desk.reader(durable="mine"))
    desk.say(publisher, publish("p", 2, 3))
    desk.say(left, Fetch("b", "left", "mine"))
    reader = desk.reader("v", durable="mine")
    assert desk.said(left, Fetch) == [Fetch("left", "b", "mine")]
    assert desk.said(reader, Confirmed) == []
    epoch = desk.clock
    at = desk.own.core.stable - 1
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(at, at, at)}, epoch, *desk.durable("mine").born))
    assert desk.got(reader) == [3]
    assert desk.epoch("mine") > epoch, "or left would take it back"


def test_what_is_older_than_what_is_known_here_is_no_answer() -> None:
    """It was given away, and nobody took it: who was asked has it from before it came here."""
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1, 2, 3)
    reader = desk.reader(durable="mine")
    early = desk.own.core.stable - 2
    desk.say(publisher, publish("p", 4))
    desk.acknowledge(reader)
    desk.lose(reader)
    desk.say(publisher, publish("p", 5))
    desk.say(left, Fetch("b", "left", "mine"))
    again = desk.reader(incarnation=2, durable="mine")
    desk.say(left, stands(early))
    assert desk.got(again) == [5]
    assert desk.gaps(again) == []


def test_who_wants_to_read_it_itself_answers_nobody_before_it_does() -> None:
    desk, left, right, _ = at_left(1, 2)
    desk.reader(durable="mine")
    desk.say(right, Fetch("b", "right", "mine"))
    assert desk.said(right, Fetched) == [], "that it is not here would not be true for long"
    desk.say(left, stands(desk.own.core.stable - 1))
    desk.say(right, Fetch("b", "right", "mine"))
    assert [each.places for each in desk.said(right, Fetched)] != [None]


@pytest.mark.parametrize("start", [None, 0])
def test_one_that_has_not_begun_yet_stands_where_it_is_to_begin_or_nobody_is_told(start: int | None) -> None:
    """Else who fetches it would take all pubends for new, or forget that it wanted everything."""
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1, 2)
    desk.confirms = False
    desk.reader(durable="mine", start=start)
    desk.say(left, Fetch("b", "left", "mine"))
    if start is None:
        assert desk.said(left, Fetched) == []
        desk.say(left, *(Confirmed(each.subscription) for each in desk.said(left, Subscribe)))
        now = desk.own.core.stable
        desk.say(left, Fetch("b", "left", "mine"))
        [answer] = desk.said(left, Fetched)
        assert answer.places == {OWN: Stand(now, now, now)}
    else:
        [answer] = desk.said(left, Fetched)
        assert answer.places == {OWN: Stand(start, start, start)}


def test_one_that_came_here_and_is_not_in_place_yet_stands_where_it_stood() -> None:
    desk, left, right, _ = at_left(1, 2, 3)
    desk.confirms = False
    desk.reader(durable="mine")
    at = desk.own.core.stable - 1
    desk.say(left, stands(at))
    desk.say(right, Fetch("b", "right", "mine"))
    [answer] = desk.said(right, Fetched)
    assert answer.places == {OWN: Stand(at, at, at)}


def test_where_it_stood_when_it_came_outlives_a_restart() -> None:
    desk, left, _, _ = at_left(1, 2, 3)
    reader = desk.reader(durable="mine")
    desk.hold()
    at = desk.own.core.stable - 1
    desk.confirms = False
    desk.say(left, stands(at))
    desk.lose(reader)  # so it is saved as it is
    desk.restart()
    desk.confirms = True
    desk.meet("left", incarnation=2)
    desk.wait(3 * SECOND)
    reader = desk.reader("u", incarnation=2, durable="mine")
    assert desk.got(reader) == [3]


def test_what_was_told_is_kept_though_nothing_is_for_it_until_the_move_is_over() -> None:
    """B1.9: where it goes on elsewhere it needs what comes after that (seed 6865 of the durable swarm, with faults)."""
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    desk.lose(reader)
    desk.say(left, Fetch("b", "left", "mine"))
    [answer] = desk.said(left, Fetched)
    assert answer.places is not None
    at = answer.places[OWN].released
    for n in range(2, 12):
        desk.say(publisher, publish("p", n, topic="b"))
        desk.wait(SECOND)
    constream = desk.course().hosted.constream
    assert constream is not None
    assert constream.released == at
    desk.restart()
    desk.meet("left", incarnation=2)
    desk.wait(5 * SECOND)
    constream = desk.course().hosted.constream
    assert constream is not None
    assert constream.released == at, "a restart changes nothing"
    desk.wait(70 * SECOND)
    assert constream.released > at, "nobody has made anything of it"


def test_nothing_is_reported_while_somebody_who_came_is_not_in_place() -> None:
    """What it left here when it went held the log; what it stands before is still needed."""
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    desk.lose(desk.reader(durable="mine"))
    desk.say(publisher, publish("p", 2))
    desk.say(left, Fetch("b", "left", "mine"))
    [answer] = desk.said(left, Fetched)
    assert answer.places is not None
    at = answer.places[OWN].released
    reader = desk.reader("v", durable="mine")
    desk.confirms = False
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(at, at, at)}, desk.clock, 1, "b"))
    for n in range(3, 13):
        desk.say(publisher, publish("p", n, topic="b"))
        desk.wait(SECOND)
    assert desk.own.core.forgotten <= at
    desk.say(left, *(Confirmed(each.subscription) for each in desk.said(left, Subscribe)))
    desk.wait(SECOND)
    assert desk.got(reader) == [2]
    assert desk.gaps(reader) == []


def test_nor_of_a_pubend_that_is_new_to_them_and_known_here() -> None:
    """Its old broker had not heard of it: all of that is owed."""
    desk, left, right, publisher = at_left(1)
    event = desk.own.core.stable
    other = desk.reader("v", "b", durable="other")
    desk.wait(SECOND)
    reader = desk.reader(durable="mine")
    desk.confirms = False
    reported = desk.course().hosted.reported
    desk.say(left, Fetched("b", "left", "mine", {}, EPOCH, EPOCH, "left"))
    for n in range(2, 5):
        desk.say(publisher, publish("p", n, topic="b"))
        desk.acknowledge(other)
        desk.wait(SECOND)
    assert desk.course().hosted.reported == reported
    for each in (left, right):
        desk.say(each, *(Confirmed(said.subscription) for said in desk.said(each, Subscribe)))
    desk.wait(SECOND)
    assert desk.events(reader)[0][0] == event
    assert desk.course().hosted.reported[0] < event


def test_a_token_of_what_it_does_not_read_keeps_nobody_from_reporting() -> None:
    """Else any client could hold any log."""
    news = Stream("news", ("b",), guarantee=Guarantee.DURABLE)
    desk = Desk(streams=(Stream("orders", ("a",), guarantee=Guarantee.DURABLE), news))
    publisher = desk.publisher("p", 1)
    other = desk.reader("v", "b", durable="other")
    desk.say(publisher, publish("p", 2, topic="b"))
    desk.reader(durable="mine", token={OWN: desk.own.core.stable, "news@b/0": 1})
    for n in range(3, 13):
        desk.say(publisher, publish("p", n, topic="b"))
        desk.acknowledge(other)
        desk.wait(SECOND)
    assert desk.plane.own["news@b/0"].minima.released > desk.clock - 5_000_000


def test_who_has_received_more_than_it_consumed_leaves_the_rest_to_the_next() -> None:
    """It had fallen over to this broker with a full buffer; then it died."""
    desk, left, _, _ = at_left(1, 2, 3)
    last = desk.own.core.stable
    reader = desk.reader(durable="mine", token={OWN: last - 1}, consumed={OWN: last - 2})
    desk.say(left, stands(last - 2))
    assert desk.got(reader) == [3]
    desk.lose(reader)
    again = desk.reader(incarnation=2, durable="mine")
    assert desk.got(again) == [2, 3]


def test_what_is_silence_behind_what_it_consumed_is_left_out_of_that_as_well() -> None:
    desk, left, _, publisher = at_left(1, 2)
    consumed = desk.own.core.stable
    desk.say(publisher, publish("p", 3, topic="b"))
    received = desk.own.core.stable
    reader = desk.reader(durable="mine", token={OWN: received}, consumed={OWN: consumed})
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(1, consumed, received)}))
    desk.wait(SECOND)
    assert desk.durable("mine").moved_from == {"left": EPOCH}
    constream = desk.course().hosted.constream
    assert constream is not None
    assert constream.released >= received
    assert desk.gaps(reader) == []


def test_a_name_may_be_empty_and_who_waits_for_it_is_not_disturbed_by_others() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    desk.tell(left, "left", "a", Durable("", EPOCH))
    reader = desk.reader(durable="")
    end(desk, desk.client("x"), "x")
    assert desk.said(left, Moved) == []
    at = desk.own.core.stable
    desk.say(left, Fetched("b", "left", "", {OWN: Stand(at, at, at)}))
    assert desk.said(reader, Confirmed) != []


def test_what_is_fetched_for_a_client_with_a_token_of_its_own_was_born_nowhere() -> None:
    desk, left, _, _ = at_left(1, 2)
    at = desk.own.core.stable
    desk.reader(durable="mine", token={OWN: at})
    desk.say(left, stands(at))
    assert desk.durable("mine").born == (0, "")
