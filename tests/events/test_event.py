from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidEvent
from holdfast.events.event import DEFAULT_LIMITS, Event, Limits, make_event
from holdfast.events.topic import canonical_topic
from holdfast.events.value import INT_MAX, INT_MIN, Value, canonical_text, exact_value, value_problem
from holdfast.identity import EventId

# --- arbitrary legal events; the tests of the other forms use them too -----------------------------------------

#: What some form treats specially: names CloudEvents reserves, spellings of other types, characters of trouble.
AWKWARD_NAMES = [
    *("type", "id", "source", "subject", "time", "data", "dataschema", "datacontenttype", "specversion"),
    *("holdfastattributes", "holdfasttopic", "holdfastcontenttype", "holdfast", "a" * 20, "a" * 21),
    *("price", "qty2", "Price", "a_b", "a.b", "a-b", "ä", " ", "\x7f", "\uffff", "null", "0"),
]
AWKWARD_TEXTS = [
    *("", " ", " x ", "null", "true", "false", "5", "1.0", "holdfast.event", "com.example.created"),
    *(
        "https://example.com/schema#1",
        "not a uri",
        '"quoted"',
        "100%",
        "%41",
        "a\r\nb",
        "\x00",
        "\x7f",
        "\x85",
    ),
    *("\u2028", "\ufdd0", "\U0010ffff", "😀", "e\u0301", "\\", "\\u0041", "a,b;c=d"),
]
AWKWARD_PAYLOADS = [
    *(
        b"null",
        b"NaN",
        b"1e400",
        b"1.10",
        b" 1",
        b"{}\n",
        b'{"a":1,"a":2}',
        b'1,"x":2',
        b'1,"data":2',
        b'"\\ud800"',
    ),
    *(
        b"[" * 70 + b"]" * 70,
        b"[" * 5000 + b"]" * 5000,
        b"9" * 5000,
        b"\xef\xbb\xbf1",
        b"<a/>",
        b"\xff",
        b"\x00",
    ),
]
CONTENT_TYPES = [
    *("", "text/plain", "application/json", "application/json; charset=utf-8", "application/vnd.acme+json"),
    *("text/plain; charset=iso-8859-1", 'text/plain; charset="utf-8"', "application/xml", "x", "a b"),
    *("application/cloudevents+json", "Application/CloudEvents-batch+json", "application/octet-stream"),
]

topics = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="+#\0"), min_size=1, max_size=20),
    st.lists(
        st.sampled_from(["", "a", "b c", "ü", "$x", "\n", "\x7f", "\ufffe"]), min_size=1, max_size=6
    ).map(lambda levels: "/" + "/".join(levels)),
)
values: st.SearchStrategy[Value] = st.one_of(
    st.booleans(),
    st.integers(INT_MIN, INT_MAX),
    st.sampled_from([INT_MIN, INT_MAX, -(2**31) - 1, -(2**31), 2**31 - 1, 2**31, 0, 1]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1.7976931348623157e308, 1e16, 2.0**63]),
    st.text(max_size=20),
    st.sampled_from(AWKWARD_TEXTS),
    st.binary(max_size=20),
)
attributes = st.dictionaries(
    st.text(min_size=1, max_size=10) | st.sampled_from(AWKWARD_NAMES), values, max_size=6
)
payloads = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=40).map(str.encode),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ).map(lambda value: json.dumps(value, ensure_ascii=False).encode()),
    st.sampled_from(AWKWARD_PAYLOADS),
)
content_types = st.one_of(
    st.sampled_from(CONTENT_TYPES),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20).map(str.strip),
)
publishers = st.text(min_size=1, max_size=20) | st.sampled_from(
    ["p1", "holdfast:p", "a b", "a%20b", "1:b", "http://[::1]/x?y#z", "urn:x", "/a", "a#b#c", "%", "\n"]
)
times = st.none() | st.integers(INT_MIN, INT_MAX) | st.sampled_from([INT_MIN, INT_MAX, -1, 0, 10**9, 10**6])
numbers = st.integers(1, INT_MAX)

events_with_id = st.builds(
    make_event, topics, attributes, payloads, content_types, publisher=publishers, n=numbers, time=times
)
events = events_with_id | st.builds(
    make_event,
    topics,
    attributes,
    payloads,
    content_types,
    publisher=publishers | st.just(""),
    n=numbers | st.just(0),
    time=times,
)


def assert_same(left: Event, right: Event) -> None:
    """Equal, and of equal types: to Python 1, 1.0 and True are equal, and so are 0.0 and -0.0."""
    assert left == right
    assert {name: repr(value) for name, value in left.attributes.items()} == {
        name: repr(value) for name, value in right.attributes.items()
    }


# --- legal events -----------------------------------------------------------------------------------------------


@given(topics, attributes, payloads, content_types, publishers, numbers, times)
def test_a_legal_event_keeps_every_field_as_given_but_for_the_form_of_its_topic(
    topic: str,
    attributes: dict[str, Value],
    payload: bytes,
    content_type: str,
    publisher: str,
    n: int,
    time: int | None,
) -> None:
    event = make_event(topic, attributes, payload, content_type, publisher=publisher, n=n, time=time)
    given = Event(canonical_topic(topic), attributes, payload, content_type, publisher, n, time)
    assert_same(event, given)
    assert event.id == EventId(publisher, n)


@given(events)
def test_a_checked_event_passes_the_check_again_unchanged(event: Event) -> None:
    again = make_event(
        event.topic,
        event.attributes,
        event.payload,
        event.content_type,
        publisher=event.publisher,
        n=event.n,
        time=event.time,
    )
    assert_same(event, again)


def test_an_attribute_that_is_none_is_absent() -> None:
    assert make_event("t", {"a": None, "b": 1}).attributes == {"b": 1}
    assert make_event("t", None).attributes == {}


def test_the_event_does_not_change_when_the_mapping_it_was_made_from_does() -> None:
    given: dict[str, Value | None] = {"a": 1}
    event = make_event("t", given)
    given["a"] = 2
    assert event.attributes == {"a": 1}


@pytest.mark.parametrize(("publisher", "n"), [("", 0), ("p", 0), ("", 5)])
def test_an_event_has_an_id_only_with_both_publisher_and_number(publisher: str, n: int) -> None:
    assert make_event("t", publisher=publisher, n=n).id is None


def test_ids_of_one_publisher_sort_by_number_and_read_as_publisher_and_number() -> None:
    assert sorted([EventId("p", 10), EventId("p", 9)]) == [EventId("p", 9), EventId("p", 10)]
    assert str(EventId("p", 9)) == "p#9"


def test_an_event_cannot_be_changed() -> None:
    event: Any = Event("t")
    with pytest.raises(AttributeError, match="immutable"):
        event.topic = "u"


class Level(enum.IntEnum):
    HIGH = 3


class Colour(str):
    def __str__(self) -> str:
        return f"the colour {super().__str__()}"


RED = Colour("red")


class Ratio(float):
    pass


class Blob(bytes):
    pass


def test_subclasses_of_the_value_types_become_the_types_themselves() -> None:
    event = make_event("t", {"i": Level.HIGH, "s": RED, "f": Ratio(1.5), "b": Blob(b"x"), RED: True})
    assert [(type(value), value) for value in event.attributes.values()] == [
        (int, 3),
        (str, "red"),
        (float, 1.5),
        (bytes, b"x"),
        (bool, True),
    ]
    assert {type(name) for name in event.attributes} == {str}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "TRUE"),
        (False, "FALSE"),
        (1, "1"),
        (INT_MIN, "-9223372036854775808"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e16, "1e+16"),
        (0.1, "0.1"),
        ("", ""),
        ("TRUE", "TRUE"),
        ("ü 'x'", "ü 'x'"),
    ],
)
def test_the_canonical_text_of_a_value(value: bool | int | float | str, text: str) -> None:
    assert canonical_text(value) == text


@given(values)
def test_every_legal_value_has_no_problem_and_is_exact_already(value: Value) -> None:
    assert value_problem(value) is None
    assert exact_value(value) is value


# --- refused events ---------------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str]] = [
    ({"topic": ""}, "topic: is empty"),
    ({"topic": None}, "topic: must be text, not null"),
    ({"topic": 5}, "topic: must be text, not an int"),
    ({"topic": b"a"}, "topic: must be text, not bytes"),
    ({"topic": ["a"]}, "topic: must be text, not an array"),
    ({"topic": "a/+/b"}, "topic: contains the wildcard '+' at character 3"),
    ({"topic": "/a+"}, "topic: contains the wildcard '+' at character 3"),
    ({"topic": "#"}, "topic: contains the wildcard '#' at character 1"),
    ({"topic": "a#b"}, "topic: contains the wildcard '#' at character 2"),
    ({"topic": "a\0"}, "topic: contains NUL at character 2"),
    ({"topic": "a\ud800b"}, "topic: contains a lone surrogate at character 2"),
    ({"topic": "\udc00"}, "topic: contains a lone surrogate at character 1"),
    ({"attributes": []}, "attributes: must map names to values, not be an array"),
    ({"attributes": "a=1"}, "attributes: must map names to values, not be text"),
    ({"attributes": {"": 1}}, "attributes: a name is empty"),
    ({"attributes": {1: 1}}, "attributes: a name must be text, not an int"),
    ({"attributes": {b"a": 1}}, "attributes: a name must be text, not bytes"),
    ({"attributes": {"a\udfff": 1}}, "attributes.a\\udfff: contains a lone surrogate at character 2"),
    ({"attributes": {"price": float("nan")}}, "attributes.price: is not a finite number (nan)"),
    ({"attributes": {"price": float("inf")}}, "attributes.price: is not a finite number (inf)"),
    ({"attributes": {"price": float("-inf")}}, "attributes.price: is not a finite number (-inf)"),
    ({"attributes": {"qty": 2**63}}, "attributes.qty: is outside the 64-bit range"),
    ({"attributes": {"qty": -(2**63) - 1}}, "attributes.qty: is outside the 64-bit range"),
    ({"attributes": {"qty": 10**5000}}, "attributes.qty: is outside the 64-bit range"),
    ({"attributes": {"a": {}}}, "attributes.a: is an object; nested values are refused"),
    ({"attributes": {"a": [1]}}, "attributes.a: is an array; nested values are refused"),
    ({"attributes": {"a": (1, 2)}}, "attributes.a: is an array; nested values are refused"),
    (
        {"attributes": {"a": {1}}},
        "attributes.a: is a set; a value is a bool, int, float, str or bytes",
    ),
    (
        {"attributes": {"a": 1j}},
        "attributes.a: is a complex; a value is a bool, int, float, str or bytes",
    ),
    (
        {"attributes": {"a": bytearray(b"x")}},
        "attributes.a: is a bytearray; a value is a bool, int, float, str or bytes",
    ),
    ({"attributes": {"a": "x\ud83d"}}, "attributes.a: contains a lone surrogate at character 2"),
    ({"attributes": {"a\nb": []}}, "attributes.a\\nb: is an array; nested values are refused"),
    ({"attributes": {"n" * 100: []}}, f"attributes.{'n' * 59}…: is an array; nested values are refused"),
    ({"attributes": {"ok": 1, "bad": []}}, "attributes.bad: is an array; nested values are refused"),
    ({"payload": "text"}, "payload: must be bytes, not text"),
    ({"payload": None}, "payload: must be bytes, not null"),
    ({"payload": bytearray(b"x")}, "payload: must be bytes, not a bytearray"),
    ({"content_type": 1}, "content_type: must be text, not an int"),
    ({"content_type": None}, "content_type: must be text, not null"),
    ({"content_type": "text/plain\r\nX: y"}, "content_type: must be printable ASCII"),
    ({"content_type": "téxt/plain"}, "content_type: must be printable ASCII"),
    ({"content_type": " text/plain"}, "content_type: must not begin or end with a space"),
    ({"content_type": "\ud800"}, "content_type: contains a lone surrogate at character 1"),
    ({"publisher": 7}, "publisher: must be text, not an int"),
    ({"publisher": "p\ud800"}, "publisher: contains a lone surrogate at character 2"),
    ({"n": -1}, "n: is negative; numbers count from 1"),
    ({"n": 2**63}, "n: is outside the 64-bit range"),
    ({"n": True}, "n: must be an int, not a bool"),
    ({"n": 1.0}, "n: must be an int, not a float"),
    ({"n": "1"}, "n: must be an int, not text"),
    ({"time": 1.5}, "time: must be an int of nanoseconds, not a float"),
    ({"time": "now"}, "time: must be an int of nanoseconds, not text"),
    ({"time": False}, "time: must be an int of nanoseconds, not a bool"),
    ({"time": 2**63}, "time: is outside the 64-bit range of nanoseconds (years 1677 to 2262)"),
    ({"time": -(2**63) - 1}, "time: is outside the 64-bit range of nanoseconds (years 1677 to 2262)"),
]


@pytest.mark.parametrize(("given", "text"), BAD, ids=[text for _, text in BAD])
def test_a_bad_event_is_refused_by_name(given: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        make_event(**{"topic": "t", **given})
    assert str(caught.value) == text
    assert text.startswith(f"{caught.value.field}: ")
    assert caught.value.limit is None
    text.encode()  # an error can always be printed


# --- limits -----------------------------------------------------------------------------------------------------

SMALL = Limits(
    topic_bytes=10,
    topic_levels=3,
    attributes=2,
    attribute_name_bytes=4,
    value_bytes=6,
    attributes_bytes=12,
    payload_bytes=5,
    content_type_bytes=10,
    publisher_bytes=3,
)

#: The limit; what hits it exactly; what is one over; the error.
AT_THE_LIMIT: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("topic_bytes", {"topic": "/" + "x" * 10}, {"topic": "x" * 11}, "topic: has 11 bytes, more than 10"),
    ("topic_bytes", {"topic": "ü" * 5}, {"topic": "ü" * 5 + "x"}, "topic: has 11 bytes, more than 10"),
    ("topic_levels", {"topic": "/a/b/"}, {"topic": "a/b//"}, "topic: has 4 levels, more than 3"),
    (
        "attributes",
        {"attributes": {"a": "", "b": "", "c": None}},
        {"attributes": {"a": "", "b": "", "c": ""}},
        "attributes: are 3, more than 2",
    ),
    (
        "attribute_name_bytes",
        {"attributes": {"abcd": 1}},
        {"attributes": {"abcde": 1}},
        "attributes.abcde: has 5 bytes, more than 4",
    ),
    (
        "attribute_name_bytes",
        {"attributes": {"üü": 1}},
        {"attributes": {"üüx": 1}},
        "attributes.üüx: has 5 bytes, more than 4",
    ),
    (
        "value_bytes",
        {"attributes": {"a": "üüü"}},
        {"attributes": {"a": "üüüx"}},
        "attributes.a: has 7 bytes, more than 6",
    ),
    (
        "value_bytes",
        {"attributes": {"a": b"123456"}},
        {"attributes": {"a": b"1234567"}},
        "attributes.a: has 7 bytes, more than 6",
    ),
    (
        "attributes_bytes",
        {"attributes": {"ab": "cd", "ef": "123456", "g": None}},
        {"attributes": {"ab": "cde", "ef": "123456", "g": None}},
        "attributes: has 13 bytes, more than 12",
    ),
    ("payload_bytes", {"payload": b"12345"}, {"payload": b"123456"}, "payload: has 6 bytes, more than 5"),
    (
        "content_type_bytes",
        {"content_type": "text/plain"},
        {"content_type": "text/plain1"},
        "content_type: has 11 bytes, more than 10",
    ),
    ("publisher_bytes", {"publisher": "üx"}, {"publisher": "üü"}, "publisher: has 4 bytes, more than 3"),
]


@pytest.mark.parametrize(("limit", "exactly", "over", "text"), AT_THE_LIMIT)
def test_a_limit_admits_exactly_itself_and_is_named_one_over(
    limit: str, exactly: dict[str, Any], over: dict[str, Any], text: str
) -> None:
    make_event(**{"topic": "t", "limits": SMALL, **exactly})
    with pytest.raises(InvalidEvent) as caught:
        make_event(**{"topic": "t", "limits": SMALL, **over})
    assert str(caught.value) == f"{text} (limit {limit})"
    assert caught.value.limit == limit


def test_every_limit_is_tested() -> None:
    assert {limit for limit, *_ in AT_THE_LIMIT} == {field.name for field in dataclasses.fields(Limits)}


def test_the_default_limits_admit_exactly_themselves() -> None:
    names = [f"{i:03d}" for i in range(DEFAULT_LIMITS.attributes)]
    event = make_event(
        "/" + "t" * (DEFAULT_LIMITS.topic_bytes - 126) + "/t" * 63,
        dict.fromkeys(names, True),
        bytes(DEFAULT_LIMITS.payload_bytes),
        "c" * DEFAULT_LIMITS.content_type_bytes,
        publisher="p" * DEFAULT_LIMITS.publisher_bytes,
    )
    assert len(event.topic) == DEFAULT_LIMITS.topic_bytes
    make_event("t", {"n" * DEFAULT_LIMITS.attribute_name_bytes: "v" * DEFAULT_LIMITS.value_bytes})
    whole = DEFAULT_LIMITS.attributes_bytes // DEFAULT_LIMITS.value_bytes
    values = {f"{i:02d}": "v" * (DEFAULT_LIMITS.value_bytes - 2) for i in range(whole)}
    make_event("t", values)
    with pytest.raises(InvalidEvent, match=r"^attributes: .* \(limit attributes_bytes\)$"):
        make_event("t", {**values, "x": ""})
    with pytest.raises(InvalidEvent, match=r"^attributes: are 257, more than 256 \(limit attributes\)$"):
        make_event("t", dict.fromkeys([*names, "x"], True))
