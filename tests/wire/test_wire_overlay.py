"""The frames of the overlay: columns that fit, parts that say the same, bounds that are kept."""

from __future__ import annotations

import tracemalloc
from itertools import chain
from typing import Any

import msgspec
import pytest
from drawn_overlay import plain, relays
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.errors import MalformedFrame
from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import (
    PLACES_MAX,
    Confirmations,
    DepthAck,
    Holding,
    Relay,
    Step,
    Trail,
)
from holdfast.messages.publications import PUBLICATIONS_MAX, Batch, Publication, Publications, Tag
from holdfast.messages.subscriptions import (
    PARTITIONS_MAX,
    TABLE_ROWS_MAX,
    VECTOR_MAX,
    Grave,
    Heal,
    Healed,
    Known,
    Lore,
    Partition,
    Upgraded,
    UpgradeTaken,
)
from holdfast.wire import frame
from holdfast.wire.frame import FRAME_BYTES_TARGET, FrameReader, encode, encode_parted, header

RELAY = 48
WAY = (Step("P", 1), Step("B1", None), Step("B2", 3))


def read(parts: list[tuple[int, bytes]]) -> list[Message]:
    data = b"".join(
        header(kind, number, len(body)) + body for number, (kind, body) in enumerate(parts, start=1)
    )
    return FrameReader().feed(data)


def batch_of(count: int, event: bytes = b"event") -> Batch:
    return Batch([Publication("P", n, event) for n in range(1, count + 1)])


def relay_of(count: int, **others: Any) -> Relay:
    numbers = [*range(1, count + 1)]
    return Relay("s", batch_of(count), range(count), Trail(WAY, [numbers, numbers]), **others)


# A relay


def test_a_relay_is_written_as_the_protocol_says() -> None:
    """Other implementations read this: the layout is part of the protocol, not of the code."""
    tag = Tag("B1", 1, 7, bar=True)
    trail = Trail(WAY, [[5, 6], [8, 9]])
    batch = Batch([Publication("P", n, b"e") for n in (1, 2, 3)])
    kind, body = encode(Relay("s", batch, [0, 2], trail, (tag,), [(1,), (1, 4)], again=True, returned=True))
    assert kind == RELAY
    assert msgspec.msgpack.decode(body) == [
        "s",
        [[["P", 1], ["B1", None], ["B2", 3]], [[5, 6], [8, 9]]],
        [{"lead": "B1", "incarnation": 1, "number": 7, "bar": True}],
        True,
        False,
        True,
        [[1], [1, 4]],
        [["P", 1, b"e"], ["P", 3, b"e"]],
    ]


def test_a_batch_is_encoded_once_for_all_nodes_that_get_it() -> None:
    batch = batch_of(5)
    encode(Relay("s", batch, [0, 1], Trail(WAY, [[1, 2], [1, 2]])))
    pieces = batch.encoded
    assert pieces is not None
    encode(Relay("s", batch, [4], Trail(WAY, [[5], [5]])))
    encode(Publications("s", batch, [4]))
    assert batch.encoded is pieces


@pytest.mark.parametrize("count", [0, 1, 15, 16, PUBLICATIONS_MAX])
def test_a_relay_of_any_size_comes_back(count: int) -> None:
    [message] = read([encode(relay_of(count))])
    assert plain(message) == plain(relay_of(count))


def test_a_relay_of_too_many_events_is_refused() -> None:
    with pytest.raises(MalformedFrame, match=str(PUBLICATIONS_MAX)):
        read([encode(relay_of(PUBLICATIONS_MAX + 1))])


@pytest.mark.parametrize(
    ("columns", "lists"),
    [
        ([[1, 2]], None),
        ([[1, 2], [1, 2], [1, 2]], None),
        ([[1, 2], [1]], None),
        ([[1, 2, 3], [1, 2]], None),
        ([], None),
        ([[1, 2], [1, 2]], [[1]]),
        ([[1, 2], [1, 2]], [[1], [1], [1]]),
        ([[1, 2], [1, 2]], []),
    ],
)
def test_columns_and_lists_that_do_not_fit_are_refused(columns: list[Any], lists: list[Any] | None) -> None:
    """Whoever handles a relay picks from them by position, so nobody else need look."""
    publications = [["P", 1, b""], ["P", 2, b""]]
    rows = ["s", [msgspec.to_builtins(WAY), columns], [], False, False, False, lists, publications]
    with pytest.raises(MalformedFrame, match="of 2"):
        read([(RELAY, msgspec.msgpack.encode(rows))])


@pytest.mark.parametrize("lists", [[(1,)], [(1,), (1,), (1,)]])
def test_as_many_lists_of_subscriptions_as_events_or_it_is_a_bug(lists: list[tuple[int, ...]]) -> None:
    with pytest.raises(AssertionError):
        encode(relay_of(2, subscriptions=lists))


def test_as_many_numbers_as_events_or_it_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        encode(Relay("s", batch_of(2), [0, 1], Trail(WAY, [[1, 2], [1]])))


# Parts


def said_by(together: list[Message]) -> tuple[set[Any], list[Any], list[Any], list[list[int]]]:
    """What several relays say together: what they have in common, their events, lists and columns."""
    parts = [plain(each) for each in together]
    commons = {common for _, common, *_ in parts}
    events = [event for _, _, picked, *_ in parts for event in picked]
    lists = [each for *_, own, _ in parts for each in own or ()]
    columns = [[*chain(*pieces)] for pieces in zip(*(part[-1] for part in parts), strict=True)]
    return commons, events, lists, columns


@given(relays(), st.integers(1, 2_000))
@examples(200)
def test_parts_of_a_relay_say_the_same_in_the_same_order(relay: Relay, target: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame, "FRAME_BYTES_TARGET", target)
        parted = encode_parted(relay)
    came = read(parted)
    assert said_by(came) == said_by([relay])
    for (_, body), part in zip(parted, came, strict=True):
        assert isinstance(part, Relay)
        assert len(body) <= target or len(part.at) <= 1
    assert len(parted) == 1 or len(encode(relay)[1]) > target


def test_a_relay_that_fits_is_not_parted_nor_one_event() -> None:
    assert len(encode_parted(relay_of(PUBLICATIONS_MAX))) == 1
    large = Relay("s", batch_of(1, b"x" * (FRAME_BYTES_TARGET + 1)), [0], Trail(WAY, [[1], [1]]))
    assert len(encode_parted(large)) == 1


# Bounds

SUBSCRIPTION = SubscriptionId("S", 1, 1)
PARTITION = Partition("B1", 1, 1, ("B2",))
KNOWN = Known(SUBSCRIPTION, "#", ("B1",))


def trail_of(count: int) -> Relay:
    return Relay("s", batch_of(1), [0], Trail((Step("B", 1),) * count, [[1]] * count))


BOUNDED = [
    ("steps", VECTOR_MAX, trail_of),
    ("tags", PARTITIONS_MAX, lambda count: relay_of(1, tags=(Tag("B", 1, 1, bar=False),) * count)),
    ("holdings", PLACES_MAX, lambda count: DepthAck((Holding("A", 1, "B", 1, 7, 5),) * count)),
    ("confirmations", PUBLICATIONS_MAX, lambda count: Confirmations([*range(count)])),
    ("rows", TABLE_ROWS_MAX, lambda count: Lore((KNOWN,) * count)),
    ("graves", TABLE_ROWS_MAX, lambda count: Lore((), (Grave("S", 1, 1, 2),) * count)),
    ("route", VECTOR_MAX, lambda count: Lore((Known(SUBSCRIPTION, "#", ("B",) * count),))),
    ("heal", TABLE_ROWS_MAX, lambda count: Heal(PARTITION, (KNOWN,) * count, last=True)),
    ("healed", PARTITIONS_MAX, lambda count: Healed(PARTITION, (PARTITION,) * count)),
    ("cleared", PARTITIONS_MAX, lambda count: Upgraded(SUBSCRIPTION, (PARTITION,) * count, ())),
    ("partial", PARTITIONS_MAX, lambda count: Upgraded(SUBSCRIPTION, (), (PARTITION,) * count)),
    ("taken", PARTITIONS_MAX, lambda count: UpgradeTaken(SUBSCRIPTION, (PARTITION,) * count)),
]

AMPLIFIED_MAX = 30  #: as in test_frame; measured: up to 18 for steps, 10 for holdings


@pytest.mark.parametrize(("most", "made"), [each[1:] for each in BOUNDED], ids=[each[0] for each in BOUNDED])
def test_what_is_at_its_bound_is_read_and_costs_little(most: int, made: Any) -> None:
    message = made(most)
    kind, body = encode(message)
    data = header(kind, 1, len(body)) + body
    tracemalloc.start()
    try:
        [came] = FrameReader().feed(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert plain(came) == plain(message)
    assert peak < AMPLIFIED_MAX * len(data)


@pytest.mark.parametrize(("most", "made"), [each[1:] for each in BOUNDED], ids=[each[0] for each in BOUNDED])
def test_what_is_over_its_bound_is_refused(most: int, made: Any) -> None:
    with pytest.raises(MalformedFrame, match=f"<= {most}"):
        read([encode(made(most + 1))])
