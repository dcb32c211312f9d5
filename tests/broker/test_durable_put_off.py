"""What is due by the clock waits for events on their way to the disk, for a while [decision 0014].

Two syncs at once take twice as long, and whoever waits for the one waits for both.
"""

from __future__ import annotations

from durable_desk import Desk, shop

from by_hand import publish
from holdfast.broker.durable.plane import NOTE_WITHIN_NS, PUT_OFF_NS
from holdfast.clock import MILLISECOND, SECOND
from holdfast.streams.storing import AppendEvents, NoteMatches, Save


def noted(desk: Desk) -> int:
    return sum(len(each.records) for each in desk.done_of(NoteMatches))


def with_a_match_to_note() -> tuple[Desk, int]:
    """A broker that is to note a match in ``NOTE_WITHIN_NS``; its publisher."""
    desk, publisher, _ = shop(durable="d")
    desk.wait(SECOND)
    desk.say(publisher, publish("p", 2, topic="a"))
    assert noted(desk) == 0
    return desk, publisher


def test_matches_are_noted_when_no_event_is_on_its_way_to_the_disk() -> None:
    desk, publisher = with_a_match_to_note()
    desk.wait(NOTE_WITHIN_NS - MILLISECOND)
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 3, topic="a"))
    desk.wait(PUT_OFF_NS)
    assert noted(desk) == 0, "it was due a while ago"
    desk.hold()
    assert noted(desk) == 0, "first of all the event is told"
    desk.wait(1)
    assert noted(desk) == 2, "and then at once"


def test_a_disk_that_takes_long_puts_nothing_off_for_longer() -> None:
    desk, publisher = with_a_match_to_note()
    desk.wait(NOTE_WITHIN_NS - MILLISECOND)
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 3, topic="a"))
    desk.wait(PUT_OFF_NS + MILLISECOND)
    assert noted(desk) == 1


def test_reports_are_made_though_events_are_on_their_way_all_the_time() -> None:
    desk, publisher, reader = shop(durable="d")
    desk.wait(SECOND)
    desk.say(publisher, publish("p", 2, topic="a"))
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 3, topic="a"))
    desk.acknowledge(reader)
    before = len(desk.done_of(Save))
    desk.wait(10 * desk.broker.settings.report_every_ns)
    assert len(desk.done_of(Save)) > before
    assert desk.own.minima.released == desk.own.core.stable


def test_what_arrives_brings_no_work_forward_that_is_due_by_the_clock() -> None:
    """An event that comes just when a note is due is written alone."""
    desk, publisher = with_a_match_to_note()
    desk.now += NOTE_WITHIN_NS
    desk.say(publisher, publish("p", 3, topic="a"))
    assert noted(desk) == 0
    desk.wait(1)
    assert noted(desk) == 2
