"""Children end with us: asked to, killed if they will not, and by their leash if we are gone ourselves."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli import children as module
from holdfast.cli.children import STOP_WITHIN_S, Children, Death

#: A child that says its id and waits; with "stubborn" it ignores SIGTERM, with "leash" it is held by one.
CHILD = """
import os, signal, sys
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "leash" in sys.argv:
    from holdfast.cli.children import hold_leash
    hold_leash(int(sys.argv[-1]))
print(os.getpid(), flush=True)
signal.pause()
"""
#: A parent of such a child that says the child's id and is then killed.
PARENT = """
import asyncio
from holdfast.cli.children import Children

async def main():
    async with Children(lambda name, line: print(line, flush=True)) as children:
        await children.start("child", "child", ["leash", "{leash}"])
        await children.first_death("child")

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "parent.py").write_text(PARENT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


class Said:
    """What children write, to be waited for."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self._changed = asyncio.Event()

    def __call__(self, name: str, line: str) -> None:
        self.lines.append((name, line))
        self._changed.set()

    async def wait(self, count: int) -> None:
        while len(self.lines) < count:
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), 20)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_leaving_the_block_stops_all_and_their_lines_carry_their_names() -> None:
    async def main() -> None:
        said = Said()
        async with Children(said) as children:
            for name in ("a", "b"):
                await children.start(name, "child", [])
            await said.wait(2)
        assert {name for name, _ in said.lines} == {"a", "b"}
        assert not any(is_alive(int(line)) for _, line in said.lines)

    asyncio.run(main())


def test_a_death_is_told_with_its_cause() -> None:
    async def main() -> None:
        said = Said()
        async with Children(said) as children:
            await children.start("a", "child", [])
            await children.start("b", "child", [])
            await said.wait(2)
            os.kill(int(dict(said.lines)["b"]), signal.SIGKILL)
            death = await asyncio.wait_for(children.first_death("a", "b"), 20)
        assert death == Death("b", -signal.SIGKILL)
        assert str(death) == "b was killed by SIGKILL"
        assert str(Death("b", 3)) == "b ended with status 3"

    asyncio.run(main())


def test_who_was_killed_can_be_started_again_and_only_its_last_life_is_watched() -> None:
    async def main() -> None:
        said = Said()
        async with Children(said) as children:
            await children.start("a", "child", [])
            await said.wait(1)
            await children.kill("a")
            assert await children.first_death("a") == Death("a", -signal.SIGKILL)
            await children.start("a", "child", [])
            await said.wait(2)
            watching = asyncio.create_task(children.first_death("a"))
            await asyncio.sleep(0)
            assert not watching.done()
            watching.cancel()
        lives = [int(line) for _, line in said.lines]
        assert lives[0] != lives[1]
        assert not any(map(is_alive, lives))

    asyncio.run(main())


def test_who_will_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(module, "STOP_WITHIN_S", 0.1)
        said = Said()
        async with Children(said) as children:
            await children.start("a", "child", ["stubborn"])
            await said.wait(1)
            assert await children.stop("a") == ["a"]
        assert not is_alive(int(said.lines[0][1]))

    asyncio.run(main())


def test_an_interrupt_while_they_stop_kills_them() -> None:
    said = Said()

    async def main() -> None:
        async with Children(said) as children:
            await children.start("a", "child", ["stubborn"])
            await said.wait(1)

    async def interrupted() -> None:
        task = asyncio.create_task(main())
        await said.wait(1)
        await asyncio.sleep(0)  # it stops, and waits for what will not come
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, STOP_WITHIN_S / 2)

    asyncio.run(interrupted())
    assert not is_alive(int(said.lines[0][1]))


def test_an_endless_line_is_cut(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(module, "LINE_BYTES_MAX", 1000)
        (modules / "shout.py").write_text("print('x' * 100_000, flush=True)")
        said = Said()
        async with Children(said) as children:
            await children.start("a", "shout", [])
            await children.first_death("a")
        assert sum(len(line) for _, line in said.lines) == 100_000
        assert max(len(line) for _, line in said.lines) <= 2000

    asyncio.run(main())


def test_a_child_ends_when_its_parent_is_killed_outright() -> None:
    parent = subprocess.Popen([sys.executable, "-m", "parent"], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    watch = os.pidfd_open(child)
    try:
        parent.kill()
        parent.wait()
        assert select.select([watch], [], [], 20)[0], "the child went on"
    finally:
        os.close(watch)
        parent.stdout.close()
