"""The process that reads a broker's lake: asked, killed, of what it dies, and ended with its broker."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.messages.publications import Publication
from holdfast.runtime.lake_process import LakeProcess
from holdfast.streams.store_lake import LakeUnreadable

#: Answers as a lake with an event at every tenth tick; dies over ticks above 100, hangs above 200, fails above 300.
CHILD = """
import os, sys, time
import msgspec
from holdfast.messages.publications import Publication
from holdfast.runtime.lake_process import Ask, At, Failed, Said, read_frame, write_frame
from holdfast.streams.store_lake import LakePage
asked, said = sys.stdin.buffer, sys.stdout.buffer
while frame := read_frame(asked):
    ask = msgspec.msgpack.decode(frame, type=Ask)
    if ask.after >= 300:
        write_frame(said, Failed("no lake today"))
        continue
    write_frame(said, At("a.parquet", ask.after // 100 * 100 + 100))
    if ask.after >= 200:
        time.sleep(600)
    if ask.after >= 100:
        os.abort()
    ticks = [tick for tick in range(10, 100, 10) if ask.after < tick <= ask.upto][: ask.limit]
    write_frame(said, Said(LakePage(ask.upto, ticks, [Publication("p", t, b"x") for t in ticks])))
"""


@contextmanager
def process(code: str = CHILD) -> Iterator[LakeProcess]:
    lake = LakeProcess([sys.executable, "-c", code])
    try:
        yield lake
    finally:
        lake.close()


def test_it_is_started_when_it_is_asked_and_answers() -> None:
    with process() as lake:
        assert lake.pid is None
        page = lake.page("s@b/0", 15, 45, 10)
        assert (page.covered, list(page.ticks)) == (45, [20, 30, 40])
        assert page.publications[0] == Publication("p", 20, b"x")
        first = lake.pid
        assert lake.page("s@b/0", 45, 95, 2).ticks == [50, 60]
        assert lake.pid == first
        with pytest.raises(LakeUnreadable, match="no lake today"):
            lake.page("s@b/0", 300, 310, 10)
        assert lake.pid == first


def test_killed_it_is_started_again() -> None:
    with process() as lake:
        assert lake.page("s@b/0", 0, 10, 10).ticks == [10]
        assert lake.pid is not None
        os.kill(lake.pid, signal.SIGKILL)
        with pytest.raises(LakeUnreadable, match="has ended with status -9"):
            lake.page("s@b/0", 0, 10, 10)
        assert lake.page("s@b/0", 0, 10, 10).ticks == [10]


def test_of_what_it_dies_twice_is_damaged_up_to_where_that_goes() -> None:
    with process() as lake:
        with pytest.raises(LakeUnreadable, match=r"a\.parquet: the reader of the lake has died of it"):
            lake.page("s@b/0", 110, 500, 10)
        page = lake.page("s@b/0", 110, 500, 10)
        assert page.covered == 200
        assert list(page.lost) == [(110, 200, "damaged")]
        assert "a.parquet" in page.damages[0]
        assert lake.page("s@b/0", 0, 10, 10).ticks == [10], "the rest is served"


def test_one_that_hangs_does_not_hold_up_the_end() -> None:
    with process() as lake:
        problems: list[str] = []

        def ask() -> None:
            try:
                lake.page("s@b/0", 210, 220, 10)
            except LakeUnreadable as error:
                problems.append(str(error))

        thread = threading.Thread(target=ask)
        thread.start()
        while lake.pid is None:
            time.sleep(0.01)
        lake.close()
        thread.join(30)
        assert not thread.is_alive()
        assert problems
        with pytest.raises(LakeUnreadable, match="stops"):
            lake.page("s@b/0", 0, 10, 10)


def test_one_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    lake = LakeProcess([str(tmp_path / "nowhere")])
    with pytest.raises(LakeUnreadable, match="cannot be started"):
        lake.page("s@b/0", 0, 10, 10)
    lake.close()
