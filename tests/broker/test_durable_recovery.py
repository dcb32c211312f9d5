"""What a broker finds on its disk when it starts: taken up, or refused by name, or announced as lost [I16, I20]."""

from __future__ import annotations

from dataclasses import replace

import pytest
from durable_desk import FAR, ORDERS, OWN, TOTAL, UNHEARD_NS, Desk, followed, items, shop

from by_hand import a_publication, publish
from holdfast.broker.durable.records import (
    BROKER,
    HOSTED,
    LEASES,
    NAME,
    PLACES,
    PUBENDS,
    READERS,
    REPORTS,
    DamagedRow,
    ReaderRow,
    change,
)
from holdfast.broker.durable.recovery import ChangedStream, WrongFolder
from holdfast.clock import SECOND
from holdfast.messages.durable import Fetch, Fetched, Logged, Report
from holdfast.messages.subscriptions import Confirmed, Subscribe
from holdfast.messages.ticks import ABSOLUTE, Follow, Items, Lost, Nack, Start, Wants
from holdfast.streams.storing import AppendEvents, ChopMatches, ReadMatches, Recovered

EVENT = a_publication("q", 1)


@pytest.mark.parametrize("table", [PUBENDS, LEASES, REPORTS, HOSTED, READERS, PLACES])
def test_a_row_that_cannot_be_read_is_named_and_the_broker_does_not_start(table: str) -> None:
    """Never served, never guessed."""
    with pytest.raises(DamagedRow, match=f"{table}.*{OWN}"):
        Desk().begin_with(Recovered({table: {OWN: b"\xc1"}}))


def test_the_filter_of_a_row_must_be_one() -> None:
    desk = Desk()
    desk.tables.apply([change(READERS, "mine", ReaderRow(1, "a WHERE", 1, {}, 0))])
    with pytest.raises(DamagedRow, match="mine"):
        desk.restart()


def test_the_folder_of_another_broker_is_refused_by_name() -> None:
    desk = Desk()
    assert desk.tables.read(BROKER)[NAME] == b"b", "whose it is is said at the first start"
    with pytest.raises(WrongFolder, match="lisbon"):
        desk.begin_with(Recovered({BROKER: {NAME: b"lisbon"}}))


@pytest.mark.parametrize("pubends", [1, 3])
def test_a_stream_with_logs_keeps_the_number_of_its_pubends(pubends: int) -> None:
    """Or the events of a publisher would be in two logs: out of order, and those that it repeats twice."""
    desk = Desk(streams=[replace(ORDERS, pubends=2)])
    desk._settings["streams"] = (replace(ORDERS, pubends=pubends),)
    desk.restart()
    desk.publisher("p", 1)
    desk.restart()
    desk._settings["streams"] = (replace(ORDERS, pubends=2),)
    with pytest.raises(ChangedStream, match=f"orders were made with pubends = {pubends}, and now it is 2"):
        desk.restart()


def test_a_stream_that_is_not_durable_any_more_leaves_its_log_as_it_is() -> None:
    desk = Desk()
    desk.publisher("p", 1)
    rows = desk.tables.read(PUBENDS)
    desk._settings["streams"] = (replace(ORDERS, name="other"),)
    desk.restart()
    desk.wait(20 * SECOND)
    assert desk.plane.own == {}
    assert desk.tables.read(PUBENDS) == rows


def test_a_pubend_goes_on_above_everything_it_ever_said() -> None:
    """I19: ticks are not given twice, whatever the clock shows."""
    desk, publisher, reader = shop(1, 2, start=1)
    ticks = [tick for tick, _ in desk.events(reader)]
    desk.wall -= 10 * SECOND
    desk.restart()
    publisher = desk.publisher("p", 3)
    assert desk.said(publisher, Logged)[0].runs[0].tick > max(ticks)


def test_what_was_said_to_be_silent_under_a_lease_is_known_to_be_in_the_next_life() -> None:
    """B1.3: the log says nothing of it, and whoever had not heard it asks."""
    desk = Desk(["left"])
    desk.meet("left", filters=["a"])
    desk.publisher("p", 1)
    desk.wait(UNHEARD_NS + SECOND)
    last, silent = desk.own.core.stable, desk.course().knowledge.edge
    desk.restart()
    left = desk.meet("left", filters=["a"], incarnation=2)
    desk.say(left, Wants(1), Follow(OWN), Nack(OWN, ABSOLUTE, [(last, silent)]))
    [answer] = desk.said(left, Items)
    assert (list(answer.los), list(answer.ticks), list(answer.publications)) == ([last], [silent], [None])


def test_a_log_that_is_gone_is_announced_to_whoever_had_not_read_it() -> None:
    """Events were there: that they are not is a gap with a reason, never silence (R1.7)."""
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2, 3))
    desk.wait(SECOND)
    for name in [each for each in desk.disk.names() if each.startswith("events-")]:
        desk.disk.remove(name)
    desk.restart()
    desk.wait(3 * SECOND)
    reader = desk.reader("u", incarnation=2, durable="mine")
    publisher = desk.publisher("p", 4)
    assert publisher not in desk.closed
    assert "the log is gone" in {reason for _, reason in desk.gaps(reader)}
    assert desk.got(reader) == [4]


@pytest.mark.parametrize("is_gone", [True, False], ids=["the log is gone", "its end is cut off"])
def test_what_was_lost_is_still_announced_after_another_start(is_gone: bool) -> None:
    """New events stand in the log behind the loss: without its own record they would make silence of it."""
    desk, publisher, _ = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.say(publisher, publish("p", 3))
    desk.plane.saving.add(desk.own.row())
    desk.wait(SECOND)
    [segment] = [each for each in desk.disk.names() if each.startswith("events-") and "segment" in each]
    for name in [each for each in desk.disk.names() if each.startswith("events-")]:
        if is_gone:
            desk.disk.remove(name)
    if not is_gone:
        whole = desk.disk.read(segment)
        assert whole is not None
        desk.disk.replace(segment, whole[: len(whole) - 20])
    desk.restart()
    desk.wait(3 * SECOND)
    desk.publisher("p", 4)
    desk.wait(SECOND)
    for life in (2, 3):
        desk.restart()
        desk.wait(3 * SECOND)
        reader = desk.reader("u", incarnation=life, durable="mine")
        desk.wait(SECOND)
        assert desk.gaps(reader), f"in life {life} it is silence"
        assert 4 in desk.got(reader)


def test_a_new_pubend_whose_name_somebody_knows_from_before_has_lost_its_log() -> None:
    """The whole folder was lost: what its subscribers' broker still needs is announced as gone."""
    desk = Desk(["left"])
    left = desk.meet("left", filters=["a"])
    publisher = desk.publisher("p", 1)
    desk.say(left, Report("b", "left", OWN, 7, 50, 60))
    assert desk.own.core.lost == [Lost(50, desk.own.core.created, "the log is gone")]
    assert len(desk.said(publisher, Logged)) == 1, "and it takes events"


def test_what_was_lost_under_a_name_is_noted_once_however_often_its_readers_report() -> None:
    desk = Desk(["left"])
    left = desk.meet("left", filters=["a"])
    desk.hold(AppendEvents)
    desk.publisher("p", 1)
    for number in (7, 8, 9):
        desk.say(left, Report("b", "left", OWN, number, 50, 60))
    assert desk.own.core.lost == [Lost(50, desk.own.core.created, "the log is gone")]
    assert len([log for log in desk.logs if "is gone" in log.text]) == 1


def test_a_pubend_that_never_had_an_event_has_lost_no_log() -> None:
    desk = Desk(streams=[TOTAL])
    desk.reader("u", durable="mine")
    desk.wait(SECOND)
    assert desk.rows(LEASES) == [OWN], "silence was told"
    desk.restart()
    desk.wait(3 * SECOND)
    reader = desk.reader("u", incarnation=2, durable="mine")
    desk.publisher("p", 1)
    assert desk.gaps(reader) == []
    assert desk.got(reader) == [1]


def test_a_filtering_log_that_is_gone_is_made_up_for_by_filtering_again() -> None:
    desk, publisher, reader = shop(durable="mine")
    desk.lose(reader)
    desk.say(publisher, publish("p", 2), publish("p", 3, topic="b"), publish("p", 4))
    desk.wait(SECOND)
    for name in [each for each in desk.disk.names() if each.startswith("matches-")]:
        desk.disk.remove(name)
    desk.restart()
    assert [log.level for log in desk.logs if "filtering log" in log.text] == ["error"]
    desk.wait(3 * SECOND)
    reader = desk.reader("u", incarnation=2, durable="mine")
    assert desk.got(reader) == [2, 4]
    assert desk.gaps(reader) == []


def test_a_durable_reader_goes_on_where_it_was_and_nothing_is_filtered_twice() -> None:
    """R1.21: the consolidated stream resumes from latestDelivered, the reader from what it had acknowledged."""
    desk, left, reader = followed(durable="mine")
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, EVENT)], 200))
    desk.wait(SECOND)
    desk.restart()
    left = desk.meet("left", FAR, incarnation=2)
    desk.say(left, Start(FAR, 200))
    desk.wait(3 * SECOND)
    reader = desk.reader("u", incarnation=2, durable="mine")
    assert desk.place(reader, FAR) <= 150
    assert len(desk.done_of(ReadMatches)) == 1
    desk.say(left, items(FAR, ABSOLUTE, 149, [(150, EVENT)], 150, answers=True))
    assert desk.got(reader) == [1]


def test_what_was_reported_as_needed_by_nobody_is_no_gap_for_who_comes_back() -> None:
    """Silence carried the reader on, in memory only; up to what was reported its filtering log is chopped."""
    desk, left, _ = followed(durable="mine")
    desk.say(left, items(FAR, ABSOLUTE, 100, [], 20_000_000))
    desk.wait(SECOND)
    assert len(desk.done_of(ChopMatches)) == 1
    desk.say(left, items(FAR, ABSOLUTE, 20_000_000, [(20_000_001, EVENT)], 20_000_002))
    desk.restart()
    left = desk.meet("left", FAR, incarnation=2)
    desk.say(
        left, Start(FAR, 20_000_000), items(FAR, ABSOLUTE, 20_000_000, [(20_000_001, EVENT)], 20_000_002)
    )
    desk.wait(3 * SECOND)
    reader = desk.reader("u", incarnation=2, durable="mine")
    assert desk.gaps(reader) == []
    assert desk.got(reader) == [1]


def test_nothing_is_handed_out_before_everybody_who_read_here_is_known_to_the_network() -> None:
    """It might be for them: what they want is not yet installed on the way."""
    desk, left, _ = followed(durable="mine")
    desk.reader("v", durable="hers")
    desk.wait(SECOND)
    desk.restart()
    desk.confirms = False
    left = desk.meet("left", FAR, incarnation=2)
    mine, hers = [each.subscription for each in desk.said(left, Subscribe) if each.durable is not None]
    desk.say(left, Confirmed(mine))
    desk.say(left, Start(FAR, 100), items(FAR, ABSOLUTE, 100, [], 300))
    constream = desk.course(FAR).hosted.constream
    assert constream is not None
    assert constream.handed == 100
    desk.say(left, Confirmed(hers))
    assert constream.handed == 300


@pytest.mark.parametrize("was_told", [False, True])
def test_one_whose_client_has_not_heard_that_it_is_there_is_not_when_its_broker_starts_again(
    was_told: bool,
) -> None:
    """It would begin with all the log has, and its client had asked for what comes from now on (seed 1442 --alone)."""
    desk = Desk(["left"])
    desk.meet("left", FAR)
    desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    desk.wait(3 * SECOND if was_told else SECOND)
    assert bool(desk.said(reader, Confirmed)) == was_told
    assert desk.rows(READERS) == ["mine"]
    assert len(desk.rows(PLACES)) == 1
    desk.restart()
    desk.wait(SECOND)
    assert desk.rows(READERS) == ["mine"] * was_told
    assert len(desk.rows(PLACES)) == was_told


def test_where_one_stands_is_not_before_what_was_reported_though_nobody_has_confirmed_it_yet() -> None:
    """Silence carried it on in memory only; whoever is told of its row would find a gap."""
    desk = Desk(["left"])
    desk.meet("left")
    publisher = desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.acknowledge(reader)
    desk.lose(reader)
    desk.wait(SECOND)
    for n in range(3, 23):
        desk.say(publisher, publish("p", n, topic="b"))
        desk.wait(SECOND)
    forgotten = desk.own.core.forgotten
    desk.confirms = False
    desk.restart()
    left = desk.meet("left", incarnation=2)
    desk.say(left, Fetch("b", "left", "mine"))
    desk.wait(SECOND)
    [answer, *_] = desk.said(left, Fetched)
    assert answer.places is not None
    assert answer.places[OWN].released >= forgotten > 0
