"""A publisher has a home, whose pubends log its events through whichever broker it hands them in [B1.4, I18].

It goes from broker to broker and repeats what it has no answer for. Where it was first logged it is known: no event
gets a second tick, none overtakes another, and the answer finds the publisher where it is.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from durable_desk import FAR, ORDERS, OWN, TOTAL, Desk

from by_hand import a_publication, publish
from holdfast.broker.durable import publishing
from holdfast.clock import SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import BEGIN, Answers, Logged, Requests, Run
from holdfast.messages.publications import Accepted, Batch, Rejected
from holdfast.messages.session import Farewell, Goodbye
from holdfast.messages.subscriptions import Confirmed, Subscribe
from holdfast.streams.storing import AppendEvents

LONG = "x" * 10_000


def accepted(desk: Desk, connection: int) -> int:
    return max((each.upto for each in desk.said(connection, Accepted)), default=0)


def asked(desk: Desk, left: int) -> list[tuple[int, int]]:
    """What was requested, each with the number before it."""
    return [
        (previous, publication.n)
        for letter in desk.said(left, Requests)
        for previous, publication in zip(letter.previous, letter.batch.publications, strict=True)
    ]


def appended(desk: Desk) -> list[int]:
    """What was logged of p."""
    publications = [each for append in desk.done_of(AppendEvents) for each in append.publications]
    return [each.n for each in publications if each.publisher == "p"]


def letter(
    *pairs: tuple[int, int], publisher: str = "p", pubend: str = OWN, origin: str = "left"
) -> Requests:
    batch = Batch([a_publication(publisher, n) for _, n in pairs])
    return Requests("b", origin, pubend, [previous for previous, _ in pairs], batch)


# At a broker that is not its home


def visited(**how: object) -> tuple[Desk, int]:
    """The broker under test, which its neighbour's publishers come to."""
    desk = Desk(["left"], **how)  # type: ignore[arg-type]
    return desk, desk.meet("left")


def test_events_go_to_the_home_though_nobody_has_heard_of_a_pubend_there() -> None:
    desk, left = visited()
    publisher = desk.client("p")
    desk.say(publisher, publish("p", 5, 6, home="left"))
    assert [(each.to, each.origin, each.pubend) for each in desk.said(left, Requests)] == [("left", "b", FAR)]
    assert asked(desk, left) == [(BEGIN, 5), (5, 6)]
    desk.say(left, Answers("b", "left", FAR, 1, "p", (Run(6, 71, 1),), (Run(5, 60, 1),)))
    assert desk.said(publisher, Logged) == [Logged(FAR, 1, (Run(6, 71, 1),), (Run(5, 60, 1),))]
    assert accepted(desk, publisher) == 6
    assert appended(desk) == [], "it is logged once, there (R1.3)"
    assert desk.plane.own == {}


def test_who_names_this_broker_as_its_home_is_at_home() -> None:
    desk, _ = visited()
    publisher = desk.client("p")
    desk.say(publisher, publish("p", 1, home="b"), publish("p", 2))
    assert (accepted(desk, publisher), appended(desk), list(desk.plane.own)) == (2, [1, 2], [OWN])


def test_total_order_has_its_sequencer_whatever_the_home_is() -> None:
    """B3.5: one pubend for everybody."""
    desk, left = visited(streams=[TOTAL])
    publisher = desk.client("p")
    desk.say(publisher, publish("p", 1, home="left"))
    assert (accepted(desk, publisher), asked(desk, left)) == (1, [])


def test_a_home_that_cannot_be_reached_is_waited_for_and_nothing_is_logged_elsewhere() -> None:
    desk = Desk(["left"])
    desk.wait(2 * SECOND)
    publisher = desk.client("p")
    desk.say(publisher, publish("p", 1, home="left"))
    desk.wait(2 * SECOND)
    assert (accepted(desk, publisher), appended(desk), desk.plane.held) == (0, [], 1)
    [waiting] = desk.broker.status()["durable"]["elsewhere"]
    assert waiting == {"broker": "left", "events": 1, "reached": False}
    left = desk.meet("left")
    desk.wait(SECOND)
    assert set(asked(desk, left)) == {(BEGIN, 1)}


@pytest.mark.parametrize("home", ["atlantis", "at/lan@tis"])
def test_a_home_that_is_no_broker_of_the_network_is_refused_by_name(home: str) -> None:
    desk, _ = visited(brokers=("b", "left", "right"))
    publisher = desk.client("p")
    desk.say(publisher, publish("p", 1, home=home))
    [rejected] = desk.said(publisher, Rejected)
    assert rejected == Rejected(1, f"the home of p is {home!r}, and no broker of this network is called so")
    other = desk.client("q")
    desk.say(other, publish("q", 1, home="right"))
    assert desk.said(other, Rejected) == [], "it may only be down"


def test_one_that_has_joined_since_the_network_was_written_down_is_known_by_its_word() -> None:
    desk, left = visited(brokers=("b",))
    publisher = desk.client("p")
    desk.say(publisher, publish("p", 1, home="left"))
    assert asked(desk, left) == [(BEGIN, 1)]


def test_a_publisher_has_one_home_and_its_name_is_one_a_broker_can_have() -> None:
    desk, left = visited()
    restless = desk.client("p")
    desk.say(restless, publish("p", 1), publish("p", 2, home="left"))
    strange = desk.client("q")
    desk.say(strange, publish("q", 1, home=LONG))
    assert {restless, strange} <= desk.closed.keys()
    assert asked(desk, left) == []


# Coming and going


def test_who_comes_back_is_not_held_to_what_was_answered_elsewhere_meanwhile() -> None:
    """A → B → A: here 1 and 2 are not known to be logged; its home has told the publisher, and has had 3."""
    desk, left = visited()
    first = desk.client("p")
    desk.say(first, publish("p", 1, 2, home="left"))
    desk.lose(first)
    again = desk.client("p")
    desk.say(again, publish("p", 4, home="left"))
    assert asked(desk, left)[2:] == [(BEGIN, 4)], "with 2 before it the pubend would see another publisher"
    desk.say(left, Answers("b", "left", FAR, 1, "p", (Run(4, 90, 1),)))
    assert accepted(desk, again) == 4


def test_what_a_publisher_left_behind_is_still_carried_until_its_grace_is_over() -> None:
    desk, left = visited()
    lost = desk.client("p")
    desk.say(lost, publish("p", 1, home="left"))
    desk.lose(lost)
    desk.wait(3 * SECOND)
    assert len(asked(desk, left)) > 1
    desk.wait(3 * SECOND)
    count = len(asked(desk, left))
    assert desk.plane.held == 0
    desk.wait(3 * SECOND)
    assert len(asked(desk, left)) == count


def test_who_says_goodbye_leaves_nothing() -> None:
    desk, _ = visited()
    leaving = desk.client("p")
    desk.say(leaving, publish("p", 1, home="left"), Goodbye(Farewell.LEAVING, "bye"))
    assert desk.plane.held == 0


def test_what_waits_for_a_home_is_bounded_and_who_had_more_is_asked_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What does not fit is not taken, nor what is behind it; when there is room the publisher repeats it, in order."""
    desk, left = visited()
    room = publishing.EVENT_OVERHEAD + len(a_publication("p", 1).event)
    monkeypatch.setattr(publishing, "ERRAND_BYTES_MAX", 2 * room)
    publisher = desk.client("p")
    for n in (1, 2, 3):
        desk.say(publisher, publish("p", n, home="left"))
    desk.wait(SECOND // 2)
    assert publisher not in desk.closed, "there is no room yet"
    desk.say(left, Answers("b", "left", FAR, 1, "p", (Run(1, 70, 1),)))
    desk.say(publisher, publish("p", 4, home="left"))
    assert asked(desk, left) == [(BEGIN, 1), (1, 2)], "4 would fit, and overtake 3"
    desk.say(left, Answers("b", "left", FAR, 1, "p", (Run(2, 71, 1),)))
    desk.wait(SECOND // 2)
    assert accepted(desk, publisher) == 2
    assert desk.said(publisher, Goodbye)[-1].farewell is Farewell.FULL
    again = desk.client("p")
    desk.say(again, publish("p", 3, 4, home="left"))
    assert asked(desk, left)[2:] == [(BEGIN, 3), (3, 4)]


def test_all_publishers_together_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, left = visited()
    room = publishing.EVENT_OVERHEAD + len(a_publication("p", 1).event)
    monkeypatch.setattr(publishing, "ERRANDS_BYTES_MAX", 2 * room)
    for name in ("p", "q"):
        desk.say(desk.client(name), publish(name, 1, home="left"))
    late = desk.client("r")
    desk.say(late, publish("r", 1, home="left"))
    assert len(asked(desk, left)) == 2
    desk.say(desk.client("q"), Goodbye(Farewell.LEAVING, "bye"))
    desk.wait(SECOND // 2)
    assert desk.said(late, Goodbye)[-1].farewell is Farewell.FULL, "there is room again"
    desk.say(desk.client("r"), publish("r", 1, home="left"))
    assert {letter.batch.publications[0].publisher for letter in desk.said(left, Requests)} == {"p", "q", "r"}


# At home


def home() -> tuple[Desk, int]:
    desk = Desk(["left"])
    return desk, desk.meet("left")


def test_the_first_event_of_a_publisher_elsewhere_makes_the_pubend() -> None:
    """B1.11: it is announced before it takes events, as any other; then they are asked for."""
    desk, left = home()
    for _ in range(2):
        desk.say(left, letter((BEGIN, 1), (1, 2)))
    assert f"$pubend/{OWN}" in [each.filter for each in desk.said(left, Subscribe)]
    assert appended(desk) == [1, 2]
    early, logged = desk.said(left, Answers)
    assert (early.hole, [(run.n, run.length) for run in logged.logged]) == (0, [(1, 2)])


def opened() -> tuple[Desk, int]:
    """At home, where another publisher has its events in the pubend already."""
    desk, left = home()
    desk.publisher("z", 1)
    return desk, left


def opening() -> tuple[Desk, int, SubscriptionId]:
    """At home, where the pubend was just made and waits for its neighbours; what opens it."""
    desk, left = home()
    desk.confirms = False
    desk.say(left, letter((4, 5)))
    return desk, left, desk.said(left, Subscribe)[-1].subscription


def test_who_asks_before_the_pubend_is_open_is_asked_for_everything_when_it_is() -> None:
    """It has it all, and asks again and again: nothing is kept twice meanwhile."""
    desk, left, announced = opening()
    for _ in range(3):
        desk.say(left, letter((BEGIN, 4), (4, 5)))
    assert desk.plane.held == 0
    desk.say(left, Confirmed(announced))
    assert desk.said(left, Answers) == [Answers("left", "b", OWN, 1, "p", hole=0)]
    desk.say(left, letter((BEGIN, 4), (4, 5)))
    assert appended(desk) == [4, 5]


def test_a_letter_that_came_before_the_pubend_was_open_takes_no_event_out_of_its_order() -> None:
    """Found by the swarm: 5 was held from an old letter, and logged before 3 and 4 from the publisher itself."""
    desk, left, announced = opening()
    publisher = desk.client("p")
    desk.say(publisher, publish("p", 3, 4, 5))
    desk.say(left, letter((BEGIN, 4)))
    desk.say(left, Confirmed(announced))
    assert appended(desk) == [3, 4, 5]
    assert accepted(desk, publisher) == 5


@pytest.mark.parametrize(
    "pubend", ["orders@b/1", "orders@b/00", "orders@b/x", "orders@b/-1", "bills@b/0", "@b/0"]
)
def test_a_pubend_that_cannot_be_here_is_refused_and_nothing_is_made(pubend: str) -> None:
    desk, left = home()
    desk.say(left, letter((BEGIN, 1), pubend=pubend))
    assert desk.plane.own == {}
    assert [(one.n, one.code) for each in desk.said(left, Answers) for one in each.refused] == [(1, "")]
    assert left not in desk.closed
    assert [each.text for each in desk.logs if each.level == "warning"] == [
        "events for a pubend that is not here"
    ]


@pytest.mark.parametrize("pubend", ["orders@left/0", "orders@b", "orders", ""])
def test_of_a_pubend_that_is_somebody_elses_nothing_is_said(pubend: str) -> None:
    """Whoever has it may have logged the event: nobody else knows that it was not."""
    desk, left = home()
    desk.say(left, letter((BEGIN, 1), pubend=pubend))
    assert (desk.plane.own, desk.said(left, Answers)) == ({}, [])
    assert [each.text for each in desk.logs if each.level == "warning"] == [
        "events for a pubend that is not here"
    ]


def test_the_sequencers_pubend_is_made_by_no_letter() -> None:
    desk = Desk(["left"], [replace(TOTAL, sequencer="left")])
    left = desk.meet("left")
    desk.say(left, letter((BEGIN, 1)))
    assert desk.plane.own == {}


def test_an_event_that_was_logged_here_and_is_repeated_elsewhere_has_its_first_tick() -> None:
    """B1.4, I18: the answer to the first was lost with the connection."""
    desk, left = opened()
    here = desk.publisher("p", 1, 2)
    runs = [run for each in desk.said(here, Logged) for run in each.runs]
    desk.lose(here)
    desk.say(left, letter((BEGIN, 2), (2, 3)))
    repeats = [run for each in desk.said(left, Answers) for run in each.repeats]
    assert repeats == [Run(2, runs[-1].tick + runs[-1].length - 1, 1)]
    assert appended(desk) == [1, 2, 3]


def test_an_event_that_came_by_letter_and_is_repeated_here_has_its_first_tick() -> None:
    desk, left = opened()
    desk.say(left, letter((BEGIN, 1)))
    [first] = desk.said(left, Answers)[0].logged
    here = desk.publisher("p", 1, 2)
    assert [run for each in desk.said(here, Logged) for run in each.repeats] == [first]
    assert (accepted(desk, here), appended(desk)) == (2, [1, 2])


def test_a_publisher_that_moves_while_its_event_is_being_written_hears_of_it_where_it_is() -> None:
    desk, left = opened()
    here = desk.publisher("p", 1)
    desk.hold(AppendEvents)
    desk.say(here, publish("p", 2))
    desk.lose(here)
    desk.say(left, letter((BEGIN, 2)))
    desk.hold()
    assert [run.n for each in desk.said(left, Answers) for run in each.logged] == [2]
    assert appended(desk) == [1, 2]


def test_a_letter_from_where_a_publisher_was_does_not_take_its_receipts_away() -> None:
    """B → A: the publisher is here, its event is being written, and its old broker asks once more."""
    desk, left = opened()
    here = desk.publisher("p", 1)
    desk.hold(AppendEvents)
    desk.say(here, publish("p", 2))
    desk.say(left, letter((BEGIN, 2)))
    desk.hold()
    assert accepted(desk, here) == 2
    assert [run.n for each in desk.said(left, Answers) for run in each.logged] == [2]


def test_a_repeat_is_answered_to_who_asked_not_to_who_asked_last() -> None:
    desk = Desk(["left", "right"])
    left, right = desk.meet("left"), desk.meet("right")
    desk.publisher("z", 1)
    desk.say(left, letter((BEGIN, 1)))
    desk.say(right, letter((BEGIN, 1), (1, 2), origin="right"))
    assert [run.n for each in desk.said(right, Answers) for run in each.repeats] == [1]
    before = len(desk.said(right, Answers))
    desk.say(left, letter((BEGIN, 1)))
    assert [run.n for run in desk.said(left, Answers)[-1].repeats] == [1]
    assert len(desk.said(right, Answers)) == before


def test_an_old_letter_cannot_put_an_event_behind_later_ones() -> None:
    """What it brings was logged, or was given up by its publisher, whose later numbers are there (FIFO, R1.2)."""
    desk, left = opened()
    desk.say(left, letter((BEGIN, 1)))
    here = desk.publisher("p", 4)
    desk.say(left, letter((1, 2), (2, 3)))
    assert (accepted(desk, here), appended(desk)) == (4, [1, 4])
    assert [each.n for each in desk.said(left, Answers)[-1].refused] == [2, 3]
    assert desk.said(here, Rejected) == [], "that is for who has asked"


def test_the_home_has_as_many_pubends_as_the_stream_says() -> None:
    desk = Desk(["left"], [replace(ORDERS, pubends=3)])
    left = desk.meet("left")
    desk.say(left, letter((BEGIN, 1), pubend="orders@b/2"), letter((BEGIN, 1), pubend="orders@b/3"))
    assert list(desk.plane.own) == ["orders@b/2"]
