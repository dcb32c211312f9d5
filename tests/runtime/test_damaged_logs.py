"""A broker's folder as disks and people leave it: bits flipped, files cut off, gone, or somebody else's.

What is damaged is named, by `holdfast log verify` and at start; it is never delivered, but announced as a gap; all the
rest is served. What would make a broker forget what it has promised keeps it from starting. One folder is filled once;
every test damages a copy of it. (Every bit of a log, and every place to cut it: ``tests/storage``.)
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import holdfast
from durable_brokers import PATIENCE_S, Brokers, brokers_in, patiently, verified
from holdfast.cli.log_ends import known_ends
from holdfast.runtime.real_store import RealStore
from holdfast.storage.files import DiskFailed
from holdfast.storage.log import LogSettings

EVENTS = 40
PAGE_BYTES = 4096  #: of SQLite


@dataclass(frozen=True)
class Filled:
    """The data of a broker that was stopped: its subscriber was away when the events came."""

    data: Path
    ticks: list[int]

    def copied(self, folder: Path) -> Path:
        """To be damaged."""
        shutil.copytree(self.data, folder / "data")
        return folder / "data"


def payload(i: int) -> bytes:
    return b"event-%d-" % i * 20


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """The folder, once for all."""
    folder = tmp_path_factory.mktemp("filled")
    with brokers_in(folder, {"b1": None}) as brokers:
        yield Filled(brokers.data("b1"), asyncio.run(fill(brokers)))


async def fill(brokers: Brokers) -> list[int]:
    """Everybody who is there has had everything, and that is written down; who is away has had nothing."""
    await brokers.start("b1")
    async with holdfast.connect(brokers.url("b1"), name="p", timeout=PATIENCE_S) as network:
        async with network.subscribe("#", durable="away"):
            pass
        receipts = [await network.publish("t", {"i": i}, payload(i)) for i in range(EVENTS)]
        await brokers.wait_delivered("b1")
    brokers.stop("b1")
    return [receipt.tick for receipt in receipts]


def log_in(data: Path, kind: str) -> Path:
    """The log of the only pubend: its events, or what matched."""
    [log] = data.glob(f"streams/{kind}-*")
    return log


def segment_in(log: Path) -> Path:
    [segment] = log.glob("*.segment")
    return segment


async def served(brokers: Brokers, last: int) -> list[holdfast.Item]:
    """What the subscriber that was away is given now, before an event of now."""
    found: list[holdfast.Item] = []
    async with (
        holdfast.connect(brokers.url("b1"), name="q", timeout=PATIENCE_S) as network,
        network.subscribe("#", durable="away", timeout=PATIENCE_S) as items,
    ):
        receipt = await network.publish("t", {"i": -1}, timeout=PATIENCE_S)
        assert receipt.tick > last  # no tick is used twice (I19)
        while not found or not isinstance(found[-1], holdfast.LoggedEvent) or found[-1].publisher != "q":
            found.append(await items.get(PATIENCE_S))
    return found[:-1]


def assert_whole_but(found: list[holdfast.Item], ticks: list[int], lost: set[int]) -> None:
    """All events are there as they were but the lost ones, and where those were is one gap (I17, I20)."""
    events = [item for item in found if isinstance(item, holdfast.LoggedEvent)]
    gaps = [item for item in found if isinstance(item, holdfast.Gap)]
    expected = [(ticks[i], payload(i)) for i in range(EVENTS) if i not in lost]
    assert [(event.tick, event.payload) for event in events] == expected
    assert len(gaps) == bool(lost)
    for gap in gaps:
        assert gap.reason == ("the log is gone" if len(lost) == EVENTS else "damaged")
        assert {i for i, tick in enumerate(ticks) if gap.after < tick <= gap.upto} == lost
        before = [event.tick for event in events if event.tick <= gap.after]
        assert found.index(gap) == len(before)


def flip_a_bit(data: Path) -> set[int]:
    segment = segment_in(log_in(data, "events"))
    written = bytearray(segment.read_bytes())
    written[written.index(payload(10)) + 30] ^= 4
    segment.write_bytes(written)
    return {10}


def cut_off_the_end(data: Path) -> set[int]:
    segment = segment_in(log_in(data, "events"))
    written = segment.read_bytes()
    segment.write_bytes(written[: written.index(payload(25))])
    return set(range(25, EVENTS))


def remove_the_segment(data: Path) -> set[int]:
    segment_in(log_in(data, "events")).unlink()
    return set(range(EVENTS))


@pytest.mark.parametrize("damage", [flip_a_bit, cut_off_the_end, remove_the_segment])
def test_what_is_damaged_is_named_and_announced_and_the_rest_is_served(
    filled: Filled, tmp_path: Path, damage: Callable[[Path], set[int]]
) -> None:
    data = filled.copied(tmp_path)
    lost = damage(data)
    log = log_in(data, "events")
    status, said = verified(log)
    assert status == 1
    assert said.startswith("damaged   00000000000000000001.segment, offset ")

    @patiently
    async def performed() -> None:
        with brokers_in(tmp_path, {"b1": None}, folders={"b1": data}) as brokers:
            await brokers.start("b1")
            named = await brokers.wait_for("a log is damaged", "b1")
            assert named["level"] == "error"
            assert named["pubend"] == "all@b1/0"
            assert named["after"] < filled.ticks[min(lost)] <= filled.ticks[max(lost)] <= named["upto"]
            assert_whole_but(await served(brokers, filled.ticks[-1]), filled.ticks, lost)

    performed()


@patiently
async def test_a_log_that_is_gone_altogether_is_a_gap(filled: Filled, tmp_path: Path) -> None:
    data = filled.copied(tmp_path)
    shutil.rmtree(log_in(data, "events"))
    with brokers_in(tmp_path, {"b1": None}, folders={"b1": data}) as brokers:
        await brokers.start("b1")
        await brokers.wait_for("a log is damaged", "b1")
        assert_whole_but(await served(brokers, filled.ticks[-1]), filled.ticks, set(range(EVENTS)))


def break_the_matches(data: Path) -> None:
    segment = segment_in(log_in(data, "matches"))
    written = bytearray(segment.read_bytes())
    written[len(written) // 2] ^= 1
    segment.write_bytes(written)
    assert verified(log_in(data, "matches"))[0] == 1


def remove_the_matches(data: Path) -> None:
    shutil.rmtree(log_in(data, "matches"))


@pytest.mark.parametrize("damage", [break_the_matches, remove_the_matches])
def test_without_what_matched_events_are_filtered_again(
    filled: Filled, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """A filtering log can be made anew: nothing is lost with it."""
    data = filled.copied(tmp_path)
    damage(data)

    @patiently
    async def performed() -> None:
        with brokers_in(tmp_path, {"b1": None}, folders={"b1": data}) as brokers:
            await brokers.start("b1")
            assert_whole_but(await served(brokers, filled.ticks[-1]), filled.ticks, set())

    performed()


# The last commit


@patiently
async def test_a_bit_of_the_last_commit_before_a_kill_is_damage_and_no_torn_write(tmp_path: Path) -> None:
    """It was accepted; a second later the tables know, which tell it from a write that never was whole."""
    with brokers_in(tmp_path, {"b1": None}) as brokers:
        ticks = await fill_and_kill(brokers)
        data = brokers.data("b1")
        assert verified(data)[0] == 0
        segment = segment_in(log_in(data, "events"))
        written = bytearray(segment.read_bytes())
        written[written.index(payload(EVENTS - 1)) + 30] ^= 4
        segment.write_bytes(written)
        for where in (data, log_in(data, "events")):
            status, said = verified(where)
            assert status == 1
            assert "damaged   the end is lost: " in said
            assert f"that it went up to {ticks[-1]}\n" in said

        await brokers.start("b1")
        named = await brokers.wait_for("a log is damaged", "b1")
        assert (named["level"], named["upto"]) == ("error", ticks[-1])
        assert_whole_but(await served(brokers, ticks[-1]), ticks, {EVENTS - 1})


async def fill_and_kill(brokers: Brokers) -> list[int]:
    """As ``fill``; but nothing is closed, and the last event is a commit of its own, whose end has been saved."""
    await brokers.start("b1")
    async with holdfast.connect(brokers.url("b1"), name="p", timeout=PATIENCE_S) as network:
        async with network.subscribe("#", durable="away"):
            pass
        receipts = [await network.publish("t", {"i": i}, payload(i)) for i in range(EVENTS)]
        events = log_in(brokers.data("b1"), "events")
        async with asyncio.timeout(PATIENCE_S):
            while known_ends(events.parent).of(events.name) < receipts[-1].tick:
                await asyncio.sleep(0.05)
    brokers.kill("b1")
    return [receipt.tick for receipt in receipts]


# Tables


def tables_in(data: Path) -> Path:
    return data / "streams" / "tables.sqlite"


def test_a_broker_whose_tables_are_gone_does_not_start(filled: Filled, tmp_path: Path) -> None:
    """It would not know whom it has promised what."""
    data = filled.copied(tmp_path)
    tables_in(data).unlink()
    assert "tables.sqlite" in refused(tmp_path, "b1", data)


def test_a_broker_whose_tables_are_no_database_does_not_start(filled: Filled, tmp_path: Path) -> None:
    data = filled.copied(tmp_path)
    tables_in(data).write_bytes(b"!" * PAGE_BYTES * 4)
    assert "tables.sqlite" in refused(tmp_path, "b1", data)


def test_no_page_of_the_tables_can_be_broken_unnoticed(filled: Filled, tmp_path: Path) -> None:
    """Either it was not in use, or the broker does not start."""
    whole = tables_read(filled.copied(tmp_path / "whole"))
    written = tables_in(filled.data).read_bytes()
    noticed = 0
    for at in range(0, len(written), PAGE_BYTES):
        data = filled.copied(tmp_path / str(at))
        tables_in(data).write_bytes(written[:at] + b"!" * PAGE_BYTES + written[at + PAGE_BYTES :])
        try:
            assert tables_read(data) == whole
        except DiskFailed:
            noticed += 1
    assert noticed


def tables_read(data: Path) -> dict[str, dict[str, bytes]]:
    store = RealStore(data / "streams", LogSettings())
    try:
        return {name: dict(rows) for name, rows in store.start().tables.items()}
    finally:
        store.close()


# Whose folder it is


def test_a_broker_does_not_start_in_the_folder_of_another(filled: Filled, tmp_path: Path) -> None:
    """It would speak for the other's logs."""
    assert "b1" in refused(tmp_path, "b2", filled.copied(tmp_path)).removeprefix("holdfast: the folder of b2")


@patiently
async def test_two_brokers_do_not_run_in_one_folder(filled: Filled, tmp_path: Path) -> None:
    data = filled.copied(tmp_path)
    with brokers_in(tmp_path, {"b1": None}, folders={"b1": data}) as brokers:
        await brokers.start("b1")
        (tmp_path / "second").mkdir()
        assert "another process" in refused(tmp_path / "second", "b1", data)
        assert_whole_but(await served(brokers, filled.ticks[-1]), filled.ticks, set())


def refused(folder: Path, name: str, data: Path) -> str:
    """Why a broker does not start in a folder."""
    with brokers_in(folder, {name: None}, folders={name: data}) as brokers:
        brokers.spawn(name)
        assert brokers.ended(name) == 1
        return brokers.words(name)
