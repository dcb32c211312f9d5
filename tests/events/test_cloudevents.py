from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_event import AT_THE_LIMIT, SMALL, assert_same, events_with_id

from holdfast.errors import InvalidEvent
from holdfast.events.cloudevents import from_binary, from_structured, to_binary, to_structured
from holdfast.events.event import DEFAULT_LIMITS, Event, Limits, make_event
from holdfast.events.value import INT_MAX, Value

MINIMAL = {"specversion": "1.0", "id": "1", "source": "p", "type": "holdfast.event", "subject": "t"}


def through_structured(event: Event, limits: Limits = DEFAULT_LIMITS) -> Event:
    return from_structured(to_structured(event), limits)


def through_binary(event: Event, limits: Limits = DEFAULT_LIMITS) -> Event:
    return from_binary(*to_binary(event), limits)


both_modes = pytest.mark.parametrize("there_and_back", [through_structured, through_binary])


# --- there and back ---------------------------------------------------------------------------------------------


@both_modes
@given(event=events_with_id)
def test_every_legal_event_with_an_id_reads_back_as_itself(
    there_and_back: Callable[[Event], Event], event: Event
) -> None:
    assert_same(there_and_back(event), event)


@given(events_with_id)
def test_one_mode_after_the_other_changes_nothing(event: Event) -> None:
    assert_same(through_binary(through_structured(event)), event)


AWKWARD: list[dict[str, Any]] = [
    {"topic": "a\nb"},
    {"topic": "//\x7f"},
    {"publisher": "holdfast:p"},
    {"publisher": "a b\0ü"},
    {"publisher": "a%20b"},
    {"publisher": "http://[::1]:80/x?y#z"},
    {"n": INT_MAX},
    {"time": -1},
    {"attributes": {"type": "com.example.created"}},
    {"attributes": {"type": "holdfast.event"}},
    {"attributes": {"type": ""}},
    {"attributes": {"type": 5}},
    {"attributes": {"dataschema": "https://example.com/s"}},
    {"attributes": {"dataschema": "no uri"}},
    {"attributes": {"id": "1", "source": "x", "subject": "y", "time": 5, "data": b"", "specversion": True}},
    {"attributes": {"holdfastattributes": "{}", "holdfasttopic": '"x"', "holdfastcontenttype": "x"}},
    {"attributes": {"\x7f": "\x7f", "\ufffe": "\ufffe", "x": "\x80", "y": "\n"}},
    {"attributes": {"flag": True, "i": 1, "j": 2**31, "f": 1.0, "s": "true", "e": "", "b": b"\xff"}},
    {"content_type": "application/cloudevents+json", "payload": b"{}"},
    {"content_type": "application/json", "payload": b'{"a": 1.10, "a": 1e400}'},
    {"content_type": "application/json", "payload": b"null"},
    {"content_type": "application/json", "payload": b"{\n}"},
    {"content_type": "application/json", "payload": b"[" * 5000 + b"]" * 5000},
    {"content_type": "application/json", "payload": b'1,"subject":"u"'},
    {"content_type": "application/json", "payload": b"1}"},
    {"content_type": "application/json", "payload": b""},
    {"content_type": "text/plain", "payload": "ü\u2028".encode()},
    {"content_type": "text/plain; charset=latin1", "payload": "ü".encode()},
    {"payload": b'"text"'},
]


@both_modes
@pytest.mark.parametrize("fields", AWKWARD, ids=repr)
def test_what_cloudevents_cannot_say_by_itself_reads_back_too(
    there_and_back: Callable[[Event], Event], fields: dict[str, Any]
) -> None:
    event = make_event(**{"topic": "t", "publisher": "p", "n": 1, **fields})
    assert_same(there_and_back(event), event)


# --- what is written is CloudEvents -----------------------------------------------------------------------------


def is_string(text: object) -> bool:
    """The rule of the specification, written a second time by other means."""
    return isinstance(text, str) and not any(
        unicodedata.category(c) in ("Cc", "Cs") or 0xFDD0 <= ord(c) <= 0xFDEF or ord(c) & 0xFFFE == 0xFFFE
        for c in text
    )


def assert_conforms(context: dict[str, Any]) -> None:
    for name, value in context.items():
        assert re.fullmatch("[a-z0-9]{1,20}", name)
        assert is_string(value) or (isinstance(value, int) and -(2**31) <= value < 2**31), name
    assert context["specversion"] == "1.0"
    for name in ("id", "source", "type"):
        assert context[name]
    assert re.fullmatch(r"([A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+", context["source"])
    assert context.get("subject") != ""


@pytest.mark.parametrize("fields", AWKWARD, ids=repr)
def test_what_cloudevents_cannot_say_is_still_written_as_cloudevents(fields: dict[str, Any]) -> None:
    event = make_event(**{"topic": "t", "publisher": "p", "n": 1, **fields})
    assert_structured_conforms(to_structured(event))
    assert_binary_conforms(*to_binary(event))


@given(events_with_id)
def test_structured_output_obeys_the_names_and_types_of_cloudevents(event: Event) -> None:
    assert_structured_conforms(to_structured(event))


def assert_structured_conforms(text: bytes) -> None:
    assert text.decode().splitlines() == [text.decode()]
    members = json.loads(text, parse_int=lambda digits: int(digits[:20]))  # Python refuses very long ones
    assert not {"data", "data_base64"} <= members.keys()
    members.pop("data", None)
    members.pop("data_base64", None)
    assert_conforms(members)


@given(events_with_id)
def test_binary_output_obeys_the_names_and_types_of_cloudevents_and_the_rules_of_headers(
    event: Event,
) -> None:
    headers, body = to_binary(event)
    assert body == event.payload
    assert_binary_conforms(headers, body)


def assert_binary_conforms(headers: dict[str, str], body: bytes) -> None:
    assert isinstance(body, bytes)
    for header, value in headers.items():
        assert re.fullmatch("[ -~]*", value)
        if header != "content-type":
            assert re.fullmatch("[!#-~]*", value)
    context = {header.removeprefix("ce-"): unquote(value) for header, value in headers.items()}
    context.pop("content-type", None)
    assert_conforms(context)


def test_the_whole_structured_form() -> None:
    event = make_event(
        "orders/new",
        {"sym": "IBM", "qty": 5, "hot": True, "price": 1.5, "big": 2**40, "raw": b"\x00", "Client": "x"},
        b'{"a": 1.10}',
        "application/json",
        publisher="p 1",
        n=7,
        time=0,
    )
    assert json.loads(to_structured(event)) == {
        "specversion": "1.0",
        "id": "7",
        "source": "holdfast:p%201",
        "type": "holdfast.event",
        "subject": "orders/new",
        "datacontenttype": "application/json",
        "time": "1970-01-01T00:00:00Z",
        "sym": "IBM",
        "qty": 5,
        "hot": True,
        "holdfastattributes": (
            '{"float":{"price":1.5},"int":{"big":1099511627776},"bytes":{"raw":"AA=="},"str":{"Client":"x"}}'
        ),
        "data": {"a": 1.10},
    }


def test_the_whole_binary_form() -> None:
    event = make_event(
        "a b",
        {"sym": 'Euro € 😀 "%"', "hot": True, "qty": -5, "none": "", "type": "com.example.x"},
        b"\xff",
        "image/png",
        publisher="/p",
        n=7,
    )
    assert to_binary(event) == (
        {
            "ce-specversion": "1.0",
            "ce-id": "7",
            "ce-source": "/p",
            "ce-type": "com.example.x",
            "ce-subject": "a%20b",
            "ce-sym": "Euro%20%E2%82%AC%20%F0%9F%98%80%20%22%25%22",
            "ce-hot": "true",
            "ce-qty": "-5",
            "ce-none": "",
            "ce-holdfastattributes": (
                "{'bool':{'hot':true},'int':{'qty':-5},'str':{'none':''}}".replace("'", "%22")
            ),
            "content-type": "image/png",
        },
        b"\xff",
    )


def nested(depth: int) -> list[object]:
    inner: list[object] = []
    for _ in range(depth - 1):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    ("content_type", "payload", "written"),
    [
        ("", b"x", {"data_base64": "eA=="}),
        ("", b"", {}),
        ("text/plain", b"", {}),
        ("text/plain", "ü".encode(), {"data": "ü"}),
        ("text/plain", b"\xff", {"data_base64": "/w=="}),
        ("text/plain; charset=UTF-8", b"x", {"data": "x"}),
        ("text/plain; charset=utf-16", b"x", {"data_base64": "eA=="}),
        ("application/json", b'{"a":[1]}', {"data": {"a": [1]}}),
        ("application/vnd.x+json", b'"x"', {"data": "x"}),
        ("application/json", b"null", {"data": None}),
        ("application/json", b"not json", {"data_base64": "bm90IGpzb24="}),
        ("application/json", b"NaN", {"data_base64": "TmFO"}),
        ("application/json", b"1 ", {"data_base64": "MSA="}),
        ("application/json", b"[\n]", {"data_base64": "Wwpd"}),
        ("application/json", '"\u2028"'.encode(), {"data_base64": "IuKAqCI="}),
        ("application/json", b"[" * 64 + b"]" * 64, {"data": nested(64)}),
        (
            "application/json",
            b"[" * 65 + b"]" * 65,
            {"data_base64": "W1tb" * 21 + "W1td" + "XV1d" * 21 + "XQ=="},
        ),
    ],
)
def test_a_payload_is_written_as_its_content_type_says(
    content_type: str, payload: bytes, written: dict[str, object]
) -> None:
    members = json.loads(to_structured(make_event("t", {}, payload, content_type, publisher="p", n=1)))
    assert {name: members[name] for name in ("data", "data_base64") if name in members} == written


@pytest.mark.parametrize("write", [to_structured, to_binary])
@pytest.mark.parametrize("event", [Event("t"), Event("t", publisher="p"), Event("t", n=1)])
def test_an_event_without_an_id_is_no_cloudevent(write: Callable[[Event], object], event: Event) -> None:
    with pytest.raises(InvalidEvent) as caught:
        write(event)
    assert str(caught.value) == "id: is missing; a CloudEvent needs a publisher and a number"


# --- events of others -------------------------------------------------------------------------------------------

FOREIGN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"type": "com.example.x"}, {"attributes": {"type": "com.example.x"}}),
    ({"dataschema": "https://x/y"}, {"attributes": {"dataschema": "https://x/y"}}),
    ({"source": "https://example.com/a b"}, {"publisher": "https://example.com/a b"}),
    ({"subject": "/a/b"}, {"topic": "a/b"}),
    ({"ext": None, "time": None, "datacontenttype": None, "data_base64": None}, {}),
    ({"ext": "x", "num": 5, "yes": True}, {"attributes": {"ext": "x", "num": 5, "yes": True}}),
    ({"averylongextensionattributename": 1}, {"attributes": {"averylongextensionattributename": 1}}),
    ({"time": "2026-01-31T13:00:00+01:00"}, {"time": 1_769_860_800_000_000_000}),
    ({"data": {"a": 1}}, {"payload": b'{"a": 1}', "content_type": "application/json"}),
    ({"data": None}, {"payload": b"null", "content_type": "application/json"}),
    ({"data": "I'm just a string"}, {"payload": b'"I\'m just a string"', "content_type": "application/json"}),
    ({"data": None, "datacontenttype": "text/plain"}, {"content_type": "text/plain"}),
    (
        {"data": '<much wow="xml"/>', "datacontenttype": "application/xml"},
        {"payload": b'<much wow="xml"/>', "content_type": "application/xml"},
    ),
    ({"data_base64": "AA==", "data": None}, {"payload": b"\0"}),
    ({"data_base64": "e30=", "datacontenttype": "a/json"}, {"payload": b"{}", "content_type": "a/json"}),
    ({"holdfastattributes": '{"bool":{"a":true}}', "a": "true"}, {"attributes": {"a": True}}),
]


@pytest.mark.parametrize(("members", "fields"), FOREIGN, ids=[repr(members) for members, _ in FOREIGN])
def test_a_foreign_structured_event_is_understood(members: dict[str, Any], fields: dict[str, Any]) -> None:
    event = from_structured(json.dumps({**MINIMAL, **members}))
    assert_same(event, Event(**{"topic": "t", "publisher": "p", "n": 1, **fields}))


def test_json_data_is_taken_as_it_was_written() -> None:
    data = '{ "a" : 1.10,\n "b": 123456789012345678901234567890, "c":1e400, "c":"\\ud800 } \\" ," }'
    text = json.dumps(MINIMAL)[:-1] + ' , "ext" : [ ] , "data" :\t' + data + " }"
    with pytest.raises(InvalidEvent, match=r"^ext: is an array; nested values are refused$"):
        from_structured(text)
    event = from_structured(text.replace("[ ]", '",data:"'))
    assert event.payload == data.encode()
    assert event.attributes == {"ext": ",data:"}


def nested_data_outcome(depth: int) -> str:
    data = "[" * depth + "]" * depth
    try:
        event = from_structured(json.dumps(MINIMAL)[:-1] + ',"data":' + data + "}")
    except InvalidEvent as error:
        return str(error)
    return "read" if event.payload == data.encode() else "changed"


def test_data_is_read_as_deep_as_python_reads_and_beyond_that_refused() -> None:
    # Where exactly the one ends and the other begins depends on the stack of the caller: pass over the place.
    outcomes = [nested_data_outcome(depth) for depth in range(500, sys.getrecursionlimit())]
    reads = outcomes.count("read")
    assert 0 < reads < len(outcomes)
    assert set(outcomes[reads:]) == {"json: is nested too deeply"}


def test_a_number_in_data_may_have_any_length() -> None:
    text = json.dumps(MINIMAL)[:-1] + ',"data":' + "7" * 5000 + "}"
    assert from_structured(text).payload == b"7" * 5000


@pytest.mark.parametrize(
    ("header", "attribute"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a%20b", "a b"),
        ("%e2%82%ac", "€"),
        ("%41", "A"),
        ("100%", "100%"),
        ('"a b"', "a b"),
        (r'"say \"hi\" \\ %20"', 'say "hi" \\  '),
        ("  padded\t", "padded"),
        ("true", "true"),
        ("5", "5"),
    ],
)
def test_a_header_is_unquoted_and_percent_decoded_once(header: str, attribute: Value) -> None:
    headers = {f"CE-{name.title()}": value for name, value in MINIMAL.items()}
    event = from_binary({**headers, "Ce-Ext": header, "Host": "x", "Content-Type": " text/plain "}, b"x")
    assert_same(event, Event("t", {"ext": attribute}, b"x", "text/plain", "p", 1))


# --- refused ----------------------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str]] = [
    ({"specversion": None}, "specversion: is missing"),
    ({"specversion": "0.3"}, "specversion: is '0.3', not 1.0"),
    ({"specversion": 1.0}, "specversion: must be text, not a float"),
    ({"id": None}, "id: is missing"),
    ({"id": ""}, "id: is empty"),
    ({"id": 1}, "id: must be text, not an int"),
    ({"id": "0"}, f"id: '0' is not a number from 1 to {INT_MAX}"),
    ({"id": "01"}, f"id: '01' is not a number from 1 to {INT_MAX}"),
    ({"id": "-1"}, f"id: '-1' is not a number from 1 to {INT_MAX}"),
    ({"id": "٣"}, f"id: '٣' is not a number from 1 to {INT_MAX}"),
    ({"id": "A234-1234-1234"}, f"id: 'A234-1234-1234' is not a number from 1 to {INT_MAX}"),
    ({"id": str(2**63)}, f"id: '9223372036854775808' is not a number from 1 to {INT_MAX}"),
    ({"id": "9" * 5000}, f"id: '{'9' * 59}…' is not a number from 1 to {INT_MAX}"),
    ({"source": None}, "source: is missing"),
    ({"source": ""}, "source: is empty"),
    ({"source": "holdfast:"}, "source: names no publisher"),
    ({"source": "holdfast:%ff"}, "source: is percent-encoded, but not UTF-8"),
    ({"source": "p" * 257}, "source: has 257 bytes, more than 256 (limit publisher_bytes)"),
    ({"type": None}, "type: is missing"),
    ({"type": ""}, "type: is empty"),
    ({"type": 5}, "type: must be text, not an int"),
    ({"subject": None}, "subject: is missing"),
    ({"subject": ""}, "subject: is empty"),
    ({"subject": "a/+"}, "subject: contains the wildcard '+' at character 3"),
    ({"subject": "\ud800"}, "subject: contains a lone surrogate at character 1"),
    ({"holdfasttopic": '"x"'}, "holdfasttopic: stands beside subject"),
    ({"subject": None, "holdfasttopic": "5"}, "holdfasttopic: must be a JSON string, not an int"),
    ({"subject": None, "holdfasttopic": "x"}, "holdfasttopic: is not JSON: expecting value, character 10"),
    ({"subject": None, "holdfasttopic": '"#"'}, "subject: contains the wildcard '#' at character 1"),
    ({"datacontenttype": 5}, "datacontenttype: must be text, not an int"),
    ({"datacontenttype": "ü"}, "datacontenttype: must be printable ASCII"),
    ({"dataschema": 5}, "dataschema: must be text, not an int"),
    ({"time": 5}, 'time: must be RFC 3339 text such as "2026-01-31T12:00:00Z", not an int'),
    ({"time": "noon"}, "time: 'noon' is not an RFC 3339 time such as \"2026-01-31T12:00:00.25Z\""),
    ({"data": "x", "data_base64": "eA=="}, "data_base64: stands beside data; give one of them"),
    ({"data_base64": "x"}, "data_base64: is not base64"),
    ({"data": {}, "datacontenttype": "text/plain"}, "data: must be text, not an object"),
    ({"data": "\ud800", "datacontenttype": "a/b"}, "data: contains a lone surrogate at character 1"),
    (
        {"data": "ü", "datacontenttype": "text/plain;charset=latin1"},
        "data: is text in charset latin1, not UTF-8; send data_base64",
    ),
    ({"Ext": 1}, "Ext: cannot be an attribute; a name is lower-case letters and digits"),
    ({"my_ext": 1}, "my_ext: cannot be an attribute; a name is lower-case letters and digits"),
    ({"": 1}, "'': cannot be an attribute; a name is lower-case letters and digits"),
    ({"ext": {}}, "ext: is an object; nested values are refused"),
    ({"ext": 2**63}, "ext: is outside the 64-bit range"),
    ({"ext": "\ud800"}, "ext: contains a lone surrogate at character 1"),
    ({"holdfastattributes": 5}, "holdfastattributes: must be text, not an int"),
    ({"holdfastattributes": "x"}, "holdfastattributes: is not JSON: expecting value, character 1"),
    ({"holdfastattributes": "[]"}, "holdfastattributes: must be an object, not an array"),
    (
        {"holdfastattributes": '{"long":{}}'},
        "holdfastattributes.long: is not a type; expected bool, int, float, str, bytes",
    ),
    ({"holdfastattributes": '{"int":5}'}, "holdfastattributes.int: must be an object, not an int"),
    ({"holdfastattributes": '{"int":{"a":1.0}}'}, "holdfastattributes.int.a: is a float, not of type int"),
    ({"holdfastattributes": '{"int":{"a":true}}'}, "holdfastattributes.int.a: is a bool, not of type int"),
    ({"holdfastattributes": '{"str":{"a":null}}'}, "holdfastattributes.str.a: is null, not of type str"),
    ({"holdfastattributes": '{"bytes":{"a":"x"}}'}, "holdfastattributes.bytes.a: is not base64"),
    ({"holdfastattributes": '{"int":{"a":1,"a":1}}'}, "holdfastattributes.int.a: appears twice"),
    ({"holdfastattributes": '{"int":{"a":1},"str":{"a":""}}'}, "holdfastattributes.str.a: appears twice"),
    ({"holdfastattributes": '{"float":{"a":1e400}}'}, "a: is not a finite number (inf)"),
    ({"holdfastattributes": '{"int":{"a":1}}', "a": "2"}, "a: differs from its value in holdfastattributes"),
]


@pytest.mark.parametrize(("members", "error"), BAD, ids=[error for _, error in BAD])
def test_a_bad_structured_event_is_refused_by_the_name_of_the_attribute(
    members: dict[str, Any], error: str
) -> None:
    with pytest.raises(InvalidEvent) as caught:
        from_structured(json.dumps({**MINIMAL, **members}))
    assert str(caught.value) == error
    error.encode()  # an error can always be printed


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"", "json: is not JSON: expecting value, character 1"),
        (b"[]", "json: must be an object, not an array"),
        (b'{"id":"\xff"}', "json: is not UTF-8: byte 8 is 0xff"),
        (b'{"id":"1","id":"1"}', "id: appears twice"),
        (b'{"data":NaN}', "json: NaN is not JSON; a number must be finite"),
        (b'{"data":' + b"[" * 100_000, "json: is nested too deeply"),
    ],
)
def test_bad_json_is_refused_with_its_place(text: bytes, error: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        from_structured(text)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({"ce-id": ""}, "id: is empty"),
        ({"ce-subject": "%2B"}, "subject: contains the wildcard '+' at character 1"),
        ({"ce-ext": "%C0%A0"}, "ext: is percent-encoded, but not UTF-8"),
        ({"CE-ID": "2"}, "id: appears twice"),
        ({"ce-my_ext": "x"}, "my_ext: cannot be an attribute; a name is lower-case letters and digits"),
        ({"ce-data": "x"}, "data: cannot be an attribute; a name is lower-case letters and digits"),
        (
            {"ce-datacontenttype": "text/plain"},
            "datacontenttype: travels as the header content-type, not as ce-datacontenttype",
        ),
        (
            {"Content-Type": "application/cloudevents+json; charset=utf-8"},
            "datacontenttype: is application/cloudevents+json; charset=utf-8: not binary mode",
        ),
        ({"content-type": "a\tb"}, "datacontenttype: must be printable ASCII"),
        (
            {"ce-hot": "no", "ce-holdfastattributes": '{"bool":{"hot":true}}'.replace('"', "%22")},
            "hot: differs from its value in holdfastattributes",
        ),
    ],
)
def test_a_bad_binary_event_is_refused_by_the_name_of_the_attribute(
    headers: dict[str, str], error: str
) -> None:
    with pytest.raises(InvalidEvent) as caught:
        from_binary({**{f"ce-{name}": value for name, value in MINIMAL.items()}, **headers}, b"")
    assert str(caught.value) == error


#: In the words of CloudEvents.
RENAMED = {"topic": "subject", "payload": "data", "content_type": "datacontenttype", "publisher": "source"}


@both_modes
@pytest.mark.parametrize(("limit", "exactly", "over", "error"), AT_THE_LIMIT)
def test_a_limit_admits_exactly_itself_and_is_named_one_over(
    there_and_back: Callable[[Event, Limits], Event],
    limit: str,
    exactly: dict[str, Any],
    over: dict[str, Any],
    error: str,
) -> None:
    within = make_event(**{"topic": "t", "publisher": "p", "n": 1, **exactly})
    beyond = make_event(**{"topic": "t", "publisher": "p", "n": 1, **over})
    assert_same(there_and_back(within, SMALL), within)
    with pytest.raises(InvalidEvent) as caught:
        there_and_back(beyond, SMALL)
    field, _, problem = error.partition(": ")
    field = RENAMED.get(field, field.removeprefix("attributes."))
    assert str(caught.value) == f"{field}: {problem} (limit {limit})"


any_text = st.text(st.characters(), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | any_text
NAMES = [
    *(*MINIMAL, "data", "data_base64", "datacontenttype", "dataschema", "time", "ext"),
    *("holdfastattributes", "holdfasttopic", "holdfastcontenttype"),
]
names = any_text | st.sampled_from(NAMES)
odd_members = st.dictionaries(
    names, scalars | st.lists(scalars, max_size=2) | st.dictionaries(any_text, scalars)
)


@given(odd_members.map(lambda members: json.dumps({**MINIMAL, **members})) | any_text | st.binary())
@example(json.dumps(MINIMAL)[:-1] + ',"data":' + "[" * 985 + "]" * 985 + "}")
@example(json.dumps(MINIMAL)[:-1] + ',"x":' + "9" * 5000 + "}")
def test_reading_structured_mode_raises_nothing_but_invalid_event(text: str | bytes) -> None:
    try:
        event = from_structured(text)
    except InvalidEvent as error:
        str(error).encode()
    else:
        assert_same(through_structured(event), event)


@given(
    st.dictionaries(names.map("ce-{}".format) | names | st.just("content-type"), any_text),
    st.binary(max_size=5),
)
def test_reading_binary_mode_raises_nothing_but_invalid_event(headers: dict[str, str], body: bytes) -> None:
    try:
        event = from_binary({**{f"ce-{name}": value for name, value in MINIMAL.items()}, **headers}, body)
    except InvalidEvent as error:
        str(error).encode()
    else:
        assert_same(through_binary(event), event)
