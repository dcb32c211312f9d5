"""A disk that is full, for real: publishing is refused with a reason, reading goes on, and it heals when there is room.

Issue 5 §1: a clear state. The disk is a small one of the test's own; somebody else fills it up. (A full disk at every
single write: ``tests/storage``, ``tests/simulation``.)
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

import holdfast
from durable_brokers import PATIENCE_S, brokers_in, patiently, verified
from real_disks import disk_in
from running import Running

DISK_BYTES = 24 << 20
EVENT = bytes(20_000)


def fill_up(folder: Path) -> Path:
    """Write until there is no room; what was written, to be removed."""
    path = folder / "filling"
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 9, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
        os.fsync(file.fileno())
    return path


async def publish_until_refused(network: holdfast.Network, accepted: list[int]) -> holdfast.Refused:
    """Publish one event after the other; the refusal that ends it."""
    for i in range(10_000):
        try:
            accepted.append((await network.publish("t", {"i": i}, EVENT, timeout=PATIENCE_S)).tick)
        except holdfast.Refused as refused:
            return refused
    raise AssertionError("a disk without an end")


@patiently
async def test_a_full_disk_refuses_events_and_serves_them(tmp_path: Path) -> None:
    with (
        disk_in(tmp_path, DISK_BYTES) as disk,
        brokers_in(tmp_path, {"b1": None}, folders={"b1": disk.at / "b1"}) as brokers,
    ):
        await brokers.start("b1")
        accepted: list[int] = []
        async with (
            holdfast.connect(brokers.url("b1"), name="p", timeout=PATIENCE_S) as publisher,
            holdfast.connect(brokers.url("b1"), name="u", timeout=PATIENCE_S) as reader,
        ):
            async with reader.subscribe("#", durable="u", timeout=PATIENCE_S):
                pass
            accepted += [(await publisher.publish("t", {"i": i}, EVENT)).tick for i in range(20)]
            filling = fill_up(disk.at)
            refused = await publish_until_refused(publisher, accepted)
            assert "no space left on the disk" in refused.reason

            # Reading goes on: who was away is served, also by a new connection, and those who come now too.
            async with reader.subscribe("#", durable="u", timeout=PATIENCE_S) as items:
                given = [await items.get(PATIENCE_S) for _ in accepted]
                assert [item.tick for item in given if isinstance(item, holdfast.LoggedEvent)] == accepted
                with pytest.raises(holdfast.Refused):
                    await publisher.publish("t", {"i": -1}, EVENT, timeout=PATIENCE_S)

                # It heals by itself.
                filling.unlink()
                await brokers.wait_for("events can be logged again", "b1")
                accepted.append((await publisher.publish("t", {"i": -2}, EVENT, timeout=PATIENCE_S)).tick)
                healed = await items.get(PATIENCE_S)
                assert isinstance(healed, holdfast.LoggedEvent)
                assert healed.tick == accepted[-1]
                await items.commit(timeout=PATIENCE_S)
        brokers.stop("b1")
        assert all(verified(log)[0] == 0 for log in brokers.logs("b1"))


@patiently
async def test_a_disk_that_has_room_again_is_seen_to_though_nobody_publishes(tmp_path: Path) -> None:
    with (
        disk_in(tmp_path, DISK_BYTES) as disk,
        brokers_in(tmp_path, {"b1": None}, folders={"b1": disk.at / "b1"}) as brokers,
    ):
        await brokers.start("b1")
        async with holdfast.connect(brokers.url("b1"), name="p", timeout=PATIENCE_S) as publisher:
            await publisher.publish("t", {"i": 0}, EVENT)
            filling = fill_up(disk.at)
            await publish_until_refused(publisher, [])

        with Running("pub", "t", "--url", brokers.url("b1")) as pub:
            pub.write('{"payload": "a good line"}\n')
            status, _, said = pub.ended()
        assert status == 1, "a full disk is not the line's fault"
        assert "line 1: the network refuses it: " in said
        assert "no space left on the disk" in said
        assert "0 events accepted" in said
        assert "1 refused by the network" in said

        [log] = (await asyncio.to_thread(brokers.status, "b1"))["durable"]["pubends"]
        assert log["state"] == "refusing"
        filling.unlink()
        await brokers.wait_for("events can be logged again", "b1")
        [log] = (await asyncio.to_thread(brokers.status, "b1"))["durable"]["pubends"]
        assert (log["state"], log["problem"]) == ("ok", None)
