"""The client without async, over TCP and inside the process."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast
from holdfast import Event, Receipt, sync
from holdfast.client.item import Item
from holdfast.embedded.network import Network
from holdfast.errors import EnvironmentsFault
from two_worlds import tcp_world


@contextmanager
def tcp() -> Iterator[str]:
    """A broker over TCP, in a thread of its own."""
    started: list[str] = []
    is_there, is_over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with tcp_world() as world:
            started.append(world.url)
            is_there.set()
            await asyncio.to_thread(is_over.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="broker")
    thread.start()
    try:
        assert is_there.wait(10)
        yield started[0]
    finally:
        is_over.set()
        thread.join()


@contextmanager
def memory() -> Iterator[str]:
    with Network("without-async", brokers=2) as network:
        yield network.url


@pytest.fixture(params=[tcp, memory])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with request.param() as url:
        yield url
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("holdfast")]


def numbers_of(items: list[Item]) -> list[int]:
    return [item.n for item in items if isinstance(item, Event)]


def test_publish_and_subscribe(url: str) -> None:
    with sync.connect(url, name="me") as network, network.subscribe("orders/# where price>100") as items:
        assert network.name == "me"
        assert network.broker == "b1"
        assert network.state is holdfast.State.READY
        assert items.filter == "orders/# WHERE price > 100"
        assert items.partial == ()
        assert network.publish("orders/eu", {"price": 101.5}, b"x", n=1) == Receipt("me", 1, duplicate=False)
        item = items.get()
        assert isinstance(item, Event)
        assert (item.topic, item.payload, item.id) == ("orders/eu", b"x", ("me", 1))
        with pytest.raises(holdfast.TimedOut):
            items.get(timeout=0.01)
    assert network.closed


def test_a_publisher_keeps_order_at_a_rate(url: str) -> None:
    with sync.connect(url, name="p") as p, sync.connect(url) as s, s.subscribe("#") as items:
        with ThreadPoolExecutor(1) as pool:
            publishing = pool.submit(_publish, p, 3000)
            taken: list[int] = []
            for item in items:
                taken += numbers_of([item])
                if len(taken) == 3000:
                    break
            sent = publishing.result()
        assert taken == [each.id.n for each in sent]
        assert sent[-1].receipt() == Receipt("p", taken[-1], duplicate=False)


def _publish(network: sync.Network, count: int) -> list[sync.Sent]:
    with network.publisher(window=64) as out:
        return [out.send("a", {"i": i}) for i in range(count)]


def test_many_threads_may_publish_and_take(url: str) -> None:
    with sync.connect(url, name="p") as p, sync.connect(url) as s, s.subscribe("#") as items:
        with ThreadPoolExecutor(8) as pool:
            receipts = list(pool.map(lambda i: p.publish("a", {"i": i}), range(40)))
            taken = list(pool.map(lambda _: items.get(), range(40)))
        assert sorted(numbers_of(taken)) == sorted(receipt.tick for receipt in receipts)


def test_batches(url: str) -> None:
    with sync.connect(url) as network, network.subscribe("#") as items:
        for _ in range(3):
            network.publish("a")
        taken = [items.get()]
        for batch in items.batches():
            taken += batch
            if len(taken) == 3:
                break
        assert numbers_of(taken) == [1, 2, 3]


def test_errors_are_those_of_the_client_with_async(url: str) -> None:
    with sync.connect(url, name="me") as network:
        with pytest.raises(holdfast.FilterError):
            network.subscribe("a WHERE")
        with pytest.raises(holdfast.InvalidOption, match="durable: is empty"):
            network.subscribe("a", durable="")
        with pytest.raises(holdfast.InvalidEvent):
            network.publish("a/+")
        left = network.publisher()
        left.send("a", n=4).receipt()
        out = network.publisher()
        out.send("a", n=5)
        used = out.send("a", n=5)
        with pytest.raises(holdfast.InvalidEvent, match="n: is 5, not above 5"):
            used.receipt()
        with pytest.raises(holdfast.InvalidEvent, match="n: is 5, not above 5"):
            out.flush()
        with pytest.raises(holdfast.InvalidEvent, match="n: is 5, not above 5"):
            out.send("a")
    with pytest.raises(holdfast.Closed):
        network.publish("a")
    for call in (out.flush, lambda: left.send("a"), lambda: left.send("a"), left.flush):
        with pytest.raises(holdfast.Closed):
            call()
    network.close()


def test_an_event_that_gets_no_number_says_why_and_so_does_every_later_call(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "me"
    with sync.connect(url, name="me", state=folder) as network:
        shutil.rmtree(folder)
        folder.write_text("in the way")
        out = network.publisher()
        for call in (out.send("a").receipt, out.flush, lambda: out.send("a")):
            with pytest.raises(EnvironmentsFault, match=str(folder)):
                call()
        with pytest.raises(EnvironmentsFault, match=str(folder)):
            network.publish("a")
        folder.unlink()
        assert network.publish("a").pubend == "me"


def test_whatever_keeps_an_event_from_being_handed_over_is_told(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*arguments: object) -> None:
        raise ZeroDivisionError("a bug")

    with sync.connect(url) as network:
        out = network.publisher()
        monkeypatch.setattr(out._publisher, "send_packed", broken)
        for call in (out.send("a").receipt, out.flush, lambda: out.send("a")):
            with pytest.raises(ZeroDivisionError):
                call()


def test_closing_wakes_whoever_waits_in_another_thread(url: str) -> None:
    network = sync.connect(url)
    items = network.subscribe("#").__enter__()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(items.get, None)
        network.publish("a")
        assert isinstance(waiting.result(), Event)
        waiting = pool.submit(items.get, None)
        network.close()
        with pytest.raises(holdfast.Closed):
            waiting.result()


def test_takeover_is_told_in_whatever_waits(url: str) -> None:
    with sync.connect(url, name="me") as older, older.subscribe("#") as items:
        with sync.connect(url, name="me") as newer, ThreadPoolExecutor(1) as pool:
            with pytest.raises(holdfast.TakenOver):
                pool.submit(items.get, None).result()
            assert newer.publish("a").pubend == "me"
        with pytest.raises(holdfast.TakenOver):
            older.publish("a")


def test_nobody_there_leaves_no_thread_behind() -> None:
    with tcp() as url:
        pass
    with pytest.raises(holdfast.Unreachable):
        sync.connect(url, timeout=0.05)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("holdfast")]


WAITING = """
import sys, threading
import holdfast
with holdfast.memory.Network("here"):
    try:
        with holdfast.sync.connect("memory://here") as network, network.subscribe("#") as items:
            print("waiting", flush=True)
            items.get(None)
    except KeyboardInterrupt:
        print("interrupted", threading.active_count())
"""


def test_ctrl_c_ends_a_wait_and_leaves_no_thread(tmp_path: Path) -> None:
    program = tmp_path / "waiting.py"
    program.write_text(WAITING)
    process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.communicate(timeout=20)[0] == "interrupted 1\n"
        assert process.returncode == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
