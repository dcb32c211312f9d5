from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.storage.block import Batch
from holdfast.storage.packing import BLOCK_BYTES_MAX, BLOCK_RECORDS_MAX, joined, parts

SIZES = st.lists(st.one_of(st.integers(0, 50), st.integers(20_000, 70_000)), min_size=1, max_size=12)


def batches_of(sizes: list[list[int]]) -> list[Batch]:
    batches, index = [], 0
    for time, run in enumerate(sizes):
        indexes = list(range(index + 1, index + 1 + len(run)))
        batches.append(
            Batch(indexes, [bytes([i % 251]) * size for i, size in zip(indexes, run, strict=True)], time)
        )
        index += len(run)
    return batches


@given(st.lists(SIZES, min_size=1, max_size=8))
def test_nothing_is_lost_moved_or_larger_than_a_block(sizes: list[list[int]]) -> None:
    waiting = batches_of(sizes)
    found: list[tuple[int, bytes]] = []
    start = 0
    while start < len(waiting):
        batch, stop = joined(waiting, start)
        assert stop > start
        assert batch.time == stop - 1
        start = stop
        for part in parts(batch):
            assert part.indexes
            assert len(part.records) == 1 or sum(map(len, part.records)) <= BLOCK_BYTES_MAX
            found += zip(part.indexes, part.records, strict=True)
    assert found == [pair for batch in waiting for pair in zip(batch.indexes, batch.records, strict=True)]


def test_small_batches_share_a_block_and_many_records_do_not_fit_one() -> None:
    waiting = [Batch([i], [b"x"], i) for i in range(1, 2 * BLOCK_RECORDS_MAX)]
    assert joined(waiting, 0)[1] == BLOCK_RECORDS_MAX
    large = Batch(range(1, 2 * BLOCK_RECORDS_MAX + 2), [b""] * (2 * BLOCK_RECORDS_MAX + 1))
    assert [len(part.records) for part in parts(large)] == [BLOCK_RECORDS_MAX, BLOCK_RECORDS_MAX, 1]
