"""A durable subscription is ended: everywhere, for who had come until then, and for nobody who comes after that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from durable_desk import EPOCH, OWN, Desk, at_left, end, stands

from by_hand import publish
from holdfast.broker.durable.records import ENDED, READERS
from holdfast.broker.input import End, ForgetBroker, Operate
from holdfast.clock import SECOND
from holdfast.messages.durable import Ended, Fetch, Fetched, Moved, MovedTaken, Ousted, Stand
from holdfast.messages.subscriptions import Confirmed, Durable, Seat, Unsubscribe, Withdrawn
from holdfast.streams.storing import Save


def begun_anew() -> tuple[Desk, int, int, MovedTaken]:
    """What is at left was ended, and begun anew here; left, who reads it, and how left answers."""
    desk, left, _, publisher = at_left(1, 2)
    end(desk, desk.reader(durable="mine"))
    reader = desk.reader("v", durable="mine")
    desk.say(publisher, publish("p", 3))
    assert desk.got(reader) == [3]
    [over, *_] = desk.said(left, Ended)
    return desk, left, reader, MovedTaken("b", "left", "mine", over.epoch)


def test_an_answer_that_comes_twice_takes_back_nothing() -> None:
    """Letters are repeated, and each is answered: what is still at left was begun anew there, and is asked for."""
    desk, left, _, answer = begun_anew()
    asked = len(desk.said(left, Fetch))
    desk.say(left, answer)
    desk.say(left, answer)
    desk.wait(2 * SECOND)
    assert len(desk.said(left, Fetch)) > asked


def test_nor_does_it_when_they_were_joined() -> None:
    desk, left, _, answer = begun_anew()
    desk.say(left, answer)
    desk.wait(SECOND)
    at = desk.own.core.stable
    desk.say(left, Fetched("b", "left", "mine", {OWN: Stand(at, at, at)}, EPOCH, EPOCH, "left"))
    desk.say(left, answer)
    desk.wait(2 * SECOND)
    assert Moved("left", "b", "mine", desk.epoch("mine"), desk.durable("mine").seat) in desk.said(left, Moved)


def test_a_claim_that_is_known_is_before_the_end_though_its_clock_is_ahead() -> None:
    desk = Desk(["left"], brokers=("b", "left"))
    left = desk.meet("left")
    desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    ahead = desk.clock + 1_000_000
    desk.tell(left, "left", "a", Durable("mine", ahead))
    end(desk, reader)
    assert desk.said(left, Ended)[-1] == Ended("left", "b", "mine", ahead + 1, known=ahead + 1)


def test_so_is_who_came_last_before_it_was_fetched() -> None:
    """Or it would be taken for one that has come since, and it would stay there for ever."""
    desk, left, _, _ = at_left(1, 2)
    reader = desk.reader(durable="mine")
    ahead, at = desk.clock + 1_000_000, desk.own.core.stable
    places = {OWN: Stand(at, at, at)}
    desk.say(left, Fetched("b", "left", "mine", places, EPOCH, EPOCH, "left", Seat(ahead, "x")))
    assert desk.said(reader, Confirmed)
    end(desk, reader)
    assert desk.said(left, Ended)[-1].epoch > ahead


def test_where_it_had_been_before_it_moved_on_is_told_as_of_an_end() -> None:
    """Who has given it away does not know whether it was ended since, and who has come after that keeps it."""
    desk, left, right, _ = at_left(1, 2)
    reader = desk.reader(durable="mine")
    desk.say(left, stands(desk.own.core.stable))
    epoch = desk.epoch("mine")
    desk.tell(right, "right", "a", Durable("mine", epoch + 1))
    desk.say(right, Moved("b", "right", "mine", epoch + 1, Seat(epoch + 1, "w")))
    assert desk.said(reader, Ousted) == [Ousted(1, "mine is read at right")]
    assert desk.said(left, Ended)[-1] == Ended("left", "b", "mine", epoch, known=epoch)


def test_who_waits_to_end_it_and_is_superseded_ends_nothing() -> None:
    """Whether another had come before is not known yet, and that one may read it."""
    desk, left, _, _ = at_left(1, 2)
    at, born = {OWN: desk.own.core.stable}, (EPOCH, "left")
    ending = desk.reader("A", durable="mine", token=at, born=born, seat=Seat(100, "A"))
    end(desk, ending, "A")
    reader = desk.reader("B", durable="mine")
    assert desk.said(left, Ended) == []
    assert (len(desk.said(ending, Ousted)), desk.said(ending, Withdrawn)) == (1, [])
    desk.say(left, stands(desk.own.core.stable))
    assert desk.said(reader, Confirmed)


def test_who_has_begun_it_before_its_old_answer_came_is_asked_again() -> None:
    desk, left, _, _ = at_left(1, 2)
    desk.reader(durable="mine")
    [kept] = desk.plane.readers.elsewhere.of("mine")
    desk.say(left, Unsubscribe(kept.subscription))
    desk.tell(left, "left", "a", Durable("mine", desk.clock))
    asked = len(desk.said(left, Fetch))
    desk.say(left, Fetched("b", "left", "mine", None))
    desk.wait(2 * SECOND)
    assert len(desk.said(left, Fetch)) > asked
    assert desk.said(left, Moved) == []


def test_what_is_owed_under_any_name_outlives_a_restart() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    desk.tell(left, "left", "a", Durable("mi\nne", EPOCH))
    end(desk, desk.reader(durable="mi\nne"))
    desk.restart()
    left = desk.meet("left", incarnation=2)
    desk.wait(SECOND)
    [over, *_] = desk.said(left, Ended)
    assert over.durable == "mi\nne"


def test_a_broker_that_does_not_come_back_is_owed_nothing_when_it_is_forgotten() -> None:
    desk = Desk(["left", "right"], brokers=("b", "left", "right"))
    left, right = desk.meet("left"), desk.meet("right")
    desk.publisher("p", 1)
    end(desk, desk.reader(durable="mine"))
    [over] = desk.said(right, Ended)
    desk.say(right, MovedTaken("b", "right", "mine", over.epoch))
    desk.lose(left)
    assert len(desk.rows(ENDED)) == 1
    desk.step(Operate(1, ForgetBroker("left", "orders")))
    assert desk.rows(ENDED) == desk.rows(READERS) == []
    assert desk.operated[-1].problem is None


def test_an_end_is_long_ago_by_any_clock() -> None:
    """Who came after it, by a clock that is behind, is not ended with it (seed 2565 of the names swarm, skewed)."""
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    ahead = desk.clock + 1_000_000
    desk.wait(SECOND // 2)
    desk.say(left, Ended("b", "left", "mine", ahead, ago=desk.clock - desk.epoch("mine") + 1))
    assert (desk.rows(READERS), desk.said(reader, Ousted)) == (["mine"], [])
    desk.say(left, Ended("b", "left", "mine", ahead + 1, ago=desk.clock - desk.epoch("mine")))
    assert (desk.rows(READERS), len(desk.said(reader, Ousted))) == ([], 1)


def test_who_came_after_it_was_heard_of_is_not_ended_by_its_repetition() -> None:
    """It may have been long on its way."""
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    over = Ended("b", "left", "mine", desk.clock + 1_000_000)
    desk.say(left, over)
    reader = desk.reader(durable="mine")
    desk.say(left, over)
    assert (desk.rows(READERS), desk.said(reader, Ousted)) == (["mine"], [])
    assert len(desk.said(left, MovedTaken)) == 2
    desk.wait(61 * SECOND)
    desk.say(left, replace(over, epoch=over.epoch + 1))
    assert desk.rows(READERS) == [], "another one"


def test_but_not_longer_than_was_known_of_who_had_come() -> None:
    """It may have come from a broker whose clock is ahead, to one that is behind."""
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    desk.reader(durable="mine")
    known = desk.durable("mine").seat.taken_on
    desk.say(left, Ended("b", "left", "mine", known, known, ago=1_000_000))
    assert desk.rows(READERS) == []


def test_what_was_ended_twice_is_known_as_far_as_it_was_either_time() -> None:
    desk = Desk(["left"], brokers=("b", "left"))
    left = desk.meet("left")
    desk.publisher("p", 1)
    end(desk, desk.reader(durable="mine"))
    known = desk.clock
    desk.wait(SECOND)
    desk.plane.readers.end("mine", "again")
    desk.wait(SECOND)
    over = desk.said(left, Ended)[-1]
    assert over.epoch > over.known == known


def test_whoever_asks_again_is_not_answered_before_the_end_is_on_disk() -> None:
    """Letters are repeated: a crash between the answer and the sync would leave it here for ever."""
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    desk.reader(durable="mine")
    over = Ended("b", "left", "mine", desk.clock + 1)
    desk.hold(Save)
    desk.say(left, over)
    desk.say(left, over)
    assert desk.said(left, MovedTaken) == []
    desk.hold()
    assert len(desk.said(left, MovedTaken)) == 2
    assert desk.rows(READERS) == []


@pytest.mark.parametrize("is_restarted", [True, False])
def test_an_end_that_was_heard_does_not_end_what_was_begun_after_that_by_a_clock_that_is_behind(
    is_restarted: bool,
) -> None:
    """The answer was lost, and the ender was down for a while: it says so again."""
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    over = desk.clock + 700_000  # left's clock is ahead; its client had come just before it ended it
    desk.reader(durable="mine")
    desk.say(left, Ended("b", "left", "mine", over, over))
    assert desk.rows(READERS) == []
    desk.wait(SECOND // 10)
    reader = desk.reader("v", durable="mine")
    desk.wait(SECOND if is_restarted else 62 * SECOND)
    if is_restarted:
        desk.restart()
        left = desk.meet("left", incarnation=2)
    desk.say(left, Ended("b", "left", "mine", over, over, ago=2_000_000 if is_restarted else 63_000_000))
    assert desk.rows(READERS) == ["mine"]
    assert is_restarted or desk.said(reader, Ousted) == []


def test_what_an_operator_ends_is_over_for_who_waits_for_it_whatever_had_been_answered_before() -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    desk.reader(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.say(left, Fetch("b", "left", "mine"))
    [answer] = desk.said(left, Fetched)
    claim = desk.clock
    desk.tell(left, "left", "a", Durable("mine", claim))
    waiting = desk.reader("w", durable="mine")
    assert desk.said(left, Fetch) != []
    desk.step(Operate(1, End("mine")))
    desk.say(left, Fetched("b", "left", "mine", answer.places, claim, answer.born, answer.born_at))
    [over, *_] = desk.said(left, Ended)
    desk.say(left, MovedTaken("b", "left", "mine", over.epoch))
    desk.wait(SECOND)
    desk.say(publisher, publish("p", 3))
    assert desk.got(waiting) == [3], "it is new"


def test_so_is_what_another_broker_ended_that_is_heard_of_before_an_older_answer() -> None:
    desk, left, right, publisher = at_left(1, 2, 3)
    reader = desk.reader(durable="mine")
    desk.say(right, Ended("b", "right", "mine", desk.clock, desk.clock))
    desk.say(left, stands(desk.own.core.stable - 2))
    desk.wait(3 * SECOND)
    desk.say(publisher, publish("p", 4))
    assert desk.got(reader) == [4]


def test_who_had_come_before_the_end_and_is_seated_after_it_had_come_before_it() -> None:
    """Left has answered, then an operator ended it there; both letters are on their way, in this order."""
    desk, left, _, _ = at_left(1, 2, 3)
    reader = desk.reader(durable="mine")
    desk.wait(SECOND // 2)
    over = desk.clock
    desk.wait(SECOND // 5)
    desk.say(left, stands(desk.own.core.stable - 2))
    desk.say(left, Ended("b", "left", "mine", over, EPOCH, ago=SECOND // 5_000))
    assert desk.rows(READERS) == []
    assert len(desk.said(reader, Ousted)) == 1
