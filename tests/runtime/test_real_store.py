"""The store on real files and threads: nothing is lost between loop and disk, and nothing waits for another lane.

R1.5: what was told to be stable survives kill -9. A lane that breaks stops the broker (issue 5 §1: it never pretends).
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.intervals import Intervals
from holdfast.messages.publications import Publication
from holdfast.overlay.transport import Wake
from holdfast.runtime.driver import Driver, DriverFailed
from holdfast.runtime.real_store import RealStore
from holdfast.storage.files import DiskFailed
from holdfast.storage.log import LogSettings
from holdfast.storage.tables import Change
from holdfast.streams.storing import (
    AppendEvents,
    ChopEvents,
    DiskEffect,
    DiskInput,
    EventsChopped,
    EventsRead,
    EventsStable,
    NoteMatches,
    ReadEvents,
    ReadMatches,
    Recovered,
    Save,
    Saved,
)
from raw_peer import PATIENCE_SECONDS, wait_until
from scripted_core import LogBook, ScriptedCore

PUBEND = "orders@b1/0"


def publication(tick: int) -> Publication:
    return Publication("p", tick, b"%d" % tick * (tick % 50))


def append(*ticks: int) -> AppendEvents:
    return AppendEvents(PUBEND, ticks, [publication(tick) for tick in ticks], 0)


class Desk:
    """Who asks a store, and what he has heard."""

    def __init__(self, store: RealStore, recovered: Recovered) -> None:
        self.store = store
        self.recovered = recovered
        self.heard: list[DiskInput] = []
        self.turns = 0
        self.failures: list[tuple[Exception, DiskEffect]] = []
        store.attach(self._hear, lambda error, effect: self.failures.append((error, effect)))

    def _hear(self, inputs: Any) -> None:
        self.turns += 1
        self.heard += inputs

    @property
    def stable(self) -> int:
        return sum(each.appends for each in self.heard if isinstance(each, EventsStable))

    async def next(self, effect: DiskEffect) -> DiskInput:
        """What comes back of something, if nothing else is under way."""
        before = len(self.heard)
        self.store.submit(effect)
        await wait_until(lambda: len(self.heard) > before)
        return self.heard[-1]


@asynccontextmanager
async def opened(folder: Path, settings: LogSettings | None = None) -> AsyncIterator[Desk]:
    store = RealStore(folder, settings)
    try:
        yield Desk(store, store.start())
    finally:
        store.close()


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main(), 4 * PATIENCE_SECONDS)

    asyncio.run(bounded())


def test_what_is_asked_for_is_done_in_order_and_shares_turns(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as desk:
            for tick in range(1, 2_001):
                desk.store.submit(append(tick))
            for number in range(1, 101):
                desk.store.submit(Save(number, [Change("t", "k", b"%d" % number)]))
            desk.store.submit(ChopEvents(PUBEND, 10))
            await wait_until(lambda: any(isinstance(each, EventsChopped) for each in desk.heard))
            await wait_until(lambda: Saved(100) in desk.heard)
            assert desk.stable == 2_000, "appends come before the chop behind them"
            assert desk.turns < 1_000, "they accumulated"
            saved = [each.number for each in desk.heard if isinstance(each, Saved)]
            assert saved == sorted(saved)

    run(main)


def test_everything_submitted_is_written_when_it_is_closed(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as desk:
            for tick in range(1, 501):
                desk.store.submit(append(tick))
                desk.store.submit(Save(tick, [Change("t", str(tick), b"v")]))
            desk.store.submit(NoteMatches(PUBEND, [(7, [1]), (9, [2])], 50, 0))
        async with opened(tmp_path) as desk:
            tail = desk.recovered.logs[PUBEND].tail
            assert list(tail) == [(tick, publication(tick)) for tick in range(1, 501)]
            assert len(desk.recovered.tables["t"]) == 500
            assert desk.recovered.matches[PUBEND].last_timestamp == 50, "it was closed, not left"
            reading = await desk.next(ReadMatches(PUBEND, 2, 0, 10, 50))
            assert list(reading.reading.matches) == [9]  # type: ignore[union-attr]

    run(main)


def test_one_folder_is_one_process_s(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "a" / "b"):
            with pytest.raises(DiskFailed, match="another process writes here") as refused:
                RealStore(tmp_path / "a" / "b").start()
            assert str(tmp_path / "a" / "b") in str(refused.value)
        async with opened(tmp_path / "a" / "b"):
            pass

    run(main)


def test_a_reader_beside_the_writer_takes_nothing_for_silence(tmp_path: Path) -> None:
    """All ticks have events: whatever part a read says it knows must be full of them, or chopped."""

    async def main() -> None:
        async with opened(tmp_path, LogSettings(20_000)) as desk:
            checked = Intervals()
            for step in range(120):
                tick = 20 * step
                desk.store.submit(append(*range(tick + 1, tick + 21)))
                desk.store.submit(ReadEvents(PUBEND, [(max(0, tick - 300), tick + 20)], 1_000))
                if step % 20 == 19:
                    desk.store.submit(ChopEvents(PUBEND, tick - 100))
                while desk.stable < step - 3:  # a commit is always under way while we read
                    await asyncio.sleep(0)
            await wait_until(lambda: desk.stable == 120)
            await wait_until(lambda: sum(isinstance(each, EventsRead) for each in desk.heard) == 120)
            for read in desk.heard:
                if isinstance(read, EventsRead):
                    known = Intervals(
                        [*((tick - 1, tick) for tick in read.ticks), *((a, u) for a, u, _ in read.lost)]
                    )
                    assert known == Intervals(read.parts)
                    assert list(read.publications) == [publication(tick) for tick in read.ticks]
                    checked = checked.union(known)
            assert checked.size > 100, "some of it was there in time"

    run(main)


def broken_turn(*_: object) -> list[DiskInput]:
    raise ZeroDivisionError("a bug")


def test_a_lane_that_breaks_says_so_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.streams.store.EventsLane.turn", broken_turn)

    async def main() -> None:
        async with opened(tmp_path) as desk:
            desk.store.submit(append(1))
            desk.store.submit(append(2))
            await wait_until(lambda: bool(desk.failures))
            [(error, effect)] = desk.failures
            assert isinstance(error, ZeroDivisionError)
            assert isinstance(effect, AppendEvents)
            assert await desk.next(Save(1, [Change("t", "k", b"v")])) == Saved(1)

    run(main)


# With a driver


def test_a_driver_has_its_core_s_disk_work_done_and_brings_back_what_became_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        store = RealStore(tmp_path)
        store.start()
        core = ScriptedCore(lambda stimulus: [append(1), append(2)] if stimulus == Wake() else [])
        driver = Driver(core, store=store, log=LogBook())
        await driver.start(Wake())
        await wait_until(lambda: len(core.inputs) > 1)
        assert {type(stimulus) for stimulus in core.inputs[1:]} == {EventsStable}
        await driver.stop()
        store.close()

    run(main)


def test_a_lane_that_breaks_stops_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.streams.store.EventsLane.turn", broken_turn)

    async def main() -> None:
        store = RealStore(tmp_path)
        store.start()
        driver = Driver(ScriptedCore(lambda stimulus: [append(1)]), store=store, log=LogBook())
        await driver.start(Wake())
        with pytest.raises(DriverFailed, match="a bug"):
            await driver.wait_stopped()
        store.close()

    run(main)


# Killed

APPENDER = """
import asyncio, sys
from pathlib import Path
from holdfast.messages.publications import Publication
from holdfast.runtime.real_store import RealStore
from holdfast.storage.log import LogSettings
from holdfast.storage.tables import Change
from holdfast.streams.storing import AppendEvents, EventsStable, Save, Saved

async def main():
    store = RealStore(Path(sys.argv[1]), LogSettings(50_000))
    found = store.start()
    state = found.logs.get("p")
    tick = accepted = state.last if state else 0
    saved = int(found.tables.get("t", {}).get("k", b"0"))
    number = saved
    def hear(inputs):
        nonlocal accepted, saved
        for each in inputs:
            if isinstance(each, EventsStable):
                accepted += each.appends
            elif isinstance(each, Saved):
                saved = each.number
        print(accepted, saved, flush=True)
    store.attach(hear, lambda error, effect: print("failed", error, flush=True))
    while True:
        for _ in range(20):
            tick += 1
            store.submit(AppendEvents("p", [tick], [Publication("x", tick, b"%d" % tick * 50)], 0))
        number += 1
        store.submit(Save(number, [Change("t", "k", b"%d" % number)]))
        await asyncio.sleep(0.0005)

asyncio.run(main())
"""


def test_what_a_killed_process_said_to_be_stable_is_there(tmp_path: Path) -> None:
    """kill -9 in the midst of appends, again and again, at no chosen moment; each life goes on from the last."""
    accepted = saved = 0
    for life in range(5):
        command = [sys.executable, "-c", APPENDER, str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = 0
        while lines < 10 + 17 * life or not accepted or not saved:
            accepted, saved = map(int, process.stdout.readline().split())
            lines += 1
        process.send_signal(signal.SIGKILL)
        for line in process.stdout.read().splitlines(keepends=True):
            if line.endswith("\n"):
                accepted, saved = map(int, line.split())
        process.wait(PATIENCE_SECONDS)
        process.stdout.close()
        store = RealStore(tmp_path, LogSettings(50_000))
        found = store.start()
        store.close()
        state = found.logs["p"]
        assert [tick for tick, _ in state.tail] == [*range(1, state.last + 1)]
        assert state.last >= accepted > 0
        assert int(found.tables["t"]["k"]) >= saved > 0
        assert not state.lost
