"""Events as bytes: what is packed comes back, and a stranger's bytes are an event or are refused, as make_event would.

Where the two still differ, on purpose: text is counted in characters here and in bytes of UTF-8 there, so a topic, a
name or a value may be up to four times as long in bytes; of a name that stands twice in a map the last value counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.errors import InvalidEvent, MalformedEvent
from holdfast.events.event import DEFAULT_LIMITS, Event, Limits, make_event
from holdfast.events.packed import PackedEvent, PackedReader, pack, unpack
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import Filter
from holdfast.filters.subject import Subject
from strategies import events, filters

READER = PackedReader()
PLAIN: list[Any] = ["a", {}, {}, "", b"", None]
TOPIC, SCALARS, BINARY, CONTENT_TYPE, PAYLOAD, TIME = range(6)


def packed(place: int, value: Any) -> bytes:
    """A good event with one part of it replaced."""
    parts = list(PLAIN)
    parts[place] = value
    return msgspec.msgpack.encode(parts)


# What is packed comes back


@given(events(), st.none() | st.integers(-(2**63), 2**63 - 1))
@examples(200)
def test_an_event_comes_back_as_it_was(event: Event, time: int | None) -> None:
    event = msgspec.structs.replace(event, time=time)
    data = pack(event)
    for read in (unpack(data), READER.read(data)):
        assert read.event(event.publisher, event.n) == event
        types = {name: type(value) for name, value in read.attributes.items()}
        assert types == {name: type(value) for name, value in event.attributes.items()}, (
            "1 is not 1.0 nor True"
        )


@given(events(), st.lists(filters(), min_size=1, max_size=5))
@examples(100)
def test_filters_see_the_same_in_bytes_as_in_the_event(event: Event, drawn: list[Filter]) -> None:
    read = READER.read(pack(event))
    for filter in drawn:
        matches = compile_filter(filter)
        assert matches(Subject(read)) == matches(Subject(event))


def test_attributes_without_bytes_are_not_copied() -> None:
    read = unpack(pack(make_event("a", {"x": 1})))
    assert read.attributes is read.scalars


def test_the_smallest_event_is_nine_bytes() -> None:
    assert len(pack(make_event("a"))) == 9


# What a stranger sends

GOOD: dict[str, bytes] = {
    "the plainest": packed(TOPIC, "a"),
    "an empty level": packed(TOPIC, "a//b/"),
    "int at the low end": packed(SCALARS, {"x": -(2**63)}),
    "int at the high end": packed(SCALARS, {"x": 2**63 - 1}),
    "the largest float": packed(SCALARS, {"x": 1.7976931348623157e308}),
    "the smallest float": packed(SCALARS, {"x": 5e-324}),
    "minus zero": packed(SCALARS, {"x": -0.0}),
    "a NUL in text": packed(SCALARS, {"x": "\0"}),
    "as many attributes as may be": packed(SCALARS, {f"n{i}": i for i in range(256)}),
    "content type": packed(CONTENT_TYPE, "text/plain; charset=utf-8"),
    "time before 1970": packed(TIME, -1),
}

BAD: dict[str, bytes] = {
    "nothing": b"",
    "no MessagePack": b"\xc1",
    "a map": msgspec.msgpack.encode({"topic": "a"}),
    "too few parts": msgspec.msgpack.encode(PLAIN[:5]),
    "too many parts": msgspec.msgpack.encode([*PLAIN, b"more"]),
    "bytes after the end": msgspec.msgpack.encode(PLAIN) + b"\xc0",
    "cut short": msgspec.msgpack.encode(PLAIN)[:-1],
    "empty topic": packed(TOPIC, ""),
    "topic of bytes": packed(TOPIC, b"a"),
    "topic with +": packed(TOPIC, "a/+"),
    "topic with #": packed(TOPIC, "#"),
    "topic with NUL": packed(TOPIC, "a\0"),
    "topic with a leading slash": packed(TOPIC, "/a"),
    "topic too long": packed(TOPIC, "a" * 1025),
    "topic of too many levels": packed(TOPIC, "/".join("a" * 65)),
    "lone surrogate in the topic": b"\x96\xa3\xed\xa0\x80\x80\x80\xa0\xc4\x00\xc0",
    "lone surrogate in a value": b"\x96\xa1a\x81\xa1x\xa3\xed\xa0\x80\x80\xa0\xc4\x00\xc0",
    "lone surrogate in a name": b"\x96\xa1a\x81\xa3\xed\xa0\x80\x01\x80\xa0\xc4\x00\xc0",
    "not a number": packed(SCALARS, {"x": float("nan")}),
    "infinity": packed(SCALARS, {"x": float("inf")}),
    "minus infinity": packed(SCALARS, {"x": float("-inf")}),
    "short not a number": b"\x96\xa1a\x81\xa1x\xca\x7f\xc0\x00\x00\x80\xa0\xc4\x00\xc0",
    "2**63": packed(SCALARS, {"x": 2**63}),
    "2**64-1": packed(SCALARS, {"x": 2**64 - 1}),
    "null": packed(SCALARS, {"x": None}),
    "an array": packed(SCALARS, {"x": [1]}),
    "an object": packed(SCALARS, {"x": {}}),
    "bytes among the scalars": packed(SCALARS, {"x": b""}),
    "text among the bytes": packed(BINARY, {"x": ""}),
    "an extension type": b"\x96\xa1a\x81\xa1x\xd4\x01\x00\x80\xa0\xc4\x00\xc0",
    "a name that is no text": packed(SCALARS, {1: 1}),
    "an empty name": packed(SCALARS, {"": 1}),
    "an empty name of bytes": packed(BINARY, {"": b""}),
    "a name too long": packed(SCALARS, {"x" * 257: 1}),
    "a text too long": packed(SCALARS, {"x": "y" * 65_537}),
    "bytes too long": packed(BINARY, {"x": b"y" * 65_537}),
    "too many attributes": packed(SCALARS, {f"n{i}": i for i in range(257)}),
    "too many of both sorts": msgspec.msgpack.encode(
        ["a", {f"s{i}": i for i in range(200)}, {f"b{i}": b"" for i in range(57)}, "", b"", None]
    ),
    "attributes too large": packed(SCALARS, {f"n{i}": "x" * 65_000 for i in range(17)}),
    "two values for one name": msgspec.msgpack.encode(["a", {"x": 1}, {"x": b""}, "", b"", None]),
    "content type too long": packed(CONTENT_TYPE, "x" * 257),
    "content type with a line break": packed(CONTENT_TYPE, "text/plain\n"),
    "content type not in ASCII": packed(CONTENT_TYPE, "text/plän"),
    "content type with a space before": packed(CONTENT_TYPE, " text/plain"),
    "content type with a space after": packed(CONTENT_TYPE, "text/plain "),
    "payload of text": packed(PAYLOAD, "x"),
    "payload too large": packed(PAYLOAD, b"x" * 1_048_577),
    "time of the far future": packed(TIME, 2**63),
    "time as a float": packed(TIME, 1.0),
    "time as an extension": b"\x96\xa1a\x80\x80\xa0\xc4\x00\xd6\xff\x00\x00\x00\x00",
    "deep nesting": b"\x91" * 100_000,
    "deep nesting inside": b"\x96\xa1a\x81\xa1x" + b"\x91" * 100_000,
    "a length that lies": b"\x96\xa1a\xdf\xff\xff\xff\xff",
}


@pytest.mark.parametrize("data", GOOD.values(), ids=GOOD)
def test_what_is_good_is_read(data: bytes) -> None:
    make_again(READER.read(data))


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_bad_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedEvent) as caught:
        READER.read(data)
    assert 0 < len(str(caught.value)) < 300


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_a_trusting_reader_reads_or_refuses_and_nothing_else(data: bytes) -> None:
    try:
        read = unpack(data)
    except MalformedEvent:
        return
    assert isinstance(read, PackedEvent)


def test_of_a_name_that_stands_twice_the_last_value_counts() -> None:
    twice = b"\x96\xa1a\x82\xa1x\x01\xa1x\x02\x80\xa0\xc4\x00\xc0"
    assert READER.read(twice).attributes == {"x": 2}


def test_text_is_counted_in_characters() -> None:
    topic = "é" * DEFAULT_LIMITS.topic_bytes
    assert READER.read(packed(TOPIC, topic)).topic == topic
    with pytest.raises(InvalidEvent):
        make_event(topic)


def test_topics_seen_before_are_forgotten_before_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackedReader, "SEEN_MAX", 3)
    reader = PackedReader()
    for i in range(10):
        reader.read(packed(TOPIC, f"t{i}"))
        assert len(reader._topics) <= 3
    with pytest.raises(MalformedEvent):
        reader.read(packed(TOPIC, "t/+"))


def test_limits_are_those_it_was_given() -> None:
    reader = PackedReader(Limits(topic_bytes=3, attributes=1, payload_bytes=2))
    reader.read(packed(TOPIC, "abc"))
    for place, value in ((TOPIC, "abcd"), (SCALARS, {"x": 1, "y": 2}), (PAYLOAD, b"xyz")):
        with pytest.raises(MalformedEvent):
            reader.read(packed(place, value))


# Accepted here means accepted by make_event

SMALL = Limits(
    topic_bytes=8,
    topic_levels=3,
    attributes=2,
    attribute_name_bytes=4,
    value_bytes=6,
    attributes_bytes=16,
    payload_bytes=4,
    content_type_bytes=5,
)

#: The same for text that takes two bytes a character; the sum over all attributes stays as it is.
IN_CHARACTERS = replace(SMALL, topic_bytes=16, attribute_name_bytes=8, value_bytes=12)

texts = st.text(st.sampled_from("a/+#\0 é~\x7f\n"), max_size=9)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([2**63 - 1, 2**63, -(2**63)]),
    st.floats(),
    texts,
    st.binary(max_size=7),
    st.lists(st.none(), max_size=1),
)
names = st.text(st.sampled_from("abé"), min_size=1, max_size=4)
good = [
    st.text(st.sampled_from("aé"), min_size=1, max_size=8) | st.sampled_from(["a/b/", "a/b/c/d", "/"]),
    st.dictionaries(names, st.booleans() | st.integers(-5, 5) | st.floats(-9, 9) | names, max_size=2),
    st.dictionaries(names, st.binary(max_size=6), max_size=1),
    st.text(st.sampled_from("aaa "), max_size=5),
    st.binary(max_size=4),
    st.none() | st.integers(-(2**63), 2**63 - 1),
]
bad = [texts, st.dictionaries(texts, scalars, max_size=3), scalars]


@st.composite
def event_like(draw: st.DrawFn) -> list[Any]:
    """The parts of an event, at or near the limits, now and then one of them something else altogether."""
    parts = [draw(each) for each in good]
    if draw(st.booleans()):
        parts[draw(st.integers(0, 5))] = draw(st.one_of(*bad))
    return parts


def make_again(read: PackedEvent, limits: Limits = DEFAULT_LIMITS) -> Event:
    return make_event(
        read.topic, read.attributes, read.payload, read.content_type, time=read.time, limits=limits
    )


@given(event_like())
@examples(500)
def test_what_is_read_from_a_stranger_make_event_accepts(parts: list[Any]) -> None:
    try:
        read = PackedReader(SMALL).read(msgspec.msgpack.encode(parts))
    except (MalformedEvent, OverflowError):  # the latter from the encoder: no such int in MessagePack
        return
    again = make_again(read, IN_CHARACTERS)
    assert (again.topic, again.attributes) == (read.topic, read.attributes)


@given(events(), st.data())
@examples(300)
def test_mutated_bytes_are_an_event_or_refused(event: Event, data: st.DataObject) -> None:
    mutated = bytearray(pack(event))
    for _ in range(data.draw(st.integers(1, 3))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = READER.read(bytes(mutated))
    except MalformedEvent:
        return
    make_again(read)


@given(st.binary(max_size=60))
@examples(300)
def test_random_bytes_are_an_event_or_refused(data: bytes) -> None:
    try:
        read = READER.read(data)
    except MalformedEvent:
        return
    make_again(read)
