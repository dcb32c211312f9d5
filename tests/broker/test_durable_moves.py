"""A durable subscription that is read at another broker than before: taken over first, forgotten then [B1.9, R1.32].

Either end of a move is the broker under test; the other is its neighbour left.
"""

from __future__ import annotations

import pytest
from durable_desk import FAR, OWN, Desk, admitted, items, shop, stands
from durable_desk import at_left as at_two

from by_hand import a_publication, publish
from holdfast.broker.durable.names import broker_filter, pubend_filter
from holdfast.broker.durable.records import READERS
from holdfast.clock import SECOND
from holdfast.messages.durable import (
    Admit,
    Admitted,
    Ended,
    Fetch,
    Fetched,
    Moved,
    MovedTaken,
    Ousted,
    Report,
    Reported,
    Stand,
)
from holdfast.messages.subscriptions import Confirmed, Durable, Refused, Seat, Subscribe, Unsubscribe
from holdfast.messages.ticks import ABSOLUTE, Start
from holdfast.streams.storing import ChopMatches, Save

EVENT = a_publication("q", 1)
EPOCH = 50  #: of the subscription at left


def at_left(*numbers: int) -> tuple[Desk, int, int]:
    """The subscription mine is at left; the broker under test has a pubend, with these events, and a publisher."""
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", *(numbers or (1,)))
    desk.tell(left, "left", "a", Durable("mine", EPOCH))
    return desk, left, publisher


def fetched(**places: Stand) -> Fetched:
    return Fetched("b", "left", "mine", places)


# To here


def test_who_comes_without_a_token_goes_on_where_its_old_broker_says_that_it_stood() -> None:
    desk, left, _ = at_left(1, 2, 3)
    reader = desk.reader(durable="mine")
    assert desk.said(left, Fetch) == [Fetch("left", "b", "mine")]
    assert desk.said(reader, Confirmed) == []
    first = desk.own.core.stable - 2
    desk.say(left, fetched(**{OWN: Stand(first - 1, first, first)}))
    assert desk.got(reader) == [2, 3]
    assert desk.gaps(reader) == []


def test_whom_its_old_broker_does_not_answer_for_is_refused_or_goes_on_from_its_own_token() -> None:
    desk, left, _ = at_left(1, 2)
    lost, sure = desk.reader("u", durable="mine"), desk.client("v")
    desk.wait(2 * SECOND)
    assert len(desk.said(left, Fetch)) > 2, "letters may be lost"
    desk.wait(4 * SECOND)
    [refused] = desk.said(lost, Refused)
    assert "left" in refused.problem
    desk.subscribe(sure, "v", durable="mine", token={OWN: desk.own.core.stable - 1})
    desk.wait(2 * SECOND)
    assert desk.got(sure) == [2]


def test_a_token_counts_and_what_is_known_to_be_silence_behind_it_is_left_out() -> None:
    """The client says where it stands, its old broker up to where nothing was for it: no gap in between."""
    desk, left, publisher = at_left(1, 2)
    token = desk.own.core.stable - 1
    reader = desk.reader(durable="mine", token={OWN: token})
    desk.say(left, fetched(**{OWN: Stand(token - 1, token - 1, token)}))
    assert desk.place(reader) == token
    desk.say(publisher, publish("p", 3))
    assert desk.got(reader) == [2, 3]


def test_who_comes_back_before_it_acknowledged_anything_here_goes_on_from_the_token_it_came_with() -> None:
    """What was silence at the old broker is not given up, however far the filtering log was chopped (seed 70)."""
    desk, left, publisher = at_left(1, 2)
    token = desk.own.core.stable
    desk.say(publisher, publish("p", 3, topic="b"))
    silent = desk.own.core.stable
    reader = desk.reader(durable="mine", token={OWN: token})
    desk.say(left, fetched(**{OWN: Stand(token - 1, token, silent)}))
    desk.lose(reader)
    for n in range(4, 14):
        desk.say(publisher, publish("p", n, topic="b"))
        desk.wait(SECOND)
    assert desk.done_of(ChopMatches)
    again = desk.reader(incarnation=2, durable="mine", token={OWN: token})
    desk.say(publisher, publish("p", 20))
    assert desk.gaps(again) == []
    assert desk.got(again) == [20]


@pytest.mark.parametrize("token", [{FAR: 100}, {}])
def test_so_does_who_comes_before_a_pubend_has_admitted_us_for_the_one_before(token: dict[str, int]) -> None:
    """Seed 254 of the swarm of names with --tokens --released --narrow."""
    desk, left, _ = at_left(1)
    desk.tell(left, "left", str(pubend_filter(FAR)))
    desk.reader(durable="mine", token=token)
    desk.say(left, fetched(**{FAR: Stand(100, 100, 200)}))
    desk.reader("v", durable="mine", token=token)
    desk.say(left, admitted(150, created=50), Start(FAR, 150))
    desk.say(left, Fetch("b", "left", "mine"))
    places = desk.said(left, Fetched)[-1].places
    assert places is not None
    assert places[FAR][1:] == (100, 200)


@pytest.mark.parametrize("start", [None, 1_000_030_000_000])
@pytest.mark.parametrize("is_known", [True, False])
def test_where_it_stood_is_kept_if_its_client_leaves_before_the_network_knows_it_here(
    start: int | None, is_known: bool
) -> None:
    """What its old broker has said is for the subscription, not for the client that happened to ask.

    A pubend it had not heard of was made after the subscription, so all of it is owed (B1.11; seed 2586 with faults).
    """
    desk, left, _ = at_left(1, 2, 3)
    desk.confirms = False
    reader = desk.reader(durable="mine")
    first = desk.own.core.stable - 2
    desk.say(left, fetched(**({OWN: Stand(first - 1, first, first)} if is_known else {})))
    desk.lose(reader)
    desk.say(left, *(Confirmed(each.subscription) for each in desk.said(left, Subscribe)))
    desk.wait(SECOND)
    reader = desk.reader(durable="mine", start=start, incarnation=2)
    desk.wait(SECOND)
    assert desk.got(reader) == ([2, 3] if is_known else [1, 2, 3])


def test_where_the_filtering_log_of_its_old_broker_began_is_not_where_a_client_without_a_place_stands() -> (
    None
):
    """It had moved there, too, and was never read: its token does not name the pubend (B1.11)."""
    desk, left, _ = at_left(1, 2, 3)
    reader = desk.reader(durable="mine", token={})
    last = desk.own.core.stable
    desk.say(left, fetched(**{OWN: Stand(last, last - 2, last - 2)}))
    assert desk.got(reader) == [2, 3]


def test_who_older_than_that_leaves_before_a_pubend_has_admitted_us_has_acknowledged_nothing_back() -> None:
    """Else what is between its token and that would be taken for silence, when it comes again (R1.9)."""
    desk, left, _ = at_left(1)
    desk.tell(left, "left", str(pubend_filter(FAR)))
    desk.reader(durable="mine", token={FAR: 100})
    desk.say(left, fetched(**{FAR: Stand(100, 100, 200)}))
    desk.lose(desk.reader("v", durable="mine", token={FAR: 40}))
    desk.say(left, admitted(250, created=10), Start(FAR, 250))
    older = desk.reader("v", incarnation=2, durable="mine", token={FAR: 40})
    desk.wait(SECOND)
    desk.say(left, items(FAR, ABSOLUTE, 10, [(60, EVENT)], 250, answers=True))
    assert 60 in [tick for tick, _ in desk.events(older)]


def test_who_keeps_no_token_is_no_other_where_the_name_was_begun_with_one() -> None:
    """When it comes back it says what it was told: it has begun to read what brokers keep."""
    desk = Desk()
    desk.lose(desk.reader(durable="mine", token={}))
    desk.wait(SECOND)
    reader = desk.reader("v", durable="mine")
    assert desk.said(reader, Confirmed)[-1].born == (0, "")


@pytest.mark.parametrize("born", [(EPOCH, "left"), (0, "")])
def test_what_others_have_read_before_is_not_told_to_who_goes_on_without_a_place_there(
    born: tuple[int, str],
) -> None:
    """If brokers keep the places, and not the application."""
    desk, left, _ = at_left(1, 2, 3)
    seat = Seat(EPOCH, "u")
    last = desk.own.core.stable
    reader = desk.reader(durable="mine", token={}, born=born, seat=seat)
    places = {OWN: Stand(last - 2, last - 1, last - 1)}
    desk.say(left, Fetched("b", "left", "mine", places, EPOCH, *born, seat))
    assert desk.got(reader) == [3]


def test_an_answer_from_another_broker_or_for_another_name_is_not_taken() -> None:
    desk, left, _ = at_left()
    reader = desk.reader(durable="mine")
    desk.say(left, Fetched("b", "right", "mine", {}), Fetched("b", "left", "other", {}))
    assert desk.said(reader, Confirmed) == []


def test_who_has_gone_again_meanwhile_takes_nothing_over() -> None:
    desk, left, _ = at_left()
    reader = desk.reader(durable="mine")
    desk.lose(reader)
    desk.say(left, fetched())
    desk.wait(SECOND)
    assert desk.rows(READERS) == []
    assert desk.said(left, Moved) == []


@pytest.mark.parametrize("is_restarted", [True, False])
def test_so_it_is_in_a_pubend_that_is_heard_of_only_when_its_client_has_left(is_restarted: bool) -> None:
    desk, left, _ = at_left(1)
    reader = desk.reader(durable="mine")
    desk.say(left, fetched(**{FAR: Stand(50, 100, 100)}))
    desk.lose(reader)
    if is_restarted:
        desk.restart()
        left = desk.meet("left", incarnation=2)
    desk.tell(left, "left", str(pubend_filter(FAR)), incarnation=1 + is_restarted)
    assert {each.since for each in desk.said(left, Admit)} == {100}
    desk.say(left, admitted(100, created=20), Start(FAR, 120))
    reader = desk.reader(incarnation=2, durable="mine")
    desk.wait(3 * SECOND)
    assert desk.place(reader, FAR) == 100


def taken_over() -> tuple[Desk, int, int]:
    desk, left, _ = at_left(1, 2)
    reader = desk.reader(durable="mine")
    at = desk.own.core.stable
    desk.say(left, fetched(**{OWN: Stand(at, at, at)}))
    return desk, left, reader


def test_the_old_broker_is_told_when_the_pubends_wait_for_it_here_and_until_it_has_heard() -> None:
    """B1.9: never drop first. The epoch is above the last one's."""
    desk, left, _ = taken_over()
    assert desk.said(left, Moved) == [], "no report of ours counts yet"
    desk.wait(2 * SECOND)
    letters = desk.said(left, Moved)
    assert len(letters) > 1
    assert letters[0].epoch > EPOCH
    desk.say(left, MovedTaken("b", "left", "mine", letters[0].epoch))
    desk.wait(SECOND)
    assert len(desk.said(left, Moved)) == len(letters)


def test_the_old_broker_is_told_though_nothing_happens_at_the_pubend() -> None:
    """The report that counts says nothing new; it is made all the same."""
    desk, left, _ = taken_over()
    desk.restart()  # nobody publishes any more
    left = desk.meet("left", incarnation=2)
    desk.wait(3 * SECOND)
    [letter] = {each.epoch for each in desk.said(left, Moved)}
    desk.say(left, MovedTaken("b", "left", "mine", letter))
    assert not desk.durable("mine").moved_from


def test_it_is_kept_where_it_was_while_a_pubend_has_not_heard_that_it_is_waited_for_here() -> None:
    """B1.9: the report that includes it counts first, at every pubend."""
    desk = Desk(["left", "right"])
    left, right = desk.meet("left"), desk.meet("right", "orders@right/0")
    desk.tell(left, "left", "a", Durable("mine", EPOCH))
    desk.reader(durable="mine", token={})
    desk.say(left, fetched())
    desk.say(right, Admitted("b", "right", "orders@right/0", 1, 100, 0, 0))
    desk.wait(2 * SECOND)
    [number] = {each.number for each in desk.said(right, Report)}
    assert desk.said(left, Moved) == []
    desk.say(right, Reported("b", "right", "orders@right/0", number, 1))
    desk.wait(SECOND)
    assert desk.said(left, Moved) != []


def test_a_token_older_than_what_was_acknowledged_counts_all_the_same() -> None:
    """R1.9: delivery goes back; nothing is left out."""
    desk, left, _ = at_left(1, 2, 3)
    last = desk.own.core.stable
    reader = desk.reader(durable="mine", token={OWN: last - 3})
    desk.say(left, fetched(**{OWN: Stand(last - 3, last - 1, last - 1)}))
    assert desk.got(reader) == [1, 2, 3]


def test_where_it_came_from_outlives_a_restart() -> None:
    desk, left, _ = taken_over()
    epoch = desk.epoch("mine")
    desk.restart()
    left = desk.meet("left", incarnation=2)
    desk.wait(2 * SECOND)
    assert {(each.durable, each.epoch) for each in desk.said(left, Moved)} == {("mine", epoch)}


def test_nothing_is_said_while_the_release_is_not_on_disk() -> None:
    desk, left, _ = at_left(1, 2)
    reader = desk.reader(durable="mine")
    desk.hold(Save)
    at = desk.own.core.stable
    desk.say(left, fetched(**{OWN: Stand(at, at, at)}))
    desk.wait(2 * SECOND)
    assert desk.said(left, Moved) == []
    assert desk.said(reader, Confirmed) == []


# From here


def test_where_a_subscription_stands_is_answered_and_its_reader_here_is_ousted() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    start = desk.place(reader)
    desk.say(publisher, publish("p", 2), publish("p", 3))
    first, _ = [tick for tick, _ in desk.events(reader)]
    desk.acknowledge(reader, **{OWN: first})
    desk.hold(Save)
    desk.say(left, Fetch("b", "left", "mine"))
    assert desk.said(left, Fetched) == [], "what was acknowledged is on disk before it is told"
    desk.hold()
    [answer] = desk.said(left, Fetched)
    assert answer.places == {OWN: Stand(start, first, first)}
    assert len(desk.said(reader, Ousted)) == 1
    desk.say(left, Fetch("b", "left", "nobody's"))
    assert desk.said(left, Fetched)[-1].places is None


def test_where_it_was_is_not_told_before_it_is_on_disk_here() -> None:
    desk, left, _ = at_left(1, 2)
    desk.reader(durable="mine")
    at = desk.own.core.stable
    desk.hold(Save)
    desk.say(left, fetched(**{OWN: Stand(at, at, at)}))
    desk.wait(3 * SECOND)
    assert desk.said(left, Moved) == []
    desk.hold()
    desk.wait(3 * SECOND)
    assert desk.said(left, Moved) != []


@pytest.mark.parametrize("is_new", [True, False])
def test_what_was_said_of_a_pubend_that_has_not_admitted_us_is_kept_when_it_does(is_new: bool) -> None:
    """Seed 376 of the swarm of names with --released --narrow: a gap where nothing had been."""
    desk = Desk(["left"])
    left = desk.meet("left", *(() if is_new else (FAR,)))
    desk.reader(durable="mine")
    if is_new:
        desk.tell(left, "left", str(pubend_filter(FAR)))
    desk.wait(3 * SECOND)
    desk.say(left, Fetch("b", "left", "mine"))
    said = desk.said(left, Fetched)[-1].places
    assert said is not None
    stand = said[FAR].released
    assert desk.said(left, Admit)[-1].since == stand
    begins = stand + 20
    created = begins if is_new else stand - 10
    desk.say(left, admitted(begins, created=created), Start(FAR, begins))
    desk.say(left, items(FAR, ABSOLUTE, begins, [], begins + 1_000))
    desk.wait(2 * SECOND)
    reports = {(each.released, each.delivered) for each in desk.said(left, Report)}
    assert reports == {(max(stand, created), begins + 1_000)}


def test_a_subscription_is_kept_until_its_new_broker_has_it_and_then_forgotten_for_good() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    desk.say(left, Fetch("b", "left", "mine"))
    desk.wait(SECOND)
    desk.say(publisher, publish("p", 2))
    desk.wait(20 * SECOND)
    assert desk.own.core.forgotten < desk.own.core.stable, "it pins the log"
    epoch = desk.epoch("mine")
    desk.say(left, Moved("b", "left", "mine", epoch - 1))
    assert desk.rows(READERS) == ["mine"], "of an old epoch: undoes nothing"
    desk.hold(Save)
    desk.say(left, Moved("b", "left", "mine", desk.clock))
    taken = len(desk.said(left, MovedTaken))
    desk.hold()
    assert len(desk.said(left, MovedTaken)) == taken + 1, "answered when it is on disk"
    assert desk.rows(READERS) == []
    desk.say(left, Moved("b", "left", "mine", desk.clock))
    assert len(desk.said(left, MovedTaken)) == taken + 2, "whatever is not here is answered"
    assert desk.said(reader, Ousted)


def test_a_client_that_came_here_after_the_move_is_not_ousted_by_hearing_of_it() -> None:
    """A broker that was down hears late that its subscription had moved; its client has come back since."""
    desk, publisher, reader = shop(durable="mine")
    moved_on = desk.clock + 500_000
    desk.lose(reader)
    desk.wait(SECOND)
    reader = desk.reader("u", incarnation=2, durable="mine")
    desk.plane.moving.receive(Moved("b", "left", "mine", moved_on))
    assert desk.said(reader, Ousted) == []
    assert desk.durable("mine").durable == Durable("mine", desk.durable("mine").seated_on)
    desk.say(publisher, publish("p", 2))
    assert desk.got(reader) == [2]


@pytest.mark.parametrize("has_come_back", [False, True])
def test_nor_by_being_asked_by_a_broker_that_has_not_heard_of_it(has_come_back: bool) -> None:
    """Its client had gone there, and came back when that one was down; its claim is earlier, or than this session."""
    desk, publisher, reader = shop(durable="mine")
    mine, here_before = desk.durable("mine"), desk.epoch("mine")
    asked_since = desk.clock + 500_000 if has_come_back else here_before - 1
    if has_come_back:
        desk.lose(reader)
        desk.wait(SECOND)
        reader = desk.reader("u", incarnation=2, durable="mine")
    desk.plane.moving.receive(Fetch("b", "left", "mine", mine.seat, mine.born, asked_since))
    assert desk.said(reader, Ousted) == []
    assert (desk.epoch("mine") > asked_since, mine.is_held) == (True, False)
    desk.say(publisher, publish("p", 2))
    assert desk.got(reader) == [2]


def test_one_that_has_it_by_a_later_claim_is_answered_and_whoever_reads_it_here_is_ousted() -> None:
    desk, _, reader = shop(durable="mine")
    mine = desk.durable("mine")
    desk.plane.moving.receive(Fetch("b", "left", "mine", mine.seat, mine.born, desk.clock + 1))
    desk.wait(SECOND)
    assert len(desk.said(reader, Ousted)) == 1
    assert mine.is_held


def test_a_restarted_broker_seats_no_one_without_a_token_before_it_must_have_heard_of_moves() -> None:
    """For two seconds; who has a token says itself where it stands."""
    desk, _, _ = shop(durable="mine")
    desk.restart()
    waits = desk.reader("u", incarnation=2, durable="mine")
    assert desk.said(waits, Confirmed) == []
    desk.wait(2_500_000_000)
    assert len(desk.said(waits, Confirmed)) == 1
    desk.restart()
    knows = desk.reader("u", incarnation=3, durable="mine", token={OWN: desk.clock})
    assert len(desk.said(knows, Confirmed)) == 1


def test_a_higher_epoch_elsewhere_is_believed_and_a_lower_one_is_only_asked() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    epoch = desk.epoch("mine")
    desk.lose(reader)
    desk.tell(left, "left", "a", Durable("mine", epoch - 1))
    desk.wait(SECOND)
    desk.say(left, Fetched("b", "left", "mine", None))
    asked = len(desk.said(left, Fetch))
    reader = desk.reader("u", incarnation=2, durable="mine")
    assert len(desk.said(reader, Confirmed)) == 1
    assert len(desk.said(left, Fetch)) == asked
    desk.lose(reader)
    desk.tell(left, "left", "a", Durable("mine", epoch + 1))
    reader = desk.reader("u", incarnation=3, durable="mine")
    assert len(desk.said(left, Fetch)) == asked + 1
    assert len(desk.said(reader, Confirmed)) == 0


def test_a_subscription_that_has_ended_elsewhere_is_nowhere() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    known = desk.tell(left, "left", "a", Durable("mine", EPOCH))
    desk.say(left, Unsubscribe(known))
    reader = desk.reader(durable="mine")
    assert len(desk.said(reader, Confirmed)) == 1
    assert desk.said(left, Fetch) == []


def test_of_two_places_the_one_of_the_later_epoch_counts_whichever_was_heard_of_last() -> None:
    desk = Desk(["left", "right"])
    left, right = desk.meet("left"), desk.meet("right")
    desk.tell(left, "left", "a", Durable("mine", EPOCH + 1))
    desk.tell(right, "right", "a", Durable("mine", EPOCH))
    desk.reader(durable="mine")
    assert len(desk.said(left, Fetch)) == 1
    assert desk.said(right, Fetch) == []


def test_where_it_was_is_kept_until_it_is_in_place_where_it_comes_back_to() -> None:
    """It went from left to us, on to right, and comes back before we could tell left that we had it (B1.9).

    Left let go, its next report came before ours, and the log gave up what nobody had read.
    """
    desk, left, right, _ = at_two(1, 2, 3)
    at = desk.own.core.stable - 2
    desk.reader(durable="mine")
    desk.say(left, stands(at))
    desk.say(right, Fetch("b", "right", "mine"))
    desk.tell(right, "right", "a", Durable("mine", desk.clock + 1))
    desk.confirms = False
    desk.reader("v", durable="mine")
    places = {OWN: Stand(at, at, at)}
    desk.say(right, Fetched("b", "right", "mine", places, desk.clock + 1, EPOCH, "left"))
    assert desk.said(left, Ended) == [], "we do not pin it yet"
    desk.wait(2 * SECOND)
    assert not desk.said(left, Ended)
    assert not desk.said(left, Moved)
    assert desk.durable("mine").moved_from.keys() == {"left", "right"}


def test_of_two_brokers_that_wait_for_each_other_the_one_that_has_it_answers() -> None:
    """What left was told was lost, and the next client comes here, where it is."""
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.say(left, Fetch("b", "left", "mine"))
    desk.lose(reader)
    desk.reader("w", durable="mine")
    assert desk.said(left, Fetch) != []
    told = len(desk.said(left, Fetched))
    desk.say(left, Fetch("b", "left", "mine"))
    assert len(desk.said(left, Fetched)) == told + 1


@pytest.mark.parametrize("says_so", [True, False])
def test_a_name_is_not_begun_anew_before_a_broker_that_was_started_again_has_said_what_it_has(
    says_so: bool,
) -> None:
    """It was, with a confirmation that was not even partial, and its reader was ousted when the two met."""
    desk = Desk(["left"], brokers=("b", "left"))
    left = desk.meet("left")
    known = [("a", Durable("mine", EPOCH)), (str(broker_filter("left")), None)]
    before = [desk.tell(left, "left", *each) for each in known]
    desk.wait(3 * SECOND)
    desk.say(left, *map(Unsubscribe, before))
    reader = desk.reader(durable="mine")
    assert desk.said(reader, Confirmed) == []
    if says_so:
        for each in known:
            desk.tell(left, "left", *each)
    desk.wait(3 * SECOND)
    assert (len(desk.said(reader, Confirmed)), len(desk.said(left, Fetch)) > 0) == (not says_so, says_so)
