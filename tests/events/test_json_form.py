from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_event import AT_THE_LIMIT, SMALL, assert_same, events

from holdfast.errors import InvalidEvent
from holdfast.events.event import Event, make_event
from holdfast.events.json_form import event_from_json, event_to_json
from holdfast.events.timestamp import time_from_text, time_to_text
from holdfast.events.value import INT_MAX, INT_MIN, Value

# --- there and back ---------------------------------------------------------------------------------------------


@given(events)
def test_every_legal_event_reads_back_as_itself(event: Event) -> None:
    assert_same(event_from_json(event_to_json(event)), event)
    assert_same(event_from_json(event_to_json(event).encode()), event)


@given(events)
def test_every_legal_event_is_one_line_of_json_to_anybody(event: Event) -> None:
    line = event_to_json(event)
    assert line.splitlines() == [line]
    assert json.loads(line)["topic"] == event.topic


@given(events)
def test_exactly_one_of_payload_and_payload_base64_is_written(event: Event) -> None:
    members = json.loads(event_to_json(event))
    assert ("payload" in members) != ("payload_base64" in members)


def test_the_whole_form() -> None:
    event = make_event(
        "orders/new",
        {"price": 1.0, "qty": 1, "sym": "IBM", "hot": True, "raw": b"\x00\xff"},
        b"<a/>",
        "application/xml",
        publisher="p1",
        n=7,
        time=1_769_860_800_250_000_000,
    )
    assert event_to_json(event) == (
        '{"topic":"orders/new","attributes":{"price":1.0,"qty":1,"sym":"IBM","hot":true},'
        '"attributes_base64":{"raw":"AP8="},"payload":"<a/>","content_type":"application/xml",'
        '"publisher":"p1","n":7,"time":"2026-01-31T12:00:00.250Z"}'
    )


def test_the_least_form() -> None:
    assert event_to_json(make_event("t")) == '{"topic":"t","attributes":{},"payload":""}'


# --- reading ----------------------------------------------------------------------------------------------------

GOOD: list[tuple[str, Event]] = [
    ('{"topic":"t"}', Event("t")),
    (' { "topic" : "/t" }\r\n', Event("t")),
    ('\ufeff{"topic":"t"}', Event("t")),
    ('{"topic":"t","attributes":null,"payload":null,"content_type":null,"publisher":null}', Event("t")),
    ('{"topic":"t","attributes_base64":null,"payload_base64":null,"n":null,"time":null}', Event("t")),
    ('{"topic":"t","attributes":{"a":null,"b":1}}', Event("t", {"b": 1})),
    ('{"topic":"t","attributes":{"a":null},"attributes_base64":{"a":"eA=="}}', Event("t", {"a": b"x"})),
    ('{"topic":"t","attributes":{"a":1},"attributes_base64":{"a":null}}', Event("t", {"a": 1})),
    ('{"topic":"t","payload":"ü","payload_base64":null}', Event("t", {}, "ü".encode())),
    ('{"topic":"t","payload":null,"payload_base64":"//8="}', Event("t", {}, b"\xff\xff")),
    ('{"topic":"t","payload":"","content_type":""}', Event("t")),
    ('{"topic":"t","n":5}', Event("t", n=5)),
    ('{"topic":"t","publisher":"p"}', Event("t", publisher="p")),
    ('{"topic":"\\ud83d\\ude00"}', Event("😀")),
    (
        '{"topic":"t","kind":"event","stream":"s","pubend":"p","incarnation":1,"after":0,"tick":1}',
        Event("t"),
    ),
    (
        '{"accepted":"x","tags":["a"],"reason":null,"subscription":"s","subscriber":"x","topic":"t"}',
        Event("t"),
    ),
]


@pytest.mark.parametrize(("text", "event"), GOOD)
def test_null_is_absent_and_members_of_other_output_are_passed_over(text: str, event: Event) -> None:
    assert_same(event_from_json(text), event)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("1", 1),
        ("-0", 0),
        ("1.0", 1.0),
        ("1e2", 100.0),
        ("-0.0", -0.0),
        ("1E-400", 0.0),
        ("9223372036854775807", INT_MAX),
        ("-9223372036854775808", INT_MIN),
        ("9223372036854775808.0", 2.0**63),
        ("true", True),
        ('"1"', "1"),
        ('""', ""),
    ],
)
def test_the_spelling_of_a_number_says_its_type(literal: str, value: Value) -> None:
    event = event_from_json('{"topic":"t","attributes":{"a":' + literal + "}}")
    assert repr(event.attributes["a"]) == repr(value)


BAD: list[tuple[str | bytes, str]] = [
    ("", "json: is not JSON: expecting value, character 1"),
    ("{", "json: is not JSON: expecting property name enclosed in double quotes, character 2"),
    ("not json", "json: is not JSON: expecting value, character 1"),
    ('{"topic":"t"} x', "json: is not JSON: extra data, character 15"),
    ('{"topic":"t"', "json: is not JSON: expecting ',' delimiter, character 13"),
    ('{"topic":"t}', "json: is not JSON: unterminated string starting, character 10"),
    ('{"topic":"a\tb"}', "json: is not JSON: invalid control character, character 12"),
    ('{"topic":"\\x"}', "json: is not JSON: invalid \\escape, character 11"),
    ('{"topic":"t","n":01}', "json: is not JSON: expecting ',' delimiter, character 19"),
    (b'{"topic":"\xff"}', "json: is not UTF-8: byte 11 is 0xff"),
    (b'{"topic":"\xed\xa0\x80"}', "json: is not UTF-8: byte 11 is 0xed"),
    ("[]", "json: must be an object, not an array"),
    ('"t"', "json: must be an object, not text"),
    ("null", "json: must be an object, not null"),
    ("[" * 100_000, "json: is nested too deeply"),
    ('{"a":' * 100_000, "json: is nested too deeply"),
    ('{"topic":"t","tags":' + "[" * 100_000, "json: is nested too deeply"),
    ('{"topic":"t","attributes":{"a":NaN}}', "json: NaN is not JSON; a number must be finite"),
    ('{"topic":"t","attributes":{"a":-Infinity}}', "json: -Infinity is not JSON; a number must be finite"),
    ('{"topic":"t","tick":Infinity}', "json: Infinity is not JSON; a number must be finite"),
    ("{}", "topic: is missing"),
    ('{"topic":null}', "topic: is missing"),
    ('{"topic":""}', "topic: is empty"),
    ('{"topic":1}', "topic: must be text, not an int"),
    ('{"topic":"a","topic":"b"}', "topic: appears twice"),
    ('{"topic":"a/#"}', "topic: contains the wildcard '#' at character 3"),
    ('{"topic":"\\u0000"}', "topic: contains NUL at character 1"),
    ('{"topic":"\\ud800"}', "topic: contains a lone surrogate at character 1"),
    ('{"topik":"a"}', "topik: is not a member of an event; did you mean 'topic'?"),
    ('{"topic":"a","Payload":"x"}', "Payload: is not a member of an event; did you mean 'payload'?"),
    (
        '{"topic":"a","contentType":"x"}',
        "contentType: is not a member of an event; did you mean 'content_type'?",
    ),
    ('{"topic":"a","price":1}', "price: is not a member of an event; its attributes stand in 'attributes'"),
    (
        '{"topic":"a","\\ud800\\n":1}',
        "\\ud800\\n: is not a member of an event; its attributes stand in 'attributes'",
    ),
    ('{"topic":"t","attributes":[]}', "attributes: must be an object, not an array"),
    ('{"topic":"t","attributes":{"a":1,"b":2,"a":1}}', "attributes.a: appears twice"),
    ('{"topic":"t","attributes":{"a":null,"a":1}}', "attributes.a: appears twice"),
    ('{"topic":"t","attributes":{"":1}}', "attributes: a name is empty"),
    ('{"topic":"t","attributes":{"a":{}}}', "attributes.a: is an object; nested values are refused"),
    ('{"topic":"t","attributes":{"a":[1]}}', "attributes.a: is an array; nested values are refused"),
    ('{"topic":"t","attributes":{"a":1e400}}', "attributes.a: is not a finite number (inf)"),
    ('{"topic":"t","attributes":{"a":-1e400}}', "attributes.a: is not a finite number (-inf)"),
    ('{"topic":"t","attributes":{"a":9223372036854775808}}', "attributes.a: is outside the 64-bit range"),
    ('{"topic":"t","attributes":{"a":-9223372036854775809}}', "attributes.a: is outside the 64-bit range"),
    ('{"topic":"t","attributes":{"a":' + "9" * 5000 + "}}", "attributes.a: is outside the 64-bit range"),
    ('{"topic":"t","attributes":{"a":-' + "9" * 5000 + "}}", "attributes.a: is outside the 64-bit range"),
    ('{"topic":"t","attributes":{"a":"\\udc00"}}', "attributes.a: contains a lone surrogate at character 1"),
    (
        '{"topic":"t","attributes":{"\\udc00":1}}',
        "attributes.\\udc00: contains a lone surrogate at character 1",
    ),
    ('{"topic":"t","attributes_base64":"x"}', "attributes_base64: must be an object, not text"),
    ('{"topic":"t","attributes_base64":{"a":"*"}}', "attributes_base64.a: is not base64"),
    ('{"topic":"t","attributes_base64":{"a":"eA"}}', "attributes_base64.a: is not base64"),
    ('{"topic":"t","attributes_base64":{"a":"ü"}}', "attributes_base64.a: is not base64"),
    ('{"topic":"t","attributes_base64":{"a":1}}', "attributes_base64.a: must be base64 text, not an int"),
    ('{"topic":"t","attributes_base64":{"a":"","a":""}}', "attributes_base64.a: appears twice"),
    (
        '{"topic":"t","attributes":{"a":1},"attributes_base64":{"a":"eA=="}}',
        "attributes_base64.a: is also among the attributes",
    ),
    ('{"topic":"t","payload":{"a":1}}', "payload: must be text, not an object"),
    ('{"topic":"t","payload":"\\udfff"}', "payload: contains a lone surrogate at character 1"),
    (
        '{"topic":"t","payload":"","payload_base64":""}',
        "payload_base64: stands beside payload; give one of them",
    ),
    ('{"topic":"t","payload_base64":"e A=="}', "payload_base64: is not base64"),
    ('{"topic":"t","payload_base64":5}', "payload_base64: must be base64 text, not an int"),
    ('{"topic":"t","content_type":5}', "content_type: must be text, not an int"),
    ('{"topic":"t","content_type":"a\\nb"}', "content_type: must be printable ASCII"),
    ('{"topic":"t","publisher":[]}', "publisher: must be text, not an array"),
    ('{"topic":"t","publisher":"p","n":0}', "n: is 0; numbers count from 1"),
    ('{"topic":"t","n":-1}', "n: is negative; numbers count from 1"),
    ('{"topic":"t","n":true}', "n: must be an int, not a bool"),
    ('{"topic":"t","n":1.0}', "n: must be an int, not a float"),
    ('{"topic":"t","n":"1"}', "n: must be an int, not text"),
    ('{"topic":"t","n":9223372036854775808}', "n: is outside the 64-bit range"),
    (
        '{"topic":"t","time":1700000000}',
        'time: must be RFC 3339 text such as "2026-01-31T12:00:00Z", not an int',
    ),
    (
        '{"topic":"t","time":"yesterday"}',
        "time: 'yesterday' is not an RFC 3339 time such as \"2026-01-31T12:00:00.25Z\"",
    ),
    (
        '{"topic":"t","time":"2263-01-01T00:00:00Z"}',
        "time: is outside the 64-bit range of nanoseconds (years 1677 to 2262)",
    ),
]


@pytest.mark.parametrize(("text", "error"), BAD, ids=[error for _, error in BAD])
def test_a_bad_line_is_refused_by_name(text: str | bytes, error: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        event_from_json(text)
    assert str(caught.value) == error
    assert error.startswith(f"{caught.value.field}: ")
    error.encode()  # an error can always be printed


@pytest.mark.parametrize(("limit", "exactly", "over", "error"), AT_THE_LIMIT)
def test_a_limit_admits_exactly_itself_and_is_named_one_over(
    limit: str, exactly: dict[str, object], over: dict[str, object], error: str
) -> None:
    event_from_json(_line(exactly), SMALL)
    with pytest.raises(InvalidEvent) as caught:
        event_from_json(_line(over), SMALL)
    assert str(caught.value) == f"{error} (limit {limit})"


def _line(members: dict[str, object]) -> str:
    """The members of a table of arguments for ``make_event``, written by hand rather than by the code under test."""
    written: dict[str, object] = {"topic": "t", **members}
    if isinstance(payload := written.get("payload"), bytes):
        written["payload"] = payload.decode()
    if isinstance(attributes := written.get("attributes"), dict):
        for name in [name for name, value in attributes.items() if isinstance(value, bytes)]:
            written["attributes"] = {}
            written["attributes_base64"] = {name: {6: "MTIzNDU2", 7: "MTIzNDU2Nw=="}[len(attributes[name])]}
    return json.dumps(written)


any_character = st.characters()  # surrogates included, as st.text() does not
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(any_character),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(any_character), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = [
    *("topic", "attributes", "attributes_base64", "payload", "payload_base64", "content_type"),
    *("publisher", "n", "time", "tags"),
]
member_names = st.sampled_from(MEMBERS) | st.text(any_character, max_size=12)


@given(
    st.text(any_character)
    | st.binary()
    | json_values.map(json.dumps)
    | st.dictionaries(member_names, json_values).map(lambda members: json.dumps({"topic": "t", **members}))
)
@example('{"topic":"t","n":' + "1" * 5000 + "}")
@example('{"topic":"t","tags":' + "[" * 990 + "]" * 990 + "}")
def test_nothing_but_invalid_event_is_ever_raised(text: str | bytes) -> None:
    try:
        event = event_from_json(text)
    except InvalidEvent as error:
        str(error).encode()
    else:
        assert_same(event_from_json(event_to_json(event)), event)


# --- times ------------------------------------------------------------------------------------------------------


@given(st.integers(INT_MIN, INT_MAX))
def test_every_time_reads_back_as_itself(time: int) -> None:
    assert time_from_text("time", time_to_text(time)) == time


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2026-01-31T12:00:00.250Z", 1_769_860_800_250_000_000),
        ("2026-01-31T12:00:00.000001Z", 1_769_860_800_000_001_000),
        ("1677-09-21T00:12:43.145224192Z", INT_MIN),
        ("2262-04-11T23:47:16.854775807Z", INT_MAX),
    ],
)
def test_times_are_written_in_utc_with_groups_of_three_decimals(text: str, time: int) -> None:
    assert time_to_text(time) == text
    assert time_from_text("time", text) == time


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-01-31T13:00:00+01:00", "2026-01-31T12:00:00Z"),
        ("2026-01-31T06:30:00-05:30", "2026-01-31T12:00:00Z"),
        ("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z"),
        ("2026-01-31t12:00:00.5z", "2026-01-31T12:00:00.500Z"),
        ("2026-01-31T12:00:00-00:00", "2026-01-31T12:00:00Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
    ],
)
def test_an_offset_names_the_same_time(text: str, same: str) -> None:
    assert time_to_text(time_from_text("time", text)) == same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00Z",
        "2026-1-31T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2025-02-29T12:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z",
        "2016-12-31T23:59:60Z",
        "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00+01:60",
        "2026-01-31T12:00:00+0100",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00.0000000001Z",
        "2026-01-31T12:00:00Z\n",
        "２026-01-31T12:00:00Z",
        "1769860800",
    ],
)
def test_what_is_not_rfc_3339_to_the_nanosecond_is_refused(text: str) -> None:
    with pytest.raises(InvalidEvent, match=r"^time: '.*' is not an RFC 3339 time such as "):
        time_from_text("time", text)
