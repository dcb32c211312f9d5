"""Events as large as they may be: published faster than they are logged, missed, caught up with over two brokers.

Everything that waits somewhere is counted in bytes. So nobody is given up as too slow, which would begin all of it
anew, and no broker takes more memory than its caches and windows; not when it is started again either.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import holdfast
from durable_brokers import PATIENCE_S, Brokers, brokers_in, patiently

EVENTS = 300
SIZE = 1_000_000
MEMORY_MB = 400  #: of each broker, at most; all events would be 300 MB in each place they are kept


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
