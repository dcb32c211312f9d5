"""Messages of durable streams of any size, and how they come back from the wire, whole or in parts."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.messages.durable import BEGIN, Portion, Requests
from holdfast.messages.message import Message
from holdfast.messages.publications import Batch, Publication
from holdfast.messages.ticks import Items
from holdfast.wire import frame
from holdfast.wire.frame import FrameReader, encode_parted, header

__all__ = ["NOW", "batch_of", "items_of", "parted", "portion_of", "read", "requests_of"]

NOW = 1_790_000_000_000_000


def read(parts: list[tuple[int, bytes]]) -> list[Message]:
    data = b"".join(
        header(kind, number, len(body)) + body for number, (kind, body) in enumerate(parts, start=1)
    )
    return FrameReader().feed(data)


def parted(message: Message, target: int) -> list[tuple[int, bytes]]:
    """A message in frames as if they had to be small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame, "FRAME_BYTES_TARGET", target)
        return encode_parted(message)


def batch_of(count: int, event: bytes = b"event") -> Batch:
    return Batch([Publication("P", n, event) for n in range(1, count + 1)])


def items_of(count: int) -> Items:
    ticks = range(NOW + 7, NOW + 7 + 7 * count, 7)
    return Items("p", 1, [NOW, *ticks[:-1]] if count else [], ticks, batch_of(count).publications)


def portion_of(count: int, **others: Any) -> Portion:
    ticks = range(11, count + 11)
    return Portion(1, "p", 1, batch_of(count), ticks, range(count), count + 19, **others)


def requests_of(count: int) -> Requests:
    return Requests("b1", "b2", "p", [BEGIN, *range(1, count)][:count], batch_of(count))
