"""A query as a durable subscriber: its log is kept until it has read it, and not longer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kept_logs import publish

import holdfast
from durable_brokers import PATIENCE_S, Brokers, brokers_in, patiently
from holdfast.cli.main import main as holdfast_command
from holdfast.pipeline.acknowledging import Acknowledging
from holdfast.pipeline.errors import BadOption, NoSubscription
from holdfast.runtime.network_file import read_network
from holdfast.streams.checkpoint_token import Token

TWO = """
[[stream]]
name = "all"
topics = ["t/#"]
[[stream]]
name = "others"
topics = ["u/#"]
"""


def subscription(brokers: Brokers, filter: str | None = None) -> Acknowledging:
    return Acknowledging(read_network(brokers.file), "all", "lake", filter)


async def released(brokers: Brokers, name: str = "b1") -> dict[str, int]:
    status = await asyncio.to_thread(brokers.status, name)
    return {each["pubend"]: each["released"] for each in status["durable"]["pubends"]}


async def wait_released(brokers: Brokers, pubend: str, upto: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await released(brokers))[pubend] < upto:
            await asyncio.sleep(0.02)


@patiently
async def test_the_log_is_kept_until_it_is_acknowledged_and_goes_then(tmp_path: Path) -> None:
    with brokers_in(tmp_path, {"b1": None}) as brokers:
        await brokers.start("b1")
        mine = subscription(brokers)
        assert await asyncio.to_thread(mine.place) is None
        await asyncio.to_thread(mine.make, Token())
        half, whole = await publish(brokers, "b1", range(50)), await publish(brokers, "b1", range(50, 100))
        [pubend] = whole
        place = await asyncio.to_thread(mine.place)
        assert place is not None
        assert place[pubend].tick < half[pubend].tick
        await asyncio.to_thread(mine.acknowledge, whole)
        await wait_released(brokers, pubend, whole[pubend].tick)
        await asyncio.to_thread(subscription(brokers).acknowledge, half)
        assert await asyncio.to_thread(mine.place) == whole, "never back"


@patiently
async def test_a_broker_that_is_away_hears_of_it_later_and_nobody_makes_it_twice(tmp_path: Path) -> None:
    with brokers_in(tmp_path, {"b1": None, "b2": "b1"}) as brokers:
        await brokers.start("b1", "b2")
        mine = subscription(brokers)
        await asyncio.to_thread(mine.make, Token())
        done = await publish(brokers, "b1", range(10))
        brokers.kill("b1")
        await asyncio.to_thread(mine.acknowledge, done)
        with pytest.raises(NoSubscription, match="some do not answer"):
            await asyncio.to_thread(mine.place)
        await brokers.start("b1")
        [pubend] = done
        place = await asyncio.to_thread(mine.place)
        assert place is not None
        assert place[pubend].tick < done[pubend].tick
        async with asyncio.timeout(PATIENCE_S):
            while await asyncio.to_thread(mine.place) != done:
                await asyncio.to_thread(mine.acknowledge, done)


@patiently
async def test_logs_of_other_streams_are_not_kept_by_it(tmp_path: Path) -> None:
    with brokers_in(tmp_path, {"b1": None}, streams=TWO) as brokers:
        await brokers.start("b1")
        mine = subscription(brokers)
        await asyncio.to_thread(mine.make, Token())
        done = await publish(brokers, "b1", range(10))
        await asyncio.to_thread(mine.acknowledge, done)
        async with holdfast.connect(brokers.url("b1"), name="q") as network:
            other = await network.publish("u/1")
        async with asyncio.timeout(PATIENCE_S):
            while (await released(brokers))[other.pubend] < other.tick:
                await asyncio.to_thread(mine.acknowledge, done)  # nothing happens in the stream it reads


@patiently
async def test_what_is_not_the_querys_is_refused(tmp_path: Path) -> None:
    with brokers_in(tmp_path, {"b1": None}) as brokers:
        await brokers.start("b1")
        await asyncio.to_thread(subscription(brokers, "t/#").make, Token())
        done = await publish(brokers, "b1", range(10))
        with pytest.raises(BadOption, match=r"is a durable subscription to t/#, not to #; expected the same"):
            await asyncio.to_thread(subscription(brokers).place)
        mine = subscription(brokers, "t/#")
        async with (
            holdfast.connect(brokers.url("b1"), name="somebody") as network,
            network.subscribe("t/#", durable="lake"),
        ):
            for use in (mine.place, lambda: mine.acknowledge(done)):
                with pytest.raises(
                    NoSubscription, match=r"lake'? is being read by somebody: stop that first"
                ):
                    await asyncio.to_thread(use)
        command = ["subscription", "rm", "lake", "--network", str(brokers.file)]
        assert await asyncio.to_thread(holdfast_command, command) == 0
        with pytest.raises(NoSubscription, match="was ended: nothing is kept for this query"):
            await asyncio.to_thread(mine.acknowledge, done)


@patiently
async def test_nobody_is_there_to_make_it(tmp_path: Path) -> None:
    said = r"some do not answer.*b1: connection refused"
    with brokers_in(tmp_path, {"b1": None}) as brokers, pytest.raises(NoSubscription, match=said):
        await asyncio.to_thread(subscription(brokers).place)
