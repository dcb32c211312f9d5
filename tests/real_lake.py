"""A durable subscriber that was away, fed from the lake: ``python tests/real_lake.py EVENTS SEED``.

    publisher ──► b1, whose log keeps 4 seconds ──► b2 ──► a durable subscriber, which comes when all that is forgotten
                   └── holdfast lake run ──► the lake

Real brokers and `holdfast lake run`; files of the lake are put together and the old ones deleted all the time; both
brokers are killed with -9 while they feed. The subscriber gets every event once and in order, no gap among them, and
then what is published meanwhile and afterwards [issue 6, part 5].

The last line of a good run has its counts, for ``tools/soak.py``.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Literal

import holdfast
from durable_brokers import Brokers, brokers_in
from holdfast.pipeline.lake.compact import compact
from holdfast.pipeline.lake.ranges import LakeRanges
from holdfast.pipeline.lake.table import LakeTable

PATIENCE_S = 240.0
LIVE = 50  #: events that are published at the end
BATCH = 1_000
STREAMS = """
[[stream]]
name = "all"
topics = ["#"]
retain = "4s"
lake = {lake}
[durable]
cache_bytes = 4096
"""
PUBEND = "all@b1/0"
_HOLDFAST = "import sys; from holdfast.cli.main import main; sys.exit(main())"
NAMES = ("b1", "b2")


@contextmanager
def lake_command(brokers: Brokers, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """`holdfast lake …` beside the network, until the block ends."""
    command = [sys.executable, "-c", _HOLDFAST, "lake", *words, "--network", str(brokers.file)]
    with (brokers.folder / f"lake-{words[0]}.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def lake_run(brokers: Brokers) -> Iterator[None]:
    """The lake is filled, and the log lets go of nothing before but what is too old."""
    with lake_command(brokers, "run", "--every", "0.2", "--subscription", "lake"):
        yield


async def subscribed(brokers: Brokers) -> None:
    """There is a durable subscription, and nobody reads it."""
    async with (
        holdfast.connect(brokers.url("b2"), name="away") as network,
        network.subscribe("t/#", durable="away"),
    ):
        pass


async def wait_running(brokers: Brokers) -> None:
    """Wait until the lake takes what is published; nobody has subscribed to that."""
    async with asyncio.timeout(PATIENCE_S), holdfast.connect(brokers.url("b1"), name="w") as network:
        while lake_place(brokers) is None:
            await network.publish("w", {})
            await asyncio.sleep(0.1)


def lake_place(brokers: Brokers) -> int | None:
    """Up to where the lake has the pubend; None if it does not."""
    lake = LakeRanges(brokers.folder / "lake" / "all", "all")
    end = lake.has(PUBEND)
    return None if end is None else end.last


async def published(brokers: Brokers, numbers: range) -> int:
    """Events of these numbers, accepted; the tick of the last."""
    tick = 0
    async with holdfast.connect(brokers.url("b1"), name="p") as network, network.publisher() as out:
        for start in range(numbers.start, numbers.stop, BATCH):
            batch = range(start, min(start + BATCH, numbers.stop))
            sent = [
                await out.send(f"t/{i % 3}", {"z": i, "a": f"text {i}", "b": bytes([i % 256])}, b"x" * 100)
                for i in batch
            ]
            receipts = [await each for each in sent]
            tick = receipts[-1].tick or 0
    return tick


async def wait_forgotten(brokers: Brokers, tick: int) -> None:
    """Wait until the log has given up everything up to a tick. With a lake, that has it by then."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status = await asyncio.to_thread(brokers.status, "b1")
            given_up = [each["given_up"] for each in status["durable"]["pubends"] if each["pubend"] == PUBEND]
            if given_up and given_up[0] >= tick:
                return
            await asyncio.sleep(0.05)


async def wait_taken(brokers: Brokers, tick: int) -> None:
    """Wait until the lake has everything up to a tick."""
    async with asyncio.timeout(PATIENCE_S):
        while (await asyncio.to_thread(lake_place, brokers) or 0) < tick:
            await asyncio.sleep(0.05)


class Received:
    """What came to the subscriber, in order: numbers of events, and gaps."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.gaps: list[holdfast.Gap] = []

    def take(self, item: object) -> None:
        """One thing more."""
        if isinstance(item, holdfast.Gap):
            self.gaps.append(item)
        elif isinstance(item, holdfast.Event):
            i = int(str(item.attributes["z"]))
            assert item.attributes == {"z": i, "a": f"text {i}", "b": bytes([i % 256])}
            assert list(item.attributes) == ["z", "a", "b"], "in the order in which they were given"
            assert (item.topic, item.payload, item.publisher) == (f"t/{i % 3}", b"x" * 100, "p")
            self.numbers.append(i)


async def received(
    brokers: Brokers,
    upto: int,
    kill_at: Sequence[tuple[int, str]] = (),
    *,
    name: str = "away",
    start: Literal["now", "earliest"] = "now",
) -> Received:
    """Read until an event of this number comes; when so many have come a broker is killed, and started again.

    A ``name`` that is not known begins at ``start``.
    """
    found = Received()
    kills = list(kill_at)
    async with (
        asyncio.timeout(PATIENCE_S),
        holdfast.connect(brokers.url("b2"), name=name) as network,
        network.subscribe("t/#", durable=name, start=start) as items,
    ):
        async for item in items:
            found.take(item)
            if kills and len(found.numbers) >= kills[0][0]:
                _, broker = kills.pop(0)
                brokers.kill(broker)
                await brokers.start(broker)
            if found.numbers and found.numbers[-1] >= upto:
                break
    return found


async def compacting(brokers: Brokers, over: asyncio.Event) -> int:
    """Put files together and delete the old ones at once, again and again; how many were deleted.

    Not by a vacuum without grace: that would delete what somebody is about to commit, too.
    """
    deleted = 0
    table = LakeTable(brokers.folder / "lake" / "all", "all")
    while not over.is_set():
        await asyncio.to_thread(table.refresh)
        before = {file.path for file in table.files()}
        if len(before) > 1:
            await asyncio.to_thread(compact, table)
        for path in before - {file.path for file in table.files()}:
            (table.folder / path).unlink()
            deleted += 1
        await asyncio.sleep(0.02)
    return deleted


async def performed(folder: Path, events: int, seed: int) -> dict[str, int]:
    """All of it; the counts."""
    random = Random(seed)
    kill_at = [(random.randrange(events // 10, events), name) for name in NAMES]
    with brokers_in(
        folder, {"b1": None, "b2": "b1"}, streams=STREAMS.format(lake="true"), readers=True
    ) as brokers:
        await brokers.start(*NAMES)
        await subscribed(brokers)
        with lake_run(brokers):
            await wait_running(brokers)
            last = await published(brokers, range(events))
            await wait_taken(brokers, last)
            await wait_forgotten(brokers, last)
            for name in NAMES:  # nothing of it is in anybody's memory
                brokers.kill(name)
            await brokers.start(*NAMES)
            over = asyncio.Event()
            vacuuming = asyncio.create_task(compacting(brokers, over))
            reading = asyncio.create_task(received(brokers, events + LIVE - 1, sorted(kill_at)))
            try:
                await _later(reading)
                await published(brokers, range(events, events + LIVE))
                found = await reading
            finally:
                over.set()
            deleted = await vacuuming
    assert not found.gaps, found.gaps
    assert found.numbers == list(range(events + LIVE)), "every one once, in order"
    assert deleted, "nothing was compacted"
    return {"runs": 1, "events": events, "kills": 2 + len(kill_at), "files deleted": deleted}


async def _later(reading: asyncio.Task[Received]) -> None:
    """Let it read for a moment, and raise what it raises."""
    done, _ = await asyncio.wait([reading], timeout=0.5)
    for task in done:
        task.result()


def main(events: int, seed: int) -> int:
    """One run; its exit status."""
    with tempfile.TemporaryDirectory(prefix="holdfast-lake-") as folder:
        counts = asyncio.run(performed(Path(folder), events, seed))
    print(f"counts: {json.dumps(counts)}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
