"""Printing and parsing are inverse, however a filter was spelled; and the examples of the manual are filters."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn_filters import Source, a_filter
from examples import examples
from holdfast.filters.expression import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Expression,
    Filter,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Relation,
    Scalar,
    Shard,
    Signed,
    Truth,
    XPath,
)
from holdfast.filters.lexer import Token, TokenKind, tokens
from holdfast.filters.parse import parse_filter
from holdfast.filters.text import condition_text, expression_text, name_text, string_text
from holdfast.filters.topic import ANYTHING, TopicPattern
from holdfast.filters.xpath import Kind, Path, Predicate, Step, XPathRelation, parse_xpath
from manual_examples import lines
from strategies import conditions, drawn, expressions, filters, paths

#: Text that a filter may contain.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NAMES = TEXT.filter(bool)
SCALARS: st.SearchStrategy[Scalar] = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
)


# parse ∘ print is the identity on trees


@examples(100)
@given(filters())
def test_a_printed_filter_parses_to_the_same_tree(filter: Filter) -> None:
    assert parse_filter(str(filter)) == filter


@examples(100)
@given(NAMES, SCALARS, st.sampled_from(Relation))
def test_every_name_and_every_value_survives(name: str, value: Scalar, relation: Relation) -> None:
    """Of any text and any number, where the small vocabularies of ``filters()`` have a few."""
    condition = Or(
        (Comparison(relation, Attribute(name), Literal(value)), In(Attribute(name), (Literal(value),)))
    )
    assert parse_filter(str(Filter(ANYTHING, condition))).condition == condition


@examples(100)
@given(TEXT, TEXT.filter(lambda text: len(text) == 1))
def test_every_like_pattern_survives(text: str, escape: str) -> None:
    pattern = re.sub(f"[%_{re.escape(escape)}]", lambda found: escape + found[0], text)
    for condition in (Like(Attribute("a"), text, None), Like(Attribute("a"), pattern, escape)):
        assert parse_filter(str(Filter(ANYTHING, condition))).condition == condition


@examples(100)
@given(st.floats(allow_nan=False, allow_infinity=False), TEXT, st.sampled_from(XPathRelation))
def test_every_literal_of_an_xpath_survives(number: float, text: str, relation: XPathRelation) -> None:
    # XPath has no way to write a string with both kinds of quotes.
    for literal in (number, text.replace("'", ""), text.replace('"', "")):
        path = Path((Step(Kind.ELEMENT, "a", True, (Predicate((), relation, literal),)),))
        assert parse_filter(str(Filter(ANYTHING, XPath(path)))).condition == XPath(path)


@given(paths())
def test_a_printed_path_parses_to_the_same_path(path: Path) -> None:
    assert parse_xpath(str(path)) == path


@given(conditions(), expressions())
def test_the_parts_of_a_filter_print_as_they_do_within_it(
    condition: Condition, expression: Expression
) -> None:
    assert str(Filter(ANYTHING, condition)) == f"# WHERE {condition_text(condition)}"
    tested = Comparison(Relation.EQ, expression, Literal(1))
    assert condition_text(tested) == f"{expression_text(expression)} = 1"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  /a/b  ", "a/b"),
        ("//a\twhere  x", "//a WHERE x"),
        ("# where((a))", "# WHERE a"),
        ("#\nwhere a=1 and(b<>'x'or c)", "# WHERE a = 1 AND (b <> 'x' OR c)"),
        ("# WHERE (a AND b) AND (c OR (d))", "# WHERE a AND b AND (c OR d)"),
        ("# WHERE not(a = 1)and not not b", "# WHERE NOT a = 1 AND NOT NOT b"),
        ("# WHERE NOT a IN (1) AND NOT (b IS NULL)", "# WHERE a NOT IN (1) AND b IS NOT NULL"),
        ("# WHERE NOT (a OR b)", "# WHERE NOT (a OR b)"),
        ("# WHERE a between(1.0)and+2", "# WHERE a BETWEEN 1.0 AND 2"),
        ("# WHERE ((a+b))*c-(d-e)/(f*g)>1e3", "# WHERE (a + b) * c - (d - e) / (f * g) > 1000.0"),
        ("# WHERE (a-b)-c = a-(b-c)", "# WHERE a - b - c = a - (b - c)"),
        ("# WHERE a = -(b+1)", "# WHERE a = -(b + 1)"),
        ("# WHERE a - (-1) = - -b", "# WHERE a - -1 = -(-b)"),
        ("# WHERE a = --9223372036854775808", "# WHERE a = -(-9223372036854775808)"),
        ('# WHERE "a"=1 AND "in" IS NULL', '# WHERE a = 1 AND "in" IS NULL'),
        ("# WHERE a like'%!%'escape'!'", "# WHERE a LIKE '%!%' ESCAPE '!'"),
        ("# WHERE shard ( a ,04)=01", "# WHERE SHARD(a, 4) = 1"),
        ("# WHERE xpath' / a [ b<=01.50 ] // text ( ) '", "# WHERE XPATH '/a[b <= 1.5]//text()'"),
        ("# WHERE XPATH '/a[b=-0]'", "# WHERE XPATH '/a[b = 0]'"),
        ("""# WHERE XPATH '/a[b="x"]'""", "# WHERE XPATH '/a[b = ''x'']'"),
    ],
)
def test_the_canonical_text_says_nothing_twice(text: str, canonical: str) -> None:
    assert str(parse_filter(text)) == canonical
    assert str(parse_filter(canonical)) == canonical


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a", "a"),
        ("$A_1", "$A_1"),
        ("1a", '"1a"'),
        ("Null", '"Null"'),
        ('a"b', '"a""b"'),
        ("ä", '"ä"'),
        (" ", '" "'),
    ],
)
def test_a_name_is_quoted_only_where_it_must_be(name: str, text: str) -> None:
    assert name_text(name) == text


def test_a_quote_in_a_string_is_doubled() -> None:
    assert string_text("it's") == "'it''s'"


# However it is spelled

SPACES = (" ", "  ", "\t", "\n", "\r\n", " \f\v ")


def respelled(source: Source, filter: Filter) -> tuple[str, Filter]:
    """The filter and another text of it: keywords in any case, any whitespace, and none where none is needed."""
    text, start = str(filter), len(str(filter.pattern))
    spelled, before = (
        source.pick(("", *SPACES)) + source.pick(("", "/")) * (text[0] != "/") + text[:start],
        None,
    )
    for token in tokens(text, start):
        if before is None or not (_ends(before) or _ends(token)):
            spelled += source.pick(SPACES)
        else:
            spelled += source.pick(("", *SPACES))
        spelled += _recased(source, token.shown) if token.kind is TokenKind.KEYWORD else token.shown
        before = token
    return spelled, filter


def _ends(token: Token) -> bool:
    """Whether nothing can run into the token: not a word, not a string, not part of ``<=`` or ``--``."""
    return token.kind is TokenKind.END or (token.kind is TokenKind.SYMBOL and token.value in "(),")


def _recased(source: Source, word: str) -> str:
    return source.pick((word.lower(), word.capitalize(), word.swapcase(), word[:1] + word[1:].lower()))


@examples(100)
@given(drawn(lambda source: respelled(source, a_filter(source))))
def test_case_and_whitespace_do_not_matter(spelled: tuple[str, Filter]) -> None:
    text, filter = spelled
    assert parse_filter(text) == filter
    assert str(parse_filter(text)) == str(filter)


class Wordy:
    """Prints with parentheses around anything, and AND and OR of many operands as if they took two."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def wrapped(self, text: str) -> str:
        depth = self.source.pick((1, 0, 2))
        return "(" * depth + text + ")" * depth

    def joined(self, word: str, operands: tuple[Condition, ...]) -> str:
        parts = [f"({self.condition(operand)})" for operand in operands]
        while len(parts) > 1:
            i = self.source.pick(range(len(parts) - 1))
            parts[i : i + 2] = [f"({parts[i]} {word} {parts[i + 1]})"]
        return parts[0]

    def condition(self, condition: Condition) -> str:
        match condition:
            case And(operands):
                return self.joined("AND", operands)
            case Or(operands):
                return self.joined("OR", operands)
            case Not(operand):
                return self.wrapped(f"NOT ({self.condition(operand)})")
            case Comparison(relation, left, right):
                return self.wrapped(f"{self.expression(left)} {relation.value} {self.expression(right)}")
            case Between(operand, low, high):
                ends = f"{self.expression(low)} AND {self.expression(high)}"
                return self.wrapped(f"{self.expression(operand)} BETWEEN {ends}")
            case In(operand, values):
                return self.wrapped(
                    f"{self.expression(operand)} IN ({', '.join(map(self.expression, values))})"
                )
            case Like(operand, _, _):
                tested = condition_text(condition).removeprefix(expression_text(operand))
                return self.wrapped(self.expression(operand) + tested)
            case IsNull(operand):
                return self.wrapped(f"{self.expression(operand)} IS NULL")
            case Truth(operand):
                return self.expression(operand)
            case XPath() | Shard():
                return self.wrapped(condition_text(condition))

    def expression(self, expression: Expression) -> str:
        match expression:
            case Attribute() | Literal():
                return self.wrapped(expression_text(expression))
            case Signed(negative, operand):
                return self.wrapped(f"{'-' if negative else '+'}({self.expression(operand)})")
            case Arithmetic(operator, left, right):
                return self.wrapped(f"({self.expression(left)}) {operator.value} ({self.expression(right)})")


def wordy(source: Source, filter: Filter) -> tuple[str, Filter]:
    """The filter and another text of it, with too many parentheses."""
    condition = "TRUE" if filter.condition is None else Wordy(source).condition(filter.condition)
    return f"{filter.pattern} WHERE {condition}", filter


@examples(100)
@given(drawn(lambda source: wordy(source, a_filter(source))))
def test_redundant_parentheses_do_not_matter(spelled: tuple[str, Filter]) -> None:
    text, filter = spelled
    if filter.condition is not None:
        assert parse_filter(text) == filter
        assert str(parse_filter(text)) == str(filter)


@given(filters(), filters())
def test_two_filters_print_alike_exactly_if_they_are_equal(one: Filter, other: Filter) -> None:
    assert (str(one) == str(other)) == (one == other)


def test_literals_that_python_calls_equal_are_different_trees() -> None:
    trees = {Literal(value) for value in (1, 1.0, True, 0, 0.0, -0.0, False, "1")}
    assert len(trees) == 8
    assert len({str(Filter(TopicPattern(("t",)), In(Attribute("a"), (tree,)))) for tree in trees}) == 8


# The manual


@pytest.mark.parametrize("text", lines("filter"))
def test_every_example_of_the_manual_is_a_filter(text: str) -> None:
    parse_filter(text)


def test_the_manual_has_examples_of_every_construct() -> None:
    kinds = {type(node).__name__ for text in lines("filter") for node in _nodes(parse_filter(text).condition)}
    every = (
        "And Or Not Comparison Between In Like IsNull Truth XPath Shard Attribute Literal Signed Arithmetic"
    )
    assert kinds == set(every.split())


def _nodes(node: Condition | Expression | None) -> list[Condition | Expression]:
    match node:
        case None:
            return []
        case And(operands) | Or(operands):
            return [node, *(inner for operand in operands for inner in _nodes(operand))]
        case (
            Not(inner)
            | IsNull(inner)
            | Truth(inner)
            | Signed(_, inner)
            | Like(inner, _, _)
            | Shard(inner, _, _)
        ):
            return [node, *_nodes(inner)]
        case Comparison(_, left, right) | Arithmetic(_, left, right):
            return [node, *_nodes(left), *_nodes(right)]
        case Between(operand, low, high):
            return [node, *_nodes(operand), *_nodes(low), *_nodes(high)]
        case In(operand, values):
            return [node, *_nodes(operand), *values]
        case XPath() | Attribute() | Literal():
            return [node]
