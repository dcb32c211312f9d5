"""A full disk heals by itself: the broker asks from time to time, and shows that it refuses nothing any more.

Issue 5 §1: a clear state, which ends when there is room, whether or not anybody publishes. (What is refused and how:
``test_durable_publishing``; a disk that is full for real: ``tests/runtime``.)
"""

from __future__ import annotations

from typing import Any

from durable_desk import OWN, Desk

from by_hand import publish
from holdfast.clock import SECOND
from holdfast.messages.publications import Rejected
from holdfast.streams.storing import (
    AppendEvents,
    EventsRefused,
    EventsTried,
    NoteMatches,
    Save,
    TryEvents,
)

ENOUGH = 1 << 62


def pubend(desk: Desk) -> dict[str, Any]:
    """The log as an operator sees it."""
    [found] = desk.broker.status()["durable"]["pubends"]
    assert isinstance(found, dict)
    return found


def refused() -> tuple[Desk, int]:
    """A broker whose disk was full when something was published, and the publisher."""
    desk = Desk()
    publisher = desk.publisher("p", 1)
    desk.disk.capacity = 0
    desk.say(publisher, publish("p", 2))
    assert pubend(desk)["state"] == "refusing"
    return desk, publisher


def said(desk: Desk, text: str) -> int:
    return sum(log.text == text for log in desk.logs)


def test_a_log_that_has_room_again_says_so_though_nobody_publishes() -> None:
    desk, publisher = refused()
    desk.wait(2 * SECOND)
    assert (pubend(desk)["state"], "no space left" in pubend(desk)["problem"]) == ("refusing", True)
    desk.disk.capacity = ENOUGH
    desk.wait(SECOND)
    assert (pubend(desk)["state"], pubend(desk)["problem"]) == ("ok", None)
    assert said(desk, "events can be logged again") == 1
    asked = len(desk.done_of(TryEvents))
    desk.wait(2 * SECOND)
    assert len(desk.done_of(TryEvents)) == asked, "nobody asks while nothing is refused"
    desk.say(publisher, publish("p", 3, heard=2))
    assert desk.own.core.last_number("p") == 3


def test_a_log_is_asked_once_at_a_time() -> None:
    """A disk that hangs is not given ever more to do."""
    desk, _ = refused()
    desk.hold(TryEvents)
    desk.wait(3 * SECOND)
    assert desk.take(TryEvents) == [TryEvents(OWN)]
    desk.step(EventsTried(OWN, "still no room"))
    assert pubend(desk)["problem"] == "still no room"
    desk.wait(SECOND)
    assert desk.take(TryEvents) == [TryEvents(OWN)]


def test_what_was_sent_behind_something_that_was_refused_is_refused_too_though_there_is_room_again() -> None:
    """Its publisher had not heard yet. What that one sends again would come behind it: events out of order."""
    desk, publisher = refused()
    desk.disk.capacity = ENOUGH
    desk.wait(SECOND // 2)
    desk.say(publisher, publish("p", 3))
    assert [each.n for each in desk.said(publisher, Rejected)] == [2, 3]
    assert pubend(desk)["state"] == "refusing"
    desk.wait(SECOND)
    assert (pubend(desk)["state"], said(desk, "events can be logged again")) == ("ok", 1)
    desk.say(publisher, publish("p", 4, heard=2))
    assert [each.n for each in desk.said(publisher, Rejected)] == [2, 3, 4], "sent before it had heard of all"
    desk.say(publisher, publish("p", 5, heard=4))
    assert desk.own.core.last_number("p") == 5


def test_a_log_that_has_failed_is_not_asked() -> None:
    desk = Desk()
    publisher = desk.publisher("p", 1)
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 2))
    desk.take(AppendEvents)
    desk.step(EventsRefused(OWN, "the disk has failed", is_final=True))
    desk.wait(2 * SECOND)
    assert desk.done_of(TryEvents) == []
    assert pubend(desk)["state"] == "failed"


def test_a_filtering_log_that_could_not_be_made_heals_though_nothing_matches() -> None:
    """It is made before anything is in it, so there is nothing else to be noted again."""
    desk = Desk()
    desk.publisher("p", 1)
    desk.disk.capacity = 0
    desk.reader(durable="u")
    desk.wait(SECOND)
    [hosted] = desk.broker.status()["durable"]["hosted"]
    assert "no space left" in hosted["problem"]
    assert len(desk.done_of(NoteMatches)) > 2
    assert said(desk, "matches cannot be noted") == 1, "the second time is no news"
    desk.disk.capacity = ENOUGH
    desk.wait(SECOND)
    [hosted] = desk.broker.status()["durable"]["hosted"]
    assert hosted["problem"] is None
    noted = len(desk.done_of(NoteMatches))
    desk.wait(SECOND)
    assert len(desk.done_of(NoteMatches)) == noted


def test_tables_heal_though_nobody_changes_anything_any_more() -> None:
    desk = Desk()
    desk.publisher("p", 1)
    desk.wait(SECOND)
    desk.tables.is_full = True
    desk.reader(durable="u")
    desk.wait(SECOND)
    assert desk.broker.status()["durable"]["problem"] is not None
    desk.tables.is_full = False
    desk.wait(SECOND)
    assert desk.broker.status()["durable"]["problem"] is None
    assert desk.done_of(Save)
