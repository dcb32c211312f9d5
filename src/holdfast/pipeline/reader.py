"""The log reader: a process beside a broker that serves ranges of its logs, to Spark above all.

    python -m holdfast.pipeline.reader --folder data/lisbon/streams --listen 127.0.0.1:7200

The broker starts it, and starts it again if it dies (`[[broker]] reader = "host:port"`). It shares nothing with the
broker but the disk, and yields the processor to it: whatever is asked here, live delivery goes on as if nobody did.

What is asked and answered is in ``requests``. An answer is made as a whole before its first byte is sent. So a request
fails or succeeds, but not halfway; a client that reads slowly, or not at all, costs its connection and one page of
memory, and is given up after a while; and ``CONNECTIONS_MAX`` pages are all the memory there is to be had.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, assert_never

import msgspec

from holdfast.errors import HoldfastError
from holdfast.pipeline.arrow_parts import Parts, stream_parts
from holdfast.pipeline.errors import BadRequest, code_of
from holdfast.pipeline.pages import read_page
from holdfast.pipeline.portion_stream import portion_parts
from holdfast.pipeline.portions import reach, read_portion
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.requests import (
    REQUEST_BYTES_MAX,
    EndsAnswer,
    EndsRequest,
    ErrorAnswer,
    ReachRequest,
    ReadAnswer,
    ReadRequest,
    RecordsAnswer,
    RecordsRequest,
    SilenceAnswer,
    SilenceRequest,
    read_request,
)
from holdfast.runtime import logs
from holdfast.runtime.addresses import BadAddress, parse_address, words_of
from holdfast.runtime.priority import give_way

__all__ = ["LogReaderServer", "answer_to", "main"]

CONNECTIONS_MAX: Final = 32
AT_WORK_MAX: Final = 4  #: answers that are made at a time; more would only share the one interpreter
REQUEST_SECONDS: Final = 10.0  #: for all of a request to arrive
SEND_SECONDS: Final = 30.0  #: for some of an answer to be taken
PIECE_BYTES: Final = 1 << 16

_encode: Final = msgspec.json.Encoder().encode
_BUSY: Final = _encode(ErrorAnswer("busy", f"{CONNECTIONS_MAX} connections are served")) + b"\n"


def answer_to(ranges: Ranges, line: bytes) -> Parts:
    """Everything that is to be sent; whatever is wrong is an answer too."""
    try:
        return _answer(ranges, line)
    except HoldfastError as error:
        return [_line_of(ErrorAnswer(code_of(error), str(error)))]
    except Exception as error:
        logs.bug("a request could not be answered", error, {})
        return [_line_of(ErrorAnswer("bug", repr(error)))]


def _answer(ranges: Ranges, line: bytes) -> Parts:
    request = read_request(line)
    match request:
        case EndsRequest(stream):
            return [_line_of(EndsAnswer(ranges.ends(stream)))]
        case SilenceRequest(stream):
            return [_line_of(SilenceAnswer(*ranges.silence(stream)))]
        case ReachRequest():
            return [_line_of(reach(ranges, request))]
        case ReadRequest():
            page = read_page(ranges, request)
            parts = stream_parts(page.schema, page.batches)
            return [_line_of(ReadAnswer(sum(map(len, parts)), page.covered, page.told)), *parts]
        case RecordsRequest():
            portion = read_portion(ranges, request)
            parts, lost = portion_parts(portion)
            answer = RecordsAnswer(sum(map(len, parts)), portion.covered, portion.incarnation, lost)
            return [_line_of(answer), *parts]
        case _:
            assert_never(request)


def _line_of(answer: object) -> bytes:
    return _encode(answer) + b"\n"


class LogReaderServer:
    """Answers on a socket that listens; a thread for each connection."""

    def __init__(self, ranges: Ranges, listener: socket.socket) -> None:
        self._ranges = ranges
        self._listener = listener
        self._connections = threading.Semaphore(CONNECTIONS_MAX)
        self._at_work = threading.Semaphore(AT_WORK_MAX)

    def serve(self) -> None:
        """Until the socket is closed."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if self._listener.fileno() < 0:
                    return
                logs.log("error", "a connection could not be taken", {"error": words_of(error)})
                # out of descriptors, perhaps: trying again at once would only burn the processor
                time.sleep(0.1)
                continue
            if not self._connections.acquire(blocking=False):
                _refuse(connection)
                continue
            threading.Thread(target=self._serve, args=(connection,), name="answer", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                try:
                    line = _line(connection)
                except BadRequest as error:
                    answer: Parts = [_line_of(ErrorAnswer("request", str(error)))]
                else:
                    with self._at_work:
                        answer = answer_to(self._ranges, line)
                for part in answer:
                    _send(connection, part)
        except OSError:
            pass  # whoever asked is gone, or takes too long
        finally:
            self._connections.release()


def _line(connection: socket.socket) -> bytes:
    """A request.

    :raises BadRequest: if it is too long, or ends before its line does.
    :raises OSError: if it takes too long.
    """
    deadline = time.monotonic() + REQUEST_SECONDS
    data = b""
    while b"\n" not in data:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        more = connection.recv(PIECE_BYTES)
        if not more:
            raise BadRequest("no request: it ends before its line does")
        data += more
        if len(data) > REQUEST_BYTES_MAX:
            raise BadRequest(f"no request: more than {REQUEST_BYTES_MAX} bytes")
    return data.partition(b"\n")[0]


def _send(connection: socket.socket, part: bytes | memoryview) -> None:
    """All of it; it may take as long as it likes, if only it goes on."""
    connection.settimeout(SEND_SECONDS)
    rest = memoryview(part)
    while rest:
        rest = rest[connection.send(rest) :]


def _refuse(connection: socket.socket) -> None:
    """Say so if that takes no time."""
    with connection:
        connection.setblocking(False)
        try:
            connection.send(_BUSY)
        except OSError:
            return


def _hold_leash() -> None:
    """End when standard input does: its other end is our broker's."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until killed; 1 if the address cannot be had."""
    parser = argparse.ArgumentParser(
        prog="holdfast.pipeline.reader", description="Serve ranges of a broker's logs."
    )
    parser.add_argument("--folder", type=Path, required=True, help="the broker's streams, in its data folder")
    parser.add_argument("--listen", required=True, metavar="HOST:PORT")
    parser.add_argument("--insecure", action="store_true", help="listen on any address, not on loopback only")
    parser.add_argument("--node", default="", help="whose logs these are, for our log")
    parser.add_argument("--log-format", choices=logs.FORMATS, default="text")
    parser.add_argument("--leash", action="store_true", help="end when standard input ends")
    options = parser.parse_args(arguments)
    if options.leash:
        _hold_leash()
    logs.write_to(sys.stderr, form=options.log_format)
    fields = {"node": options.node, "reader": options.listen}
    try:
        host, port = parse_address(options.listen, insecure=options.insecure)
    except BadAddress as error:
        parser.error(str(error))
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=CONNECTIONS_MAX)
    except OSError as error:
        logs.log("error", "the log reader cannot listen", {**fields, "error": words_of(error)})
        return 1
    give_way()
    with listener:
        logs.log("info", "the log reader listens", {**fields, "pid": os.getpid()})
        LogReaderServer(Ranges(options.folder), listener).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
