"""How batches that wait for a commit become blocks: small ones together, large ones in parts.

Framing is paid per block, so one is worth filling; what is lost with a block's table or header, and what must be
read for a single record, is a block too, so one is not worth more than 64 KiB.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Final

from holdfast.storage.block import Batch

__all__ = ["BLOCK_BYTES_MAX", "BLOCK_RECORDS_MAX", "joined", "parts"]

BLOCK_BYTES_MAX: Final = 1 << 16  #: of the records of one block; a larger record has its own
BLOCK_RECORDS_MAX: Final = 1024


def joined(waiting: Sequence[Batch], start: int) -> tuple[Batch, int]:
    """Batches from one on that fit into a block together, and which is the first after them.

    Their common time is that of the last: a block is as old as its youngest record.
    """
    batch = waiting[start]
    stop, count = start + 1, len(batch.records)
    held = batch.size if stop < len(waiting) else 0
    while stop < len(waiting):
        count += len(waiting[stop].records)
        held += waiting[stop].size
        if count > BLOCK_RECORDS_MAX or held > BLOCK_BYTES_MAX:
            break
        stop += 1
    if stop == start + 1:
        return batch, stop
    run = waiting[start:stop]
    indexes = list(chain.from_iterable(batch.indexes for batch in run))
    records = list(chain.from_iterable(batch.records for batch in run))
    return Batch(indexes, records, run[-1].time), stop


def parts(batch: Batch) -> Iterator[Batch]:
    """A batch in parts of which each fits into a block."""
    indexes, records, time = batch
    lengths = list(map(len, records))
    if len(records) <= BLOCK_RECORDS_MAX and sum(lengths) <= BLOCK_BYTES_MAX:
        yield batch
        return
    ends = list(accumulate(lengths))
    start = held = 0
    while start < len(records):
        fit = bisect_right(ends, held + BLOCK_BYTES_MAX)
        stop = max(start + 1, min(fit, start + BLOCK_RECORDS_MAX))
        yield Batch(indexes[start:stop], records[start:stop], time)
        start, held = stop, ends[stop - 1]
