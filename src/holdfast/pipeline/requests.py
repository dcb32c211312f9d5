"""What is asked of whoever reads logs, in JSON, and what is answered.

One request a connection, one line of JSON; the answer is one line of JSON and, to ``read`` and ``records``, an Arrow
IPC stream of as many bytes as that line says. So whoever asked knows when an answer is not whole.

    {"what": "ends", "stream": "orders"}
    {"pubends": {"orders@lisbon/0": [1, 0, 1731700000000000]}}              incarnation, first, last

    {"what": "silence", "stream": "orders"}
    {"upto": 1731700005000000, "pubends": {"orders@lisbon/0": [1, 0, 1731700000000000]}}

    {"what": "read", "stream": …, "pubend": …, "after": 0, "upto": 1731700000000000, "columns": ["tick", "a"], …}
    {"bytes": 4711, "covered": 1731600000000000, "told": 1731600000000000}    and 4711 bytes

    {"what": "records", "pubend": …, "after": 0, "upto": 1731700000000000, "filter": "orders/# WHERE price > 100", …}
    {"bytes": 4711, "covered": 1731600000000000, "incarnation": 1, "lost": [[0, 17315, "released"]]}    and 4711 bytes

    {"what": "reach", "pubend": …, "after": …, "upto": …, "events": 1000, "bytes": 1000000}
    {"covered": …, "events": 1000, "bytes": 418000}

    {"error": "gap", "problem": "orders@lisbon/0 has lost (…], released"}
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from holdfast.messages.ticks import Lost, Tick
from holdfast.pipeline.errors import BadRequest
from holdfast.pipeline.ranges import End

__all__ = [
    "REQUEST_BYTES_MAX",
    "EndsAnswer",
    "EndsRequest",
    "ErrorAnswer",
    "ReachAnswer",
    "ReachRequest",
    "ReadAnswer",
    "ReadRequest",
    "RecordsAnswer",
    "RecordsRequest",
    "Request",
    "SilenceAnswer",
    "SilenceRequest",
    "read_request",
]

REQUEST_BYTES_MAX: Final = 1 << 20
PAGE_EVENTS_MAX: Final = 100_000
PAGE_BYTES_MAX: Final = 8 << 20

_Count = Annotated[int, Meta(ge=1, le=2**63 - 1)]
_PageEvents = Annotated[int, Meta(ge=1, le=PAGE_EVENTS_MAX)]
_PageBytes = Annotated[int, Meta(ge=1, le=PAGE_BYTES_MAX)]
_Gaps = Literal["fail", "row", "ignore"]


class EndsRequest(msgspec.Struct, frozen=True, tag_field="what", tag="ends", forbid_unknown_fields=True):
    """How far the pubends of a stream go that are at this broker."""

    stream: str


class EndsAnswer(msgspec.Struct, frozen=True):
    """By pubend."""

    pubends: dict[str, End]


class SilenceRequest(
    msgspec.Struct, frozen=True, tag_field="what", tag="silence", forbid_unknown_fields=True
):
    """Up to where no more events of a stream come at this broker."""

    stream: str


class SilenceAnswer(msgspec.Struct, frozen=True):
    """So far; and how far its pubends go, by name."""

    upto: Tick
    pubends: dict[str, End]


class ReadRequest(msgspec.Struct, frozen=True, tag_field="what", tag="read", forbid_unknown_fields=True):
    """The rows of (after, upto], as many as fit into a page; ask for the rest from where the answer ends."""

    stream: str
    pubend: str
    after: Tick
    upto: Tick
    columns: tuple[str, ...]
    attributes: dict[str, str] = {}
    filter: str | None = None
    gaps: _Gaps = "fail"
    silence: bool = False
    told: Tick | None = None  #: where the row before the first of these ended, if not at ``after``
    events: _PageEvents = PAGE_EVENTS_MAX
    bytes: _PageBytes = PAGE_BYTES_MAX


class ReadAnswer(msgspec.Struct, frozen=True):
    """So many bytes follow; everything up to ``covered`` is in them, and the last row ends at ``told``."""

    bytes: int
    covered: Tick
    told: Tick


class RecordsRequest(
    msgspec.Struct, frozen=True, tag_field="what", tag="records", forbid_unknown_fields=True
):
    """The events of (after, upto] as they were logged, for who makes rows of them; as many as fit into a page."""

    pubend: str
    after: Tick
    upto: Tick
    filter: str | None = None
    gaps: _Gaps = "fail"
    events: _PageEvents = PAGE_EVENTS_MAX
    bytes: _PageBytes = PAGE_BYTES_MAX


class RecordsAnswer(msgspec.Struct, frozen=True):
    """So many bytes follow, with the columns ``tick`` and ``record``: all up to ``covered`` but what is lost."""

    bytes: int
    covered: Tick
    incarnation: int
    lost: list[Lost]


class ReachRequest(msgspec.Struct, frozen=True, tag_field="what", tag="reach", forbid_unknown_fields=True):
    """How far from ``after`` one comes with so many events, or so many bytes of them."""

    pubend: str
    after: Tick
    upto: Tick
    events: _Count
    bytes: _Count


class ReachAnswer(msgspec.Struct, frozen=True):
    """So far, with so many."""

    covered: Tick
    events: int
    bytes: int


class ErrorAnswer(msgspec.Struct, frozen=True):
    """What went wrong (``errors``)."""

    error: str
    problem: str


Request = EndsRequest | SilenceRequest | ReadRequest | RecordsRequest | ReachRequest

_decoder: Final[msgspec.json.Decoder[Request]] = msgspec.json.Decoder(Request)


def read_request(line: bytes) -> Request:
    """A request from its line.

    :raises BadRequest: if it is none, or makes no sense.
    """
    try:
        request = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"no request: {error}") from error
    if isinstance(request, ReadRequest | RecordsRequest | ReachRequest) and request.after > request.upto:
        raise BadRequest(f"the range ({request.after}, {request.upto}] ends before it begins")
    return request
