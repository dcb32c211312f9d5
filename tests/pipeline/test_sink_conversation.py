"""Tasks and drivers at real brokers, without Spark: killed between staging and commit, started again, nothing lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kept_logs import keep_everything
from sink_reading import everything, of

from durable_brokers import Brokers, brokers_in, patiently
from holdfast.client import epoch_writer
from holdfast.clock import SECOND
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.staging import Committed, Epoch, Share
from holdfast.pipeline.conversation import Conversation
from holdfast.pipeline.errors import BadOption, CannotPublish
from holdfast.pipeline.homes import Homes, homes_of

STREAMS = """
[[stream]]
name = "all"
topics = ["t/#"]
[[stream]]
name = "fast"
topics = ["f/#"]
guarantee = "best-effort"
"""
APP = "app"


def packed(*marks: str, topic: str = "t/x", size: int = 10) -> list[bytes]:
    return [pack(make_event(topic, {"mark": mark}, bytes(size))) for mark in marks]


def stage(homes: Homes, attempt: str, version: int, events: list[bytes]) -> None:
    with Conversation(attempt, homes.of(APP)) as conversation:
        writer = conversation.writer
        for first in range(0, len(events), 500):
            writer.stage(attempt, Epoch("all", APP, version), events[first : first + 500])
            conversation.wait(lambda: writer.has_room)
        conversation.wait(lambda: writer.is_answered)


def commit(homes: Homes, version: int, *shares: Share) -> Committed:
    with Conversation(f"driver-{version}", homes.of(APP)) as conversation:
        conversation.writer.commit(Epoch("all", APP, version), shares)
        conversation.wait(lambda: conversation.writer.is_answered)
        assert conversation.writer.committed is not None
        return conversation.writer.committed


async def network_in(brokers: Brokers) -> Homes:
    await brokers.start("b1", "b2")
    await keep_everything(brokers)
    return homes_of(brokers.file, "all")


async def killed(brokers: Brokers, name: str) -> None:
    brokers.kill(name)
    await brokers.start(name)


@patiently
async def test_a_broker_killed_between_staging_and_commit_and_after_it_has_every_event_once(
    tmp_path: Path,
) -> None:
    with brokers_in(tmp_path, {"b1": None, "b2": "b1"}, streams=STREAMS) as brokers:
        homes = await network_in(brokers)
        home = homes.of(APP).name
        first, second = [f"a{i}" for i in range(3_000)], [f"b{i}" for i in range(10)]
        await asyncio.to_thread(stage, homes, "t0", 0, packed(*first, size=2_000))  # more than one window
        await asyncio.to_thread(stage, homes, "t1", 0, packed(*second))
        await asyncio.to_thread(stage, homes, "zombie", 0, packed("never"))
        await killed(brokers, home)
        shares = Share("t0", len(first)), Share("t1", len(second))
        assert (await asyncio.to_thread(commit, homes, 0, *shares)).events == 3_010
        await killed(brokers, home)
        await asyncio.to_thread(stage, homes, "r0", 0, packed("other"))
        assert (await asyncio.to_thread(commit, homes, 0, Share("r0", 1))).is_repeat
        await asyncio.to_thread(stage, homes, "t2", 1, packed("last"))
        brokers.kill(home)
        committing = asyncio.create_task(asyncio.to_thread(commit, homes, 1, Share("t2", 1)))
        await brokers.start(home)  # the driver waits for it
        assert (await committing).events == 1
        events = of(APP, await everything(brokers, "b1", "b2"))
        assert [each.attributes["mark"] for each in events] == [*first, *second, "last"]
        assert brokers.status(home)["durable"]["staged"]["attempts"] == 0


@patiently
async def test_what_a_broker_will_not_have_is_an_error_that_says_why(tmp_path: Path) -> None:
    with brokers_in(tmp_path, {"b1": None, "b2": "b1"}, streams=STREAMS) as brokers:
        homes = await network_in(brokers)
        with pytest.raises(CannotPublish, match="it is of the stream fast"):
            await asyncio.to_thread(stage, homes, "t0", 0, packed("a", topic="f/x"))
        with pytest.raises(CannotPublish, match="attempt gone has 0 events here, not 3"):
            await asyncio.to_thread(commit, homes, 0, Share("gone", 3))
        await asyncio.to_thread(stage, homes, "t1", 0, packed("a"))
        with Conversation("driver", homes.of(APP)) as conversation:
            conversation.writer.discard(["t1"])
            conversation.wait(lambda: conversation.writer.is_answered)
        assert brokers.status(homes.of(APP).name)["durable"]["staged"]["attempts"] == 0


def test_a_broker_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_writer, "PATIENCE_NS", SECOND)
    with brokers_in(tmp_path, {"b1": None}, streams=STREAMS) as brokers:
        homes = homes_of(brokers.file, "all")
    with pytest.raises(
        CannotPublish, match=r"broker b1 at 127.0.0.1:\d+ has not answered for 1 s: .*refused"
    ):
        commit(homes, 0, Share("t", 1))


def test_a_stream_that_cannot_be_written_exactly_once_is_refused_by_name(tmp_path: Path) -> None:
    with brokers_in(tmp_path, {"b1": None}, streams=STREAMS) as brokers:
        pass
    with pytest.raises(BadOption, match="fast is best-effort"):
        homes_of(brokers.file, "fast")
    with pytest.raises(BadOption, match="no stream none"):
        homes_of(brokers.file, "none")
    with pytest.raises(BadOption, match="option network"):
        homes_of(tmp_path / "nothing.toml", "all")
