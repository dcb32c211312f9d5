"""The frames of events: written once for many receivers, parted where they would be too large."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn_messages import plain
from examples import examples
from holdfast.errors import MalformedFrame
from holdfast.messages.message import Message
from holdfast.messages.publications import (
    PUBLICATIONS_MAX,
    Batch,
    Copy,
    Deliveries,
    Publication,
    Publications,
    Publish,
)
from holdfast.wire import publications as wire
from holdfast.wire.frame import (
    FRAME_BYTES_MAX,
    FRAME_BYTES_TARGET,
    FrameReader,
    encode,
    encode_parted,
    header,
)
from holdfast.wire.primitives import array_header


def read(parts: list[tuple[int, bytes]]) -> list[Message]:
    data = b"".join(
        header(kind, number, len(body)) + body for number, (kind, body) in enumerate(parts, start=1)
    )
    return FrameReader().feed(data)


def size_of(message: Message) -> int:
    assert isinstance(message, Publications | Deliveries)
    return len(message.at)


def batch_of(count: int, event: bytes = b"event") -> Batch:
    return Batch([Publication("p", n, event) for n in range(1, count + 1)])


def test_a_batch_is_encoded_once_for_all_who_get_it() -> None:
    batch = batch_of(5)
    encode(Publications("s", batch, [0, 1]))
    pieces = batch.encoded
    assert pieces is not None
    encode(Deliveries("s", batch, [4], [(1,)]))
    assert batch.encoded is pieces


@pytest.mark.parametrize("count", [0, 1, 15, 16, PUBLICATIONS_MAX])
def test_a_batch_of_any_size_comes_back(count: int) -> None:
    [message] = read([encode(Publish(batch_of(count, b"")))])
    assert isinstance(message, Publish)
    assert len(message.batch) == count


@pytest.mark.parametrize("count", [0, 1, 15, 16, 65_535, 65_536, 2**32 - 1])
def test_arrays_are_headed_as_messagepack_says(count: int) -> None:
    size = 1 if count < 16 else 3 if count < 2**16 else 5
    assert len(array_header(count)) == size
    if count < 100_000:
        assert array_header(count) == msgspec.msgpack.encode([None] * count)[:size]


def test_a_frame_of_too_many_events_is_refused() -> None:
    batch = batch_of(PUBLICATIONS_MAX + 1, b"")
    at = range(len(batch))
    for message in (Publish(batch), Publications("s", batch, at), Deliveries("s", batch, at, [()] * len(at))):
        with pytest.raises(MalformedFrame, match=str(PUBLICATIONS_MAX)):
            read([encode(message)])


def test_copies_that_are_all_none_are_none() -> None:
    [message] = read([encode(Publications("s", batch_of(2), [0, 1], [None, None]))])
    assert isinstance(message, Publications)
    assert message.copies is None


def test_as_many_copies_as_events_or_it_is_a_bug() -> None:
    for message in (
        Publications("s", batch_of(2), [0, 1], [None]),
        Deliveries("s", batch_of(2), [0, 1], [(1,)]),
        Deliveries("s", batch_of(2), [0, 1], [(1,), (1,)], [None]),
    ):
        with pytest.raises(ValueError, match="zip"):
            encode(message)


def test_long_lists_of_subscriptions_are_not_remembered() -> None:
    wire._prefixes.clear()
    lists = [tuple(range(i, i + 1_000)) for i in range(50)]
    encode(Deliveries("s", batch_of(50), range(50), lists))
    assert sum(map(len, wire._prefixes)) < 1_000


def test_no_more_prefixes_are_remembered_than_may_be() -> None:
    wire._prefixes.clear()
    for start in range(0, wire.PREFIXES_MAX * 2, 5_000):
        message = Deliveries("s", batch_of(1), [0] * 5_000, [(start + i,) for i in range(5_000)])
        assert plain(read([encode(message)])[0]) == plain(message)
        assert 0 < len(wire._prefixes) <= wire.PREFIXES_MAX


# What a frame brought must leave in frames that can be read


def test_the_largest_publish_leaves_in_frames_that_are_not_too_large() -> None:
    publish = Publish(batch_of(PUBLICATIONS_MAX, b"x" * (FRAME_BYTES_MAX // PUBLICATIONS_MAX - 10)))
    assert FRAME_BYTES_MAX * 0.9 < len(encode(publish)[1]) <= FRAME_BYTES_MAX
    count = len(publish.batch)
    many = tuple(range(2**40, 2**40 + 20))
    onward: list[Message] = [
        Publications("s", publish.batch, range(count)),
        Deliveries("s", publish.batch, range(count), [many] * count),
    ]
    for message in onward:
        parts = encode_parted(message)
        assert max(len(body) for _, body in parts) <= FRAME_BYTES_TARGET
        assert sum(map(size_of, read(parts))) == count


def test_one_large_event_is_not_parted() -> None:
    message = Publications("s", batch_of(2, b"x" * 2_000_000), [0, 1])
    parts = encode_parted(message)
    assert [*map(size_of, read(parts))] == [1, 1]


@given(st.integers(0, 40), st.booleans(), st.booleans())
@examples(60)
def test_parts_say_the_same_in_the_same_order(count: int, marked: bool, delivered: bool) -> None:
    batch = batch_of(count + 3, b"x" * (FRAME_BYTES_TARGET // 8))
    at = list(range(1, count + 1))
    copies = [Copy(lo=i) if i % 3 else None for i in at] if marked else None
    whole: Publications | Deliveries = (
        Deliveries("s", batch, at, [(i, 7) for i in at], copies)
        if delivered
        else Publications("s", batch, at, copies)
    )
    parts = [plain(each) for each in read(encode_parted(whole))]
    name, stream, *columns = plain(whole)
    assert all(part[:2] == (name, stream) for part in parts)
    for column, expected in enumerate(columns, start=2):
        assert [item for part in parts for item in part[column]] == expected
