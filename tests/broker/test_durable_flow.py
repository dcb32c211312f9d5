"""What is on its way to a neighbour, or to a subscriber, is bounded in bytes: nobody is given up for what it was sent.

Issue 5 §3, flow control. Large events that were missed used to be answered by the gigabyte, the link was given up as
too slow, and everything began anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from durable_desk import FAR, OWN, UNHEARD_NS, Desk, admitted, items

from by_hand import a_publication
from holdfast.clock import SECOND
from holdfast.messages.credit import CREDIT_BYTES
from holdfast.messages.durable import Credit, Portion
from holdfast.messages.publications import Batch, Publication, Publish
from holdfast.messages.ticks import ABSOLUTE, Follow, Items, Nack, Start, Taken, Tick, Wants

SIZE = len(a_publication("p", 1, "a").event)
ROOM = 10 * SIZE


def numbers_in(messages: Sequence[Items]) -> list[int]:
    return [each.n for message in messages for each in message.publications if each is not None]


def publishing(count: int) -> tuple[Desk, int]:
    """A broker that has logged so many events, and a neighbour that follows it from now on."""
    desk = Desk(["left"], told_bytes=ROOM)
    left = desk.meet("left", filters=["a"])
    desk.say(left, Wants(1), Follow(OWN))
    desk.publisher("p", *range(1, count + 1))
    desk.wait(UNHEARD_NS)
    return desk, left


def test_a_follower_is_told_so_much_and_the_rest_as_it_takes_that_in() -> None:
    desk, left = publishing(100)
    assert numbers_in(desk.said(left, Items)) == list(range(1, 11))
    for taken in range(5, 100, 5):
        desk.say(left, Taken(taken * SIZE))
        told = numbers_in(desk.said(left, Items))
        assert told == list(range(1, min(100, taken + 10) + 1)), "in order, and each once"
    assert left not in desk.closed


def test_what_it_missed_is_answered_no_faster_than_it_takes_that_in() -> None:
    desk = Desk(["left"], told_bytes=ROOM, cache_bytes=1)
    left = desk.meet("left", filters=["a"])
    desk.publisher("p", *range(1, 101))
    desk.wait(UNHEARD_NS)
    desk.say(left, Wants(1), Follow(OWN))
    desk.say(left, Nack(OWN, 1, [(desk.own.core.created, desk.own.core.stable)]))
    told = numbers_in(desk.said(left, Items))
    assert told == list(range(1, len(told) + 1))
    assert 10 <= len(told) <= 11
    while len(told) < 100:
        desk.say(left, Taken(len(told) * SIZE))
        desk.wait(SECOND)
        before, told = len(told), numbers_in(desk.said(left, Items))
        assert before < len(told) <= before + 11
    assert told == list(range(1, 101))


def test_a_relay_asks_for_no_more_than_it_may_pass_on() -> None:
    """It would push out of the cache what it came for, and be asked for again whenever there is a little room."""
    desk = Desk(["left", "right"], told_bytes=ROOM)
    left, right = desk.meet("left", FAR), desk.meet("right", filters=["a"])
    desk.say(right, Wants(1), Follow(FAR))
    missed: dict[Tick, Publication] = {10 * n: a_publication("q", n, "a") for n in range(1, 101)}
    desk.say(left, Start(FAR, 2_000))
    desk.say(left, items(FAR, ABSOLUTE, 2_000, [(2_001, a_publication("q", 101, "a"))], 2_001))
    desk.say(right, Nack(FAR, 1, [(tick - 1, tick) for tick in missed]))
    answered: list[Tick] = []
    while len(answered) < len(missed):
        asked = [upto for nack in desk.said(left, Nack) for _, upto in nack.spans]
        assert asked == list(missed)[: len(asked)], "in order, and each once"
        assert len(answered) < len(asked) <= len(answered) + 11
        for tick in asked[len(answered) :]:
            desk.say(left, items(FAR, ABSOLUTE, tick - 1, [(tick, missed[tick])], tick, answers=True))
        answered = asked
        desk.say(right, Taken(SIZE * len(numbers_in(desk.said(right, Items)))))
    assert numbers_in(desk.said(right, Items)) == [101, *range(1, 101)]


def test_on_a_new_session_there_is_room_again() -> None:
    desk, left = publishing(100)
    desk.lose(left)
    left = desk.meet("left", filters=["a"])
    desk.say(left, Wants(1), Follow(OWN))
    desk.say(left, Nack(OWN, 1, [(desk.own.core.created, desk.own.core.stable)]))
    assert 10 <= len(numbers_in(desk.said(left, Items))) <= 11


@pytest.mark.parametrize("words", [(Taken(ROOM * 9),), (Taken(5 * SIZE), Taken(4 * SIZE))])
def test_who_says_it_has_taken_in_what_it_was_never_told_is_not_believed(words: tuple[Taken, ...]) -> None:
    desk, left = publishing(20)
    desk.say(left, *words)
    assert left in desk.closed


def test_what_was_taken_in_is_said_to_who_told_it() -> None:
    desk = Desk(["left"], told_bytes=ROOM)
    left = desk.meet("left", FAR)
    desk.reader()
    desk.say(left, admitted(100), Start(FAR, 100))
    events: list[tuple[Tick, Publication]] = [(100 + n, a_publication("q", n, "a")) for n in range(1, 21)]
    for tick, event in events:
        desk.say(left, items(FAR, ABSOLUTE, tick - 1, [(tick, event)], tick))
    heard = [taken.bytes for taken in desk.said(left, Taken)]
    assert heard == sorted(set(heard))
    assert heard[-1] > sum(len(event.event) for _, event in events) - ROOM / 2


# Subscribers


def large(n: int) -> Publication:
    return a_publication("p", n, "a", picture=bytes(3 * CREDIT_BYTES))


def test_a_large_event_takes_the_credit_of_several() -> None:
    desk = Desk()
    reader = desk.reader(credit=20)
    publisher = desk.client("p")
    desk.wait(UNHEARD_NS)
    for n in range(1, 31):
        desk.say(publisher, Publish(Batch([large(n)])))
    got = [publication.n for _, publication in desk.events(reader)]
    assert got == [1, 2, 3, 4, 5], "four credits each, and the last while there was any"
    desk.say(reader, Credit(1, 4))
    desk.wait(SECOND)
    assert [publication.n for _, publication in desk.events(reader)] == [1, 2, 3, 4, 5, 6]
    desk.say(reader, Credit(1, 2))
    desk.say(reader, Credit(1, 80))
    desk.wait(SECOND)
    got = [publication.n for _, publication in desk.events(reader)]
    assert got == list(range(1, len(got) + 1))
    assert len(got) == 27


def test_one_event_that_is_larger_than_all_credit_there_is_comes_all_the_same() -> None:
    desk = Desk()
    reader = desk.reader(credit=1)
    publisher = desk.client("p")
    desk.wait(UNHEARD_NS)
    desk.say(publisher, Publish(Batch([large(1), large(2)])))
    assert [publication.n for _, publication in desk.events(reader)] == [1]
    assert desk.said(reader, Portion)
    desk.say(reader, Credit(1, 3))
    desk.wait(SECOND)
    assert len(desk.events(reader)) == 1, "of what it took more than there was, nothing is left"
    desk.say(reader, Credit(1, 1))
    desk.wait(SECOND)
    assert [publication.n for _, publication in desk.events(reader)] == [1, 2]
