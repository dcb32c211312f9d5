"""Source, shuffle and sink under kill -9 of the driver: ``python tests/real_pipeline.py KILLS SEED``.

    network ── stream in ──► Spark: shuffled, every row with an id of its own ──► stream out ── a durable subscriber

Real brokers, and drivers of Spark that are killed with all their processes: before a task stages, between staging and
commit, before and after the sink's commit, and after Spark's own; the next driver goes on from the checkpoint, and
computes other ids. With an odd seed the brokers are killed with them, and started again. At the end the subscriber has
had every event once, though rows were computed several times [issue 6].

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
from contextlib import suppress
from pathlib import Path

import holdfast
from durable_brokers import Brokers, brokers_in
from holdfast.pipeline.origins import origins_of
from killed_driver import POINTS

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


async def performed(points: Sequence[str], folder: Path, *, with_brokers: bool = False) -> list[str]:
    """Drivers that are killed at these points, one after the other, and one that is not; what is wrong at the end."""
    with brokers_in(folder, {"b1": None, "b2": "b1"}, streams=STREAMS, readers=True) as brokers:
        await brokers.start(*NAMES)
        await _subscribe(brokers)
        await _publish(brokers)
        checkpoint = folder / "checkpoint"
        for point in points:
            driver = _started(brokers, checkpoint, point)
            try:
                await wait_until(lambda: (folder / point).exists() or driver.poll() is not None)  # noqa: B023
                if driver.poll() is not None:
                    return [f"the driver ended before {point}: {(folder / 'driver.log').read_text()[-3000:]}"]
            finally:
                kill_driver(driver)
            if with_brokers:
                for name in NAMES:
                    brokers.kill(name)
                await brokers.start(*NAMES)
        driver = _started(brokers, checkpoint, "none")
        try:
            await wait_until(lambda: driver.poll() is not None)
        finally:
            kill_driver(driver)
        if driver.returncode:
            return [f"the last driver failed: {(folder / 'driver.log').read_text()[-3000:]}"]
        return await _judged(brokers)


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


def _started(brokers: Brokers, checkpoint: Path, point: str) -> subprocess.Popen[bytes]:
    script = Path(__file__).parent / "killed_driver.py"
    with (checkpoint.parent / "driver.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(script), str(brokers.file), str(checkpoint), point],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )


def kill_driver(driver: subprocess.Popen[bytes]) -> None:
    """With everything it has started: Java, and the processes of tasks."""
    for process in (*_below(driver.pid), driver.pid):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    driver.wait()


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
    points = [POINTS[(seed + i) % len(POINTS)] for i in range(min(kills, len(POINTS)))]
    points.sort(key=POINTS.index)
    with tempfile.TemporaryDirectory(prefix="holdfast-pipeline-") as folder:
        problems = asyncio.run(performed(points, Path(folder), with_brokers=bool(seed % 2)))
    if problems:
        print("\n".join([f"seed {seed}, {points}:", *problems[:50]]), file=sys.stderr)  # noqa: T201
        return 1
    print(f"counts: {json.dumps({'runs': 1, 'kills': len(points), 'events': EVENTS})}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
