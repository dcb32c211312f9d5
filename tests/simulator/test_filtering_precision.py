"""I21 as a checker: a filtering log written by hand on a simulated disk, right, and wrong in one place at a time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from durable_runs import chain, run
from holdfast.broker.durable.records import (
    HOSTED,
    PLACES,
    PUBENDS,
    READERS,
    HostedRow,
    PlaceRow,
    ReaderRow,
    change,
    joined,
)
from holdfast.clock import MILLISECOND
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Lost
from holdfast.simulator.clock import VirtualClock
from holdfast.simulator.disk import SimulatedDisk
from holdfast.simulator.oracle.matches import gone_from, imprecise
from holdfast.simulator.oracle.pubends import KnownPubend
from holdfast.simulator.store import SimulatedStore
from holdfast.simulator.world import Node, World
from holdfast.storage.damage import Damage
from holdfast.storage.files import Subfolder
from holdfast.storage.filtering_log import FilteringLog
from holdfast.storage.log import SegmentLog
from holdfast.storage.rows import Rows
from holdfast.streams.pubend import Kept

PUBEND = "scenario@b0/0"
FOLDER = "matches-scenario@b0%2F0"
LARGE, ALL = 1, 2  #: the readers of `a WHERE qty > 15`, from tick 5 on, and of `a`, from tick 15 on
RIGHT = [(10, [LARGE]), (20, [LARGE, ALL]), (30, [ALL])]  #: what they match of events with qty 16, 17, 1


def flip(disk: SimulatedDisk, where: float) -> None:
    """One bit of a filtering log is another."""
    [name] = [each for each in disk.names() if each.startswith(FOLDER) and each.endswith(".segment")]
    data = bytearray(disk.read(name) or b"")
    data[int(len(data.rstrip(b"\0")) * where)] ^= 1  # behind what was written is room for more
    disk.replace(name, bytes(data))


class Shown:
    """A broker's disk, and what its pubend has logged: events at 10, 20 and 30."""

    def __init__(self, records: Sequence[tuple[int, Sequence[int]]], *, delivered: int = 35) -> None:
        self.node = Node("b", lambda incarnation: None, SimulatedDisk(Random(1)), 0)  # type: ignore[arg-type, return-value]
        self.node.store = store = SimulatedStore(
            VirtualClock(), self.node.disk, Random(2), lambda stimulus: None
        )
        self.tables = store.tables
        self.tables.apply(
            [
                change(HOSTED, PUBEND, HostedRow(1, delivered, 1, 0, 0)),
                change(READERS, "u/large", ReaderRow(LARGE, "a WHERE qty > 15", 1, {}, 0)),
                change(READERS, "u/all", ReaderRow(ALL, "a", 1, {}, 0)),
                change(PLACES, joined(LARGE, PUBEND), PlaceRow(5, 5, 5)),
                change(PLACES, joined(ALL, PUBEND), PlaceRow(15, 15, 15)),
            ]
        )
        self.log = FilteringLog(Subfolder(self.node.disk, FOLDER), bytes(16))
        for record in records:  # each in a block of its own, so that one can be damaged
            self.log.write([record])
            self.log.commit()
        self.known = KnownPubend()
        for n, (tick, qty) in enumerate(((10, 16), (20, 17), (30, 1)), 1):
            self.known.note(tick, Publication("p", n, pack(make_event("a", {"qty": qty}))))

    def lose(self, after: int, upto: int) -> None:
        """The pubend says that it has lost something."""
        self.tables.apply([change(PUBENDS, PUBEND, Kept(lost=[Lost(after, upto, "damaged")]))])

    def damage(self) -> None:
        """In the midst of the filtering log one bit is another."""
        flip(self.node.disk, 0.5)

    @property
    def found(self) -> list[str]:
        found = imprecise(self.node, {PUBEND: self.known}, gone_from([self.node]))
        return [each.removeprefix(f"b {PUBEND}: ") for each in found]


def test_a_log_that_names_what_matched_and_nothing_else_is_precise() -> None:
    assert Shown(RIGHT).found == []


def test_what_matched_before_a_reader_began_here_is_not_asked_of_the_log() -> None:
    assert Shown([(10, [LARGE, ALL]), *RIGHT[1:]]).found == [], "its number was another's, once"
    assert Shown(RIGHT[1:]).found == ["u/large, from 5 on, has matched 10, and the log does not say so"]


def test_a_match_that_is_left_out_is_seen() -> None:
    left_out = Shown([(10, [LARGE]), (20, [ALL]), (30, [ALL])])
    assert left_out.found == ["u/large, from 5 on, has matched 20, and the log does not say so"]


def test_a_match_that_is_left_out_at_the_end_is_seen_if_it_is_said_to_be_delivered() -> None:
    assert Shown(RIGHT[:2]).found == ["u/all, from 15 on, has matched 30, and the log does not say so"]
    assert Shown(RIGHT[:2], delivered=25).found == [], "nobody has claimed to know of 30"


def test_a_match_too_many_is_seen() -> None:
    too_many = Shown([*RIGHT[:2], (30, [LARGE, ALL])])
    assert too_many.found == ["u/large, from 5 on, has not matched 30, and the log says so"]
    no_event = Shown([*RIGHT, (33, [ALL])])
    assert no_event.found == ["u/all, from 15 on, has not matched 33, and the log says so"]


def test_an_event_that_was_to_be_logged_when_the_power_went_may_have_been() -> None:
    shown = Shown([*RIGHT, (33, [ALL])])
    shown.known.append([(33, Publication("p", 4, pack(make_event("a", {"qty": 1}))))])
    assert shown.found == []


def test_what_was_chopped_is_not_asked_of_the_log() -> None:
    shown = Shown([(10, []), (20, [ALL]), (30, [ALL])])
    assert len(shown.found) == 2
    shown.log.chop(10)
    assert len(shown.found) == 1
    shown.log.chop(20)
    assert shown.found == []


def test_where_the_log_is_damaged_it_need_not_be_sure() -> None:
    shown = Shown([(10, [LARGE]), (20, [ALL]), (30, [ALL])])
    assert shown.found == ["u/large, from 5 on, has matched 20, and the log does not say so"]
    shown.damage()
    assert shown.found == [], "up to there everything may match, and is filtered again"


def test_what_is_lost_is_named_once_where_it_begins() -> None:
    shown = Shown([(10, [LARGE]), (18, [LARGE, ALL]), (30, [ALL])])
    assert len(shown.found) == 4
    shown.lose(17, 25)
    assert shown.found == []
    unnamed = Shown([(10, [LARGE]), (30, [ALL])])
    unnamed.lose(17, 25)
    assert len(unnamed.found) == 2, "silence is no announcement"


def test_a_record_that_is_larger_than_it_may_be_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown([*RIGHT[:2], (30, [ALL, ALL, ALL])])
    assert shown.found == ["32 bytes for 1 matches from 30 on"]
    nobody = dict.fromkeys(range(1000, 1100), b"\x00")
    for columns, size in ((None, 8 + 16 + 10 + 400), ({ALL: b"\3", **nobody}, 8 + 16 + 101 * 9)):
        monkeypatch.setattr(Rows, "columns", lambda *_, columns=columns: columns)
        shown = Shown(RIGHT)
        many = [ALL] * 100
        shown.log.write([(33, many), (34, many)])
        shown.log.commit()
        assert f"{size} bytes for 2 matches from 33 on" in shown.found


@pytest.mark.parametrize("where", [0.1, 0.3, 0.5])
def test_a_filtering_log_that_was_damaged_while_its_broker_was_down_is_precise_where_it_is_sure(
    where: float,
) -> None:
    """In a whole network: where the log cannot be read everything is filtered again, and then it goes on."""
    configuration = chain(2, ("p", "publisher", 0), ("u", "subscriber", 1))
    script = """Subscriber u Subscribe a As mine Durable
    Subscriber u Disconnect
    At 100 Publisher p Publish 30 Ontopic a Interval 10
    At 900 Publisher p Publish 10 Ontopic a Interval 1
    At 1500 Crash b1
    At 2000 Restart b1
    Wait 3000
    Publisher p Publish 30 Ontopic a Interval 10
    Subscriber u Reconnect
    Drain 5000
    Wait 2000
    """
    found: list[Damage] = []

    def damage(world: World) -> None:
        disk, copy = world.nodes["b1"].disk, SimulatedDisk(Random(0))
        flip(disk, where)
        for name in disk.names():
            copy.replace(name, disk.read(name) or b"")
        found.extend(SegmentLog(Subfolder(copy, FOLDER), bytes(16), deep=True).damages)

    def beside(world: World) -> None:
        world.clock.at(world.now + 1_700 * MILLISECOND, damage, world)

    ran = run(configuration, script, beside=beside)
    assert found
    assert ran.got("mine") == ran.accepted()
