"""A publisher's process is killed again and again; with its folder it goes on: nothing twice, nothing in between lost.

R1.2 at the publishing side, [design.md §2]: what a publisher was not told the fate of it publishes again, under the
same number, and hears where it stands. The process keeps its own list of what it means to publish, as an outbox would.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from random import Random

import holdfast
from durable_brokers import PATIENCE_S, brokers_in, patiently

KILLS = 4
EVENTS = 200  #: in each life

#: Publishes number after number from what it is given, and writes down each receipt before it goes on.
PUBLISHER = """
import asyncio, json, sys
import holdfast

async def main(url, state, first, count):
    async with holdfast.connect(url, name="p", state=state, timeout=30) as network:
        async with network.publisher(window=50, timeout=30) as publisher:
            sent = []
            for n in range(first, first + count):
                sent.append(await publisher.send("t", {"i": n}, bytes(200), n=n, timeout=30))
                while sent and sent[0].outcome is not None:
                    tell(sent.pop(0))
        for each in sent:
            tell(each)

def tell(sent):
    receipt = sent.outcome
    print(json.dumps([sent.n, receipt.tick, receipt.duplicate]), flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


async def live(url: str, state: Path, first: int, kill_after: int | None) -> list[tuple[int, int, bool]]:
    """One life of the publisher, killed when it has so many receipts; those it was told of."""
    arguments = [sys.executable, "-c", PUBLISHER, url, str(state), str(first), str(EVENTS)]
    process = await asyncio.create_subprocess_exec(*arguments, stdout=PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    told: list[tuple[int, int, bool]] = []
    async with asyncio.timeout(PATIENCE_S):
        async for line in process.stdout:
            told.append(tuple(json.loads(line)))
            if len(told) == kill_after:
                process.kill()
                break
        await ended(process)
    return told


async def ended(process: Process) -> None:
    """Read on, so that nothing is left in the pipe, and wait."""
    assert process.stdout is not None
    await process.stdout.read()
    await process.wait()


@patiently
async def test_a_publisher_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    random = Random(1)
    with brokers_in(tmp_path, {"phb": None, "shb": "phb"}) as brokers:
        await brokers.start("phb", "shb")
        async with (
            holdfast.connect(brokers.url("shb"), name="u", timeout=PATIENCE_S) as network,
            network.subscribe("#", durable="u", buffer=100_000, timeout=PATIENCE_S) as items,
        ):
            told: dict[int, int] = {}
            first = 1
            for life in range(KILLS + 1):
                kill_after = random.randint(1, EVENTS - 60) if life < KILLS else None
                for n, tick, is_duplicate in await live(
                    brokers.url("phb"), tmp_path / "p", first, kill_after
                ):
                    assert is_duplicate or n not in told
                    told[n] = tick
                first = max(told) + 1 - 10  # the last it had heard of it does not remember either
            given = [await items.get(PATIENCE_S) for _ in range(max(told))]
        events = [item for item in given if isinstance(item, holdfast.LoggedEvent)]
        assert [event.n for event in events] == list(range(1, max(told) + 1))
        assert {event.n: event.tick for event in events if event.n in told} == told
