"""The trace: written, read, merged, told apart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.value import Value
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.trace import TraceError, digest, encode_line, merge, read_trace, run_fields
from holdfast.scenarios.trace_fields import FIELDS
from scenario_traces import good_run
from strategies import values

PUBLISH = {"publisher": "p", "n": 1, "topic": "a", "attributes": {"x": 1}}


def test_keys_stand_in_the_order_of_the_table() -> None:
    shuffled = {name: PUBLISH[name] for name in ("attributes", "topic", "n", "publisher")}
    assert encode_line(1.5, 3, "p", "publish", shuffled) == (
        b'{"t":1.5,"i":3,"node":"p","kind":"publish","publisher":"p","n":1,"topic":"a","attributes":{"x":1}}\n'
    )
    assert encode_line(2, 1, "m", "end", {"drained": True}).startswith(b'{"t":2.0,')


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values(), max_size=4),
    st.floats(0, 1e6),
)
def test_lines_read_back_with_the_types_of_their_values(attributes: dict[str, Value], t: float) -> None:
    written = encode_line(t, 1, "p", "publish", {**PUBLISH, "attributes": attributes})
    json.loads(written)
    (line,) = read_trace([written])
    assert repr(line["attributes"]) == repr(attributes)
    assert line["t"] == t
    fields = {name: line[name] for name in PUBLISH}
    assert encode_line(line["t"], line["i"], line["node"], line["kind"], fields) == written


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("pubilsh", PUBLISH),
        ("publish", {name: PUBLISH[name] for name in ("publisher", "n", "topic")}),
        ("publish", {**PUBLISH, "payload": "x"}),
        ("publish", {**PUBLISH, "attributes": {"x": float("nan")}}),
    ],
)
def test_a_writer_with_a_wrong_kind_or_wrong_fields_fails(kind: str, fields: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        encode_line(0, 1, "p", kind, fields)


GOOD = '{"t":1.5,"i":3,"node":"p","kind":"publish","publisher":"p","n":1,"topic":"a","attributes":{"x":1}}'


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (GOOD[:-1], "not JSON"),
        ("[]", "not an object"),
        ('{"a":' * 10_000, "not JSON"),
        (GOOD.replace('"kind":"publish",', ""), "kind is None; expected one of run, publish, accepted"),
        (GOOD.replace('"publish"', '"pubilsh"'), "kind is pubilsh"),
        (GOOD.replace('"publish"', "[1]"), "kind is [1]"),
        (GOOD.replace('"n":1,', ""), "publish has no n; expected a whole number"),
        (GOOD.replace('"n":1,', '"n":1.5,'), "n of publish will not do; expected a whole number"),
        (GOOD.replace('"n":1,', '"n":true,'), "n of publish will not do"),
        (GOOD.replace('"n":1,', f'"n":{"9" * 400},'), "n of publish will not do"),
        (GOOD.replace('"t":1.5', f'"t":{"9" * 400}'), "t of publish will not do; expected seconds"),
        (GOOD.replace('"i":3', '"i":0'), "i of publish will not do; expected a whole number from 1"),
        (GOOD.replace('"node":"p"', '"node":null'), "node of publish will not do; expected text"),
        (GOOD.replace('{"x":1}', '{"x":[1]}'), "attributes of publish will not do"),
        (GOOD.replace('{"x":1}', '{"x":{"base64":"!"}}'), "attributes of publish will not do"),
        (
            GOOD.replace('{"x":1}', "null"),
            "attributes of publish will not do; expected an object of attributes",
        ),
        (GOOD.replace('{"x":1}', '{"x":1},"more":2'), "publish has a field more; expected t, i, node, kind"),
        (b'{"t":"\xff"}', "not JSON"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(wrong: str | bytes, says: str) -> None:
    with pytest.raises(TraceError) as refused:
        read_trace([GOOD, "\n", wrong], "run.jsonl")
    assert str(refused.value).startswith("run.jsonl, line 3: ")
    assert says in str(refused.value)


def test_merging_gives_back_one_order_whoever_is_read_first() -> None:
    whole = good_run().trace()
    nodes = sorted({line["node"] for line in whole})
    parts = [[line for line in whole if line["node"] == node] for node in nodes]
    assert merge(parts) == merge(reversed(parts)) == whole
    assert [whole[0]["kind"], whole[-1]["kind"]] == ["run", "end"]
    between = [(line["t"], line["node"], line["i"]) for line in whole[1:-1]]
    assert between == sorted(between)


def test_equal_traces_have_equal_digests_and_others_have_not() -> None:
    whole = good_run().trace()
    assert digest(whole) == digest(good_run().trace())
    for i, line in enumerate(whole):
        changed = [*whole[:i], {**line, "t": line["t"] + 1}, *whole[i + 1 :]]
        assert digest(changed) != digest(whole)
    assert digest(whole[:-1]) != digest(whole)


def test_the_first_line_says_what_was_run() -> None:
    configuration = parse_configuration("Site a Parent none\nProcess b is broker On a URL tcp://h:0/\nSeed 7")
    fields = run_fields(configuration, "simulator")
    (line,) = read_trace([encode_line(0, 1, "master", "run", fields)])
    assert {name: line[name] for name in FIELDS["run"]} == {
        "guarantee": "best-effort",
        "order": "FIFO",
        "delta": 0,
        "routing": "filter",
        "seed": 7,
        "world": "simulator",
        "tree": {"b": None},
    }


def test_the_table_is_that_of_the_contract() -> None:
    assert set(FIELDS) == {
        *("run", "publish", "accepted", "subscribe", "subscribed", "unsubscribe", "unsubscribed", "upgraded"),
        *("deliver", "silence", "gap", "forward", "status", "end"),
        *("crash", "restart", "freeze", "unfreeze", "cut", "heal", "disconnect", "reconnect", "bypass"),
        *("recovered", "failover", "join", "leave"),
    }
    assert list(FIELDS["deliver"]) == [
        *("subscriber", "subscription", "publisher", "n", "topic", "pubend", "tick", "tags")
    ]
    assert list(FIELDS["gap"]) == ["subscriber", "subscription", "pubend", "after", "upto", "reason"]
