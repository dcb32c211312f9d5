"""What a pubend says on disk of its silence is a promise to whoever reads logs: nothing comes up to there.

Issue 6 §6; B1.3.
"""

from __future__ import annotations

import msgspec
import pytest
from durable_desk import Desk

from by_hand import publish
from holdfast.broker.durable.records import LEASES
from holdfast.broker.input import ClockSet
from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.ticks import Tick
from holdfast.streams.ends import Leased
from holdfast.streams.storing import AppendEvents, Save

EVERY = 500 * MILLISECOND


def said(desk: Desk) -> list[Leased]:
    """What is on disk, each time that was saved."""
    rows = [change.value for save in desk.done_of(Save) for change in save.changes if change.table == LEASES]
    return [msgspec.msgpack.decode(row, type=Leased) for row in rows if row is not None]


def clock(desk: Desk) -> Tick:
    return (desk.now + desk.wall) // 1_000


def test_an_idle_pubend_goes_on_to_say_how_far_it_is_silent_and_only_so_often() -> None:
    desk = Desk(vouch_every_ns=EVERY)
    desk.publisher("p", 1)
    desk.wait(20 * SECOND)
    before = len(said(desk))
    desk.wait(10 * SECOND)
    later = said(desk)[before:]
    assert 15 <= len(later) <= 20, "every half second"
    silent = [each.silent for each in later]
    assert silent == sorted(set(silent))
    assert 0 <= clock(desk) - silent[-1] <= 2 * EVERY // 1_000
    assert all(each.silent <= each.lease for each in later), "else the next life could use such a tick"


def test_while_an_event_is_on_its_way_to_the_disk_nothing_is_said_beyond_it() -> None:
    desk = Desk(vouch_every_ns=EVERY)
    publisher = desk.publisher("p", 1)
    desk.wait(4 * SECOND)
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 2))
    [append] = [each for each in desk.queue if isinstance(each, AppendEvents)]
    before = len(said(desk))
    desk.wait(4 * SECOND)
    held = said(desk)[before:]
    assert held
    assert {each.silent for each in held} == {append.ticks[0] - 1}
    assert max(each.stable for each in held) < append.ticks[0]


@pytest.mark.parametrize("hours", [-1, 1])
def test_no_event_is_ever_below_what_was_said_whatever_the_clock_shows_and_in_another_life(
    hours: int,
) -> None:
    desk = Desk(vouch_every_ns=EVERY)
    publisher = desk.publisher("p", 1)
    for n in range(2, 5):
        desk.wait(3 * SECOND)
        promised = max(each.silent for each in said(desk))
        if n == 3:
            desk.step(ClockSet(desk.wall + hours * 3600 * SECOND))
        desk.say(publisher, publish("p", n))
        assert desk.own.core.stable > promised
    desk.wait(3 * SECOND)
    promised = max(each.silent for each in said(desk))
    desk.restart()
    desk.step(ClockSet(desk.wall - 3600 * SECOND))
    desk.wait(3 * SECOND)
    desk.publisher("q", 1)
    assert desk.own.core.stable > promised
