"""Streams of Arrow in parts, one behind the other: what is large is sent from where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

__all__ = ["Parts", "stream_parts"]

#: One behind the other they are what is sent.
Parts = list[bytes | memoryview]


def stream_parts(schema: Any, batches: Sequence[Any], stand_ins: Sequence[tuple[Any, Parts]] = ()) -> Parts:
    """What Arrow makes of batches. Where a buffer stands in for parts of just its size, those are sent."""
    sink = _Gathered({buffer.address: parts for buffer, parts in stand_ins})
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.parts


class _Gathered:
    """A file that keeps what is written to it: buffers as they are, and joined what is between them."""

    closed = False

    def __init__(self, stand_ins: dict[int, Parts]) -> None:
        self.parts: Parts = []
        self._stand_ins = stand_ins

    def write(self, data: Any) -> None:
        """Keep it."""
        if not isinstance(data, bytes):
            self.parts += self._stand_ins.get(data.address) or [memoryview(data)]
        elif self.parts and isinstance(self.parts[-1], bytes):
            self.parts[-1] += data
        else:
            self.parts.append(data)

    def flush(self) -> None:
        """Nothing is held back."""
