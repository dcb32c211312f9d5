"""Source, shuffle and sink under kill -9: ``python tests/real_pipeline.py KILLS SEED``.

    network ── stream in ──► Spark: shuffled, every row with an id of its own ──► stream out ── a durable subscriber

Real brokers, and Spark at work between them. At chosen points, before a task stages, between staging and commit, before
and after the sink's commit, and after Spark's own, somebody is killed, which one the seed says:

    1   the driver, with all its processes; the next goes on from the checkpoint, and computes other ids
    2   the driver and the brokers, which are started again
    3   the brokers, under a driver that lives
    4   on a cluster of two workers, the executor that is at the point
    5   the executor and the brokers

At the end the subscriber has had every event once, though rows were computed several times [issue 6].

The last line of a good run has its counts, for ``tools/soak.py``.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from enum import Flag, auto
from pathlib import Path

import holdfast
from durable_brokers import Brokers, brokers_in
from holdfast.pipeline.origins import origins_of
from killed_driver import POINTS, TASK_POINTS
from spark_cluster import cluster

EVENTS = 60  #: three batches
PATIENCE_S = 240.0
NAMES = ("b1", "b2")
STREAMS = """
[[stream]]
name = "in"
topics = ["in/#"]
[[stream]]
name = "out"
topics = ["out/#"]
"""


class Victims(Flag):
    """Who is killed at a point."""

    DRIVER = auto()
    BROKERS = auto()
    EXECUTOR = auto()


#: By the seed, modulo their number.
WHOM = (
    Victims.EXECUTOR | Victims.BROKERS,
    Victims.DRIVER,
    Victims.DRIVER | Victims.BROKERS,
    Victims.BROKERS,
    Victims.EXECUTOR,
)
#: Goes on from a checkpoint and ends when all is written: a network file, and the checkpoint.
Last = Callable[[Path, Path], None]


async def performed(
    points: Sequence[str], folder: Path, victims: Victims = Victims.DRIVER, last: Last | None = None
) -> list[str]:
    """Kill at these points, one after the other, then let everything go on; what is wrong at the end.

    ``last`` stands for the last driver, the one that is not killed, else that is a process as those before.
    """
    with ExitStack() as stack:
        brokers = stack.enter_context(
            brokers_in(folder, {"b1": None, "b2": "b1"}, streams=STREAMS, readers=True)
        )
        await brokers.start(*NAMES)
        await _subscribe(brokers)
        await _publish(brokers)
        master = "local[2]"
        if Victims.EXECUTOR in victims:
            master = await asyncio.to_thread(stack.enter_context, cluster(folder))
        run = _Run(brokers, folder / "checkpoint", master)
        try:
            if Victims.DRIVER not in victims:
                run.start(points)
            for point in points:
                if Victims.DRIVER in victims:
                    run.start([point])
                await run.at(point)
                if Victims.EXECUTOR in victims:
                    _kill_executor(int((folder / point).read_text()))
                if Victims.DRIVER in victims:
                    run.kill()
                if Victims.BROKERS in victims:
                    for name in NAMES:
                        brokers.kill(name)
                    await brokers.start(*NAMES)
                (folder / point).with_suffix(".over").touch()
            if last is not None:
                # here: in another thread Spark does not know our source
                last(brokers.file, folder / "checkpoint")
            else:
                if Victims.DRIVER in victims:
                    run.start([])
                await run.ended()
        except Stuck as problem:
            return [str(problem)]
        finally:
            run.kill()
        return await _judged(brokers)


class Stuck(Exception):
    """A driver that ended, or did not, when it should not have."""


class _Run:
    """One driver after the other, on one checkpoint."""

    def __init__(self, brokers: Brokers, checkpoint: Path, master: str) -> None:
        self._brokers = brokers
        self._checkpoint = checkpoint
        self._master = master
        self._driver: subprocess.Popen[bytes] | None = None

    def start(self, points: Sequence[str]) -> None:
        here = Path(__file__).resolve().parent
        script = [
            sys.executable,
            str(here / "killed_driver.py"),
            str(self._brokers.file),
            str(self._checkpoint),
        ]
        path = os.pathsep.join(map(str, (here.parent / "src", here)))
        with (self._checkpoint.parent / "driver.log").open("wb") as log:
            self._driver = subprocess.Popen(
                [*script, self._master, *points],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path},
            )

    async def at(self, point: str) -> None:
        """Wait until somebody has come to a point."""
        mark = self._checkpoint.parent / point
        await self._wait(lambda: mark.exists() or self._has_ended(), f"nobody came to {point}")
        if not mark.exists():
            raise Stuck(f"the driver ended before {point}: {self._said()}")

    async def ended(self) -> None:
        """Wait until all is written."""
        await self._wait(self._has_ended, "the last driver did not end")
        assert self._driver is not None
        if self._driver.returncode:
            raise Stuck(f"the last driver failed: {self._said()}")

    def kill(self) -> None:
        """The one that is at work, if there is one."""
        if self._driver is not None:
            kill_driver(self._driver)

    async def _wait(self, is_so: Callable[[], bool], problem: str) -> None:
        try:
            await wait_until(is_so)
        except TimeoutError:
            raise Stuck(f"{problem}: {self._said()}") from None

    def _has_ended(self) -> bool:
        return self._driver is not None and self._driver.poll() is not None

    def _said(self) -> str:
        return (self._checkpoint.parent / "driver.log").read_text()[-3000:]


def kill_driver(driver: subprocess.Popen[bytes]) -> None:
    """With everything it has started: Java, and the processes of tasks."""
    _kill_all(driver.pid)
    driver.wait()


def _kill_executor(task: int) -> None:
    """The one whose process for a task this is: Java, and then what it leaves behind."""
    process = task
    while Path(f"/proc/{process}/comm").read_text().strip() != "java":
        stat = Path(f"/proc/{process}/stat").read_text()
        process = int(stat.rpartition(")")[2].split()[1])
        assert process > 1, f"the process {task} belongs to no executor"
    _kill_all(process)


def _kill_all(process: int) -> None:
    for each in (process, *_below(process)):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


async def _subscribe(brokers: Brokers) -> None:
    """Have what is written kept: of both streams, for whoever reads it at the end."""
    async with holdfast.connect(brokers.url("b1"), name="end") as network:
        for name, filter in (("keeper", "in/#"), ("end", "out/#")):
            async with network.subscribe(filter, durable=name):
                pass


async def _publish(brokers: Brokers) -> None:
    """Events at both brokers; on disk, and such that a reader sees all of them."""
    ends: dict[str, int] = {}
    for at, name in enumerate(NAMES):
        async with holdfast.connect(brokers.url(name), name=f"p{at}") as network:
            for i in range(at, EVENTS, len(NAMES)):
                receipt = await network.publish("in/x", {"i": i})
                assert receipt.pubend is not None
                assert receipt.tick is not None
                ends[receipt.pubend] = receipt.tick
    origins = origins_of(brokers.file, "in", local=False)

    def are_read() -> bool:
        found = origins.ends()
        return all(each in found and found[each].last >= tick for each, tick in ends.items())

    await wait_until(are_read)


def _below(process: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{process}/task").glob("*/children"))
        children = [int(each) for path in tasks for each in path.read_text().split()]
    except OSError:
        return []
    return [*children, *(each for child in children for each in _below(child))]


async def wait_until(is_so: Callable[[], bool]) -> None:
    """Ask again and again, beside the loop."""
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(is_so):
            await asyncio.sleep(0.05)


async def _judged(brokers: Brokers) -> list[str]:
    """What the durable subscriber gets: every number once, from one application, in the order of its numbers."""
    found: list[holdfast.Event] = []
    async with (
        asyncio.timeout(PATIENCE_S),
        holdfast.connect(brokers.url("b2"), name="end") as network,
    ):
        for name in NAMES:
            async with holdfast.connect(brokers.url(name), name=f"last-{name}") as other:
                await other.publish("out/last", {})
        async with network.subscribe("out/#", durable="end") as items:
            left = set(NAMES)
            while left:
                item = await anext(items)
                if not isinstance(item, holdfast.Event):
                    return [f"a gap: {item}"]
                if item.topic == "out/last":
                    left.discard(item.publisher.removeprefix("last-"))
                else:
                    found.append(item)
    numbers = Counter(int(str(each.attributes["i"])) for each in found)
    problems = [f"{i} came {numbers[i]} times" for i in range(EVENTS) if numbers[i] != 1]
    if len({each.publisher for each in found}) != 1 or [each.n for each in found] != sorted(
        {each.n for each in found}
    ):
        problems.append("they are not one application's, in order")
    staged = [brokers.status(name)["durable"]["staged"]["attempts"] for name in NAMES]
    return problems + ([f"attempts are left: {staged}"] if any(staged) else [])


def main(kills: int, seed: int) -> int:
    """One run: so many kills, at one point after the other; its exit status."""
    victims = WHOM[seed % len(WHOM)]
    points = (TASK_POINTS if Victims.EXECUTOR in victims else POINTS)[:kills]
    with tempfile.TemporaryDirectory(prefix="holdfast-pipeline-") as folder:
        problems = asyncio.run(performed(points, Path(folder), victims))
    if problems:
        print("\n".join([f"seed {seed}, {victims}, {points}:", *problems[:50]]), file=sys.stderr)  # noqa: T201
        return 1
    names = [str(victim.name).lower() for victim in victims]
    counted = {"runs": 1, "events": EVENTS, **{f"kills of {name}": len(points) for name in names}}
    print(f"counts: {json.dumps(counted)}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
