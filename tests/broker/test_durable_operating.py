"""What an operator may do to durable subscriptions: move one, end one, let old ones expire; answered when on disk."""

from __future__ import annotations

import pytest
from durable_desk import EPOCH, FAR, OWN, Desk, admitted, items, shop, stands

from by_hand import a_publication, publish
from holdfast.broker.durable.names import pubend_filter
from holdfast.broker.durable.records import READERS
from holdfast.broker.input import End, Operate, Seek
from holdfast.clock import SECOND
from holdfast.messages.durable import Ended, Fetch, Fetched, Ousted
from holdfast.messages.subscriptions import Durable
from holdfast.messages.ticks import ABSOLUTE, Start
from holdfast.streams.storing import Save


def test_an_operator_moves_a_subscription_that_nobody_reads() -> None:
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2), publish("p", 3))
    first, _ = [tick for tick, _ in desk.events(reader)]
    desk.acknowledge(reader)
    desk.wait(SECOND)
    desk.step(Operate(1, Seek("mine", first)))
    assert "being read by u" in str(desk.operated[-1].problem)
    desk.lose(reader)
    desk.hold(Save)
    desk.step(Operate(2, Seek("mine", first)))
    assert len(desk.operated) == 1, "not before it is on disk"
    desk.hold()
    assert desk.operated[-1].problem is None
    desk.restart()
    desk.wait(3 * SECOND)
    assert desk.got(desk.reader("u", incarnation=3, durable="mine")) == [3]


def test_a_subscription_that_nobody_reads_is_advanced_and_never_moved_back() -> None:
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2), publish("p", 3), publish("p", 4))
    first, second, _ = [tick for tick, _ in desk.events(reader)]
    desk.lose(reader)
    desk.wait(SECOND)
    desk.step(Operate(1, Seek("mine", None, {OWN: second}, forward=True)))
    desk.step(Operate(2, Seek("mine", None, {OWN: first}, forward=True)))
    desk.step(Operate(3, Seek("mine", None, {}, forward=True)))
    assert [each.problem for each in desk.operated] == [None, None, None]
    desk.restart()
    desk.wait(3 * SECOND)
    assert desk.got(desk.reader("u", incarnation=3, durable="mine")) == [4]


def test_a_subscription_that_is_moved_is_in_use() -> None:
    desk = Desk(expire_after_ns=5 * SECOND)
    desk.publisher("p", 1)
    desk.lose(desk.reader("u", durable="mine"))
    for _ in range(3):
        desk.wait(4 * SECOND)
        assert desk.rows(READERS) == ["mine"]
        desk.step(Operate(1, Seek("mine", None, {}, forward=True)))
    desk.wait(6 * SECOND)
    assert desk.rows(READERS) == []


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (Seek("nobody"), "no durable subscription"),
        (Seek("mine", 2**62), "not come yet"),
        (End("nobody"), "no durable subscription"),
    ],
)
def test_an_operator_is_told_what_cannot_be_done(action: Seek | End, problem: str) -> None:
    desk, _, reader = shop(durable="mine")
    desk.lose(reader)
    desk.step(Operate(1, action))
    assert problem in str(desk.operated[-1].problem)


def test_an_operator_ends_a_subscription_and_its_reader_is_told() -> None:
    desk, _, reader = shop(durable="mine")
    desk.step(Operate(1, End("mine")))
    assert len(desk.said(reader, Ousted)) == 1
    assert desk.operated[-1].problem is None
    assert desk.rows(READERS) == []


def test_a_subscription_that_nobody_reads_for_too_long_expires_and_one_that_is_read_does_not() -> None:
    desk = Desk(expire_after_ns=5 * SECOND)
    desk.publisher("p", 1)
    gone, _ = desk.reader("u", durable="mine"), desk.reader("v", durable="hers")
    desk.lose(gone)
    desk.wait(4 * SECOND)
    assert desk.rows(READERS) == ["hers", "mine"]
    desk.wait(2 * SECOND)
    assert desk.rows(READERS) == ["hers"]


def test_what_expires_here_is_over_where_it_had_come_from_and_nowhere_else() -> None:
    """A broker that was down for long may find one on its disk that is read elsewhere since."""
    desk = Desk(["left", "right"], expire_after_ns=5 * SECOND, brokers=("b", "left", "right"))
    left, right = desk.meet("left"), desk.meet("right")
    desk.publisher("p", 1)
    desk.tell(left, "left", "a", Durable("mine", EPOCH))
    reader = desk.reader(durable="mine")
    desk.say(left, stands(desk.own.core.stable))
    epoch = desk.epoch("mine")
    desk.lose(reader)
    desk.wait(7 * SECOND)
    assert desk.rows(READERS) == []
    over = desk.said(left, Ended)[-1]
    assert over == Ended("left", "b", "mine", epoch, epoch, over.ago)
    assert desk.said(right, Ended) == []


def test_subscriptions_are_counted_without_what_makes_brokers_and_pubends_known() -> None:
    """An operator who has none is not shown some."""
    desk = Desk(["left"])
    left = desk.meet("left", FAR, filters=["a"])
    desk.publisher("p", 1)
    assert {*desk.plane.ways, *desk.plane.brokers, *desk.plane.own} == {FAR, "left", OWN}
    assert desk.broker.status()["subscriptions"]["installed"] == 1
    desk.reader("u", durable="mine")
    assert desk.broker.status()["subscriptions"]["installed"] == 2
    desk.lose(left)
    desk.wait(SECOND)
    assert desk.broker.status()["subscriptions"]["installed"] == 2


def test_one_whose_place_another_broker_was_told_does_not_expire_until_that_has_it() -> None:
    desk = Desk(["left"], expire_after_ns=10 * SECOND)
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.lose(reader)
    desk.wait(10 * SECOND - SECOND // 10)
    desk.say(left, Fetch("b", "left", "mine"))
    assert len(desk.said(left, Fetched)) == 1
    desk.wait(SECOND)
    assert desk.rows(READERS) == ["mine"]


def test_nor_does_one_for_which_somebody_waits_here() -> None:
    """After a start it is not known for two seconds whether it has moved."""
    desk = Desk(["left"], expire_after_ns=10 * SECOND)
    desk.meet("left")
    publisher = desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.lose(reader)
    desk.wait(8 * SECOND + SECOND // 2)
    desk.restart()
    desk.meet("left", incarnation=2)
    desk.wait(SECOND // 2)
    again = desk.reader("w", durable="mine")
    desk.wait(3 * SECOND)
    assert desk.got(again) == [2]


def test_what_a_client_had_said_before_a_seek_counts_no_more() -> None:
    """What was between was taken for silence, and its next token jumped over it."""
    desk = Desk()
    desk.publisher("p", 1, 2, 3, 4, 5, 6)
    last = desk.own.core.stable
    reader = desk.reader("u", durable="mine", token={OWN: last - 6})
    desk.acknowledge(reader)
    desk.lose(reader)
    desk.wait(SECOND)
    desk.step(Operate(1, Seek("mine", last - 2)))
    again = desk.reader("u", incarnation=2, durable="mine", token={OWN: last - 4})
    assert (desk.got(again), desk.gaps(again)) == ([3, 4, 5, 6], [])


@pytest.mark.parametrize("ago_s", [None, 5])
def test_one_that_is_moved_on_over_silence_has_missed_nothing_by_its_clients_own_token(
    ago_s: int | None,
) -> None:
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    token = desk.own.core.stable
    desk.acknowledge(reader)
    for n in range(3, 24):
        desk.say(publisher, publish("p", n, topic="b"))
        desk.wait(SECOND)
    desk.lose(reader)
    desk.course().knowledge.trim(0)
    assert desk.own.core.forgotten > token
    desk.step(Operate(1, Seek("mine", None if ago_s is None else desk.clock - ago_s * 1_000_000)))
    reader = desk.reader(incarnation=2, durable="mine", token={OWN: token})
    desk.say(publisher, publish("p", 30))
    desk.wait(SECOND)
    assert (desk.gaps(reader), desk.got(reader)) == ([], [30])


def test_one_that_is_moved_behind_a_gap_it_has_yet_to_hear_of_is_told_what_is_there_instead() -> None:
    """The gap came first, and its client turned away what was before its end."""
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.lose(desk.reader(durable="mine"))
    desk.tell(left, "left", str(pubend_filter(FAR)))
    now = desk.clock
    desk.say(left, admitted(now, created=10), Start(FAR, now))
    assert desk.durable("mine").unheard
    desk.step(Operate(1, Seek("mine", 20)))
    reader = desk.reader("v", durable="mine")
    desk.say(left, items(FAR, ABSOLUTE, 20, [(60, a_publication("q", 1))], now, answers=True))
    assert (desk.gaps(reader), [tick for tick, _ in desk.events(reader)]) == ([], [60])


@pytest.mark.parametrize("is_there", [False, True])
def test_an_operator_is_told_where_one_is_that_has_gone_or_is_about_to(is_there: bool) -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    publisher = desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    desk.say(publisher, publish("p", 2, 3, 4))
    desk.acknowledge(reader)
    desk.lose(reader)
    desk.wait(SECOND)
    if is_there:
        desk.tell(left, "left", "a", Durable("mine", desk.clock))
    else:
        desk.say(left, Fetch("b", "left", "mine"))
    desk.step(Operate(1, Seek("mine", 0)))
    assert desk.operated[-1].problem == "'mine' is at left now, or is about to be"
