"""A broker knows where its logs ended: the last commit before a crash is not cut off in silence if it was damaged.

Issue 5 §1; I16, I17, I20. Where a log ends is saved with its lease, once a second, and only after it was synced.
"""

from __future__ import annotations

import msgspec
import pytest
from durable_desk import OWN, UNHEARD_NS, Desk, shop

from by_hand import publish
from holdfast.broker.durable.records import LEASES
from holdfast.broker.input import ClockSet
from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.ticks import Tick
from holdfast.streams.ends import Leased
from holdfast.streams.storing import AppendEvents, Save


def ends_saved(desk: Desk) -> list[Tick]:
    """Where the log ended, each time that was saved."""
    rows = [change.value for save in desk.done_of(Save) for change in save.changes if change.table == LEASES]
    return [msgspec.msgpack.decode(row, type=Leased).stable for row in rows if row is not None]


def flip_the_last_bit(desk: Desk) -> None:
    """Of the last commit to the log of the broker's pubend."""
    [name] = [each for each in desk.disk.names() if each.startswith("events-") and each.endswith(".segment")]
    whole = desk.disk.read(name)
    assert whole is not None
    desk.disk.replace(name, whole[:-1] + bytes([whole[-1] ^ 1]))


def test_a_damaged_last_commit_is_a_gap_for_who_was_away_and_its_tick_is_not_used_again() -> None:
    desk, publisher, reader = shop(1, durable="mine")
    desk.lose(reader)
    desk.say(publisher, publish("p", 2))
    desk.say(publisher, publish("p", 3))
    last = desk.own.core.stable
    desk.wait(2 * SECOND)
    flip_the_last_bit(desk)
    desk.restart()
    [log] = [log for log in desk.logs if log.text == "a log is damaged"]
    assert (log.fields["upto"], log.fields["reason"]) == (last, "damaged")
    desk.wait(UNHEARD_NS)
    reader = desk.reader("u", incarnation=2, durable="mine")
    desk.publisher("p", 4)
    assert desk.got(reader) == [2, 4]
    assert desk.gaps(reader) == [(OWN, "damaged")]
    assert desk.events(reader)[-1][0] > last


def test_it_is_still_a_gap_after_another_start_and_not_another_one() -> None:
    desk, publisher, reader = shop(1, durable="mine")
    desk.lose(reader)
    desk.say(publisher, publish("p", 2))
    desk.wait(2 * SECOND)
    flip_the_last_bit(desk)
    for incarnation in (2, 3):
        desk.restart()
        desk.wait(UNHEARD_NS)
        desk.publisher("p", incarnation + 1)
        desk.wait(2 * SECOND)
        assert len(desk.own.core.lost) == 1
    reader = desk.reader("u", incarnation=2, durable="mine")
    assert desk.got(reader) == [3, 4]
    assert desk.gaps(reader) == [(OWN, "damaged")]


def test_a_torn_write_that_nobody_had_heard_of_is_none() -> None:
    desk, publisher, reader = shop(1, durable="mine")
    desk.wait(2 * SECOND)
    desk.lose(reader)
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 2))
    desk.wait(2 * SECOND)
    assert ends_saved(desk)[-1] == desk.own.core.stable, "what is not stable is not saved as the end"
    desk.restart()
    desk.wait(UNHEARD_NS)
    reader = desk.reader("u", incarnation=2, durable="mine")
    desk.publisher("p", 2)
    assert desk.got(reader) == [2]
    assert desk.gaps(reader) == []


def test_where_the_log_ends_is_saved_once_a_second_and_with_the_lease() -> None:
    desk = Desk()
    publisher = desk.publisher("p", 1)
    for n in range(2, 101):
        desk.wait(50 * MILLISECOND)
        desk.say(publisher, publish("p", n))
    ends = ends_saved(desk)
    assert 4 <= len(ends) <= 6, "in five seconds"
    assert ends == sorted(set(ends))
    tables = [{change.table for change in save.changes} for save in desk.done_of(Save)[-4:]]
    assert tables == [{LEASES}] * 4, "nothing else is saved then"
    desk.wait(1_200 * MILLISECOND)
    assert ends_saved(desk)[-1] == desk.own.core.stable, "a second later at the latest"


def test_while_nothing_is_logged_nothing_is_saved() -> None:
    desk = Desk()
    desk.publisher("p", 1)
    desk.wait(5 * SECOND)
    saves = len(desk.done_of(Save))
    desk.wait(4 * SECOND)
    assert len(desk.done_of(Save)) == saves
    desk.restart()
    desk.wait(5 * SECOND)
    assert ends_saved(desk) == [], "nor by another life, which found it in the log"


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_does_not_keep_the_end_from_being_saved(hours: int) -> None:
    """No new lease is wanted for an hour if it goes back; if it goes forward, there is nothing to tell any more."""
    desk = Desk()
    publisher = desk.publisher("p", 1)
    desk.wait(2 * SECOND)
    desk.say(publisher, publish("p", 2))
    desk.step(ClockSet(desk.wall + hours * 3600 * SECOND))
    desk.wait(2 * SECOND)
    assert ends_saved(desk)[-1] == desk.own.core.stable
