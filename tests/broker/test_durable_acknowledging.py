"""What a reader has consumed: believed as far as it was told, answered when it is on disk [R1.8, R1.31, B1.10]."""

from __future__ import annotations

import pytest
from durable_desk import OWN, shop

from by_hand import publish
from holdfast.broker.durable.records import PLACES, PlaceRow, read
from holdfast.broker.settings import Settings
from holdfast.clock import SECOND
from holdfast.messages.durable import Acknowledge, Credit, Saved
from holdfast.streams.storing import Save


def test_an_acknowledgement_is_answered_when_it_is_on_disk() -> None:
    """R1.30, R1.31."""
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.hold(Save)
    assert desk.acknowledge(reader, 7) == []
    desk.hold()
    assert desk.said(reader, Saved) == [Saved(1, 7)]
    desk.restart()
    desk.wait(3 * SECOND)
    reader = desk.reader("u", durable="mine")
    assert desk.got(reader) == []


def test_acknowledgements_nobody_waits_for_are_on_disk_after_a_round_in_one_transaction() -> None:
    """R1.30: what many have consumed meanwhile is saved from time to time, each place once."""
    desk, publisher, first = shop(durable="mine")
    second = desk.reader("v", durable="hers")
    desk.wait(SECOND)
    ticks = []
    saved = len(desk.done_of(Save))
    for n in range(2, 12):
        desk.say(publisher, publish("p", n))
        ticks.append(desk.own.core.stable)
        for reader in (first, second):
            desk.acknowledge(reader)
    assert not [
        save for save in desk.done_of(Save)[saved:] if any(each.table == PLACES for each in save.changes)
    ]
    desk.wait(Settings("b", 1).report_every_ns)
    saves = [
        rows
        for save in desk.done_of(Save)[saved:]
        if (rows := [each for each in save.changes if each.table == PLACES])
    ]
    assert [len(rows) for rows in saves] == [2]
    places = [read(PLACES, key, row, PlaceRow) for key, row in desk.tables.read(PLACES).items()]
    assert [place.acknowledged for place in places] == [ticks[-1]] * 2
    desk.restart()
    desk.wait(3 * SECOND)
    assert desk.got(desk.reader("u", durable="mine")) == []


def test_what_was_not_on_disk_when_the_power_went_comes_again() -> None:
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.hold(Save)
    desk.acknowledge(reader, 7)
    desk.restart()
    desk.wait(3 * SECOND)
    reader = desk.reader("u", durable="mine")
    assert desk.got(reader) == [2]


def test_an_acknowledgement_of_what_was_never_told_is_not_believed() -> None:
    """B1.10."""
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.say(
        reader, Acknowledge(1, {OWN: desk.clock + 10_000_000}, 1), Acknowledge(9, {OWN: 1}), Credit(9, 1)
    )
    assert desk.said(reader, Saved) == [Saved(1, 1)], "it is answered; nothing has changed"
    desk.lose(reader)
    reader = desk.reader("u", incarnation=2, durable="mine")
    assert desk.got(reader) == [2]


def test_acknowledgements_go_forward_only() -> None:
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2), publish("p", 3))
    first, second = [tick for tick, _ in desk.events(reader)]
    desk.acknowledge(reader, **{OWN: second})
    desk.acknowledge(reader, **{OWN: first})
    desk.lose(reader)
    assert desk.got(desk.reader("u", incarnation=2, durable="mine")) == []


def test_a_full_disk_keeps_nobody_from_reading_on() -> None:
    """A known subscription is greeted though its row cannot be saved; acknowledgements wait for room."""
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.lose(reader)
    desk.tables.is_full = True
    reader = desk.reader("u", incarnation=2, durable="mine")
    assert desk.got(reader) == [2]
    desk.acknowledge(reader, 7)
    desk.wait(3 * SECOND)
    assert desk.said(reader, Saved) == []
    assert len([log for log in desk.logs if log.text == "tables cannot be saved"]) == 1, "once is enough"
    desk.tables.is_full = False
    desk.wait(SECOND)
    assert desk.said(reader, Saved) == [Saved(1, 7)]
    [row] = desk.tables.read(PLACES).values()
    [(tick, _)] = desk.events(reader)
    assert read(PLACES, OWN, row, PlaceRow).acknowledged >= tick, "what was answered is on disk"


@pytest.mark.parametrize("is_restarted", [True, False])
def test_silence_that_is_acknowledged_is_no_loss_for_who_comes_with_a_token_from_before_it(
    is_restarted: bool,
) -> None:
    """A token is saved with what was read; that there was nothing since is acknowledged by the way, or at the end."""
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    token = desk.own.core.stable
    for n in range(3, 24):
        desk.say(publisher, publish("p", n, topic="b"))
        desk.wait(SECOND)
        desk.acknowledge(reader)
    desk.lose(reader)
    assert desk.own.core.forgotten > token
    if is_restarted:
        desk.restart()
        desk.wait(3 * SECOND)
        publisher = desk.publisher("p")
    desk.course().knowledge.trim(0)
    reader = desk.reader(incarnation=2, durable="mine", token={OWN: token})
    desk.say(publisher, publish("p", 30))
    desk.wait(SECOND)
    assert (desk.gaps(reader), desk.got(reader)) == ([], [30])


def test_what_was_read_and_acknowledged_is_one_for_who_comes_with_a_token_from_before_it() -> None:
    """R1.9."""
    desk, publisher, reader = shop(durable="mine")
    token = desk.place(reader)
    desk.say(publisher, publish("p", 2))
    for n in range(3, 24):
        desk.say(publisher, publish("p", n, topic="b"))
        desk.wait(SECOND)
        desk.acknowledge(reader)
    desk.lose(reader)
    desk.course().knowledge.trim(0)
    reader = desk.reader(incarnation=2, durable="mine", token={OWN: token})
    desk.wait(SECOND)
    assert desk.gaps(reader) == [(OWN, "acknowledged")]


def test_an_application_whose_token_knows_nothing_of_a_pubend_has_had_nothing_of_it() -> None:
    """R1.9, R1.10: as when its database was put back to before there was one."""
    desk, publisher, reader = shop(durable="mine", start=0)
    desk.say(publisher, publish("p", 2))
    desk.acknowledge(reader)
    desk.lose(reader)
    reader = desk.reader(incarnation=2, durable="mine", token={})
    assert desk.got(reader) == [1, 2]
