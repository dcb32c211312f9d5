"""The frames of durable streams: as the protocol says, in order or refused, written once for many subscribers."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from durable_messages import NOW, batch_of, items_of, portion_of, read, requests_of
from hypothesis import given
from hypothesis import strategies as st

from drawn_messages import items, plain, portions
from examples import examples
from holdfast.errors import MalformedFrame
from holdfast.messages.durable import (
    BEGIN,
    Acknowledge,
    Answers,
    Credit,
    Logged,
    Portion,
    Report,
    Requests,
    Run,
)
from holdfast.messages.publications import PUBLICATIONS_MAX, Batch, Publication
from holdfast.messages.ticks import ABSOLUTE, Items, Lost, Nack, Start
from holdfast.streams.tick import checked
from holdfast.wire import durable as wire
from holdfast.wire.frame import FrameReader, encode, header

ITEMS, NACK, REQUESTS, PORTION = 84, 85, 90, 104
E = Publication("P", 1, b"e")


# As the protocol says: other implementations read this, so the layout is part of the protocol, not of the code


def test_items_are_written_as_the_protocol_says() -> None:
    lost = [Lost(3, 5, "retention"), Lost(10, 20, "damage")]
    message = Items("s@b1/0", 4, [5, 7, 30, 40], [7, 9, 40, 45], [E, None, E, E], lost, answers=True)
    kind, body = encode(message)
    assert kind == ITEMS
    event = ["P", 1, b"e"]
    said = [[3, 5, "retention"], [10, 20, "damage"]]
    assert msgspec.msgpack.decode(body) == [
        *("s@b1/0", 4, True, 5, [2, 2, 31, 5], [[2, 21]], [event, None, event, event], said)
    ]


def test_requests_are_written_as_the_protocol_says() -> None:
    kind, body = encode(Requests("b1", "b2", "s@b1/0", [BEGIN, 1], batch_of(2, b"e"), 7))
    assert kind == REQUESTS
    events = [["P", 1, b"e"], ["P", 2, b"e"]]
    assert msgspec.msgpack.decode(body) == ["b1", "b2", "s@b1/0", 7, [-1, 1], events]


def test_a_portion_is_written_as_the_protocol_says() -> None:
    kind, body = encode(Portion(7, "s@b1/0", 3, batch_of(3, b"e"), [4, 5, 9], [0, 2], 12, 3, "retention"))
    assert kind == PORTION
    rows = [[4, ["P", 1, b"e"]], [9, ["P", 3, b"e"]]]
    assert msgspec.msgpack.decode(body) == [7, "s@b1/0", 3, 12, 3, "retention", rows]


def test_an_item_takes_one_byte_besides_its_event() -> None:
    """B1.2: what is said for every event must not cost what the event does; in columns it would be 18 bytes."""
    events = sum(len(msgspec.msgpack.encode(each)) for each in batch_of(64).publications)
    assert len(encode(items_of(64))[1]) - events < 64 + 30


def test_a_portion_takes_a_tick_besides_its_event() -> None:
    batch = batch_of(64)
    portion = Portion(1, "p", 1, batch, range(NOW, NOW + 64), range(64), NOW + 64)
    events = sum(len(msgspec.msgpack.encode(each)) for each in batch.publications)
    assert len(encode(portion)[1]) - events < 64 * 10 + 30


@pytest.mark.parametrize("count", [0, 1, 15, 16, PUBLICATIONS_MAX])
@pytest.mark.parametrize("made", [items_of, portion_of, requests_of])
def test_a_message_of_any_size_comes_back(made: Any, count: int) -> None:
    message = made(count)
    assert [plain(each) for each in read([encode(message)])] == [plain(message)]


def test_the_highest_tick_comes_back() -> None:
    for message in (
        Items("p", ABSOLUTE, [0, ABSOLUTE - 1], [5, ABSOLUTE], [None, E]),
        Portion(1, "p", 1, Batch([E]), [ABSOLUTE], [0], ABSOLUTE, ABSOLUTE - 1, "lost"),
        Nack("p", ABSOLUTE, [(0, ABSOLUTE)]),
    ):
        [came] = read([encode(message)])
        assert plain(came) == plain(message)


# Written once


def test_a_batch_is_written_once_for_all_who_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []

    def counted(each: Any) -> bytes:
        written.append(each)
        return msgspec.msgpack.encode(each)

    monkeypatch.setattr(wire, "_encode", counted)
    portion = portion_of(5)
    for subscription in range(10):
        encode(replace(portion, subscription=subscription, at=[subscription % 5]))
    assert [each for each in written if isinstance(each[1], Publication)] == [
        *zip(portion.ticks, portion.batch.publications, strict=True)
    ]


def test_the_same_share_is_written_once_for_those_who_stand_in_line() -> None:
    portion = portion_of(5)
    first, again = encode(portion)[1], encode(replace(portion, at=range(5)))[1]
    assert again is first


CHANGED: list[dict[str, Any]] = [
    {"subscription": 2},
    {"pubend": "q"},
    {"incarnation": 2},
    {"at": [1, 2, 3, 4]},
    {"upto": 25},
    {"lost_through": 1},
    {"reason": "damage"},
    {"batch": batch_of(5, b"other")},
]


@pytest.mark.parametrize("change", CHANGED, ids=lambda change: next(iter(change)))
def test_no_share_is_taken_for_another(change: dict[str, Any]) -> None:
    portion = portion_of(5)
    for message in (portion, replace(portion, **change), portion):
        [came] = read([encode(message)])
        assert plain(came) == plain(message)


@given(st.lists(portions(), min_size=1, max_size=4), st.data())
@examples(60)
def test_portions_of_several_batches_in_any_order_come_back(
    drawn: list[Portion], data: st.DataObject
) -> None:
    order = data.draw(st.lists(st.sampled_from(drawn), max_size=12))
    assert [plain(each) for each in read([*map(encode, order)])] == [*map(plain, order)]


# Refused


@given(items())
@examples(60)
def test_items_that_are_read_are_in_order(drawn: Items) -> None:
    """Whatever is drawn here is what ``streams.tick.checked`` takes; and so is whatever the wire lets pass."""
    [came] = read([encode(drawn)])
    assert isinstance(came, Items)
    assert checked(came) is came


@given(items(), st.data())
@examples(150)
def test_no_damage_makes_items_that_are_not_in_order(drawn: Items, data: st.DataObject) -> None:
    """I20: a relay believes what it is told; what cannot be is not let in."""
    body = bytearray(encode(drawn)[1])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        [came] = read([(ITEMS, bytes(body))])
    except MalformedFrame:
        return
    assert isinstance(came, Items)
    checked(came)


def items_body(**others: Any) -> bytes:
    """Three items, all right but for what is said to be otherwise."""
    said = {
        "pubend": "p",
        "under": 1,
        "answers": False,
        "after": 5,
        "steps": [1, 10, 10],
        "gaps": [],
        "publications": [None] * 3,
        "lost": [],
    }
    return msgspec.msgpack.encode([*{**said, **others}.values()])


def portion_body(**others: Any) -> bytes:
    said = {
        "subscription": 1,
        "pubend": "p",
        "incarnation": 1,
        "upto": 9,
        "lost_through": 3,
        "reason": "",
        "rows": [[4, E], [9, E]],
    }
    return msgspec.msgpack.encode([*{**said, **others}.values()])


BAD = [
    (ITEMS, items_body(publications=[None] * 2)),
    (ITEMS, items_body(publications=[None] * 4)),
    (ITEMS, items_body(steps=[1, 0, 10])),
    (ITEMS, items_body(steps=[1, -1, 10])),
    (ITEMS, items_body(after=-1)),
    (ITEMS, items_body(after=2**63)),
    (ITEMS, items_body(after=2**63 - 21)),
    (ITEMS, items_body(under=-1)),
    (ITEMS, items_body(under=2**63)),
    (ITEMS, items_body(gaps=[[0, 1]])),
    (ITEMS, items_body(gaps=[[-1, 1]])),
    (ITEMS, items_body(gaps=[[3, 1]])),
    (ITEMS, items_body(gaps=[[1, 0]])),
    (ITEMS, items_body(gaps=[[1, 10]])),
    (ITEMS, items_body(gaps=[[1, 2], [1, 2]])),
    (ITEMS, items_body(gaps=[[2, 2], [1, 2]])),
    (ITEMS, items_body(lost=[[3, 3, ""]])),
    (ITEMS, items_body(lost=[[-1, 3, ""]])),
    (ITEMS, items_body(lost=[[5, 9, ""], [8, 12, ""]])),
    (ITEMS, items_body(lost=[[5, 2**63, ""]])),
    (PORTION, portion_body(rows=[[4, E], [4, E]])),
    (PORTION, portion_body(rows=[[5, E], [4, E]])),
    (PORTION, portion_body(rows=[[3, E], [4, E]])),
    (PORTION, portion_body(rows=[[4, E], [10, E]])),
    (PORTION, portion_body(rows=[], lost_through=10)),
    (PORTION, portion_body(rows=[[4, None]])),
    (PORTION, portion_body(upto=2**63)),
    (PORTION, portion_body(lost_through=-1)),
    (NACK, msgspec.msgpack.encode(Nack("p", 1, [(3, 3)]))),
    (NACK, msgspec.msgpack.encode(Nack("p", 1, [(-1, 3)]))),
    (NACK, msgspec.msgpack.encode(Nack("p", 1, [(1, 2**63)]))),
    (REQUESTS, msgspec.msgpack.encode(["b1", "b2", "p", [1], [E, E]])),
    (REQUESTS, msgspec.msgpack.encode(["b1", "b2", "p", [1, 2, 3], [E, E]])),
    (REQUESTS, msgspec.msgpack.encode(["b1", "b2", "p", [-2], [E]])),
    (83, msgspec.msgpack.encode(Start("p", -1))),
    (94, msgspec.msgpack.encode(Report("b1", "b2", "p", 1, 2**63, 0))),
    (110, msgspec.msgpack.encode(Logged("p", 1, (Run(1, -1, 1),)))),
    (106, msgspec.msgpack.encode(Acknowledge(1, {"p": 2**63}))),
    (105, msgspec.msgpack.encode(Credit(1, 0))),
]


@pytest.mark.parametrize(("kind", "body"), BAD, ids=range(len(BAD)))
def test_what_cannot_be_is_refused(kind: int, body: bytes) -> None:
    with pytest.raises(MalformedFrame):
        read([(kind, body)])


def test_what_is_refused_is_refused_for_what_is_wrong_with_it() -> None:
    """The bodies above without the fault are read."""
    assert len(read([(ITEMS, items_body()), (PORTION, portion_body())])) == 2
    gaps = items_body(gaps=[[1, 9], [2, 1]], lost=[[0, 2, ""], [2, 4, ""]], after=2**63 - 22)
    assert len(read([(ITEMS, gaps), (NACK, msgspec.msgpack.encode(Nack("p", 0, [(0, 1)])))])) == 2


def test_columns_that_do_not_fit_are_a_bug() -> None:
    for message in (
        replace(items_of(2), los=[1]),
        replace(items_of(2), publications=[None]),
        replace(requests_of(2), previous=[1]),
        portion_of(2, lost_through=11),
        replace(portion_of(2), upto=11),
    ):
        with pytest.raises(AssertionError):
            encode(message)


# Bounds


@pytest.mark.parametrize("made", [lambda n: Logged("p", 1, (Run(1, 1, 1),) * n), lambda n: answers_of(n)])
def test_no_answer_has_more_runs_than_there_may_be_events(made: Any) -> None:
    assert len(read([encode(made(PUBLICATIONS_MAX))])) == 1
    with pytest.raises(MalformedFrame, match="<= 10000"):
        read([encode(made(PUBLICATIONS_MAX + 1))])


def answers_of(count: int) -> Answers:
    return Answers("b1", "b2", "p", 1, "P", (Run(1, 1, 1),) * count)


def test_no_frame_of_silence_becomes_much() -> None:
    """A silent item takes two bytes, and at most 40 times that when it is read; there are not many in a frame."""
    count = PUBLICATIONS_MAX
    body = items_body(after=NOW, steps=[1] * count, publications=[None] * count)
    data = header(ITEMS, 1, len(body)) + body
    tracemalloc.start()
    try:
        assert len(FrameReader().feed(data)) == 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 80 * count
