"""Publishers on their way to a pubend elsewhere, by letters that may be lost, repeated and overtaken [design.md §2].

And the other end of it: total order is one pubend, at the sequencer, for the publishers of all brokers [B3.5, B3.6].
"""

from __future__ import annotations

from dataclasses import replace

from durable_desk import FAR, OWN, TOTAL, Desk

from by_hand import a_publication, publish
from holdfast.broker.durable.publishing import REQUESTS_MAX
from holdfast.clock import SECOND
from holdfast.messages.durable import BEGIN, Answers, Logged, Requests, Run
from holdfast.messages.publications import Accepted, Batch, Rejected
from holdfast.streams.storing import AppendEvents


def far_sequencer() -> tuple[Desk, int]:
    """The broker under test has publishers, and its neighbour the pubend."""
    desk = Desk(["left"], [replace(TOTAL, sequencer="left")])
    return desk, desk.meet("left", FAR)


def asked(desk: Desk, left: int) -> list[tuple[int, int]]:
    """What was requested, each with the number before it."""
    return [
        (previous, publication.n)
        for letter in desk.said(left, Requests)
        for previous, publication in zip(letter.previous, letter.batch.publications, strict=True)
    ]


def logged(n: int, length: int = 1, tick: int = 70) -> Answers:
    return Answers("b", "left", FAR, 1, "p", (Run(n, tick, length),))


def accepted(desk: Desk, connection: int) -> int:
    return max((each.upto for each in desk.said(connection, Accepted)), default=0)


# Here, to a pubend elsewhere


def test_a_request_names_the_number_sent_before_it_and_is_accepted_when_the_pubend_says_so() -> None:
    desk, left = far_sequencer()
    publisher = desk.publisher("p", 1, 2)
    desk.say(publisher, publish("p", 3))
    assert asked(desk, left) == [(BEGIN, 1), (1, 2), (2, 3)]
    assert accepted(desk, publisher) == 0
    desk.say(left, logged(1, 2))
    assert desk.said(publisher, Logged) == [Logged(FAR, 1, (Run(1, 70, 2),))]
    assert accepted(desk, publisher) == 2
    assert desk.done_of(AppendEvents) == [], "it is logged once, there (R1.3)"


def test_a_request_says_of_which_refusals_its_publisher_has_heard() -> None:
    desk, left = far_sequencer()
    publisher = desk.publisher("p", 1)
    desk.say(left, Answers("b", "left", FAR, 1, "p", refused=(Rejected(1, "full"),)))
    desk.say(publisher, publish("p", 2))
    desk.say(publisher, publish("p", 3, heard=1))
    assert [letter.heard for letter in desk.said(left, Requests)] == [0, 0, 1]


def test_what_comes_while_others_wait_is_sent_at_once_behind_them() -> None:
    desk, left = far_sequencer()
    publisher = desk.publisher("p", 1, 2, 3)
    desk.say(left, logged(1))
    desk.say(publisher, publish("p", 4))
    assert asked(desk, left)[3:] == [(3, 4)]


def test_what_has_no_answer_for_a_second_is_sent_again_from_the_first() -> None:
    desk, left = far_sequencer()
    publisher = desk.publisher("p", 1, 2, 3)
    desk.say(left, logged(1))
    desk.wait(SECOND // 2)
    assert len(asked(desk, left)) == 3, "not yet"
    desk.wait(SECOND)
    assert asked(desk, left)[3:] == [(BEGIN, 2), (2, 3)], "nothing is under way before the first any more"
    desk.say(left, Answers("b", "left", FAR, 1, "p", (), (Run(2, 71, 2),)))
    assert desk.said(publisher, Logged)[-1] == Logged(FAR, 1, (), (Run(2, 71, 2),))
    assert accepted(desk, publisher) == 3
    desk.wait(3 * SECOND)
    assert len(asked(desk, left)) == 5, "whatever has an answer is not sent again"


def test_a_hole_is_filled_once_though_every_letter_behind_it_speaks_of_it() -> None:
    """Else each of many letters would have all of them sent again: a flood, where one was lost."""
    desk, left = far_sequencer()
    publisher = desk.publisher("p", 1)
    for n in (2, 3, 4):
        desk.say(publisher, publish("p", n))
    hole = Answers("b", "left", FAR, 1, "p", hole=0)
    for _ in range(3):
        desk.say(left, hole)
    assert asked(desk, left)[4:] == [(BEGIN, 1), (1, 2), (2, 3), (3, 4)]
    desk.say(left, logged(1))
    desk.say(left, replace(hole, hole=1))
    assert asked(desk, left)[8:] == [(BEGIN, 2), (2, 3), (3, 4)], (
        "another one: what was sent again was lost, too"
    )
    desk.wait(2 * SECOND)
    before = len(asked(desk, left))
    desk.say(left, replace(hole, hole=1))
    assert asked(desk, left)[before:] == [(BEGIN, 2), (2, 3), (3, 4)], "and the same, after it was sent again"


def test_a_hole_is_filled_from_what_was_answered_last() -> None:
    """The letter with 1 was lost: the pubend took nothing behind it, and says so."""
    desk, left = far_sequencer()
    publisher = desk.publisher("p", 1)
    desk.say(publisher, publish("p", 2))
    desk.say(left, Answers("b", "left", FAR, 1, "p", hole=0))
    assert asked(desk, left) == [(BEGIN, 1), (1, 2), (BEGIN, 1), (1, 2)]
    assert desk.said(publisher, Logged) == []


def test_an_answer_that_comes_twice_is_told_once() -> None:
    desk, left = far_sequencer()
    publisher = desk.publisher("p", 1, 2)
    for answer in (logged(1), logged(1, 2), logged(1, 2)):
        desk.say(left, answer)
    assert desk.said(publisher, Logged) == [
        Logged(FAR, 1, (Run(1, 70, 1),)),
        Logged(FAR, 1, (Run(2, 71, 1),)),
    ]


def test_what_the_pubend_refuses_is_rejected_and_the_rest_goes_on() -> None:
    desk, left = far_sequencer()
    publisher = desk.publisher("p", 1, 2)
    desk.say(left, Answers("b", "left", FAR, 1, "p", (Run(2, 70, 1),), refused=(Rejected(1, "no room"),)))
    assert desk.said(publisher, Rejected) == [Rejected(1, "no room")]
    assert accepted(desk, publisher) == 2
    assert desk.plane.held == 0


def test_a_publisher_that_sends_again_what_is_under_way_does_not_double_it() -> None:
    desk, left = far_sequencer()
    lost = desk.publisher("p", 1, 2)
    desk.lose(lost)
    publisher = desk.client("p")
    desk.say(publisher, publish("p", 1, 2, 3))
    assert asked(desk, left)[2:] == [(BEGIN, 1), (1, 2), (2, 3)]
    assert desk.plane.held == 3
    desk.say(left, logged(1, 3))
    assert accepted(desk, publisher) == 3


def test_what_was_published_before_the_pubend_could_be_reached_is_sent_when_it_is() -> None:
    desk = Desk(["left"], [replace(TOTAL, sequencer="left")])
    desk.wait(2 * SECOND)
    publisher = desk.publisher("p", 1)
    left = desk.meet("left", FAR)
    desk.wait(2 * SECOND)
    assert set(asked(desk, left)) == {(BEGIN, 1)}
    desk.say(left, logged(1))
    assert accepted(desk, publisher) == 1


def test_many_requests_go_in_letters_of_bounded_size_in_order() -> None:
    desk, left = far_sequencer()
    count = 2 * REQUESTS_MAX + 1
    desk.publisher("p", *range(1, count + 1))
    assert [len(letter.batch.publications) for letter in desk.said(left, Requests)] == [
        REQUESTS_MAX,
        REQUESTS_MAX,
        1,
    ]
    assert asked(desk, left) == [(BEGIN, 1), *((n - 1, n) for n in range(2, count + 1))]


def test_answers_for_nobody_here_are_not_believed() -> None:
    desk, left = far_sequencer()
    publisher = desk.publisher("p", 1)
    desk.say(left, replace(logged(1), publisher="q"), replace(logged(1), pubend=OWN), logged(7))
    assert accepted(desk, publisher) == 0
    assert left not in desk.closed


def test_an_answer_for_more_than_was_ever_sent_is_taken_for_what_was() -> None:
    """However long a run it names: the work is bounded by what waits."""
    desk, left = far_sequencer()
    publisher = desk.publisher("p", 5, 6)
    desk.say(left, logged(1, 2**62))
    assert desk.said(publisher, Logged) == [Logged(FAR, 1, (Run(5, 74, 1), Run(6, 75, 1)))]
    assert accepted(desk, publisher) == 6


# Elsewhere, to the sequencer here


def requests(*pairs: tuple[int, int], publisher: str = "q") -> Requests:
    batch = Batch([a_publication(publisher, n) for _, n in pairs])
    return Requests("b", "left", OWN, [previous for previous, _ in pairs], batch)


def sequencer() -> tuple[Desk, int]:
    desk = Desk(["left"], [TOTAL])
    return desk, desk.meet("left")


def test_what_was_sent_from_elsewhere_before_its_publisher_had_heard_of_a_full_disk_is_refused_too() -> None:
    desk, left = sequencer()
    desk.disk.capacity, capacity = 0, desk.disk.capacity
    desk.say(left, requests((BEGIN, 1)))
    desk.disk.capacity = capacity
    desk.wait(2 * SECOND)
    desk.say(left, requests((1, 2)), replace(requests((BEGIN, 2)), heard=1))
    answers = desk.said(left, Answers)
    assert [each.n for letter in answers for each in letter.refused] == [1, 2]
    assert [run.n for letter in answers for run in letter.logged] == [2], "now it has heard"


def test_the_sequencers_pubend_is_there_before_anybody_publishes() -> None:
    """Others send their events there, wherever the first one comes from."""
    desk, _ = sequencer()
    assert list(desk.plane.own) == [OWN]


def test_publishers_of_two_brokers_have_one_order_and_everybody_the_same() -> None:
    """B3.5, I26: the tick of the one pubend is the order."""
    desk, left = sequencer()
    readers = [desk.reader(f"u{i}") for i in range(2)]
    publisher = desk.publisher("p", 1)
    for n in (1, 2, 3):
        desk.say(left, requests((BEGIN if n == 1 else n - 1, n)))
        desk.say(publisher, publish("p", n + 1))
    orders = [[publication.id for _, publication in desk.events(each)] for each in readers]
    assert orders[0] == orders[1]
    assert orders[0] == [("p", 1), ("q", 1), ("p", 2), ("q", 2), ("p", 3), ("q", 3), ("p", 4)]
    answers = desk.said(left, Answers)
    assert [(each.publisher, [run.n for run in each.logged]) for each in answers] == [
        ("q", [1]),
        ("q", [2]),
        ("q", [3]),
    ]


def test_a_hole_is_answered_and_nothing_behind_it_is_taken() -> None:
    desk, left = sequencer()
    desk.say(left, requests((BEGIN, 1)))
    desk.say(left, requests((2, 3), (3, 4)))
    assert desk.said(left, Answers)[-1] == Answers("left", "b", OWN, 1, "q", hole=1)
    desk.say(left, requests((BEGIN, 2), (2, 3), (3, 4)))
    assert [run for each in desk.said(left, Answers) for run in each.logged][-1].length == 3
    assert [each.publications[0].n for each in desk.done_of(AppendEvents)] == [1, 2]


def test_a_letter_that_came_twice_is_answered_with_the_first_ticks() -> None:
    """I18."""
    desk, left = sequencer()
    for _ in range(2):
        desk.say(left, requests((BEGIN, 1), (1, 2)))
    first, second = desk.said(left, Answers)
    ticks = [run.tick + i for run in first.logged for i in range(run.length)]
    again = [run.tick + i for run in second.repeats for i in range(run.length)]
    assert ticks == again
    assert len(desk.done_of(AppendEvents)) == 1


def test_nothing_is_answered_before_it_is_on_disk_and_a_restarted_sequencer_continues_its_log() -> None:
    """B3.6."""
    desk, left = sequencer()
    desk.say(left, requests((BEGIN, 1)))
    first = desk.said(left, Answers)[0].logged[0]
    desk.hold(AppendEvents)
    desk.say(left, requests((1, 2)))
    assert len(desk.said(left, Answers)) == 1
    desk.restart()
    left = desk.meet("left", incarnation=2)
    desk.say(left, requests((BEGIN, 1), (1, 2)))
    answers = desk.said(left, Answers)
    assert [run for each in answers for run in each.repeats] == [first]
    [second] = [run for each in answers for run in each.logged]
    assert (second.n, second.tick > first.tick) == (2, True)


def test_two_publishers_under_one_name_at_two_brokers_are_refused_not_mixed() -> None:
    desk, left = sequencer()
    desk.say(left, requests((BEGIN, 5)))
    desk.say(left, requests((3, 6)))
    [refused] = desk.said(left, Answers)[-1].refused
    assert (refused.n, refused.code) == (6, "event")
    assert "two publishers have this name" in refused.problem
