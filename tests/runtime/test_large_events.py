"""Events as large as they may be: published faster than they are logged or read, missed, caught up with.

Everything that waits somewhere is counted in bytes. So nobody is given up as too slow, which would begin all of it
anew, and no broker takes more memory than its caches and windows; not when it is started again either.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path

import holdfast
from durable_brokers import PATIENCE_S, STREAM, Brokers, brokers_in, patiently

EVENTS = 300
SIZE = 1_000_000
PUBLISHERS, EACH = 12, 20
MEMORY_MB = 400  #: of each broker, at most; all events would be 300 MB in each place they are kept

#: A disk that stands still while there is a pipe of this name, until something is written to that.
STILL_DISK = """
import os
sync = os.fdatasync
def wait_and_sync(descriptor):
    try:
        with open({pipe!r}, "rb", buffering=0) as pipe:
            pipe.read(1)
    except FileNotFoundError:
        pass
    sync(descriptor)
os.fdatasync = wait_and_sync
del os.RWF_DSYNC
"""


def peak_mb(brokers: Brokers, name: str) -> int:
    status = Path(f"/proc/{brokers.pid(name)}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) // 1024


async def publish_all(brokers: Brokers) -> None:
    async with (
        holdfast.connect(brokers.url("phb"), name="p", timeout=PATIENCE_S) as network,
        network.publisher(timeout=PATIENCE_S) as out,
    ):
        for n in range(EVENTS):
            await out.send("orders/eu", {"n": n}, n.to_bytes(4) * (SIZE // 4), timeout=PATIENCE_S)


async def publish_some(brokers: Brokers, publisher: int) -> None:
    async with (
        holdfast.connect(brokers.url("phb"), name=f"p{publisher}", timeout=PATIENCE_S) as network,
        network.publisher(timeout=PATIENCE_S) as out,
    ):
        for n in range(EACH):
            await out.send("orders/eu", {"n": n}, bytes(SIZE), timeout=PATIENCE_S)


async def read_all(brokers: Brokers, name: str) -> list[object]:
    """With the buffer that everybody has who asks for no other."""
    found: list[object] = []
    async with (
        holdfast.connect(brokers.url(name), name=f"at-{name}", timeout=PATIENCE_S) as network,
        network.subscribe("orders/#", durable="kept", timeout=PATIENCE_S) as items,
    ):
        while len(found) < EVENTS:
            item = await items.get(PATIENCE_S)
            assert isinstance(item, holdfast.LoggedEvent)
            assert len(item.payload) == SIZE
            found.append(item.attributes["n"])
    return found


@patiently
async def test_large_events_are_published_missed_and_caught_up_with_and_nobody_is_given_up(
    tmp_path: Path,
) -> None:
    with brokers_in(tmp_path, {"phb": None, "shb": "phb"}) as brokers:
        await brokers.start("phb", "shb")
        async with (
            holdfast.connect(brokers.url("shb"), name="at-shb", timeout=PATIENCE_S) as network,
            network.subscribe("orders/#", durable="kept", timeout=PATIENCE_S),
        ):
            pass
        await publish_all(brokers)
        assert await read_all(brokers, "shb") == list(range(EVENTS))
        peaks = {name: peak_mb(brokers, name) for name in ("phb", "shb")}
        assert max(peaks.values()) < MEMORY_MB, peaks
        brokers.kill("phb")
        await brokers.start("phb")
        assert await asyncio.wait_for(read_all(brokers, "shb"), 4 * PATIENCE_S) == list(range(EVENTS))
        assert peak_mb(brokers, "phb") < MEMORY_MB
        given_up = [
            line for name in ("phb", "shb") for line in brokers.said(name) if "given up" in line["text"]
        ]
        assert [line for line in given_up if "slow" in line["text"]] == []


@patiently
async def test_publishers_wait_for_a_disk_that_stands_still_and_lose_nothing(tmp_path: Path) -> None:
    little = f"\n[durable]\nlogging_bytes = {SIZE}\n"
    pipe = tmp_path / "pipe"
    first = STILL_DISK.format(pipe=str(pipe))
    with brokers_in(tmp_path, {"phb": None}, streams=STREAM + little, first=first) as brokers:
        await brokers.start("phb")

        async def logging() -> dict[str, int]:
            page = await asyncio.to_thread(brokers.status, "phb")
            found: dict[str, int] = page["durable"]["logging"]
            return found

        async with (
            holdfast.connect(brokers.url("phb"), name="at-phb", timeout=PATIENCE_S) as network,
            network.subscribe("orders/#", durable="kept", timeout=PATIENCE_S) as items,
        ):
            os.mkfifo(pipe)
            publishing = [asyncio.create_task(publish_some(brokers, each)) for each in range(PUBLISHERS)]
            while (await logging())["held_up"] < PUBLISHERS:
                assert not any(each.done() for each in publishing), "nothing is accepted"
            assert (await logging())["bytes"] < 2.5 * PUBLISHERS * SIZE, "of each at most two, read at once"
            released = os.open(pipe, os.O_RDWR)
            os.write(released, bytes(PUBLISHERS * EACH))
            pipe.unlink()
            await asyncio.gather(*publishing)
            found: dict[str, list[object]] = {}
            for _ in range(PUBLISHERS * EACH):
                item = await items.get(PATIENCE_S)
                assert isinstance(item, holdfast.LoggedEvent)
                found.setdefault(item.publisher, []).append(item.attributes["n"])
        os.close(released)
        assert found == {f"p{each}": list(range(EACH)) for each in range(PUBLISHERS)}
        assert await logging() == {"bytes": 0, "held_up": 0}
        assert peak_mb(brokers, "phb") < MEMORY_MB


@patiently
async def test_reliable_ones_pass_a_broker_that_is_frozen_and_it_is_given_what_it_missed(
    tmp_path: Path,
) -> None:
    """All that waits for somebody used to be sent at once, and the connection was given up as too slow, for ever."""
    reliable = STREAM.replace("durable", "reliable")
    with brokers_in(tmp_path, {"a": None, "b": "a", "c": "b"}, streams=reliable, delta=1) as brokers:
        await brokers.start("a", "b", "c")
        async with (
            holdfast.connect(brokers.url("c"), name="s", timeout=PATIENCE_S) as reading,
            reading.subscribe("#", timeout=PATIENCE_S) as items,
            holdfast.connect(brokers.url("a"), name="p", timeout=PATIENCE_S) as writing,
        ):
            found: list[object] = []

            async def read() -> None:
                while len(found) < EVENTS:
                    item = await items.get(PATIENCE_S)
                    assert isinstance(item, holdfast.Event), item
                    found.append(item.attributes["n"])

            task = asyncio.create_task(read())
            async with writing.publisher(timeout=PATIENCE_S) as out:
                for n in range(EVENTS):
                    await out.send("orders/eu", {"n": n}, bytes(SIZE), timeout=PATIENCE_S)
                    if n == EVENTS // 10:
                        os.kill(brokers.pid("b"), signal.SIGSTOP)
            os.kill(brokers.pid("b"), signal.SIGCONT)
            await task
        assert found == list(range(EVENTS))
        said = [line for name in ("a", "b", "c") for line in brokers.said(name)]
        assert [line for line in said if "slow" in line["text"]] == []
