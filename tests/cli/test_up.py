"""`holdfast up`: a whole network here, one log, and nothing left behind, however it ends."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
from pathlib import Path

import pytest

from running import Running, processes_of, write_network


def pids(up: Running, path: Path) -> list[int]:
    """The brokers' processes."""
    return [pid for pid in processes_of(path) if pid != up.process.pid]


def wait_all_gone(watched: list[int]) -> None:
    for descriptor in watched:
        assert select.select([descriptor], [], [], 30)[0], "a broker was left behind"
        os.close(descriptor)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_network_comes_up_and_a_signal_stops_all_of_it(tmp_path: Path, number: signal.Signals) -> None:
    path, urls = write_network(tmp_path, "b1", "b1")
    with Running("up", "--network", str(path)) as up:
        said = up.wait_for("ready; connect to")
        assert f"up | network tested: 3 brokers are ready; connect to {urls[0]}; Ctrl-C stops" in said
        assert {line.split(" | ")[0] for line in said.splitlines()} == {"b1", "b2", "b3", "up"}
        assert len(pids(up, path)) == 3
        up.tell(number)
        status, out, err = up.ended()
    assert (status, err) == (0, "")
    assert "up | stopping: told to" in out
    assert processes_of(path) == []


def test_a_broker_that_dies_is_reported_and_ends_the_rest(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path, "b1")
    with Running("up", "--network", str(path)) as up:
        up.wait_for("ready; connect to")
        victim = next(pid for pid in pids(up, path) if b"b2" in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(victim, signal.SIGKILL)
        status, _, err = up.ended()
    assert (status, err) == (1, "holdfast: b2 was killed by SIGKILL; the others were stopped\n")
    assert processes_of(path) == []


def test_where_it_can_be_bypassed_a_killed_broker_is_started_again_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    path, _ = write_network(tmp_path, "b1", extra="delta = 1")
    with Running("up", "--network", str(path)) as up:
        up.wait_for("ready; connect to")
        victim = next(pid for pid in pids(up, path) if b"b2" in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(victim, signal.SIGKILL)
        up.wait_for("up | b2 was killed by SIGKILL; it is started again")
        said = up.wait_for("b2 = listening", times=2)
        first, second = map(int, re.findall(r"b2 = listening .*incarnation=(\d+)", said))
        assert second == first + 1
        up.tell(signal.SIGINT)
        assert up.ended()[0] == 0
    assert processes_of(path) == []


def test_brokers_end_when_up_itself_is_killed(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path, "b1")
    with Running("up", "--network", str(path)) as up:
        up.wait_for("ready; connect to")
        watched = [os.pidfd_open(pid) for pid in pids(up, path)]
        assert len(watched) == 2
        up.tell(signal.SIGKILL)
        wait_all_gone(watched)
    assert processes_of(path) == []


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    path, urls = write_network(tmp_path)
    port = int(urls[0].rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)), Running("up", "--network", str(path)) as up:
        status, out, err = up.ended()
    assert status == 1
    assert f"b1 | holdfast: b1: cannot listen on 127.0.0.1:{port}: " in out
    assert "address already in use" in out
    assert err == "holdfast: b1 ended with status 1; the others were stopped\n"


def test_a_network_that_is_up_already_is_not_taken_for_ours(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path)
    with Running("up", "--network", str(path)) as first:
        first.wait_for("ready; connect to")
        with Running("up", "--network", str(path)) as second:
            status, out, _ = second.ended()
    assert status == 1
    assert "address already in use" in out
    assert "ready; connect" not in out


def test_when_nobody_reads_the_log_any_more_the_network_stops(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path, "b1")
    with Running("up", "--network", str(path)) as up:
        up.wait_for("ready; connect to")
        up.stop_reading()
        os.kill(next(pid for pid in pids(up, path)), signal.SIGTERM)  # something to say
        assert up.process.wait(30) in (0, 1)
    assert processes_of(path) == []


def test_flags_and_the_environment_reach_every_broker(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path)
    environment = {"HOLDFAST_ROUTING": "flooding", "HOLDFAST_LISTEN": "127.0.0.1:1"}  # the latter is for one
    flags = ["--set", "limits.clients_max=3", "--log-format", "json"]
    with Running("up", "--network", str(path), *flags, environment=environment) as up:
        said = up.wait_for("ready; connect to")
        assert re.search(r'^b1 \| \{.*"text": "listening"\}$', said, re.MULTILINE)
        status = ["status", "--network", str(path), "--over", "0.01", "--output", "json"]
        with Running(*status) as asked:
            assert '"routing": "flooding"' in asked.ended()[1]


@pytest.mark.parametrize("command", [["up"], ["broker", "b1"], ["status"]])
def test_a_bad_file_is_refused_with_all_its_problems(tmp_path: Path, command: list[str]) -> None:
    path, _ = write_network(tmp_path, extra="delta = -1\nfoo = 2")
    with Running(*command, "--network", str(path)) as run:
        status, _, err = run.ended()
    assert status == 2
    assert err.startswith(f"holdfast: 2 problems\n{path}, line 2: delta is -1")
    assert f"\n{path}, line 3: foo is not known here" in err


def test_a_file_that_is_not_there_is_named_with_the_remedy(tmp_path: Path) -> None:
    with Running("up", cwd=tmp_path) as up:
        assert up.ended() == (
            2,
            "",
            "holdfast: network.toml: No such file or directory; 'holdfast init' writes one\n",
        )
