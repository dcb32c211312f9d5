"""Other people's servers: started, watched and ended, and their system calls counted."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.peers_evidence import Evidence, counted_syncs
from holdfast.bench.peers_peer import OnDisk
from holdfast.bench.peers_process import Server, found_version, free_port, is_in_memory

LISTENING = """
import os, socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener, open("written", "wb") as file:
    file.write(bytes(1_000_000))
    file.flush()
    os.fsync(file.fileno())
    while True:
        listener.accept()[0].close()
"""
MEASURING = """
import sys
from pathlib import Path
from holdfast.bench.peers_process import Server
server = Server("toy", [sys.executable, "-c", sys.argv[2], sys.argv[1]], int(sys.argv[1]), Path("log"), {})
server.wait_listening()
print(*server.process_ids(), flush=True)
sys.stdin.read()
"""
END_SECONDS = 20.0


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    port = free_port()
    server = Server("toy", [sys.executable, "-c", LISTENING, str(port)], port, tmp_path / "log", {})
    yield server
    server.stop()


def has_ended(process: int) -> bool:
    """Waits for it."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], END_SECONDS)[0])
    finally:
        os.close(descriptor)


def test_what_a_server_uses_is_read_off(server: Server, tmp_path: Path) -> None:
    server.wait_listening()
    assert len(server.process_ids()) == 1
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        assert connection.recv(1) == b"", "when it hangs up it has written"
    used = server.usage()
    assert used.cpu_seconds >= 0
    if not is_in_memory(tmp_path):
        assert 1_000_000 <= used.written_bytes < 1_100_000


def test_a_server_that_is_stopped_ends(server: Server) -> None:
    server.wait_listening()
    (process,) = server.process_ids()
    server.stop()
    assert has_ended(process)


def test_a_server_ends_with_whoever_measures_it() -> None:
    command = [sys.executable, "-c", MEASURING, str(free_port()), LISTENING]
    measuring = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with measuring:
        assert measuring.stdout is not None
        (process,) = map(int, measuring.stdout.readline().split())
        measuring.send_signal(signal.SIGKILL)
    assert has_ended(process)


def test_a_server_that_does_not_come_up_is_said_with_its_log(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such option: --port')"]
    server = Server("toy", command, free_port(), tmp_path / "log", {})
    with pytest.raises(BenchFailed, match="toy ended with status 1; its log ends: no such option: --port"):
        server.wait_listening()
    server.stop()


def test_a_command_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(BenchFailed, match=r"toy could not be started; its log ends: .*No such file"):
        Server("toy", [str(tmp_path / "nothing")], free_port(), tmp_path / "log", {})


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Redis server v=7.0.15 sha=00000000:0 bits=64", "7.0.15"),
        ("/usr/lib/rabbitmq/lib/rabbitmq_server-3.10.8/sbin/rabbitmq-server", "3.10.8"),
        ("none", "unknown"),
    ],
)
def test_versions_are_found_in_what_programs_say(text: str, version: str) -> None:
    assert found_version(text) == version


# Evidence

FOLDER = Path("/data/peer")
TRACE = """\
17 write(5</data/peer/log>, "…", 500) = 500
17 fdatasync(5</data/peer/log> <unfinished ...>
18 write(7<TCP:[127.0.0.1:4]>, "+", 1) = 1
17 <... fdatasync resumed>) = 0
17 fsync(6</elsewhere/log>) = 0
17 openat(AT_FDCWD, "/data/peer/always", O_WRONLY|O_CREAT|O_SYNC|O_CLOEXEC, 0640) = 9</data/peer/always>
17 pwrite64(9</data/peer/always>, "…", 500, 0) = 500
17 writev(10</data/peer/open-before>, [{iov_base="…", iov_len=500}], 1) = 500
17 pwritev2(5</data/peer/log>, [{iov_base="…", iov_len=500}], 1, 0, RWF_DSYNC) = 500
"""


def test_syncs_and_synchronous_writes_of_the_peers_files_are_counted_by_file() -> None:
    log, always, open_before = (str(FOLDER / name) for name in ("log", "always", "open-before"))
    assert +counted_syncs(TRACE, FOLDER, {open_before}) == {log: 2, always: 1, open_before: 1}
    assert +counted_syncs(TRACE, FOLDER, set()) == {log: 2, always: 1}
    assert counted_syncs(TRACE, Path("/elsewhere"), set()) == {"/elsewhere/log": 1}


def test_a_folder_may_be_named_from_where_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system names files in full: once, of brokers in a folder called ``.`` no sync was seen."""
    monkeypatch.chdir("/")
    relative = FOLDER.relative_to("/")
    assert counted_syncs(TRACE, relative, set()) == counted_syncs(TRACE, FOLDER, set())


def test_what_was_seen_is_held_against_what_is_said() -> None:
    syncing, other = OnDisk(True, 1, "…"), OnDisk(False, 1, "…")
    assert (
        Evidence(100, 100).judged(syncing)
        == "100 syncs of a file while 100 events were acknowledged one by one"
    )
    assert Evidence(100, 99).judged(syncing).endswith("which is not what it says")
    assert Evidence(100, 100).judged(other).endswith("which is not what it says")
    assert (
        Evidence(problem="strace is not installed").judged(syncing)
        == "not looked at: strace is not installed"
    )
    assert not Evidence(0, 0).is_synced
