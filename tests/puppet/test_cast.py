"""Real processes, one at a time: how they are started, spoken to, and how they end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.puppet.cast import Cast, NotDriven
from holdfast.puppet.control import Perform, Report, WhenSettled
from holdfast.puppet.folder import CONFIGURATION_FILE, SCRIPT_FILE, home_of, trace_of
from holdfast.puppet.trace_file import read_trace_file
from holdfast.runtime import clock
from holdfast.scenarios.configuration import parse_configuration
from performances import PAIR

ALONE = "Site s Parent none\nProcess b is broker On s URL tcp://localhost:{port}/b\n"


@contextmanager
def cast(folder: Path, port: int = 0, network: str = ALONE) -> Iterator[Cast]:
    """A broker alone, or a whole network, in the running loop; it is gone when the block is left."""
    configuration = parse_configuration(network.format(port=port))
    (folder / CONFIGURATION_FILE).write_text(str(configuration), "utf-8")
    (folder / SCRIPT_FILE).write_text("", "utf-8")
    found = Cast(configuration, folder)
    try:
        yield found
    finally:
        found.kill_all()


async def failure_of(found: Cast) -> NotDriven:
    with pytest.raises(NotDriven) as caught:
        await asyncio.wait_for(found.failure, 10)
    return caught.value


def test_a_process_listens_where_it_can_and_comes_back_to_the_same_port(tmp_path: Path) -> None:
    async def play() -> None:
        with cast(tmp_path) as found:
            await found.come_up()
            await found.begin(clock.now())
            puppet = found.puppets["b"]
            port, pid = puppet.port, puppet.pid
            with socket.create_connection(("localhost", port)):
                found.crash("b")
            assert not puppet.is_up
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("localhost", port))
            await found.restart("b")
            assert puppet.port == port
            assert puppet.pid != pid
            socket.create_connection(("localhost", port)).close()
            assert (home_of(tmp_path, "b") / "incarnation").exists()

    asyncio.run(play())


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    async def play(port: int) -> None:
        with cast(tmp_path, port) as found:
            starting = asyncio.ensure_future(found.come_up())
            problem = str(await failure_of(found))
            starting.cancel()
            assert problem == f"b cannot listen on localhost:{port}: address already in use"

    with socket.create_server(("127.0.0.1", 0)) as taken:
        asyncio.run(play(taken.getsockname()[1]))


def test_a_process_that_dies_by_itself_is_named_with_its_last_words(tmp_path: Path) -> None:
    async def play() -> None:
        with cast(tmp_path) as found:
            await found.come_up()
            pid = found.puppets["b"].pid
            assert pid is not None
            with (home_of(tmp_path, "b") / "stderr").open("a") as log:
                log.write("".join(f"line {n}\n" for n in range(100)))
            os.kill(pid, signal.SIGKILL)
            failure = await failure_of(found)
            assert failure.process == "b"
            assert failure.problem == "was killed by signal 9"
            assert failure.last_words.splitlines() == [f"line {n}" for n in range(90, 100)]

    asyncio.run(play())


def test_a_process_that_fails_on_an_order_says_why(tmp_path: Path) -> None:
    async def play() -> None:
        with cast(tmp_path) as found:
            await found.come_up()
            found.puppets["b"].say(Perform(99, None, 1))  # the script has no such line
            failure = await failure_of(found)
            assert failure.problem == "exited with status 1"
            assert "KeyError: 99" in failure.last_words

    asyncio.run(play())


def test_a_session_lost_before_the_script_began_is_nobodys_failure_and_in_no_trace(tmp_path: Path) -> None:
    async def play() -> None:
        with cast(tmp_path, network=PAIR) as found:
            await found.come_up()
            found.crash("b2")
            await found.restart("b2")
            await found.ask("u2", lambda ticket: WhenSettled(True, ticket))
            await found.ask("b1", lambda ticket: WhenSettled(True, ticket))
            await found.begin(clock.now())
            await found.stop()
            assert not found.failure.done()

    asyncio.run(play())
    assert all(not read_trace_file(trace_of(tmp_path, name)) for name in ("b1", "b2", "u2"))


def test_stopping_ends_a_process_and_nobody_calls_that_a_failure(tmp_path: Path) -> None:
    async def play() -> None:
        with cast(tmp_path) as found:
            await found.come_up()
            pid = found.puppets["b"].pid
            assert pid is not None
            await found.stop()
            assert not found.puppets["b"].is_up
            assert not found.failure.done()
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)

    asyncio.run(play())


def test_a_frozen_process_does_not_report_and_reads_its_orders_when_it_goes_on(tmp_path: Path) -> None:
    async def play() -> None:
        with cast(tmp_path) as found:
            await found.come_up()
            assert list(await found.reports() or {}) == ["b"]
            puppet = found.puppets["b"]
            puppet.freeze()
            assert await found.reports() == {}
            asked = [found.ask("b", Report) for _ in range(10_000)]  # more than a pipe holds
            await asyncio.sleep(0)
            assert not any(returned.done() for returned in asked)
            puppet.unfreeze()
            await asyncio.wait_for(asyncio.gather(*asked), 30)

    asyncio.run(play())


def test_a_process_without_its_master_is_gone(tmp_path: Path) -> None:
    async def play() -> None:
        with cast(tmp_path) as found:
            await found.come_up()
            puppet = found.puppets["b"]
            puppet.let_go()
            assert puppet._child is not None
            assert puppet._child.stdin is not None
            # the pipe has no writer now
            os.dup2(os.open(os.devnull, os.O_WRONLY), puppet._child.stdin.fileno())
            await asyncio.wait_for(puppet.wait_gone(), 10)
            assert not found.failure.done(), "it went with status 0"

    asyncio.run(play())
