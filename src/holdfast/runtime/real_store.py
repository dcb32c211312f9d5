"""A broker's store on a real disk, and its threads: the event loop never waits for it.

Each lane of the store (``streams.store``) is a thread. It takes whatever has accumulated as one turn, carries it out
while more accumulates, and brings all that became of it back to the loop with one call. Nothing waits for a batch to
fill.

Nothing is expected to escape from a turn: a disk that is full or fails is an answer. What escapes anyway is a bug; it
is reported, and whoever drives the core has to stop, for some answers will never come.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from holdfast.runtime.lake_process import STOP_SECONDS, LakeProcess
from holdfast.storage.files import DiskFailed, Files
from holdfast.storage.log import LogSettings
from holdfast.storage.real_files import RealFiles
from holdfast.storage.real_tables import RealTables
from holdfast.streams.store import LANES, Lane, Store
from holdfast.streams.storing import DiskEffect, DiskInput, Recovered

__all__ = ["TABLES_FILE", "RealStore"]

TABLES_FILE: Final = "tables.sqlite"
TURN_EFFECTS_MAX: Final = 1_000

#: A lane that has synced waits at most about so long for a loop that is busy; Python's own 5 ms would show in receipts.
SWITCH_SECONDS: Final = 0.0005

#: Takes what became of a turn.
Hand = Callable[[Sequence[DiskInput]], None]

#: Takes what escaped from a turn, and an effect that was carried out in it.
Fail = Callable[[Exception, DiskEffect], None]


class RealStore:
    """The store in a folder, which is made if need be and locked against other processes.

    ``lake`` is what stands behind the logs, if anything does, and is closed with them; ``limit_of`` says how large the
    log of a pubend may become.

    ``start``, then ``attach``, both once; ``submit`` as often as wanted; ``close`` at the end, whatever happened.
    """

    def __init__(
        self,
        folder: Path,
        settings: LogSettings | None = None,
        lake: LakeProcess | None = None,
        limit_of: Callable[[str], int | None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self._settings = settings
        self._limit_of = limit_of
        self._lake = lake
        self._lock: RealFiles | None = None
        self._tables: RealTables | None = None
        self._folders = _RealFolders(folder)
        self._store: Store | None = None
        self._lanes: dict[Lane, _LaneThread] = {}
        self._lane_of: dict[type, _LaneThread] = {}

    def start(self) -> Recovered:
        """Open everything, and say what was found; reads the end of every log.

        :raises DiskFailed: if another process has the folder, or it cannot be read or written.
        :raises DiskFull: if there is no room even to begin.
        :raises NoLog, UnknownFormat: as ``Store.recover``.
        """
        try:
            self._lock = RealFiles(self.folder)
            has_logs = any(each.is_dir() for each in self.folder.iterdir())
            if has_logs and not (self.folder / TABLES_FILE).exists():
                raise DiskFailed(
                    TABLES_FILE,
                    "is missing, and there are logs: restore it, or give the broker an empty folder",
                )
            self._tables = RealTables(self.folder / TABLES_FILE)
            self._store = Store(
                self._folders,
                self._tables,
                lambda: os.urandom(16),
                self._settings,
                self._lake,
                self._limit_of,
            )
            return self._store.recover()
        except BaseException:
            self._let_go()
            raise

    def attach(self, hand: Hand, fail: Fail) -> None:
        """Begin to work; both are called in the running loop, from now on."""
        assert self._store is not None
        assert not self._lanes
        loop = asyncio.get_running_loop()
        sys.setswitchinterval(SWITCH_SECONDS)
        lanes = [lane for lane in Lane if lane is not Lane.LAKE or self._lake is not None]
        self._lanes = {lane: _LaneThread(self._store, lane, loop, hand, fail) for lane in lanes}
        self._lane_of = {kind: self._lanes[lane] for kind, lane in LANES.items() if lane in self._lanes}

    def submit(self, effect: DiskEffect) -> None:
        """Have something done soon."""
        self._lane_of[type(effect)].queue.put(effect)

    def close(self) -> None:
        """Do all that was submitted, wait for it, and let go of the folder.

        What was to be read in the lake is not: nothing is written there, and it may be on a disk that does not answer.
        """
        if self._lake is not None:
            self._lake.close()
        for lane in self._lanes.values():
            lane.queue.put(None)
        for kind, lane in self._lanes.items():
            lane.thread.join(STOP_SECONDS if kind is Lane.LAKE else None)
        if self._store is not None and not any(lane.has_failed for lane in self._lanes.values()):
            self._store.close()
        self._let_go()

    def _let_go(self) -> None:
        self._store = None
        self._folders.close()
        if self._tables is not None:
            self._tables.close()
        if self._lock is not None:
            self._lock.close()


class _LaneThread:
    """One lane at work, until it finds None in its queue."""

    def __init__(
        self, store: Store, lane: Lane, loop: asyncio.AbstractEventLoop, hand: Hand, fail: Fail
    ) -> None:
        self.queue: SimpleQueue[DiskEffect | None] = SimpleQueue()
        self._store = store
        self._lane = lane
        self._loop = loop
        self._hand = hand
        self._fail = fail
        self.has_failed = False
        self.thread = threading.Thread(target=self._run, name=f"store {lane.value}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while effects := self._next_turn():
            try:
                self._hand_on(self._store.turn(self._lane, effects))
                self._hand_on(self._store.rest(self._lane, is_idle=self.queue.empty()))
            except Exception as error:  # it may have been half done: nothing can be built on it
                self.has_failed = True
                self._tell(self._fail, error, effects[0])
                return

    def _hand_on(self, inputs: Sequence[DiskInput]) -> None:
        if inputs:
            self._tell(self._hand, inputs)

    def _next_turn(self) -> list[DiskEffect]:
        """What has accumulated, at least one; nothing, if it is the end."""
        queue = self.queue
        effects: list[DiskEffect] = []
        while not effects or (len(effects) < TURN_EFFECTS_MAX and not queue.empty()):
            effect = queue.get()
            if effect is None:
                queue.put(None)  # to be found again behind these
                break
            effects.append(effect)
        return effects

    def _tell(self, whom: Callable[..., None], *words: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody is there to be told
            self._loop.call_soon_threadsafe(whom, *words)


class _RealFolders:
    """The folders in one, each opened once and kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, RealFiles] = {}

    def names(self) -> list[str]:
        """All of them."""
        return sorted(entry.name for entry in os.scandir(self._folder) if entry.is_dir())

    def files(self, name: str) -> Files:
        """One of them; two threads never ask for the same."""
        files = self._open.get(name)
        if files is None:
            files = self._open[name] = RealFiles(self._folder / name)
        return files

    def close(self) -> None:
        """Let go of all."""
        for files in self._open.values():
            files.close()
