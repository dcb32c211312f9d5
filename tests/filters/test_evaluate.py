"""The truth of conditions: tables written out, and laws that hold of every condition and event."""

from __future__ import annotations

import itertools
from fractions import Fraction
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn_filters import NUMBERS, SCALARS, VALUES
from examples import examples
from holdfast.events.event import Event, make_event
from holdfast.events.json_form import event_from_json
from holdfast.events.value import INT_MAX, INT_MIN, Value
from holdfast.filters.evaluate import compile_condition, compile_filter, shard_of
from holdfast.filters.expression import (
    Attribute,
    Between,
    Comparison,
    Condition,
    Filter,
    In,
    Literal,
    Not,
    Relation,
    Scalar,
    conjunction,
    disjunction,
)
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.matching.naive import NaiveIndex
from manual_examples import blocks, lines
from strategies import conditions, events, filters, values

#: Attributes whose bare mention is true, false and unknown (twice: a value of no use, and none).
LOGIC: dict[str, Value] = {"t": True, "f": False, "u": "neither"}
TRUTH = {"t": True, "f": False, "u": None, "absent": None}


def truth(text: str, attributes: dict[str, Value] | None = None) -> bool | None:
    """The truth of a condition for an event with these attributes."""
    return truth_for(condition_of(text), make_event("t", attributes or {}))


def condition_of(text: str) -> Condition:
    condition = parse_filter(f"# WHERE {text}").condition
    assert condition is not None
    return condition


def truth_for(condition: Condition, event: Event) -> bool | None:
    return compile_condition(condition)(Subject(event))


# Three values


def test_not() -> None:
    assert {name: truth(f"NOT {name}", LOGIC) for name in TRUTH} == {
        "t": False,
        "f": True,
        "u": None,
        "absent": None,
    }


AND = """
    t f u
t   t f u
f   f f f
u   u f u
"""
OR = """
    t f u
t   t t t
f   t f u
u   t u u
"""


@pytest.mark.parametrize(("word", "table"), [("AND", AND), ("OR", OR)])
def test_and_and_or(word: str, table: str) -> None:
    head, *rows = (line.split() for line in table.strip("\n").split("\n"))
    for left, *cells in rows:
        for right, cell in zip(head, cells, strict=True):
            assert truth(f"{left} {word} {right}", LOGIC) is TRUTH[cell], f"{left} {word} {right}"


@pytest.mark.parametrize("operands", list(itertools.product(TRUTH, repeat=3)), ids="-".join)
def test_and_and_or_of_three_have_unknown_in_every_place(operands: tuple[str, str, str]) -> None:
    known = [TRUTH[name] for name in operands]
    everything = False if False in known else None if None in known else True
    anything = True if True in known else None if None in known else False
    assert truth(" AND ".join(operands), LOGIC) is everything
    assert truth(" OR ".join(operands), LOGIC) is anything
    assert truth(f"NOT ({' AND '.join(operands)})", LOGIC) is (None if everything is None else not everything)


@pytest.mark.parametrize("pattern", ["#", "t", "+/#"])
def test_a_filter_matches_only_when_it_is_true(pattern: str) -> None:
    subject = Subject(make_event("t", LOGIC))
    matched = {name: compile_filter(parse_filter(f"{pattern} WHERE {name}"))(subject) for name in TRUTH}
    assert matched == {"t": True, "f": False, "u": False, "absent": False}
    assert not compile_filter(parse_filter(f"{pattern} WHERE NOT u"))(subject)
    assert not compile_filter(parse_filter("other WHERE t"))(subject)


@examples(100)
@given(conditions(), conditions(), events())
def test_the_laws_of_three_valued_logic(one: Condition, other: Condition, event: Event) -> None:
    a, b = truth_for(one, event), truth_for(other, event)
    negations: list[Condition] = [Not(one), Not(other)]
    assert truth_for(Not(one), event) is (None if a is None else not a)
    assert truth_for(Not(Not(one)), event) is a
    assert truth_for(Not(conjunction([one, other])), event) is truth_for(disjunction(negations), event)
    assert truth_for(conjunction([one, other]), event) is truth_for(conjunction([other, one]), event)
    assert truth_for(disjunction([one, other]), event) is (
        True if True in (a, b) else None if None in (a, b) else False
    )


@examples(100)
@given(filters(), events())
def test_the_plain_index_matches_what_is_true(filter: Filter, event: Event) -> None:
    index = NaiveIndex()
    index.add(filter)
    true = filter.condition is None or truth_for(filter.condition, event) is True
    wanted = true and filter.pattern.matches(Subject(event).levels)
    assert index.match([event]) == [[0] if wanted else []]


# Comparisons

#: One value of each type, and what none of them is.
TYPED: dict[str, Value] = {"int": 1, "float": 1.0, "str": "1", "bool": True, "bytes": b"1"}
COMPARABLE = {
    ("int", "int"),
    ("int", "float"),
    ("float", "int"),
    ("float", "float"),
    ("str", "str"),
    ("bool", "bool"),
}


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("one", "other"), list(itertools.product([*TYPED, "absent"], repeat=2)))
def test_unlike_types_are_unknown_under_not_too(one: str, other: str, relation: Relation) -> None:
    attributes = {f"a_{name}": value for name, value in TYPED.items()}
    compared = f"a_{one} {relation.value} a_{other}"
    expected = relation.value in ("=", "<=", ">=") if (one, other) in COMPARABLE else None
    assert truth(compared, attributes) is expected
    assert truth(f"NOT {compared}", attributes) is (None if expected is None else not expected)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("literal", ["1", "1.0", "'1'", "TRUE"])
@pytest.mark.parametrize("name", [*TYPED, "absent"])
def test_a_literal_compares_as_an_attribute_of_its_value_does(
    name: str, literal: str, relation: Relation
) -> None:
    """The comparison with a literal is evaluated by a shorter way of its own."""
    attributes = {f"a_{key}": value for key, value in TYPED.items()}
    kind = {"1": "int", "1.0": "float", "'1'": "str", "TRUE": "bool"}[literal]
    expected = truth(f"a_{name} {relation.value} a_{kind}", attributes)
    assert truth(f"a_{name} {relation.value} {literal}", attributes) is expected
    assert truth(f"{literal} {relation.flipped.value} a_{name}", attributes) is expected


@pytest.mark.parametrize(
    "word",
    [
        "x = x",
        "x <> x",
        "x < x",
        "x >= x",
        "x IN ('a', 1, TRUE)",
        "x LIKE '%'",
        "x",
        "SHARD(x, 1) = 0",
        "+x = 2",
    ],
)
def test_bytes_admit_only_is_null(word: str) -> None:
    assert truth(word, {"x": b"a"}) is None
    assert truth(f"NOT ({word})", {"x": b"a"}) is None
    assert truth("x IS NULL", {"x": b"a"}) is False
    assert truth("x IS NOT NULL", {"x": b"a"}) is True


BIG = 2**53


@pytest.mark.parametrize(
    ("left", "relation", "right"),
    [
        (BIG, "=", float(BIG)),
        (BIG + 1, ">", float(BIG)),  # float(BIG + 1) would be equal
        (BIG + 1, "<>", float(BIG)),
        (BIG + 1, "<", float(BIG + 2)),
        (-BIG - 1, "<", -float(BIG)),
        (INT_MAX, "<", float(2**63)),  # float(INT_MAX) is 2**63
        (INT_MAX, "<>", float(2**63)),
        (INT_MAX - 1, "<", INT_MAX),
        (INT_MIN, "=", -float(2**63)),
        (INT_MIN, ">", -1e19),
        (INT_MAX, "<", 1e308),
        (0, "=", -0.0),
        (0.0, "=", -0.0),
        (1, "=", 1.0),
        (1, "<", 1.5),
        (-1, ">", -1.5),
        (0, "<", 5e-324),
        (0.1, ">", 0),
        (False, "<", True),
        ("", "<", "a"),
        ("B", "<", "a"),
        ("a", "<", "aa"),
        ("Z", "<", "ä"),
        ("\ue000", "<", "\U0001f600"),  # by code point; UTF-16 would order them the other way
        ("10", "<", "9"),
    ],
)
def test_numbers_compare_by_exact_value_and_strings_by_code_point(
    left: Value, relation: str, right: Value
) -> None:
    opposite = {r.value: r.negated.value for r in Relation}[relation]
    flipped = {r.value: r.flipped.value for r in Relation}[relation]
    attributes = {"x": left, "y": right}
    assert truth(f"x {relation} y", attributes) is True
    assert truth(f"x {opposite} y", attributes) is False
    assert truth(f"y {flipped} x", attributes) is True
    assert not isinstance(right, bytes)
    assert (
        truth_for(Comparison(Relation(relation), Attribute("x"), Literal(right)), make_event("t", attributes))
        is True
    )


@examples(150)
@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))
def test_exactly_one_of_less_equal_greater_holds_of_two_numbers(one: int | float, other: int | float) -> None:
    held = [r for r in "<=>" if truth(f"x {r} y", {"x": one, "y": other})]
    difference = Fraction(one) - Fraction(other)
    assert held == ["<" if difference < 0 else ">" if difference > 0 else "="]


# BETWEEN, IN, LIKE, IS NULL, a bare attribute


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 BETWEEN 1 AND 5", True),
        ("5 BETWEEN 5 AND 9", True),
        ("5 BETWEEN 6 AND 9", False),
        ("5 BETWEEN 9 AND 1", False),
        ("5 NOT BETWEEN 6 AND 9", True),
        ("5 BETWEEN 1 AND absent", None),
        ("5 BETWEEN 6 AND absent", False),  # false whatever the other end is
        ("5 NOT BETWEEN 6 AND absent", True),
        ("5 BETWEEN absent AND 4", False),
        ("5 BETWEEN absent AND 6", None),
        ("absent BETWEEN 1 AND 2", None),
        ("5 BETWEEN 'a' AND 9", None),
        ("5 BETWEEN 6 AND 'a'", False),
        ("'b' BETWEEN 'a' AND 'c'", True),
        ("5 BETWEEN 4.5 AND 5.5", True),
        ("5 IN (1, 5)", True),
        ("5 IN (5.0)", True),
        ("5 IN (1, 2)", False),
        ("5 NOT IN (1, 2)", True),
        ("5 IN ('5')", None),
        ("5 IN ('5', 5)", True),
        ("5 IN ('5', 6)", None),  # 5 = '5' is unknown, and unknown OR false is unknown
        ("5 NOT IN ('5', 6)", None),
        ("5 NOT IN ('5', 5)", False),
        ("TRUE IN (1)", None),
        ("1 IN (TRUE)", None),
        ("TRUE IN (1, TRUE)", True),
        ("TRUE IN (0, FALSE)", None),
        ("absent IN (1)", None),
        ("absent NOT IN (1)", None),
        ("'a' IN ('a')", True),
        ("'a' IN ('A')", False),
        ("9007199254740993 IN (9007199254740992.0)", False),
        ("0 IN (-0.0)", True),
        ("1 / 0 IN (1)", None),
        ("'abc' LIKE 'a%'", True),
        ("'abc' LIKE 'A%'", False),
        ("'abc' NOT LIKE 'b%'", True),
        ("5 LIKE '5'", None),
        ("5 NOT LIKE '5'", None),
        ("TRUE LIKE '%'", None),
        ("absent LIKE '%'", None),
        ("absent NOT LIKE '%'", None),
        ("absent IS NULL", True),
        ("absent IS NOT NULL", False),
        ("5 IS NULL", False),
        ("'' IS NULL", False),
        ("1 / 0 IS NULL", True),
        ("absent + 1 IS NULL", True),
        ("-'a' IS NULL", True),
        ("9223372036854775807 + 1 IS NULL", True),
        ("NOT absent IS NULL", False),
        ("absent", None),
        ("NOT absent", None),
        ("TRUE", True),
        ("FALSE", False),
        ("NOT FALSE", True),
    ],
)
def test_the_predicates(text: str, expected: bool | None) -> None:
    assert truth(text) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (False, False),
        (1, None),
        (0, None),
        (1.0, None),
        ("TRUE", None),
        ("", None),
        (b"", None),
    ],
)
def test_a_bare_attribute_is_true_or_false_only_if_it_is_a_bool(value: Value, expected: bool | None) -> None:
    assert truth("x", {"x": value}) is expected
    assert truth("NOT x", {"x": value}) is (None if expected is None else not expected)


@examples(100)
@given(values(), st.sampled_from(SCALARS), st.sampled_from(SCALARS))
def test_between_is_two_comparisons_and_in_is_equalities(value: Value, one: Scalar, other: Scalar) -> None:
    event, x, low, high = make_event("t", {"x": value}), Attribute("x"), Literal(one), Literal(other)
    ends: list[Condition] = [Comparison(Relation.GE, x, low), Comparison(Relation.LE, x, high)]
    assert truth_for(Between(x, low, high), event) is truth_for(conjunction(ends), event)
    equal: list[Condition] = [Comparison(Relation.EQ, x, low), Comparison(Relation.EQ, x, high)]
    assert truth_for(In(x, (low, high)), event) is truth_for(disjunction(equal), event)


# Arithmetic


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 / 2 = 3", True),
        ("-7 / 2 = -3", True),
        ("7 / 2.0 = 3.5", True),
        ("1 + 2 * 3 = 7", True),
        ("10 - 2 - 3 = 5", True),
        ("9223372036854775807 + 1 > 0", None),
        ("NOT 9223372036854775807 + 1 > 0", None),
        ("-9223372036854775808 / -1 > 0", None),
        ("-(-9223372036854775808) > 0", None),
        ("9223372036854775807 + 1 - 1 > 0", None),  # once gone, a value does not come back
        ("1e308 * 10 > 0", None),
        ("1 / 0 = 1", None),
        ("1.0 / 0.0 = 1", None),
        ("NOT 1 / 0 = 1", None),
        ("'1' + 1 = 2", None),
        ("TRUE + 1 = 2", None),
        ("+TRUE = TRUE", None),
        ("+'a' = 'a'", None),
        ("absent * 0 = 0", None),
        ("9007199254740992 + 1 = 9007199254740993", True),
        ("9007199254740992 + 1.0 = 9007199254740992", True),
    ],
)
def test_arithmetic_in_a_condition(text: str, expected: bool | None) -> None:
    assert truth(text) is expected


# SHARD


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("IBM", b"IBM"),
        ("", b""),
        ("größe", "größe".encode()),
        ("😀", b"\xf0\x9f\x98\x80"),
        (42, b"42"),
        (-7, b"-7"),
        (INT_MIN, b"-9223372036854775808"),
        (1.0, b"1.0"),
        (0.1, b"0.1"),
        (1e22, b"1e+22"),
        (-0.0, b"-0.0"),
        (True, b"TRUE"),
        (False, b"FALSE"),
    ],
)
def test_a_shard_is_the_crc_32_of_the_canonical_text(value: Value, text: bytes) -> None:
    for count in (1, 2, 3, 16, 65_536):
        shard = crc32(text) % count
        assert shard_of(value, count) == shard
        assert truth(f"SHARD(x, {count}) = {shard}", {"x": value}) is True
        if count > 1:
            assert truth(f"SHARD(x, {count}) = {(shard + 1) % count}", {"x": value}) is False


def test_known_shards() -> None:
    """From the published check value of CRC-32, 0xCBF43926 for '123456789'."""
    assert shard_of("123456789", 2**32) == shard_of(123456789, 2**32) == 0xCBF43926
    assert shard_of("123456789", 10) == 0xCBF43926 % 10 == 2


def test_the_shards_of_what_has_no_text_are_unknown() -> None:
    for value in (None, b"", b"IBM"):
        assert shard_of(value, 4) is None
    for text in (
        "SHARD(absent, 1) = 0",
        "NOT SHARD(absent, 1) = 0",
        "SHARD(raw, 1) = 0",
        "NOT SHARD(raw, 1) = 0",
    ):
        assert truth(text, {"raw": b"IBM"}) is None


@given(st.sampled_from([value for value in VALUES if not isinstance(value, bytes)]), st.integers(1, 9))
def test_every_value_falls_into_exactly_one_shard(value: Value, count: int) -> None:
    assert [truth(f"SHARD(x, {count}) = {i}", {"x": value}) for i in range(count)].count(True) == 1


# XPATH


@pytest.mark.parametrize(
    ("content_type", "payload", "expected"),
    [
        ("application/xml", b"<a><b>1</b></a>", True),
        ("text/xml; charset=utf-8", b"<a><b>1</b></a>", True),
        ("application/atom+xml", b"<a><b>1</b></a>", True),
        ("application/xml", b"<a><b>2</b></a>", False),
        ("application/xml", b"<b>1</b>", False),
        ("application/xml", b"<a><b>1</b>", None),
        ("application/xml", b"", None),
        ("text/plain", b"<a><b>1</b></a>", None),
        ("", b"<a><b>1</b></a>", None),
    ],
)
def test_an_xpath_is_unknown_unless_the_payload_is_xml_and_can_be_read(
    content_type: str, payload: bytes, expected: bool | None
) -> None:
    event = make_event("t", {}, payload, content_type)
    assert truth_for(condition_of("XPATH '/a[b = 1]'"), event) is expected
    assert truth_for(condition_of("NOT XPATH '/a[b = 1]'"), event) is (
        None if expected is None else not expected
    )


# The manual


@pytest.mark.parametrize("line", lines("truth"))
def test_the_truth_is_what_the_manual_says(line: str) -> None:
    text, word = line.rsplit("  ", 1)
    attributes = event_from_json(f'{{"topic": "t", "attributes": {"".join(blocks("json"))}}}').attributes
    assert truth(text, dict(attributes)) is {"true": True, "false": False, "unknown": None}[word.strip()]
