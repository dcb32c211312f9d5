"""Asking a log reader, from wherever Spark runs.

A reader that was killed is back in a second or two, and one that is busy is free again soon. So a question is repeated
for a while; it changes nothing, and an answer that is not whole is none.

Who wants payloads wants most of an event: then it comes as it was logged, and becomes rows here. That is less to be
sent, and the broker's machine is spared the work.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa

from holdfast.pipeline.errors import ReaderUnreachable, told
from holdfast.pipeline.pages import Page, rows_of
from holdfast.pipeline.portion_stream import portion_in
from holdfast.pipeline.ranges import End, Silence
from holdfast.pipeline.requests import (
    EndsAnswer,
    EndsRequest,
    ErrorAnswer,
    ReachAnswer,
    ReachRequest,
    ReadAnswer,
    ReadRequest,
    RecordsAnswer,
    RecordsRequest,
    Request,
    SilenceAnswer,
    SilenceRequest,
)
from holdfast.runtime.addresses import Address, words_of

__all__ = ["PATIENCE_SECONDS", "RemoteRanges"]

PATIENCE_SECONDS: Final = 20.0
ANSWER_SECONDS: Final = 120.0  #: from one byte of an answer to the next
CONNECT_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.25
LINE_BYTES_MAX: Final = 16 << 20

_encode: Final = msgspec.json.Encoder().encode
_Answer = TypeVar("_Answer", EndsAnswer, SilenceAnswer, ReachAnswer, ReadAnswer, RecordsAnswer)

_WITH_DATA: Final = (ReadAnswer, RecordsAnswer)


class _Again(Exception):
    """No answer this time, and why."""


class RemoteRanges:
    """The pubends of one broker, as its log reader tells of them."""

    def __init__(self, broker: str, address: Address, patience: float | None = None) -> None:
        self._broker = broker
        self._address = address
        self._patience = PATIENCE_SECONDS if patience is None else patience

    def ends(self, stream: str) -> dict[str, End]:
        """As ``Ranges.ends``; raises what the reader tells of, and ``ReaderUnreachable``."""
        return self._ask(EndsRequest(stream), EndsAnswer)[0].pubends

    def silence(self, stream: str) -> Silence:
        """As ``Ranges.silence``."""
        answer = self._ask(SilenceRequest(stream), SilenceAnswer)[0]
        return Silence(answer.upto, answer.pubends)

    def reach(self, request: ReachRequest) -> ReachAnswer:
        """As ``pages.reach``."""
        return self._ask(request, ReachAnswer)[0]

    def page(self, request: ReadRequest) -> Page:
        """As ``pages.read_page``."""
        if "payload" in request.columns:
            return self._page_of_records(request)
        answer, data = self._ask(request, ReadAnswer)
        with self._understood(), pa.ipc.open_stream(data) as stream:
            return Page(stream.schema, list(stream), answer.covered, answer.told)

    def _page_of_records(self, request: ReadRequest) -> Page:
        wanted = RecordsRequest(
            request.pubend,
            request.after,
            request.upto,
            request.filter,
            request.gaps,
            request.events,
            request.bytes,
        )
        answer, data = self._ask(wanted, RecordsAnswer)
        with self._understood():
            portion = portion_in(data, answer.lost, answer.covered, answer.incarnation)
        return rows_of(portion, request)

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """What comes with an answer is what Arrow sends, or it is none."""
        try:
            yield
        except (pa.ArrowException, ValueError, OSError) as error:
            raise ReaderUnreachable(self._words(f"that is no log reader: {error}")) from error

    def _ask(self, request: Request, kind: type[_Answer]) -> tuple[_Answer, bytes]:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return self._asked(request, kind)
            except _Again as again:
                if time.monotonic() > deadline:
                    raise ReaderUnreachable(self._words(str(again))) from again
            time.sleep(PAUSE_SECONDS)

    def _words(self, problem: str) -> str:
        return (
            f"the log reader of broker {self._broker} at {self._address} does not answer: {problem}. Is the broker"
            " running, with pyarrow installed beside it, and can this machine reach it?"
        )

    def _asked(self, request: Request, kind: type[_Answer]) -> tuple[_Answer, bytes]:
        """One attempt.

        :raises _Again: if there was no answer.
        :raises HoldfastError: the one the reader has told of.
        """
        try:
            with socket.create_connection(self._address, CONNECT_SECONDS) as connection:
                connection.settimeout(ANSWER_SECONDS)
                connection.sendall(_encode(request) + b"\n")
                with connection.makefile("rb") as stream:
                    line = stream.readline(LINE_BYTES_MAX)
                    answer = _answer_in(line, kind)
                    data = stream.read(answer.bytes) if isinstance(answer, _WITH_DATA) else b""
        except OSError as error:
            raise _Again(words_of(error)) from error
        if isinstance(answer, _WITH_DATA) and len(data) < answer.bytes:
            raise _Again("the answer broke off")
        return answer, data


def _answer_in(line: bytes, kind: type[_Answer]) -> _Answer:
    if not line.endswith(b"\n"):
        raise _Again("the answer broke off")
    try:
        fields: Any = msgspec.json.decode(line)
        if isinstance(fields, dict) and "error" in fields:
            error = msgspec.convert(fields, ErrorAnswer)
            if error.error == "busy":
                raise _Again(error.problem)
            raise told(error.error, error.problem)
        return msgspec.convert(fields, kind)
    except msgspec.MsgspecError as error:
        raise _Again(f"that is no log reader: {error}") from error
