"""Who was interrupted goes on with a durable subscription if nobody has come under its name since.

A client comes back by itself, whenever it can. It must not take away what another one has come to read meanwhile, nor
be told that what that one has acknowledged is gone (seed 5740 of the names swarm, with faults).
"""

from __future__ import annotations

from typing import Any

import pytest
from durable_desk import EPOCH, OWN, Desk, at_left, end, shop

from by_hand import publish
from holdfast.broker.durable.readers import SEAT_AHEAD_MAX
from holdfast.broker.durable.records import READERS
from holdfast.clock import SECOND
from holdfast.messages.durable import Ended, Fetch, Fetched, Moved, Ousted, Stand, Withheld
from holdfast.messages.subscriptions import NO_SEAT, Confirmed, Refused, Seat, Withdrawn

SINCE = "another client has come to read mine since"


def interrupted() -> tuple[Desk, int, dict[str, Any]]:
    """The client u has read the subscription mine, and lost its connection; a publisher, and how it comes back."""
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.acknowledge(reader)
    [confirmed] = desk.said(reader, Confirmed)
    last = desk.own.core.stable
    desk.lose(reader)
    assert confirmed.seat.client == "u"
    places = {"token": {OWN: last}, "consumed": {OWN: last}}
    return desk, publisher, {"durable": "mine", "born": confirmed.born, "seat": confirmed.seat, **places}


def test_it_goes_on_if_nobody_has_come_as_often_as_it_is_interrupted() -> None:
    desk, publisher, back = interrupted()
    for n in (3, 4):
        reader = desk.reader(**back)
        [confirmed] = desk.said(reader, Confirmed)
        assert confirmed.seat == back["seat"], "or it would supersede itself, if it did not hear of it"
        desk.say(publisher, publish("p", n))
        assert desk.got(reader)[-1:] == [n]
        desk.lose(reader)


@pytest.mark.parametrize("has_left", [True, False])
@pytest.mark.parametrize("is_restarted", [True, False])
def test_it_does_not_if_another_client_has_come_here_though_that_has_left(
    has_left: bool, is_restarted: bool
) -> None:
    desk, publisher, back = interrupted()
    other = desk.reader("v", durable="mine")
    desk.say(publisher, publish("p", 3))
    desk.acknowledge(other)
    if has_left:
        desk.lose(other)
    if is_restarted:
        desk.restart()
    reader = desk.reader(**back)
    [ousted] = desk.said(reader, Ousted)
    assert ousted.reason == SINCE
    assert desk.said(reader, Confirmed) == []
    if not is_restarted:
        assert desk.said(other, Ousted) == []
        assert (desk.durable("mine").port is None) == has_left


def test_what_it_reads_when_it_comes_anew_is_what_nobody_has_acknowledged() -> None:
    desk, publisher, back = interrupted()
    other = desk.reader("v", durable="mine")
    desk.say(publisher, publish("p", 3))
    desk.acknowledge(other)
    desk.say(publisher, publish("p", 4))
    desk.reader(**back)
    anew = desk.reader("w", durable="mine")
    assert (desk.got(anew), desk.gaps(anew)) == ([4], [])
    assert len(desk.said(other, Ousted)) == 1


def test_an_earlier_life_of_the_same_client_is_none_that_has_come_since() -> None:
    """Clocks of brokers differ: it may have had a seat at one whose clock is ahead."""
    desk, _, back = interrupted()
    ahead = desk.durable("mine").seat.taken_on + 1
    desk.lose(desk.reader(**{**back, "seat": Seat(ahead, "u", 1)}))
    assert desk.durable("mine").seat.taken_on == ahead
    later = desk.reader(incarnation=2, **{**back, "seat": Seat(ahead - 1, "u", 2)})
    assert desk.said(later, Confirmed) != []


def replaced() -> tuple[Desk, int, int, int, Seat]:
    """A program stood still, and another was started in its place, which reads; the first one may be at left now."""
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    first = desk.reader(durable="mine")
    seat = desk.durable("mine").seat
    desk.lose(first)
    desk.wait(SECOND)
    return desk, left, publisher, desk.reader(incarnation=2, durable="mine"), seat


def test_a_later_life_of_the_same_client_is_one_that_has_come_since() -> None:
    desk, left, publisher, reader, seat = replaced()
    desk.say(left, Fetch("b", "left", "mine", seat, desk.durable("mine").born))
    assert [each.reason for each in desk.said(left, Withheld)] == [SINCE]
    desk.say(publisher, publish("p", 2))
    assert (desk.got(reader), desk.said(reader, Ousted)) == ([2], [])


@pytest.mark.parametrize("is_asked", [True, False])
def test_it_stays_though_the_earlier_one_has_claimed_it_where_nobody_could_ask(is_asked: bool) -> None:
    desk, left, publisher, reader, seat = replaced()
    later = desk.clock + 500_000
    if is_asked:
        desk.say(left, Fetch("b", "left", "mine", seat, desk.durable("mine").born, later))
    else:
        desk.say(left, Moved("b", "left", "mine", later, seat))
    desk.say(publisher, publish("p", 2))
    assert (desk.got(reader), desk.said(reader, Ousted)) == ([2], [])
    desk.wait(SECOND)
    assert desk.epoch("mine") > later
    assert [each.epoch for each in desk.said(left, Moved)][-1:] == [desk.epoch("mine")]


def coming(at: int, **changes: Any) -> dict[str, Any]:
    """How the client A comes back, that has read mine at left up to a tick."""
    seat = {"born": (EPOCH, "left"), "seat": Seat(100, "A")}
    return {"durable": "mine", "token": {OWN: at}, "consumed": {OWN: at}, **seat, **changes}


WITHHELD = Withheld("b", "left", "mine", Seat(100, "A"), SINCE)


def test_the_broker_that_has_it_is_told_which_seat_it_had_and_what_it_read_and_may_withhold_it() -> None:
    desk, left, _, _ = at_left(1, 2)
    reader = desk.reader("A", **coming(desk.own.core.stable))
    assert desk.said(left, Fetch) == [Fetch("left", "b", "mine", Seat(100, "A"), (EPOCH, "left"))]
    desk.say(left, WITHHELD)
    assert [each.reason for each in desk.said(reader, Ousted)] == [SINCE]
    assert "mine" not in desk.plane.readers.durable


def test_what_is_withheld_from_one_is_not_from_who_comes_anew_meanwhile() -> None:
    """It began where it is now: what nobody had read was gone."""
    desk, left, _, _ = at_left(1, 2, 3)
    at = desk.own.core.stable
    interrupted = desk.reader("A", **coming(at))
    anew = desk.reader("C", durable="mine")
    desk.say(left, WITHHELD)
    assert (desk.said(anew, Confirmed), desk.said(anew, Ousted)) == ([], [])
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(at - 2, at - 2, at - 2)}, EPOCH, EPOCH, "left"))
    assert desk.got(anew) == [2, 3]
    assert len(desk.said(interrupted, Ousted)) == 1


def test_what_is_told_to_who_came_anew_and_has_gone_is_not_for_one_that_was_interrupted() -> None:
    desk, left, _, _ = at_left(1, 2, 3)
    at = desk.own.core.stable
    desk.lose(desk.reader("C", durable="mine"))
    reader = desk.reader("A", **coming(at - 2))
    assert desk.said(reader, Ousted) == [], "who has gone waits no more"
    places = {OWN: Stand(at - 1, at - 1, at - 1)}
    desk.say(left, Fetched("b", "left", "mine", places, EPOCH, EPOCH, "left", Seat(200, "B")))
    assert [each.reason for each in desk.said(reader, Ousted)] == [SINCE]


def test_nor_from_the_same_client_if_it_subscribes_again_after_the_first_of_several_answers() -> None:
    desk, left, _, _ = at_left(1, 2, 3)
    at = desk.own.core.stable
    client = desk.reader("A", **coming(at))
    desk.wait(SECOND)
    assert len(desk.said(left, Fetch)) > 1
    desk.say(left, WITHHELD)
    desk.subscribe(client, "A", number=2, durable="mine")
    desk.say(left, WITHHELD)
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(at - 2, at - 2, at - 2)}, EPOCH, EPOCH, "left"))
    assert desk.got(client, 2) == [2, 3]


def test_an_answer_that_comes_when_it_has_gone_on_says_nothing_of_how_far_it_is_there() -> None:
    """It was begun there by itself, and is still to be joined."""
    desk, left, _, _ = at_left(1, 2, 3)
    at = desk.own.core.stable
    reader = desk.reader("A", **coming(at - 1, born=(EPOCH - 1, "right")))
    desk.wait(2 * SECOND)
    assert desk.got(reader) == [3]
    desk.say(left, WITHHELD)
    desk.wait(SECOND)
    assert desk.said(left, Moved) == []
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(at - 2, at - 2, at - 2)}, EPOCH, EPOCH, "left"))
    assert len(desk.said(reader, Ousted)) == 1
    assert desk.got(desk.reader("w", durable="mine")) == [2, 3]


def test_it_takes_over_from_there_if_none_has_and_keeps_its_seat() -> None:
    desk, left, _, _ = at_left(1, 2)
    seat, at = Seat(7, "u"), desk.own.core.stable
    reader = desk.reader(durable="mine", token={OWN: at}, consumed={OWN: at}, born=(EPOCH, "left"), seat=seat)
    places = {OWN: Stand(at, at, at)}
    desk.say(left, Fetched("b", "left", "mine", places, EPOCH, EPOCH, "left", seat))
    assert [each.seat for each in desk.said(reader, Confirmed)] == [seat]
    anew = desk.reader("w", durable="mine")
    [confirmed] = desk.said(anew, Confirmed)
    assert confirmed.seat.client == "w"
    assert confirmed.seat.taken_on > seat.taken_on


@pytest.mark.parametrize("what", ["earlier seat", "another birth", "neither", "none"])
def test_who_reads_it_here_is_not_ousted_for_one_that_cannot_go_on_with_it(what: str) -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    seat, born = desk.durable("mine").seat, desk.durable("mine").born
    other = Seat(seat.taken_on + (-1 if what == "earlier seat" else 1), "v")
    asked = NO_SEAT if what == "none" else other
    desk.say(left, Fetch("b", "left", "mine", asked, (1, "left") if what == "another birth" else born))
    is_withheld = what in ("earlier seat", "another birth")
    assert len(desk.said(left, Withheld)) == is_withheld
    assert len(desk.said(left, Fetched)) == (not is_withheld)
    assert len(desk.said(reader, Ousted)) == (not is_withheld)
    desk.wait(SECOND)
    assert desk.durable("mine").is_held != is_withheld


def test_who_waits_is_not_ousted_by_one_that_was_interrupted_before_it_came() -> None:
    desk, left, _, _ = at_left(1, 2, 3)
    at = desk.own.core.stable
    waiting = desk.reader("C", durable="mine")
    interrupted = desk.reader("A", **coming(at))
    assert len(desk.said(interrupted, Ousted)) == 1
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(at, at, at)}, EPOCH, EPOCH, "left"))
    assert desk.said(waiting, Ousted) == []
    assert desk.said(waiting, Confirmed) != []


def test_nor_shortly_after_a_start_when_everybody_waits() -> None:
    desk, _, back = interrupted()
    desk.restart()
    waiting = desk.reader("C", durable="mine")
    again = desk.reader(**back)
    assert (len(desk.said(waiting, Ousted)), len(desk.said(again, Ousted))) == (0, 1)
    desk.wait(3 * SECOND)
    assert desk.said(waiting, Confirmed) != []


def test_who_went_on_where_a_later_one_was_not_heard_of_is_ousted_when_it_is() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    reader = desk.reader("A", durable="mine")
    [confirmed] = desk.said(reader, Confirmed)
    at = desk.own.core.stable
    desk.lose(reader)
    desk.wait(SECOND)
    since = desk.clock
    desk.wait(SECOND)
    again = desk.reader("A", **coming(at, born=confirmed.born, seat=confirmed.seat))
    desk.say(left, Moved("b", "left", "mine", since, confirmed.seat))
    assert desk.said(again, Ousted) == [], "it was there itself, and has come back"
    desk.say(left, Moved("b", "left", "mine", desk.epoch("mine") + 1, Seat(since, "B")))
    assert len(desk.said(again, Ousted)) == 1


def test_ending_it_after_an_interruption_waits_for_whether_another_has_come() -> None:
    desk, left, _, _ = at_left(1, 2, 3)
    at = desk.own.core.stable
    for answer in (WITHHELD, Fetched("b", "left", "mine", {OWN: Stand(at, at, at)}, EPOCH, EPOCH, "left")):
        client = desk.reader("A", **coming(at))
        end(desk, client, "A")
        desk.wait(SECOND)
        assert desk.said(client, Withdrawn) == []
        assert desk.said(left, Ended) == []
        desk.say(left, answer)
        assert len(desk.said(client, Ousted)) == (answer is WITHHELD)
    assert desk.said(left, Ended) != []


@pytest.mark.parametrize("is_back", [True, False])
def test_who_has_come_back_after_an_end_elsewhere_that_was_not_heard_of_here_reads_on(is_back: bool) -> None:
    desk, publisher, back = interrupted()
    desk.wait(SECOND)
    over = desk.clock
    desk.wait(SECOND)
    reader = desk.reader(**back) if is_back else None
    desk.plane.moving.receive(Ended("b", "left", "mine", over))
    desk.wait(SECOND)
    assert desk.rows(READERS) == (["mine"] if is_back else [])
    if reader is not None:
        desk.say(publisher, publish("p", 3))
        assert desk.got(reader) == [3]


def test_a_seat_from_times_to_come_is_refused() -> None:
    desk, _, back = interrupted()
    reader = desk.reader(**{**back, "seat": Seat(2**62, "u")})
    assert [each.code for each in desk.said(reader, Refused)] == ["token-ahead"]
    assert desk.durable("mine").port is None


def test_one_that_is_not_above_what_is_known_here_is_not() -> None:
    """The clock was ahead, and is set back."""
    desk, _, back = interrupted()
    ahead = Seat(desk.clock + 2 * SEAT_AHEAD_MAX, "u")
    desk.durable("mine").seat = ahead
    assert desk.said(desk.reader(**{**back, "seat": ahead}), Refused) == []
