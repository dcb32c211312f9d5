"""kill -9 wherever it hurts: whoever goes on loses nothing and repeats nothing [issue 6, lake]."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

from hand_written import HandWritten, events
from lakes import logged, stored, table_in, take_all

from holdfast.pipeline.lake.compact import compact

#: A process that takes all there is, in small commits, compacts, and kills itself before or after a call of ours.
CHILD = """
import functools, os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from deltalake import DeltaTable
from holdfast.pipeline.lake import compact, run, table, writing
from lakes import table_in, take_all

run.ReadRequest = functools.partial(run.ReadRequest, events=1)  # a page is the least that a round takes
where, moment, calls = {where!r}, {moment!r}, {calls}
owner, name = {{
    "write": (writing.FileWriter, "_write"),
    "close": (writing.FileWriter, "close"),
    "sync": (table, "sync"),
    "append": (table.LakeTable, "append"),
    "replace": (table.LakeTable, "replace"),
    "vacuum": (table.LakeTable, "vacuum"),
    "checkpoint": (table.LakeTable, "checkpoint"),
}}[where]
work = getattr(owner, name)

def deadly(*arguments, **options):
    global calls
    calls -= 1
    if moment == "before" and calls == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    done = work(*arguments, **options)
    if moment == "after" and calls == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

setattr(owner, name, deadly)
folder = Path({folder!r})
take_all(folder, rows_max=1)
own = table_in(folder)
compact.compact(own)
own.vacuum(0)
own.checkpoint()
"""

#: Before and after everything that changes a disk; the fourth file is that of the compaction.
POINTS = [
    ("write", "after", 2),
    ("close", "after", 2),
    ("sync", "before", 2),
    ("append", "after", 2),
    ("close", "after", 4),
    ("replace", "after", 1),
    ("vacuum", "after", 1),
    ("checkpoint", "before", 1),
]


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    with HandWritten(tmp_path / "streams") as folder:
        yield folder


@pytest.mark.parametrize(("where", "moment", "calls"), POINTS)
def test_killed_anywhere_the_table_is_the_log(
    written: HandWritten,
    tmp_path: Path,
    where: str,
    moment: str,
    calls: int,
) -> None:
    for tick in range(10, 60, 10):
        written.publish(events([tick]))
        written.vouch(tick)
        if tick < 30:
            take_all(tmp_path)
    before = stored(tmp_path)
    script = CHILD.format(
        tests=str(Path(__file__).parent), where=where, moment=moment, calls=calls, folder=str(tmp_path)
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    found = stored(tmp_path)
    assert found == logged(tmp_path, found[-1]["tick"]), "what is there is right at any moment"
    assert found[: len(before)] == before
    take_all(tmp_path)
    table = table_in(tmp_path)
    compact(table)
    table.vacuum(grace_hours=0)
    assert stored(tmp_path) == logged(tmp_path, 50)
    left = {path.name for path in table.folder.glob("*.parquet")}
    assert left == {file.path for file in table.files()}, "and nothing is left behind"
