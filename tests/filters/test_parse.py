"""The trees that texts become, and that every text becomes a tree or a ``FilterError``, in bounded time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counted_calls import work_of
from drawn_filters import Parts, a_filter
from examples import examples
from holdfast.errors import FilterError
from holdfast.events.event import make_event
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Relation,
    Shard,
    Signed,
    Truth,
    XPath,
)
from holdfast.filters.lexer import KEYWORDS
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.filters.xpath import parse_xpath
from strategies import drawn

# What is accepted, as trees

a, b, c = Attribute("a"), Attribute("b"), Attribute("c")
ONE, TWO = Literal(1), Literal(2)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a", Truth(a)),
        ("TRUE", Truth(Literal(True))),
        ("a = 1", Comparison(Relation.EQ, a, ONE)),
        ("1 <> a", Comparison(Relation.NE, ONE, a)),
        ("a<b", Comparison(Relation.LT, a, b)),
        ("a <= 'x'", Comparison(Relation.LE, a, Literal("x"))),
        ("a > 1.0", Comparison(Relation.GT, a, Literal(1.0))),
        ("a >= FALSE", Comparison(Relation.GE, a, Literal(False))),
        ("a BETWEEN 1 AND 2", Between(a, ONE, TWO)),
        ("a NOT BETWEEN b AND c", Not(Between(a, b, c))),
        ("a IN (1, 'x', TRUE, -1)", In(a, (ONE, Literal("x"), Literal(True), Literal(-1)))),
        ("a NOT IN ((1))", Not(In(a, (ONE,)))),
        ("a LIKE '%'", Like(a, "%", None)),
        ("a NOT LIKE 'it''s!%' ESCAPE '!'", Not(Like(a, "it's!%", "!"))),
        ("a IS NULL", IsNull(a)),
        ("a IS NOT NULL", Not(IsNull(a))),
        ("a + 1 IS NULL", IsNull(Arithmetic(Operator.ADD, a, ONE))),
        ("XPATH '/a[b = ''x'']'", XPath(parse_xpath("/a[b = 'x']"))),
        ("SHARD(a, 4) = 3", Shard(a, 4, 3)),
        ("NOT NOT a", Not(Not(Truth(a)))),
        ("NOT a = 1", Not(Comparison(Relation.EQ, a, ONE))),
        ("NOT a AND b", And((Not(Truth(a)), Truth(b)))),
        ("a OR b AND c", Or((Truth(a), And((Truth(b), Truth(c)))))),
        ("(a OR b) AND c", And((Or((Truth(a), Truth(b))), Truth(c)))),
        ("a AND (b AND c)", And((Truth(a), Truth(b), Truth(c)))),
        ("(a OR b) OR c", Or((Truth(a), Truth(b), Truth(c)))),
        ("a BETWEEN 1 AND 2 AND b", And((Between(a, ONE, TWO), Truth(b)))),
        ('"it""s" = $x_1', Comparison(Relation.EQ, Attribute('it"s'), Attribute("$x_1"))),
    ],
)
def test_a_condition_becomes_the_tree_that_precedence_demands(text: str, condition: Condition) -> None:
    assert parse_filter(f"# WHERE {text}").condition == condition


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("b + 1 * 2", Arithmetic(Operator.ADD, b, Arithmetic(Operator.MULTIPLY, ONE, TWO))),
        ("b - 1 - 2", Arithmetic(Operator.SUBTRACT, Arithmetic(Operator.SUBTRACT, b, ONE), TWO)),
        ("b - (1 - 2)", Arithmetic(Operator.SUBTRACT, b, Arithmetic(Operator.SUBTRACT, ONE, TWO))),
        ("b / 1 * 2", Arithmetic(Operator.MULTIPLY, Arithmetic(Operator.DIVIDE, b, ONE), TWO)),
        ("(b + 1) * 2", Arithmetic(Operator.MULTIPLY, Arithmetic(Operator.ADD, b, ONE), TWO)),
        ("-b * 2", Arithmetic(Operator.MULTIPLY, Signed(True, b), TWO)),
        ("1--2", Arithmetic(Operator.SUBTRACT, ONE, Literal(-2))),
        ("--b", Signed(True, Signed(True, b))),
        ("+'x'", Signed(False, Literal("x"))),
        ("-TRUE", Signed(True, Literal(True))),
        ("-(-9223372036854775808)", Signed(True, Literal(-(2**63)))),
    ],
)
def test_an_expression_becomes_the_tree_that_precedence_demands(text: str, expression: Expression) -> None:
    assert parse_filter(f"# WHERE a = {text}").condition == Comparison(Relation.EQ, a, expression)
    assert parse_filter(f"# WHERE {text} < a").condition == Comparison(Relation.LT, expression, a)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("- 0009223372036854775808", -(2**63)),
        ("+5", 5),
        ("--5", 5),
        ("-(-(5))", 5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-0.0", -0.0),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        ("1e+308", 1e308),
        ("1e-999", 0.0),
        ("0.1", 0.1),
        ("''", ""),
        ("'it''s'", "it's"),
        ("'\n--;\"'", '\n--;"'),
        ("true", True),
        ("False", False),
    ],
)
def test_literals_keep_their_type(text: str, value: bool | int | float | str) -> None:
    condition = parse_filter(f"# WHERE a = {text}").condition
    assert condition == Comparison(Relation.EQ, a, Literal(value))


@pytest.mark.parametrize("keyword", sorted(KEYWORDS))
def test_every_keyword_is_reserved_in_any_case_and_a_name_in_quotes(keyword: str) -> None:
    for spelling in (keyword, keyword.lower(), keyword.capitalize()):
        with pytest.raises(FilterError):
            parse_filter(f"# WHERE SHARD({spelling}, 2) = 0")
        assert parse_filter(f'# WHERE "{spelling}" = 1').condition == Comparison(
            Relation.EQ, Attribute(spelling), ONE
        )
        assert parse_filter(f"{spelling}") == parse_filter(f"/{spelling}")  # as a topic it is not


# Nothing but FilterError, in bounded time

SYMBOLS = "+-*/=<>(),.;'\"%_#@[]\\!&|:$~^` \n\xa0\0\ud800"
WORDS = [
    "<=",
    "--",
    "/*",
    "a",
    "'a'",
    "''",
    '"a"',
    "1",
    "1.5",
    "1e9",
    "9" * 20,
    "//a",
    "[b",
    "text()",
    "p:",
    "ä",
]
PIECES = [*sorted(KEYWORDS), *SYMBOLS, *WORDS]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The text of a filter after a few accidents."""
    text = str(draw(drawn(lambda source: a_filter(source, Parts(depth=2, width=2)))))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 6)))
        piece = draw(st.sampled_from([*PIECES, text[start:end] * 2, text[-4:]]))
        text = text[:start] + piece + text[end:]
    return text


def check_outcome(text: str) -> None:
    """Parse; an error must be one that can be shown."""
    refused: FilterError | None = None
    try:
        filter = parse_filter(text)
    except FilterError as error:
        refused = error
    if refused is None:
        assert parse_filter(str(filter)) == filter
        return
    assert 0 <= refused.offset <= len(text)
    assert text.split("\n")[refused.line - 1][: refused.column - 1] == text[: refused.offset].split("\n")[-1]
    assert len(str(refused)) < 300
    assert str(refused).isprintable()
    excerpt, caret = refused.pointed().split("\n")
    assert excerpt.isprintable()
    assert len(excerpt) <= 72
    assert caret.strip() == "^"


@examples(150)
@given(st.text())
def test_no_text_raises_anything_but_a_filter_error(text: str) -> None:
    check_outcome(text)
    check_outcome(f"# WHERE {text}")
    check_outcome(f"# WHERE XPATH '{text}'")


@examples(150)
@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_no_heap_of_tokens_raises_anything_but_a_filter_error(pieces: list[str]) -> None:
    check_outcome("# WHERE " + "".join(pieces))
    check_outcome("# WHERE " + " ".join(pieces))


@examples(150)
@given(mutated())
def test_no_damaged_filter_raises_anything_but_a_filter_error(text: str) -> None:
    check_outcome(text)


#: Texts of any length that look as if they could take long.
HOSTILE: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "# WHERE " + "(" * n,
    "not": lambda n: "# WHERE " + "NOT " * (n // 4),
    "signs": lambda n: "# WHERE a = " + "-" * n,
    "sums": lambda n: "# WHERE a = " + "a+" * (n // 2) + "a",
    "ands": lambda n: "# WHERE a" + " AND a" * (n // 6),
    "nested ors": lambda n: "# WHERE " + "(a OR " * (n // 6),
    "in": lambda n: "# WHERE a IN (" + "1," * (n // 2) + "1)",
    "quotes": lambda n: "# WHERE a = '" + "''" * (n // 2),
    "names": lambda n: "# WHERE " + '""' * (n // 2),
    "likes": lambda n: "# WHERE a LIKE '" + "_a%" * (n // 3) + "'",
    "underscores": lambda n: "# WHERE a LIKE '" + "_" * n + "'",
    "escapes": lambda n: "# WHERE a LIKE '" + "!!" * (n // 2) + "!' ESCAPE '!'",
    "steps": lambda n: "# WHERE XPATH '" + "/a" * (n // 2) + "'",
    "predicates": lambda n: "# WHERE XPATH '/a" + "[b" * (n // 2) + "'",
    "xpath name": lambda n: "# WHERE XPATH '/" + "a" * n + "'",
    "fraction": lambda n: "# WHERE a = ." + "1" * n,
    "numbers": lambda n: "# WHERE " + "1 " * (n // 2),
    "dots": lambda n: "# WHERE " + "." * n,
    "levels": lambda n: "/" * n,
    "spaces": lambda n: " " * n + "#" + " " * n,
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_the_work_for_twice_the_text_is_at_most_twice_as_much(make: Callable[[int], str]) -> None:
    """Counted in calls, which no load on the machine changes; the seconds, at the cap, are a generous second bound."""

    def parse(text: str) -> None:
        with contextlib.suppress(FilterError):
            parse_filter(text)

    half, whole = work_of(lambda: parse(make(4_000))), work_of(lambda: parse(make(8_000)))
    assert whole.calls <= 2.1 * half.calls + 100
    began = time.process_time()
    parse(make(65_000))
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "text",
    [
        "# WHERE " + "(" * 48 + "a" + ")" * 48,
        "# WHERE " + "(NOT " * 24 + "a" + ")" * 24,
        "# WHERE " + "(a OR " * 24 + "(a AND " * 24 + "a = b" + "+b" * 48 + ")" * 48,
        "# WHERE a = " + "-(b * " * 24 + "b" + ")" * 24,
    ],
    ids=["parentheses", "not", "or, and, sums", "signs"],
)
def test_the_deepest_filter_needs_far_fewer_frames_than_python_has(text: str) -> None:
    """Python stops at 1000 frames, some of which the caller has taken."""
    filter = parse_filter(text)
    event = Subject(make_event("t", {"a": 1, "b": 2}))
    assert work_of(lambda: parse_filter(text)).frames < 600
    assert work_of(lambda: compile_filter(filter)(event)).frames < 300
    assert work_of(lambda: parse_filter(str(filter)) == filter).frames < 600
    assert work_of(lambda: hash(filter)).frames < 300


@pytest.mark.parametrize("text", ["a = b--1", "a = b -- 1", "a = b - -1", "a = b-- 1", "a = b -(-1)"])
def test_two_signs_before_a_number_are_arithmetic(text: str) -> None:
    assert str(parse_filter(f"# WHERE {text}")) == "# WHERE a = b - -1"
