"""What is on its way to the disk is bounded: whoever publishes more than it takes is not read from for a while.

Issue 5 §3, flow control. The events of all publishers together used to pile up while a disk stood still.
"""

from __future__ import annotations

from typing import Any

import pytest
from durable_desk import OWN, UNHEARD_NS, Desk
from sink_desk import SinkDesk

from by_hand import a_publication, publish
from holdfast.clock import SECOND
from holdfast.messages.durable import BEGIN, Answers, Logged, Requests
from holdfast.messages.publications import Accepted, Batch
from holdfast.overlay.transport import Pause, Resume
from holdfast.streams.storing import AppendEvents, EventsRefused

SIZE = len(a_publication("p", 1, "a").event)
ROOM = 10 * SIZE
LONG_NS = 60 * SECOND


class Held(Desk):
    """A broker whose disk does what it is asked for when a test says so; ``unread`` are not read from."""

    def __init__(self, *children: str) -> None:
        self.unread: dict[int, None] = {}
        super().__init__(list(children), logging_bytes=ROOM)
        self.neighbours = {child: self.meet(child) for child in children}
        self.publisher("first", 1)
        self.wait(UNHEARD_NS)
        self.hold(AppendEvents)

    def step(self, stimulus: Any) -> list[Any]:
        effects = super().step(stimulus)
        for effect in effects:
            if isinstance(effect, Pause):
                assert effect.connection not in self.unread
                self.unread[effect.connection] = None
            elif isinstance(effect, Resume):
                del self.unread[effect.connection]
        return effects

    def logged_of(self, connection: int) -> list[int]:
        return [
            run.n + i
            for message in self.said(connection, Logged)
            for run in message.runs
            for i in range(run.length)
        ]


def test_who_publishes_while_too_much_waits_is_not_read_from_until_half_of_it_is_written() -> None:
    desk = Held()
    p, q = desk.publisher("p", *range(1, 11)), desk.publisher("q")
    assert not desk.unread, "ten fit"
    desk.say(q, publish("q", 1))
    assert list(desk.unread) == [q], (
        "what it has sent is taken, and no more is read; p has said nothing since"
    )
    desk.say(p, publish("p", 11))
    assert list(desk.unread) == [q, p]
    first = desk.take(AppendEvents)
    assert [len(each.publications) for each in first] == [10, 1, 1]
    desk.queue += first[:1]
    desk.hold()
    assert not desk.unread
    desk.queue += first[1:]
    desk.hold()
    assert desk.logged_of(p) == list(range(1, 12))
    assert desk.logged_of(q) == [1]


def test_who_only_subscribes_or_publishes_elsewhere_is_read_from() -> None:
    desk = Held()
    desk.publisher("p", *range(1, 20))
    s = desk.client("s")
    desk.subscribe(s, "mine")
    assert s not in desk.unread
    assert len(desk.unread) == 1


def test_who_is_not_read_from_is_not_silent_and_is_again_when_it_is_read_from() -> None:
    desk = Held()
    p = desk.publisher("p", *range(1, 20))
    desk.lost.add(p)  # it beats, and nobody reads that
    desk.wait(LONG_NS)
    assert p not in desk.closed
    desk.hold()
    assert not desk.unread
    desk.wait(SECOND)
    assert p not in desk.closed
    desk.wait(LONG_NS)
    assert "nothing heard" in desk.closed[p]


def test_nobody_waits_for_a_disk_that_takes_nothing_any_more() -> None:
    for is_final in (False, True):
        desk = Held()
        p = desk.publisher("p", *range(1, 20))
        assert list(desk.unread) == [p]
        desk.take(AppendEvents)
        desk.step(EventsRefused(OWN, "no room", is_final=is_final))
        assert not desk.unread
        assert desk.plane.throttle.waiting == 0


def test_one_that_is_gone_is_left_alone() -> None:
    desk = Held()
    p = desk.publisher("p", *range(1, 20))
    desk.lose(p)
    del desk.unread[p]
    desk.hold()  # reading from it again would be a KeyError in ``unread``
    again = desk.client("p", incarnation=2)
    assert desk.say(again, publish("p", 20))[-1] == Accepted(20)


def test_what_brokers_ask_for_meanwhile_they_ask_for_again() -> None:
    desk = Held("left")
    left = desk.neighbours["left"]
    desk.publisher("p", *range(1, 20))
    asked = Requests("b", "left", OWN, [BEGIN], Batch([a_publication("far", 1)]))
    desk.say(left, asked)
    assert len(desk.queue) == 1
    desk.hold()
    assert not [each for each in desk.said(left, Answers) if each.publisher == "far"]
    desk.say(left, asked)
    answers = [each for each in desk.said(left, Answers) if each.publisher == "far"]
    assert [run.n for each in answers for run in each.logged] == [1]


def test_what_waits_until_its_log_may_be_written_counts_too() -> None:
    """A pubend that nobody knows yet: what its publishers send is held, and given to the disk when it is open."""
    desk = Desk(["left"], logging_bytes=ROOM)
    desk.confirms = False
    desk.meet("left")
    p = desk.client("p")
    assert Pause(p) in desk.step_of(p, publish("p", *range(1, 20)))
    assert desk.plane.throttle.waiting == 19 * SIZE
    assert len(desk.plane.throttle.paused) == 1


@pytest.mark.parametrize("events", [1, 5])
def test_nothing_is_left_over_when_all_is_written(events: int) -> None:
    desk = Held()
    for name in ("p", "q", "r"):
        desk.publisher(name, *range(1, events + 1))
    desk.hold()
    assert desk.plane.throttle.waiting == 0
    assert not desk.unread


def test_tasks_that_stage_more_than_the_disk_takes_wait_too() -> None:
    desk = SinkDesk(logging_bytes=ROOM)
    desk.hold(AppendEvents)
    desk.stage("t", 1, *"abcdefghij")
    assert len(desk.plane.throttle.paused) == 1
    desk.hold()
    assert not desk.plane.throttle.paused
    assert desk.plane.throttle.waiting == 0
    assert desk.commit(1, ("t", 10)) is not None
    assert desk.marks() == list("abcdefghij")
