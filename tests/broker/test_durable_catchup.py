"""Falling behind, and catching up: nothing is missed, nothing comes twice, nobody else waits [R1.12, R1.23, B1.13]."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from durable_desk import FAR, ORDERS, OWN, Desk, admitted, followed, items, shop

from by_hand import a_publication, publish
from holdfast.clock import SECOND
from holdfast.messages.durable import Credit, Portion, Report
from holdfast.messages.ticks import ABSOLUTE, Nack, Start
from holdfast.streams.storing import ChopMatches, NoteMatches, ReadMatches

EVENT = a_publication("q", 1)


def test_who_was_away_gets_what_it_missed_from_the_filtering_log_and_then_goes_on() -> None:
    """R1.12, R1.23: nothing is filtered twice."""
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.acknowledge(reader)
    desk.lose(reader)
    desk.say(publisher, publish("p", 3), publish("p", 4, topic="b"), publish("p", 5))
    desk.wait(SECOND)  # the filtering log has it
    reader = desk.reader("u", incarnation=2, durable="mine")
    assert len(desk.done_of(ReadMatches)) > 0
    assert desk.got(reader) == [3, 5]
    desk.say(publisher, publish("p", 6))
    assert desk.got(reader) == [3, 5, 6]
    assert desk.gaps(reader) == []


def test_who_has_no_credit_gets_nothing_more_until_it_says_that_there_is_room() -> None:
    """B1.14: it falls behind, catches up in steps as large as it can take, and is current again."""
    desk, publisher, slow = shop(durable="mine", credit=2)
    quick = desk.reader("v")
    desk.say(publisher, publish("p", *range(2, 12)))
    assert desk.got(slow) == [2, 3]
    assert desk.got(quick) == list(range(2, 12)), "and it holds up nobody"
    desk.say(slow, Credit(1, 3))
    assert desk.got(slow) == [2, 3, 4, 5, 6]
    desk.say(slow, Credit(1, 100))
    assert desk.got(slow) == list(range(2, 12))
    reads = len(desk.done_of(ReadMatches))
    desk.say(publisher, publish("p", 12))
    assert desk.got(slow) == list(range(2, 13))
    assert len(desk.done_of(ReadMatches)) == reads, "it is with the others again"


def test_what_comes_while_somebody_catches_up_is_told_behind_what_it_missed() -> None:
    """R1.12: from the moment it has fallen behind it is with the others no more."""
    desk, publisher, slow = shop(durable="mine", credit=1)
    desk.say(publisher, publish("p", 2, 3))
    desk.wait(SECOND)  # the filtering log has it
    desk.hold(ReadMatches)
    desk.say(slow, Credit(1, 100))
    desk.say(publisher, publish("p", 4))
    assert desk.got(slow) == [2]
    desk.hold()
    assert desk.got(slow) == [2, 3, 4]


def test_who_falls_behind_pins_the_silence_it_was_not_told() -> None:
    """Its matches are read from where it stands: a log that was chopped above that would be a gap."""
    desk, left, slow = followed(durable="mine", credit=1)
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, EVENT)], 200))
    desk.acknowledge(slow)
    desk.say(left, items(FAR, ABSOLUTE, 200, [], 20_000_000))
    desk.say(left, items(FAR, ABSOLUTE, 20_000_000, [(20_000_001, EVENT)], 20_000_001))
    desk.wait(SECOND)
    assert desk.said(left, Report)[-1].released == 150
    desk.say(slow, Credit(1, 10))
    assert (desk.got(slow), desk.gaps(slow)) == ([1, 1], [])


def test_who_has_acknowledged_all_while_its_matches_are_read_pins_where_it_stands() -> None:
    desk, left, slow = followed(durable="mine", credit=1)
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, EVENT), (160, EVENT)], 200))
    desk.wait(SECOND)  # the filtering log has it
    desk.say(slow, Credit(1, 1))
    desk.acknowledge(slow)
    desk.hold(ReadMatches)
    desk.say(left, items(FAR, ABSOLUTE, 200, [], 20_000_000))
    desk.say(slow, Credit(1, 10))
    desk.wait(SECOND)
    assert desk.done_of(ChopMatches) == []
    desk.hold()
    assert (desk.got(slow), desk.gaps(slow)) == ([1, 1], [])
    desk.wait(2 * SECOND)
    assert [each.through for each in desk.done_of(ChopMatches)] == [20_000_000]


def test_who_can_take_one_event_only_is_not_asked_for_one_event_at_a_time() -> None:
    """Where everything is filtered again most of it may be for others (I35)."""
    desk = Desk(["left"])
    left = desk.meet("left", FAR)
    tiny = desk.reader(durable="mine", token={FAR: 0}, credit=1)
    desk.say(left, admitted(100_000_000), Start(FAR, 100_000_000))
    lengths = []
    for _ in range(4):
        [(after, upto)] = desk.said(left, Nack)[-1].spans
        lengths.append(upto - after)
        others = [(after + i, a_publication("q", i, topic="b")) for i in range(1, 16)]
        desk.say(left, items(FAR, ABSOLUTE, after, others, upto, answers=True))
    assert (desk.got(tiny), desk.gaps(tiny)) == ([], [])
    assert lengths == [2_000_000, 4_000_000, 8_000_000, 16_000_000]


def test_a_passing_reader_without_credit_catches_up_by_filtering_again() -> None:
    desk, publisher, slow = shop(credit=1)
    desk.say(publisher, publish("p", 2), publish("p", 3, topic="b"), publish("p", 4))
    assert desk.got(slow) == [2]
    desk.say(slow, Credit(1, 10))
    assert desk.got(slow) == [2, 4]
    assert desk.done_of(ReadMatches) == [], "it has no filtering log"


def test_who_filters_again_does_not_ask_for_what_comes_by_itself() -> None:
    """It was asked for, too, farther ahead each time, and so all that came was told twice (seed 3127, tight)."""
    desk, left, reader = followed(credit=1)
    for at in range(100, 600, 100):
        events = [(at + i, a_publication("q", at + i)) for i in (10, 20, 30)]
        desk.say(left, items(FAR, ABSOLUTE, at, events, at + 100))
        for _ in events:
            desk.say(reader, Credit(1, 1))
    assert len(desk.got(reader)) == 15
    asked = [span for nack in desk.said(left, Nack) for span in nack.spans]
    assert all(upto <= 600 for _, upto in asked), asked


def test_a_passing_reader_that_was_lost_for_a_moment_goes_on_where_it_was() -> None:
    desk, publisher, reader = shop()
    desk.say(publisher, publish("p", 2))
    last = desk.said(reader, Portion)[-1].upto
    desk.lose(reader)
    desk.say(publisher, publish("p", 3))
    reader = desk.client("u")
    desk.subscribe(reader, "u", token={OWN: last})
    assert desk.got(reader) == [3]
    assert desk.gaps(reader) == []


def test_a_pubend_with_much_to_tell_does_not_keep_the_room_of_the_others() -> None:
    """Credit is the subscriber's, and its pubends have it in turn (I35)."""
    desk = Desk(streams=[replace(ORDERS, pubends=3)])
    slow = desk.reader(durable="mine", credit=1)
    for name in "pqrst":
        desk.publisher(name, *range(1, 11))
    desk.wait(SECOND)
    busy = {course.pubend for course in desk.plane.courses.values() if course.knowledge.average_bytes}
    assert len(busy) > 1
    for _ in range(19):
        desk.say(slow, Credit(1, 1))
    portions = [each for each in desk.said(slow, Portion) if each.at]
    counts = Counter(each.pubend for each in portions)
    assert sum(counts.values()) == 20
    assert counts.keys() == busy
    assert max(counts.values()) - min(counts.values()) <= 1


def test_each_that_is_behind_has_a_stream_of_its_own_in_each_pubend_and_none_when_it_has_caught_up() -> None:
    """R1.17, B1.13: who catches up in one pubend may be current in another."""
    desk = Desk(["left"])
    left = desk.meet("left", FAR)
    publisher = desk.publisher("p", 1)
    readers = {name: desk.reader(name, durable=name) for name in ("u", "v")}
    desk.say(
        left, admitted(100), Start(FAR, 100), items(FAR, ABSOLUTE, 100, [(150, a_publication("q", 1))], 200)
    )
    desk.wait(SECOND)
    place = desk.place(readers["u"])
    for reader in readers.values():
        desk.lose(reader)
    desk.say(publisher, publish("p", 2))
    desk.wait(SECOND)
    desk.hold(ReadMatches)
    readers = {
        name: desk.reader(name, durable=name, incarnation=2, token={FAR: 200, OWN: place}) for name in readers
    }
    own, far = desk.course().hosted.catchups, desk.course(FAR).hosted.catchups
    assert len(own) == 2
    assert len({id(each) for each in own.values()}) == 2
    assert not far, "they have all of that"
    desk.hold()
    assert not own, "it is discarded at the switch"
    assert [desk.got(reader) for reader in readers.values()] == [[2], [2]]
    desk.say(publisher, publish("p", 3))
    assert [desk.got(reader) for reader in readers.values()] == [[2, 3], [2, 3]]
    assert not own


def test_nothing_is_sent_to_who_is_away() -> None:
    """R1.12: from this instant on it must catch up."""
    desk, publisher, reader = shop(durable="mine")
    desk.lose(reader)
    desk.say(publisher, publish("p", 2))
    desk.wait(2 * SECOND)
    assert desk.said(reader, Portion) == []


def test_who_attaches_while_matches_are_being_written_misses_nothing_and_gets_nothing_twice() -> None:
    """B1.13: what was handed to others and is not on disk yet is told first."""
    desk, publisher, _ = shop(durable="hers")
    reader = desk.reader("v", durable="mine")
    place = desk.place(reader)
    desk.lose(reader)
    desk.hold(NoteMatches)
    desk.say(publisher, publish("p", 2, 3))
    reader = desk.reader("v", incarnation=2, durable="mine", token={OWN: place})
    desk.say(publisher, publish("p", 4))
    assert desk.got(reader) == [2, 3, 4]
    desk.hold()
    assert desk.got(reader) == [2, 3, 4]


def test_an_older_token_moves_delivery_back_and_tells_a_gap_for_what_was_released() -> None:
    """R1.9, B1.10: legal, and honest."""
    desk, publisher, reader = shop(durable="mine")
    start = desk.place(reader)
    for n in (2, 3):
        desk.wait(SECOND)
        desk.say(publisher, publish("p", n))
    desk.acknowledge(reader)
    desk.lose(reader)
    back = desk.reader("u", incarnation=2, durable="mine", token={OWN: start})
    assert desk.got(back) == [2, 3], "still in the log"
    desk.wait(20 * SECOND)
    assert desk.own.core.forgotten >= desk.own.core.stable
    late = desk.reader("u", incarnation=3, durable="mine", token={OWN: start})
    assert desk.got(late) == []
    assert {reason for _, reason in desk.gaps(late)} == {"acknowledged"}


def test_matches_that_a_full_disk_would_not_take_are_noted_again_and_nothing_is_missed() -> None:
    desk, left, reader = followed(durable="mine")
    desk.disk.capacity = 0
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, a_publication("q", 1))], 200))
    assert desk.course(FAR).hosted.constream.latest_delivered == 100  # type: ignore[union-attr]
    desk.lose(reader)
    desk.disk.capacity = 1 << 62
    desk.wait(SECOND)
    assert desk.course(FAR).hosted.constream.latest_delivered == 200  # type: ignore[union-attr]
    assert desk.got(desk.reader("u", incarnation=2, durable="mine")) == [1]
