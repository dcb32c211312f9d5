"""What is too large for one frame is said in parts: whoever hears them knows the same, and hears near ticks first."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from durable_messages import batch_of, items_of, parted, portion_of, read, requests_of
from hypothesis import given
from hypothesis import strategies as st

from drawn_messages import items, plain, portions, ranges, requests
from examples import examples
from holdfast.errors import MalformedFrame
from holdfast.messages.durable import Portion, Requests
from holdfast.messages.message import Message
from holdfast.messages.publications import PUBLICATIONS_MAX
from holdfast.messages.ticks import ABSOLUTE, SPANS_MAX, Items, Lost, Nack
from holdfast.streams.knowledge import Knowledge
from holdfast.wire.frame import FRAME_BYTES_TARGET, encode, encode_parted


def said_by_items(together: list[Any]) -> tuple[Any, ...]:
    parts = [plain(each) for each in together]
    return {part[1] for part in parts}, *([*chain(*column)] for column in list(zip(*parts, strict=True))[2:])


@given(items(), st.integers(1, 2_000))
@examples(150)
def test_parts_of_items_say_the_same_in_the_same_order(drawn: Items, target: int) -> None:
    frames = parted(drawn, target)
    came = read(frames)
    assert said_by_items(came) == said_by_items([drawn])
    for (_, body), part in zip(frames, came, strict=True):
        assert isinstance(part, Items)
        assert len(body) <= target or len(part.ticks) + len(part.lost) <= 1


@given(items(), st.integers(1, 400))
@examples(100)
def test_a_node_that_is_told_in_parts_knows_no_far_tick_before_the_near_ones(
    drawn: Items, target: int
) -> None:
    """B1.2: else a relay would pass on the far ones, and the near ones would have to be asked for."""
    spans = [*zip(drawn.los, drawn.ticks, strict=True)]
    apart = [loss for loss in drawn.lost if all(loss.upto <= lo or tick <= loss.after for lo, tick in spans)]
    edge = 0
    for part in read(parted(replace(drawn, lost=apart), target)):
        assert isinstance(part, Items)
        told = sorted([*zip(part.los, part.ticks, strict=True), *((a, b) for a, b, _ in part.lost)])
        assert not told or edge <= told[0][0]
        edge = max([edge, *(upto for _, upto in told)])


@given(items(), st.integers(1, 400))
@examples(60)
def test_whoever_is_told_in_parts_knows_the_same(drawn: Items, target: int) -> None:
    whole, pieces = Knowledge("p"), Knowledge("p")
    whole.add(drawn)
    for part in read(parted(drawn, target)):
        assert isinstance(part, Items)
        pieces.add(part)
    assert [*pieces.known(drawn.under)] == [*whole.known(drawn.under)]
    assert [*pieces.lost] == [*whole.lost]
    assert pieces.events(0, ABSOLUTE) == whole.events(0, ABSOLUTE)


def told_by(together: list[Any], stood: int) -> tuple[set[Any], list[Any], int]:
    """What a subscriber that stood somewhere makes of portions: commons, its events and gaps, and where it stands."""
    said: list[Any] = []
    for portion in together:
        assert portion.upto >= stood
        if portion.lost_through > stood:
            said.append((stood, portion.lost_through, portion.reason))
            stood = portion.lost_through
        for i in portion.at:
            assert portion.ticks[i] > stood
            stood = portion.ticks[i]
            said.append((stood, portion.batch.publications[i]))
        stood = portion.upto
    return {(each.subscription, each.pubend, each.incarnation) for each in together}, said, stood


@given(portions(), st.integers(1, 1_000), st.data())
@examples(150)
def test_a_subscriber_makes_the_same_of_the_parts_of_a_portion(
    drawn: Portion, target: int, data: st.DataObject
) -> None:
    """B1.15, I18: every event once and in order, one gap where it was, and the same place at the end."""
    lowest = min([drawn.upto, *(drawn.ticks[i] - 1 for i in drawn.at)])
    stood = data.draw(st.integers(0, lowest))
    frames = parted(drawn, target)
    came = read(frames)
    assert told_by(came, stood) == told_by([drawn], stood)
    assert not any(part.lost_through or part.reason for part in came[1:] if isinstance(part, Portion))
    for (_, body), part in zip(frames, came, strict=True):
        assert isinstance(part, Portion)
        assert len(body) <= target or len(part.at) <= 1


@given(requests(), st.integers(1, 1_000))
@examples(60)
def test_parts_of_requests_say_the_same_in_the_same_order(drawn: Requests, target: int) -> None:
    assert said_by_items(read(parted(drawn, target))) == said_by_items([drawn])


@given(ranges(8), st.integers(1, 100))
@examples(60)
def test_parts_of_a_nack_ask_for_the_same(drawn: list[tuple[int, int]], target: int) -> None:
    parts = read(parted(Nack("p", 3, drawn), target))
    assert all(isinstance(part, Nack) and (part.pubend, part.version) == ("p", 3) for part in parts)
    assert [span for part in parts if isinstance(part, Nack) for span in part.spans] == drawn


def test_what_fits_is_not_parted_nor_one_event() -> None:
    for message in (items_of(PUBLICATIONS_MAX), portion_of(PUBLICATIONS_MAX), requests_of(PUBLICATIONS_MAX)):
        assert len(encode_parted(message)) == 1
    large = replace(portion_of(1), batch=batch_of(1, b"x" * (FRAME_BYTES_TARGET + 1)))
    assert len(encode_parted(large)) == 1


LOSSES = [Lost(2 * i, 2 * i + 1, "") for i in range(SPANS_MAX + 1)]


@pytest.mark.parametrize(
    "message",
    [
        items_of(PUBLICATIONS_MAX + 1),
        Items("p", 1, [], [], [], LOSSES),
        portion_of(PUBLICATIONS_MAX + 1),
        requests_of(PUBLICATIONS_MAX + 1),
        Nack("p", 1, [(a, b) for a, b, _ in LOSSES]),
    ],
    ids=["items", "lost", "portion", "requests", "nack"],
)
def test_more_than_a_receiver_takes_is_refused_in_one_frame_and_taken_in_several(message: Message) -> None:
    with pytest.raises(MalformedFrame, match="<= 10000"):
        read([encode(message)])
    assert len(read(encode_parted(message))) == 2
