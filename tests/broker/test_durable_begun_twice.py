"""A durable subscription that two brokers have begun, which could not hear of each other: it becomes one again."""

from __future__ import annotations

import pytest
from durable_desk import EPOCH, OWN, Desk, at_left, end, shop, stands

from by_hand import publish
from holdfast.broker.durable.joining import SKEW_MAX
from holdfast.broker.durable.records import ENDED, READERS
from holdfast.clock import SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Ended, Fetch, Fetched, Moved, MovedTaken, Ousted, Stand
from holdfast.messages.subscriptions import Confirmed, Durable, Seat, Unsubscribe


def begun(mine: int) -> tuple[Desk, int, int, int]:
    """The broker under test has begun mine, and read so many of five events."""
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    reader = desk.reader(durable="mine", start=0)
    desk.say(publisher, publish("p", 2, 3, 4, 5))
    ticks = [tick for tick, _ in desk.events(reader)]
    if mine:
        desk.acknowledge(reader, **{OWN: ticks[mine - 1]})
    return desk, left, reader, ticks[0]


def begun_twice(mine: int) -> tuple[Desk, int, int, int]:
    """Left had begun it before, it turns out."""
    desk, left, reader, first = begun(mine)
    desk.tell(left, "left", "a", Durable("mine", EPOCH))
    return desk, left, reader, first


def test_the_later_claim_asks_the_earlier_one_how_far_it_is_and_goes_on_where_neither_has_been() -> None:
    desk, left, reader, first = begun_twice(3)
    desk.wait(2 * SECOND)
    assert desk.said(left, Fetch) != []
    assert desk.said(left, Moved) == [], "not before that is known"
    desk.say(left, stands(first, first - 1))  # only the first was read there
    assert len(desk.said(reader, Ousted)) == 0, "here it was read farther, and nothing is missing"
    desk.wait(2 * SECOND)
    [letter, *_] = desk.said(left, Moved)
    assert letter.durable == "mine"


def test_what_was_silent_is_still_known_when_they_are_joined() -> None:
    """Or who comes with a token from before that is told of a gap (seed 65 of names --tokens --released --narrow)."""
    desk, left, reader, first = begun_twice(5)
    last = desk.own.core.stable
    silent = last + 300
    desk.lose(reader)
    desk.wait(2 * SECOND)
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(first - 1, last, silent)}, EPOCH, EPOCH, "left"))
    desk.say(left, Fetch("b", "left", "mine"))
    places = desk.said(left, Fetched)[-1].places
    assert places is not None
    assert places[OWN].acknowledged == last
    assert places[OWN].released >= silent


@pytest.mark.parametrize("is_missing", [False, True])
def test_whoever_came_last_is_who_asks_if_that_is_by_the_earlier_claim(is_missing: bool) -> None:
    """A client leaves where it had begun behind a cut, and comes back to where it was (seed 1643 --alone)."""
    desk, left, reader, first = begun(3)
    mine, theirs = desk.durable("mine"), desk.clock + 500_000
    desk.lose(reader)
    desk.wait(2 * SECOND)
    reader = desk.reader("w", durable="mine")
    desk.say(left, Fetch("b", "left", "mine", Seat(theirs, "v"), (theirs, "left"), theirs))
    assert (desk.epoch("mine") > theirs, mine.is_held) == (True, False)
    desk.wait(SECOND)
    [asked, *_] = desk.said(left, Fetch)
    assert (asked.born, asked.epoch) == (mine.born, desk.epoch("mine"))
    assert desk.said(left, Moved) == []
    stood = first - 1 if is_missing else first
    places = {OWN: Stand(stood, stood, stood)}
    desk.say(left, Fetched("b", "left", "mine", places, theirs, theirs, "left"))
    assert len(desk.said(reader, Ousted)) == is_missing
    desk.wait(SECOND)
    [moved, *_] = desk.said(left, Moved)
    assert moved.epoch == desk.epoch("mine")
    assert mine.unmerged == {}


@pytest.mark.parametrize("is_another", [True, False])
def test_who_has_taken_it_from_one_asks_the_other_and_joins_it_if_it_was_begun_there_by_itself(
    is_another: bool,
) -> None:
    """Whoever began it later (seed 2134 of the names swarm, with faults); a copy from before it moved is none."""
    desk, left, right, _ = at_left(1, 2, 3)
    early, late = desk.own.core.stable - 2, desk.own.core.stable - 1
    reader = desk.reader(durable="mine")
    desk.tell(right, "right", "a", Durable("mine", EPOCH - 1))
    born = (EPOCH, "left") if is_another else (EPOCH - 1, "right")
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(late, late, late)}, EPOCH, *born))
    assert desk.said(reader, Confirmed) == [], "right may have begun it by itself"
    desk.wait(SECOND)
    places = {OWN: Stand(early, early, early)}
    desk.say(right, Fetched("b", "right", "mine", places, EPOCH - 1, EPOCH - 1, "right"))
    assert desk.got(reader) == ([2, 3] if is_another else [3])


def test_one_that_does_not_answer_keeps_nobody_else_from_being_asked() -> None:
    desk = Desk(["left", "right"])
    left, right = desk.meet("left"), desk.meet("right")
    desk.publisher("p", 1)
    desk.reader(durable="mine")
    desk.tell(left, "left", "a", Durable("mine", EPOCH))
    desk.tell(right, "right", "a", Durable("mine", EPOCH + 1))
    desk.wait(2 * SECOND)
    assert desk.said(left, Fetch) != []
    assert desk.said(right, Fetch) != []
    desk.say(left, Fetched("b", "left", "mine", None))
    desk.wait(SECOND)
    assert desk.said(left, Moved) != []
    assert desk.said(right, Moved) == []


def test_that_the_earlier_one_is_to_be_asked_outlives_a_restart() -> None:
    desk, left, _, first = begun_twice(3)
    desk.wait(SECOND)
    desk.restart()
    left = desk.meet("left", incarnation=2)
    desk.wait(3 * SECOND)
    assert desk.said(left, Moved) == []
    assert desk.said(left, Fetch) != []
    desk.say(left, stands(first, first - 1))
    desk.wait(2 * SECOND)
    assert desk.said(left, Moved) != []


def test_what_it_answers_is_of_no_use_before_that_stands_here_again() -> None:
    """It was asked by the life before: it is asked once more."""
    desk, _, _, first = begun_twice(3)
    desk.restart()
    desk.confirms = False
    left = desk.meet("left", incarnation=2)
    desk.say(left, stands(first - 5))
    assert not desk.durable("mine").is_confirmed
    desk.confirms = True
    desk.restart()
    left = desk.meet("left", incarnation=3)
    desk.wait(5 * SECOND)
    assert desk.said(left, Fetch) != []
    assert desk.said(left, Moved) == []


def test_what_was_left_here_is_not_given_up_before_what_comes_instead_is_on_disk() -> None:
    """A crash in between found neither (seed 6139 of the names swarm, with faults, narrow)."""
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1, 2, 3)
    reader = desk.reader(durable="mine", start=0)
    [(first, _), *_] = desk.events(reader)
    desk.acknowledge(reader, **{OWN: first})
    desk.lose(reader)
    epoch, last = desk.clock + 1, desk.own.core.stable
    desk.tell(left, "left", "a", Durable("mine", epoch))
    desk.reader("v", durable="mine")
    desk.confirms = False
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(last, last, last)}, epoch, epoch, "left"))
    assert not desk.durable("mine").is_confirmed
    desk.restart()
    assert desk.durable("mine").stood == {OWN: Stand(first, first, first)}


def test_what_was_read_at_neither_comes_again_for_the_next() -> None:
    """It had not been read here up to where it began at left."""
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1, 2)
    early = desk.own.core.stable
    desk.say(publisher, publish("p", 3))
    reader = desk.reader(durable="mine")
    desk.say(publisher, publish("p", 4))
    assert desk.got(reader) == [4]
    desk.tell(left, "left", "a", Durable("mine", EPOCH))
    desk.wait(SECOND)
    desk.say(left, stands(early, early - 1))
    [ousted] = desk.said(reader, Ousted)
    assert ousted.reason == "mine was begun at left, too, and goes on from there"
    again = desk.reader(incarnation=2, durable="mine")
    assert desk.got(again) == [3, 4]
    assert desk.gaps(again) == []


def test_who_comes_before_they_have_heard_of_each_other_waits_for_that() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1, 2)
    early = desk.own.core.stable
    desk.say(publisher, publish("p", 3))
    desk.lose(desk.reader(durable="mine"))
    desk.tell(left, "left", "a", Durable("mine", EPOCH))
    reader = desk.reader(incarnation=2, durable="mine")
    assert desk.said(reader, Confirmed) == []
    desk.wait(SECOND)
    desk.say(left, stands(early, early - 1))
    assert desk.got(reader) == [3]
    assert desk.said(reader, Ousted) == []


def test_who_goes_on_after_an_interruption_is_ousted_if_something_before_that_was_read_at_neither() -> None:
    """It would acknowledge what nobody has read (seed 4135 of the names swarm, with faults)."""
    desk, left, reader, first = begun_twice(5)
    [confirmed] = desk.said(reader, Confirmed)
    assert confirmed.born == desk.durable("mine").born
    last = desk.own.core.stable
    desk.lose(reader)
    again = desk.reader(durable="mine", token={OWN: last}, consumed={OWN: last}, born=confirmed.born)
    assert desk.said(again, Confirmed) != [], "until then it goes on"
    desk.wait(SECOND)
    desk.say(left, stands(first - 5))
    [ousted] = desk.said(again, Ousted)
    assert ousted.reason == "mine was begun at left, too, and goes on from there"
    assert desk.got(desk.reader(incarnation=2, durable="mine")) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("is_another", [True, False])
def test_so_it_is_if_it_comes_to_another_broker_meanwhile(is_another: bool) -> None:
    """There all who have the name are asked, as if it had never been interrupted."""
    desk, left, right, _ = at_left(1, 2, 3)
    early, late = desk.own.core.stable - 2, desk.own.core.stable - 1
    desk.tell(right, "right", "a", Durable("mine", EPOCH - 1))
    born = (EPOCH, "left") if is_another else (EPOCH - 1, "right")
    reader = desk.reader(durable="mine", token={OWN: late}, consumed={OWN: late}, born=born)
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(late, late, late)}, EPOCH, *born))
    desk.wait(SECOND)
    assert desk.said(right, Moved) == []
    places = {OWN: Stand(early, early, early)}
    desk.say(right, Fetched("b", "right", "mine", places, EPOCH - 1, EPOCH - 1, "right"))
    assert len(desk.said(reader, Ousted)) == is_another
    assert desk.got(reader) == [3], "it went on meanwhile"
    desk.lose(reader)
    assert desk.got(desk.reader(incarnation=2, durable="mine")) == ([2, 3] if is_another else [3])


@pytest.mark.parametrize("is_another", [True, False])
def test_and_if_the_broker_where_it_was_does_not_answer(is_another: bool) -> None:
    """It knows itself which of the two it has read."""
    desk, _, right, _ = at_left(1, 2, 3)
    early, late = desk.own.core.stable - 2, desk.own.core.stable - 1
    desk.tell(right, "right", "a", Durable("mine", EPOCH - 1))
    born = (EPOCH, "left") if is_another else (EPOCH - 1, "right")
    reader = desk.reader(durable="mine", token={OWN: late}, consumed={OWN: late}, born=born)
    desk.wait(2 * SECOND)
    assert desk.got(reader) == [3], "left was asked for a while, and nobody else is waited for"
    places = {OWN: Stand(early, early, early)}
    desk.say(right, Fetched("b", "right", "mine", places, EPOCH - 1, EPOCH - 1, "right"))
    desk.wait(2 * SECOND)
    assert len(desk.said(reader, Ousted)) == is_another
    assert desk.got(reader) == [3], "it went on meanwhile"


def test_so_it_is_if_the_other_one_is_what_was_left_here() -> None:
    desk, left, reader, first = begun_twice(5)
    mine, last = desk.durable("mine").born, desk.own.core.stable
    desk.lose(reader)
    desk.tell(left, "left", "a", Durable("mine", desk.clock))
    again = desk.reader("v", durable="mine", token={OWN: last}, consumed={OWN: last}, born=(EPOCH, "left"))
    places = {OWN: Stand(first - 5, first - 5, first - 5)}
    desk.say(left, Fetched("b", "left", "mine", places, desk.clock, EPOCH, "left"))
    assert mine != (EPOCH, "left")
    assert len(desk.said(again, Ousted)) == 1
    assert desk.got(desk.reader("w", durable="mine")) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("was_told", [True, False])
def test_nor_does_one_go_on_that_was_away_when_they_were_joined_or_did_not_hear_of_it(was_told: bool) -> None:
    desk, left, reader, first = begun_twice(5)
    [confirmed] = desk.said(reader, Confirmed)
    last = desk.own.core.stable
    if not was_told:
        desk.lose(reader)
    desk.wait(SECOND)
    desk.say(left, stands(first - 5))
    desk.lose(reader)
    again = desk.reader(
        durable="mine", token={OWN: last}, consumed={OWN: last}, born=confirmed.born, seat=confirmed.seat
    )
    assert len(desk.said(again, Ousted)) == 1
    assert desk.got(desk.reader("w", durable="mine")) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("is_old", [True, False])
def test_of_a_pubend_that_is_new_to_the_other_all_since_that_was_born_comes_again(is_old: bool) -> None:
    desk, left, reader, _ = begun_twice(5)
    desk.wait(SECOND)
    desk.acknowledge(reader)
    born = EPOCH if is_old else desk.clock + SKEW_MAX
    desk.say(left, Fetched("b", "left", "mine", {}, EPOCH, born, "left"))
    desk.lose(reader)
    assert desk.got(desk.reader("w", durable="mine")) == ([1, 2, 3, 4, 5] if is_old else [])


def test_nor_does_one_go_on_that_was_farther_at_the_other_behind_what_was_read_at_neither() -> None:
    desk, left, reader, _ = begun_twice(1)
    ticks = [tick for tick, _ in desk.events(reader)]
    desk.lose(reader)
    desk.wait(SECOND)
    seat = Seat(desk.clock, "V")
    places = {OWN: Stand(ticks[2], ticks[3], ticks[3])}
    desk.say(left, Fetched("b", "left", "mine", places, EPOCH, EPOCH, "left", seat))
    at = {OWN: ticks[3]}
    other = desk.reader("V", durable="mine", token=at, consumed=at, born=(EPOCH, "left"), seat=seat)
    assert len(desk.said(other, Ousted)) == 1
    assert desk.got(desk.reader("w", durable="mine")) == [2, 3, 4, 5]


def test_an_end_ends_it_though_they_were_joined_later_than_that_when_nobody_came() -> None:
    desk, left, reader, first = begun_twice(5)
    desk.lose(reader)
    desk.wait(SECOND)
    over = desk.clock
    desk.wait(SECOND)
    desk.say(left, stands(first - 5))
    desk.say(left, Ended("b", "left", "mine", over))
    assert desk.rows(READERS) == []


def test_nor_with_another_that_was_begun_here() -> None:
    desk, publisher, reader = shop(durable="mine", start=0)
    desk.say(publisher, publish("p", 2, 3))
    desk.lose(reader)
    at = desk.own.core.stable
    born, seat = (EPOCH, "left"), Seat(desk.clock + 1, "A")
    client = desk.reader("A", durable="mine", token={OWN: at}, consumed={OWN: at}, born=born, seat=seat)
    [ousted] = desk.said(client, Ousted)
    assert ousted.reason == "mine was begun at left and at b, and goes on where neither was read"
    assert desk.got(desk.reader("w", durable="mine")) == [1, 2, 3]


def test_who_reads_on_is_told_what_it_is_called_since_they_were_joined() -> None:
    """Or it would be taken for a client of another one, when it comes back."""
    desk, left, reader, first = begun_twice(3)
    desk.wait(SECOND)
    desk.say(left, stands(first, first - 1))
    confirmed, again = desk.said(reader, Confirmed)
    assert (again.born, again.seat, again.token) == (desk.durable("mine").born, confirmed.seat, {})
    assert again.born != confirmed.born


def test_who_says_itself_where_it_stands_is_never_put_back() -> None:
    """Whoever comes after it goes on from what it has consumed."""
    desk, left, reader, first = begun_twice(3)
    last = desk.own.core.stable
    desk.lose(reader)
    again = desk.reader("v", durable="mine", token={OWN: last - 1}, consumed={OWN: last - 1})
    desk.wait(SECOND)
    desk.say(left, stands(first - 5))
    desk.wait(2 * SECOND)
    assert desk.said(again, Ousted) == []
    [confirmed] = desk.said(again, Confirmed)
    assert confirmed.born is None
    assert desk.durable("mine").has_own_token
    assert desk.got(again) == [5]
    assert desk.said(left, Moved) != []


def test_nor_does_it_lose_its_seat_if_they_are_joined_while_it_is_away() -> None:
    desk, left, reader, first = begun_twice(3)
    last = desk.own.core.stable
    desk.lose(reader)
    client = desk.reader("v", durable="mine", token={OWN: last}, consumed={OWN: last})
    desk.wait(3 * SECOND)
    [confirmed] = desk.said(client, Confirmed)
    desk.lose(client)
    desk.say(left, stands(first - 5))
    again = desk.reader("v", durable="mine", token={OWN: last}, consumed={OWN: last}, seat=confirmed.seat)
    assert desk.said(again, Ousted) == []
    assert desk.said(again, Confirmed) != []


def test_who_comes_waits_no_longer_than_two_seconds_for_it() -> None:
    desk, left, reader, _ = begun_twice(0)
    desk.lose(reader)
    again = desk.reader(incarnation=2, durable="mine")
    desk.wait(3 * SECOND)
    assert desk.got(again) == [1, 2, 3, 4, 5]
    assert desk.said(left, Moved) == []


def test_one_that_was_given_away_before_they_heard_of_each_other_is_joined_where_it_is_now() -> None:
    """Who has given it away would join what nobody reads, and tell the other that it need not keep it."""
    desk, left, reader, first = begun_twice(0)
    desk.lose(reader)
    desk.say(left, Fetch("b", "right", "mine"))  # right lies behind left
    desk.wait(2 * SECOND)
    asked = len(desk.said(left, Fetch))
    desk.say(left, stands(first, first - 1))
    desk.wait(2 * SECOND)
    assert len(desk.said(left, Fetch)) == asked
    desk.say(left, Moved("b", "right", "mine", desk.clock))
    assert desk.rows(READERS) == []
    assert desk.rows(ENDED) == []
    assert desk.said(left, Moved) == []


def test_the_earlier_claim_lets_go_when_it_is_told_and_of_two_in_one_epoch_the_broker_named_last_has_it() -> (
    None
):
    desk = Desk(["left", "a"])
    left, a = desk.meet("left"), desk.meet("a")
    desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    epoch = desk.epoch("mine")
    desk.say(a, Moved("b", "a", "mine", epoch))
    assert len(desk.said(a, MovedTaken)) == 1
    assert desk.said(reader, Ousted) == []
    desk.say(left, Moved("b", "left", "mine", epoch))
    assert len(desk.said(reader, Ousted)) == 1
    assert desk.rows(READERS) == []


def test_a_leftover_of_one_that_was_ended_is_not_asked_but_told() -> None:
    """Else the new one would begin where the old one had been."""
    desk, left, _, publisher = at_left(1, 2)
    known = SubscriptionId("left", 1, 2)
    end(desk, desk.reader(durable="mine"))
    desk.say(left, Unsubscribe(known))
    reader = desk.reader("v", durable="mine")
    asked = len(desk.said(left, Fetch))
    desk.tell(left, "left", "a", Durable("mine", EPOCH))  # it was down meanwhile
    desk.wait(SECOND)
    assert len(desk.said(left, Fetch)) == asked
    desk.say(publisher, publish("p", 3))
    assert desk.got(reader) == [3]


def test_what_was_begun_by_who_keeps_its_token_is_joined_too_if_it_was_begun_here_later_without_one() -> None:
    """It counted as what has come here since, and what nobody had read there was lost."""
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1, 2, 3)
    early = desk.own.core.stable - 2
    reader = desk.reader(durable="mine")
    desk.say(publisher, publish("p", 4))
    assert desk.got(reader) == [4]
    desk.tell(left, "left", "a", Durable("mine", EPOCH))
    desk.wait(SECOND)
    places = {OWN: Stand(early, early, early)}
    desk.say(left, Fetched("b", "left", "mine", places, EPOCH, 0, "", Seat(EPOCH, "x")))
    assert len(desk.said(reader, Ousted)) == 1
    assert desk.got(desk.reader("w", durable="mine")) == [2, 3, 4]
