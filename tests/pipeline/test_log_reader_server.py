"""The log reader's server: requests of all kinds, bad ones, and clients that are slow or gone."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from hand_written import PUBEND, STREAM, HandWritten, events

from holdfast.events.event import Event
from holdfast.pipeline import reader as reader_module
from holdfast.pipeline.errors import BadRequest, CannotRead, Gap, NoPubend, NotStable, ReaderUnreachable
from holdfast.pipeline.ranges import End, Ranges
from holdfast.pipeline.reader import LogReaderServer
from holdfast.pipeline.remote import RemoteRanges
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest
from holdfast.runtime.addresses import Address

PATIENCE_S = 30.0


@contextmanager
def served(folder: Path) -> Iterator[Address]:
    """A server in a thread of ours."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=LogReaderServer(Ranges(folder), listener).serve, daemon=True)
        thread.start()
        try:
            yield Address(*listener.getsockname())
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


@pytest.fixture
def written(tmp_path: Path) -> Iterator[HandWritten]:
    with HandWritten(tmp_path / "streams") as folder:
        folder.publish(events(range(10, 1_000, 10)))
        folder.vouch(990)
        yield folder


def asked(address: Address, data: bytes) -> Any:
    """What is answered to these bytes and no more."""
    with socket.create_connection(address, PATIENCE_S) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return json.loads(connection.makefile("rb").readline())


def test_what_is_asked_is_answered(written: HandWritten) -> None:
    with served(written.folder) as address:
        remote = RemoteRanges("lisbon", address)
        assert remote.ends(STREAM) == {PUBEND: End(1, 0, 990)}
        assert remote.ends("other") == {}
        assert remote.silence(STREAM) == (990, {PUBEND: End(1, 0, 990)})
        assert remote.silence("other").pubends == {}
        assert remote.reach(ReachRequest(PUBEND, 0, 990, 5, 1 << 20)).covered == 50
        page = remote.page(ReadRequest(STREAM, PUBEND, 100, 990, ("tick",), filter="# WHERE i < 130"))
        table = pa.Table.from_batches(page.batches, page.schema)
        assert (table["tick"].to_pylist(), page.covered, page.told) == ([110, 120], 990, 120)


@pytest.mark.parametrize(
    ("request_", "kind", "problem"),
    [
        (ReadRequest(STREAM, PUBEND, 0, 5_000, ("tick",)), NotStable, "stable up to 990, and 5000"),
        (ReadRequest(STREAM, "no@where/0", 0, 0, ("tick",)), NoPubend, "no pubend no@where/0 here"),
        (ReadRequest(STREAM, PUBEND, 0, 990, ("x",)), BadRequest, "no column 'x'"),
        (ReadRequest(STREAM, PUBEND, 20, 10, ("tick",)), BadRequest, "ends before it begins"),
        (ReadRequest(STREAM, PUBEND, 0, 990, ("tick",)), Gap, r"has lost \(0, 100\]: no room"),
    ],
)
def test_an_error_there_is_the_same_error_here(
    written: HandWritten, request_: ReadRequest, kind: type[Exception], problem: str
) -> None:
    written.release(100, "no room")
    with served(written.folder) as address, pytest.raises(kind, match=problem):
        RemoteRanges("lisbon", address).page(request_)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\n", "no request"),
        (b"GET / HTTP/1.1\r\n", "no request"),
        (b'{"what": "ends"}\n', "missing required field `stream`"),
        (b'{"what": "delete", "stream": "orders"}\n', "Invalid value 'delete'"),
        (b'{"what": "ends", "stream": "orders", "more": 1}\n', "unknown field `more`"),
        (b'{"what": "read", "stream": "s", "pubend": "p", "after": -1, "upto": 1, "columns": []}\n', ">= 0"),
        (b'{"what": "ends", "stream": "\xff"}\n', "no request"),
        (b"[" * 100_000 + b"\n", "no request"),
        (b'{"what": "ends", "str', "ends before its line does"),
        (b"x" * (1 << 20) + b"x\n", "more than 1048576 bytes"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(written: HandWritten, data: bytes, problem: str) -> None:
    with served(written.folder) as address:
        answer = asked(address, data)
        assert answer["error"] == "request"
        assert problem in answer["problem"]


def test_a_bug_is_an_answer_too(written: HandWritten, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> ReachAnswer:
        raise RuntimeError("planted")

    monkeypatch.setattr(reader_module, "reach", broken)
    with served(written.folder) as address:
        remote = RemoteRanges("lisbon", address)
        with pytest.raises(CannotRead, match="planted"):
            remote.reach(ReachRequest(PUBEND, 0, 990, 5, 5))
        assert PUBEND in remote.ends(STREAM)


def test_a_client_that_never_reads_costs_its_connection(
    written: HandWritten, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "SEND_SECONDS", 0.2)
    written.publish({1_000 + i: Event("t", payload=bytes(8_000)) for i in range(1_000)})
    written.vouch(1_999)
    line = (
        b'{"what": "read", "stream": "s", "pubend": "%s", "after": 0, "upto": 1999, "columns": ["payload"]}\n'
    )
    with served(written.folder) as address, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.settimeout(PATIENCE_S)
        slow.connect(address)
        slow.sendall(line % PUBEND.encode())
        head = slow.recv(1)  # the answer is on its way
        assert PUBEND in RemoteRanges("lisbon", address).ends(STREAM)
        with slow.makefile("rb") as stream:
            deadline = time.monotonic() + 10
            while any(thread.name == "answer" for thread in threading.enumerate()):  # until it is given up
                assert time.monotonic() < deadline
                time.sleep(0.01)
            announced = json.loads(head + stream.readline())["bytes"]
            try:
                got = len(stream.read())
            except ConnectionResetError:
                got = 0
    assert got < announced


def test_more_connections_than_are_served_hear_that_and_ask_again(written: HandWritten) -> None:
    with served(written.folder) as address:
        silent = [socket.create_connection(address, PATIENCE_S) for _ in range(reader_module.CONNECTIONS_MAX)]
        with socket.create_connection(address, PATIENCE_S) as refused:
            assert json.loads(refused.makefile("rb").readline())["error"] == "busy"
        with pytest.raises(ReaderUnreachable, match=r"32 connections are served|reset by peer"):
            RemoteRanges("lisbon", address, patience=0).ends(STREAM)
        for connection in silent:
            connection.close()
        assert PUBEND in RemoteRanges("lisbon", address).ends(STREAM)


def test_a_request_that_does_not_come_is_given_up(
    written: HandWritten, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "REQUEST_SECONDS", 0.05)
    with served(written.folder) as address, socket.create_connection(address, PATIENCE_S) as connection:
        assert connection.recv(1) == b""


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 400\r\n",
        b"{}\n",
        b'{"bytes": 100, "covered": 1, "told": 1, "incarnation": 1, "lost": []}\nshort',
        b'{"bytes": 5, "covered": 1, "told": 1, "incarnation": 1, "lost": []}\nthere',
        b'{"bytes": 0, "covered": 1, "told": 1, "incarnation": 1, "lost": []}\n',
    ],
)
@pytest.mark.parametrize("column", ["tick", "payload"])
def test_an_answer_that_is_not_whole_is_none(answer: bytes, column: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def play() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        remote = RemoteRanges("lisbon", Address(*listener.getsockname()), patience=0)
        with pytest.raises(ReaderUnreachable, match=r"log reader of broker lisbon at 127\.0\.0\.1"):
            remote.page(ReadRequest(STREAM, PUBEND, 0, 990, (column,)))
        thread.join(PATIENCE_S)


def test_a_reader_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address(*listener.getsockname())
    with pytest.raises(ReaderUnreachable, match=f"lisbon at {address} does not answer: connection refused"):
        RemoteRanges("lisbon", address, patience=0).ends(STREAM)
