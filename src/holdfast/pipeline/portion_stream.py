"""Portions on their way from a log reader: two columns of Arrow, ``tick`` and ``record``; what is lost goes apart."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from holdfast.messages.ticks import Lost, Tick
from holdfast.pipeline.arrow_parts import Parts, stream_parts
from holdfast.pipeline.portions import Events, Portion
from holdfast.storage.records import Records

__all__ = ["PIECE_EVENTS", "portion_in", "portion_parts"]

PIECE_EVENTS: Final = 8_192  #: a portion that was sent is cut into pieces of so many

_SCHEMA: Final = pa.schema([pa.field("tick", pa.int64()), pa.field("record", pa.binary())])


def portion_parts(portion: Portion) -> tuple[Parts, list[Lost]]:
    """What is sent of the events, and what is lost."""
    events = [piece for piece in portion.pieces if isinstance(piece, Events)]
    lost = [piece for piece in portion.pieces if isinstance(piece, Lost)]
    records = [each.records for each in events]
    contents: Parts = [memoryview(each.content)[each.start : each.start + each.size] for each in records]
    lengths = [np.frombuffer(each.lengths, np.uint32) for each in records]
    offsets = np.cumsum(np.concatenate([np.zeros(1, np.uint32), *lengths]), dtype=np.int32)
    ticks = np.concatenate([np.empty(0, np.int64), *(each.ticks for each in events)])
    stand_in = pa.allocate_buffer(int(offsets[-1]))  # nobody looks into it
    column = pa.Array.from_buffers(pa.binary(), len(ticks), [None, pa.py_buffer(offsets), stand_in])
    batch = pa.RecordBatch.from_arrays([pa.array(ticks), column], schema=_SCHEMA)
    return stream_parts(_SCHEMA, [batch], [(stand_in, contents)]), lost


def portion_in(data: bytes, lost: Sequence[Lost], covered: Tick, incarnation: int) -> Portion:
    """The portion that was sent.

    :raises ArrowException, ValueError, OSError: if that is none.
    """
    with pa.ipc.open_stream(data) as stream:
        if stream.schema != _SCHEMA:
            raise ValueError("expected ticks and records")
        batch = stream.read_all().combine_chunks().to_batches()
    pieces: list[Events | Lost] = []
    waiting = list(lost)
    for events in _pieces(batch[0]) if batch else ():
        while waiting and waiting[0].after < events.ticks[-1]:
            here = int(np.searchsorted(events.ticks, waiting[0].after, "right"))
            if here:
                pieces.append(Events(events.ticks[:here], events.records[:here]))
            pieces.append(waiting.pop(0))
            events = Events(events.ticks[here:], events.records[here:])
        pieces.append(events)
    return Portion([*pieces, *waiting], covered, incarnation)


def _pieces(batch: Any) -> Iterator[Events]:
    """The events of a batch, a few thousand at a time."""
    batch.validate(full=True)  # records will be looked for where it says
    if any(column.null_count for column in batch.columns):
        raise ValueError("a tick or a record is missing")
    ticks = batch.column("tick").to_numpy()
    column = batch.column("record")
    _, offsets, content = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    memory = memoryview(content or b"")
    for start in range(0, len(ticks), PIECE_EVENTS):
        own = ends[start : start + PIECE_EVENTS + 1]
        lengths = array("I", np.diff(own).astype(np.uint32).tobytes())
        records = Records(memory, lengths, int(own[0]), size=int(own[-1] - own[0]))
        yield Events(ticks[start : start + PIECE_EVENTS], records)
