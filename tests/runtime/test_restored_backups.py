"""A broker's folder is put back as it was once; I19: no tick is used twice, and what is gone is announced.

    phb (its log is restored) ── shb (who reads, and knows better)

Events that were accepted after the backup are lost with it, for whoever has not had them. The pubend learns from those
who have had them that its log is older than it was: it begins a new incarnation behind all they know, and what lies
between is a gap with its reason [design.md §4].
"""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import holdfast
from durable_brokers import PATIENCE_S, Brokers, brokers_in, patiently, verified
from holdfast.streams.pubend import LEASE_TICKS, RESTORED

PARENTS = {"phb": None, "shb": "phb"}


async def publish(brokers: Brokers, first: int, count: int) -> list[holdfast.Receipt]:
    """So many events, one after the other."""
    async with holdfast.connect(brokers.url("phb"), name="p", timeout=PATIENCE_S) as network:
        return [await network.publish("t", {"i": i}, timeout=PATIENCE_S) for i in range(first, first + count)]


async def read(
    brokers: Brokers, name: str, upto: int, token: holdfast.Token | None = None
) -> tuple[list[holdfast.Item], holdfast.Token]:
    """A visit of a durable subscriber: all it is given up to an event, and where it stands then."""
    found: list[holdfast.Item] = []
    async with (
        holdfast.connect(brokers.url("shb"), name=name, timeout=PATIENCE_S) as network,
        network.subscribe("#", durable=name, start=token or "now", timeout=PATIENCE_S) as items,
    ):
        while not found or not isinstance(found[-1], holdfast.LoggedEvent) or number(found[-1]) != upto:
            found.append(await items.get(PATIENCE_S))
        await items.commit(timeout=PATIENCE_S)
        return found, items.token


async def subscribe(brokers: Brokers, *names: str) -> None:
    """Durable subscribers that come and leave."""
    async with AsyncExitStack() as stack:
        for name in names:
            connecting = holdfast.connect(brokers.url("shb"), name=name, timeout=PATIENCE_S)
            network = await stack.enter_async_context(connecting)
            await stack.enter_async_context(network.subscribe("#", durable=name, timeout=PATIENCE_S))


def number(event: holdfast.Event) -> int:
    found = event.attributes["i"]
    assert isinstance(found, int)
    return found


def events_of(found: list[holdfast.Item]) -> list[int]:
    return [number(item) for item in found if isinstance(item, holdfast.LoggedEvent)]


def gaps_of(found: list[holdfast.Item]) -> list[holdfast.Gap]:
    return [item for item in found if isinstance(item, holdfast.Gap)]


@pytest.mark.parametrize("is_running", [False, True], ids=["stopped", "running"])
def test_a_restored_log_is_a_new_incarnation_and_an_announced_gap(tmp_path: Path, is_running: bool) -> None:
    @patiently
    async def performed() -> None:
        with brokers_in(tmp_path, PARENTS) as brokers:
            await brokers.start(*PARENTS)
            await subscribe(brokers, "reader", "away")
            before = await publish(brokers, 0, 20)
            if not is_running:
                brokers.stop("phb")
            shutil.copytree(brokers.data("phb"), tmp_path / "backup")
            copied_at = time.time_ns()
            if not is_running:
                await brokers.start("phb")
            while time.time_ns() < copied_at + LEASE_TICKS * 1_000:
                # what is younger than its lease cannot be told from it (decision 0015)
                await asyncio.sleep(0.05)
            after = await publish(brokers, 20, 20)
            found, token = await read(brokers, "reader", 39)
            assert events_of(found) == list(range(40))
            assert token["all@phb/0"].incarnation == 1

            brokers.kill("phb")
            shutil.rmtree(brokers.data("phb"))
            shutil.copytree(tmp_path / "backup", brokers.data("phb"))
            await brokers.start("phb")
            again = await publish(brokers, 40, 20)
            ticks = [receipt.tick for receipt in before + after + again]
            assert ticks == sorted(set(ticks))

            # Who had everything is told that something is gone, or nothing; who had not, what.
            found, token = await read(brokers, "reader", 59, token)
            assert events_of(found) == list(range(40, 60))
            assert token["all@phb/0"].incarnation > 1
            found, token = await read(brokers, "away", 59)
            assert events_of(found) == [*range(20), *range(40, 60)]
            [gap] = gaps_of(found)
            assert gap.reason == RESTORED
            assert before[-1].tick <= gap.after < after[0].tick
            assert after[-1].tick <= gap.upto < again[0].tick
            for name in PARENTS:
                brokers.stop(name)
                assert all(verified(log)[0] == 0 for log in brokers.logs(name))

    performed()
