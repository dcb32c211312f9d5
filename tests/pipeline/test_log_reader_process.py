"""The log reader beside a real broker: what was accepted is soon there, and its death is nobody's business."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from kept_logs import keep_everything, publish

from durable_brokers import Brokers, brokers_in, patiently
from holdfast.cli.free_ports import free_ports
from holdfast.pipeline.remote import RemoteRanges
from holdfast.pipeline.requests import ReadRequest
from holdfast.runtime.addresses import Address
from holdfast.runtime.priority import NICENESS, back_cores
from holdfast.streams.checkpoint_token import Token
from raw_peer import wait_until
from running import Running, write_network

PUBEND = "all@b1/0"
LISTENS = "the log reader listens"


def remote_of(brokers: Brokers, name: str = "b1") -> RemoteRanges:
    return RemoteRanges(name, Address("127.0.0.1", brokers.reader_port(name)))


async def wait_stable(remote: RemoteRanges, token: Token) -> int:
    tick = token[PUBEND].tick
    while (await asyncio.to_thread(remote.ends, "all"))[PUBEND].last < tick:
        await asyncio.sleep(0.02)
    return tick


def numbers_in(remote: RemoteRanges, upto: int) -> list[int]:
    page = remote.page(
        ReadRequest("all", PUBEND, 0, upto, ("a",), attributes={"i": "BIGINT"}, filter="t/+ WHERE i >= 0")
    )
    assert page.covered == upto
    return [each["i"] for each in pa.Table.from_batches(page.batches, page.schema)["a"].to_pylist()]


def reader_pids(brokers: Brokers, name: str = "b1") -> list[int]:
    """Those that were said to listen, in this life of the broker."""
    return [line["pid"] for line in brokers.said(name) if line.get("text") == LISTENS]


async def wait_gone(pid: int) -> None:
    await wait_until(lambda: not Path(f"/proc/{pid}").exists())


async def wait_all_gone(pids: list[int]) -> None:
    for pid in pids:
        await wait_gone(pid)


@patiently
async def test_what_was_accepted_is_soon_read_while_more_is_written(tmp_path: Path) -> None:
    with brokers_in(tmp_path, {"b1": None}, readers=True) as brokers:
        await brokers.start("b1")
        await brokers.wait_for(LISTENS, "b1")
        remote = remote_of(brokers)
        await keep_everything(brokers)
        token = await publish(brokers, "b1", range(100))
        writing = asyncio.create_task(publish(brokers, "b1", range(100, 2_000)))
        tick = await wait_stable(remote, token)
        assert await asyncio.to_thread(numbers_in, remote, tick) == list(range(100))
        last = await wait_stable(remote, await writing)
        assert await asyncio.to_thread(numbers_in, remote, last) == list(range(2_000))


@patiently
async def test_a_killed_reader_comes_back_and_who_asks_meanwhile_only_waits(tmp_path: Path) -> None:
    with brokers_in(tmp_path, {"b1": None}, readers=True) as brokers:
        await brokers.start("b1")
        await brokers.wait_for(LISTENS, "b1")
        remote = remote_of(brokers)
        await keep_everything(brokers)
        await wait_stable(remote, await publish(brokers, "b1", range(10)))
        [pid] = reader_pids(brokers)
        assert os.getpriority(os.PRIO_PROCESS, pid) >= NICENESS
        assert os.sched_getaffinity(pid) == back_cores()
        os.kill(pid, signal.SIGKILL)
        tick = await wait_stable(remote, await publish(brokers, "b1", range(10, 20)))
        assert await asyncio.to_thread(numbers_in, remote, tick) == list(range(20))
        assert len(reader_pids(brokers)) == 2
        said = await brokers.wait_for("the log reader ended and is started again", "b1")
        assert (said["level"], said["status"]) == ("warning", -signal.SIGKILL)


@pytest.mark.parametrize("end", [Brokers.kill, Brokers.stop])
def test_a_reader_ends_with_its_broker(tmp_path: Path, end: Any) -> None:
    @patiently
    async def scene() -> None:
        with brokers_in(tmp_path, {"b1": None}, readers=True) as brokers:
            await brokers.start("b1")
            await brokers.wait_for(LISTENS, "b1")
            [pid] = reader_pids(brokers)
            end(brokers, "b1")
            await wait_gone(pid)
            await brokers.start("b1")
            await brokers.wait_for(LISTENS, "b1")

    scene()


@patiently
async def test_a_broker_without_pyarrow_says_so_once_and_goes_on(tmp_path: Path) -> None:
    hidden = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "pyarrow" else find(name, *more)
"""
    with brokers_in(tmp_path, {"b1": None}, readers=True, first=hidden) as brokers:
        await brokers.start("b1")
        await publish(brokers, "b1", range(10))
        said = [line for line in brokers.said("b1") if line["text"] == "there will be no log reader"]
        assert [line["level"] for line in said] == ["warning"]
        assert "pip install 'holdfast[spark]'" in said[0]["problem"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_up_has_a_reader_for_each_broker_and_leaves_none_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    path, _ = write_network(tmp_path, "b1", guarantee="durable")
    text = path.read_text()
    for name, port in zip(("b1", "b2"), free_ports(2), strict=True):
        text = text.replace(f'name = "{name}"\n', f'name = "{name}"\nreader = "127.0.0.1:{port}"\n')
    path.write_text(text)
    with Running("up", "--network", str(path)) as up:
        said = up.wait_for(LISTENS, times=2)
        readers = [
            int(pid) for pid in re.findall(rf"{LISTENS} .*pid=(\d+)", said + up.wait_for("ready; connect"))
        ]
        assert len(set(readers)) == 2
        up.tell(number)
        asyncio.run(asyncio.wait_for(wait_all_gone(readers), 30))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--listen", "10.0.0.1:7200"], "only loopback is allowed"),
        (["--listen", "nonsense"], "expected host:port"),
    ],
)
def test_an_address_that_will_not_do_is_refused(tmp_path: Path, arguments: list[str], problem: str) -> None:
    command = [sys.executable, "-m", "holdfast.pipeline.reader", "--folder", str(tmp_path), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert problem in ended.stderr
    assert "Traceback" not in ended.stderr
