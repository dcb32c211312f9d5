"""A grammar of filters over vocabularies so small that filters and events meet.

It is written once, over a ``Source`` of choices, and driven twice: by Hypothesis, which shrinks (the first option of
every choice is the simplest), and by ``random.Random``, for figures over many thousands of draws. Every filter drawn is
one that the parser can return: ``parse_filter(str(f)) == f``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, TypeVar

from hypothesis import strategies as st

from holdfast.events.value import INT_MAX, INT_MIN, Value
from holdfast.filters.expression import (
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
    Operator,
    Relation,
    Scalar,
    Shard,
    Signed,
    Truth,
    XPath,
    conjunction,
    disjunction,
)
from holdfast.filters.topic import ANYTHING, TopicPattern
from holdfast.filters.xpath import Kind, Path, Predicate, Step, XPathRelation

T = TypeVar("T")


class Source(Protocol):
    """Where choices come from."""

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""


class Seeded:
    """Choices from a generator of pseudo-random numbers."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def pick(self, options: Sequence[T]) -> T:
        return self.random.choice(options)


class Drawn:
    """Choices that Hypothesis draws."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))


def some(source: Source, most: int, make: Callable[[], T], least: int = 0) -> list[T]:
    """A list of things, mostly short."""
    return [make() for _ in range(source.pick(range(least, most + 1)))]


def often(source: Source) -> bool:
    """True three times in four; the other time last, so that it is what remains after shrinking."""
    return source.pick((True, True, True, False))


def seldom(source: Source) -> bool:
    """True once in eight times."""
    return source.pick((False,) * 7 + (True,))


# The vocabularies

NUMBERS: Final[tuple[int | float, ...]] = (
    *(0, 1, 2, 3, 5, 10, -1, -7, 100),
    *(1.0, 2.5, 0.5, -0.0, 3.0, -1.5),
    *(2**53, 2**53 - 1, 2**53 + 1, float(2**53), float(2**53 + 2)),
    *(INT_MAX, INT_MIN, INT_MAX - 1, float(2**63), -float(2**63), 1e308, 5e-324),
)
STRINGS: Final = (
    *("", "a", "ab", "abc", "abd", "b", "ba", "c"),
    *("a%b", "a_c", "it's", "1", "TRUE", "a\U0001f600", "\U0001f600", "a\U0010ffff", "\ue000", "a\\b"),
)
BYTES: Final = (b"", b"a", b"\x00\xff")
#: Attributes, and of which kind their values mostly are; two names must be quoted.
ATTRIBUTES: Final[dict[str, Sequence[Scalar]]] = {
    "x": NUMBERS,
    "y": NUMBERS,
    "s": STRINGS,
    "flag": (True, False),
    "in": STRINGS,
}
NAMES: Final = tuple(ATTRIBUTES)
SCALARS: Final[tuple[Scalar, ...]] = (*NUMBERS, *STRINGS, True, False)
VALUES: Final[tuple[Value, ...]] = (*SCALARS, *BYTES)

LEVELS: Final = ("a", "b", "c", "", "$x", "ä")
ELEMENTS: Final = ("a", "b", "c", "d")
XML_ATTRIBUTES: Final = ("id", "k")
XPATH_LITERALS: Final[tuple[str | float, ...]] = (1.0, 2.0, 2.5, -3.0, 0.0, "1", "x", "abc", "it's", "")


@dataclass(frozen=True)
class Parts:
    """Which parts of the language are drawn, and how deep."""

    xpath: bool = True
    shard: bool = True
    like: bool = True
    arithmetic: bool = True  #: signs and operators, and comparisons between two attributes
    depth: int = 3  #: of NOT, AND and OR
    width: int = 3  #: operands of one AND or OR


ALL: Final = Parts()


# Topics


def a_topic(source: Source) -> list[str]:
    """The levels of an event's topic."""
    return some(source, 3, lambda: source.pick(LEVELS), least=1)


def topic_text(levels: Sequence[str]) -> str:
    """The topic with these levels."""
    return str(TopicPattern(tuple(levels)))


def a_topic_pattern(source: Source) -> TopicPattern:
    if often(source):
        return ANYTHING
    rest = source.pick((False, True))
    levels = some(source, 3, lambda: source.pick((*LEVELS, "+", "+")), least=0 if rest else 1)
    return TopicPattern(tuple(levels), rest)


# Expressions and conditions


def an_attribute(source: Source) -> Attribute:
    return Attribute(source.pick(NAMES))


def a_literal(source: Source, like: Expression | None = None) -> Literal:
    """A literal; mostly one that compares with the expression given."""
    if isinstance(like, Attribute) and not seldom(source):
        return Literal(source.pick(ATTRIBUTES[like.name]))
    if isinstance(like, Signed | Arithmetic) and not seldom(source):
        return Literal(source.pick(NUMBERS))
    return Literal(source.pick(SCALARS))


def signed(negative: bool, operand: Expression) -> Expression:
    """A sign before an operand, folded as the parser folds it: all numbers but the one without a positive twin."""
    if isinstance(operand, Literal):
        value = operand.value
        if type(value) is float or (type(value) is int and value != INT_MIN):
            return Literal(-value if negative else value)
    return Signed(negative, operand)


def an_expression(source: Source, parts: Parts = ALL, depth: int = 2) -> Expression:
    kinds = ("attribute", "attribute", "literal", "sign", "arithmetic", "arithmetic")
    match source.pick(kinds if depth and parts.arithmetic else kinds[:3]):
        case "attribute":
            return an_attribute(source)
        case "literal":
            return a_literal(source)
        case "sign":
            return signed(source.pick((True, False)), an_expression(source, parts, depth - 1))
        case _:
            left = an_expression(source, parts, depth - 1)
            right = (
                a_literal(source, left)
                if source.pick((True, False))
                else an_expression(source, parts, depth - 1)
            )
            return Arithmetic(source.pick(tuple(Operator)), left, right)


def an_operand(source: Source, parts: Parts) -> Expression:
    """What is tested: mostly an attribute."""
    return an_attribute(source) if often(source) else an_expression(source, parts)


def a_condition(source: Source, parts: Parts = ALL, depth: int | None = None) -> Condition:
    left = parts.depth if depth is None else depth
    kind = source.pick(("test", "test", "and", "or", "not")) if left else "test"
    if kind == "test":
        return a_test(source, parts)
    if kind == "not":
        return Not(a_condition(source, parts, left - 1))
    operands = some(source, parts.width, lambda: a_condition(source, parts, left - 1), least=2)
    return conjunction(operands) if kind == "and" else disjunction(operands)


def a_test(source: Source, parts: Parts = ALL) -> Condition:
    """A condition without NOT, AND and OR."""
    kinds: list[Callable[[Source, Parts], Condition]] = [_comparison] * 4
    kinds += [_between, _in_list, _is_null, _truth]
    kinds += [_like] * 2 * parts.like + [_shard] * parts.shard + [_xpath] * 2 * parts.xpath
    return source.pick(kinds)(source, parts)


def _comparison(source: Source, parts: Parts) -> Condition:
    relation, left = source.pick(tuple(Relation)), an_operand(source, parts)
    right = a_literal(source, left) if often(source) else an_operand(source, parts)
    return Comparison(relation, right, left) if seldom(source) else Comparison(relation, left, right)


def _between(source: Source, parts: Parts) -> Condition:
    operand = an_operand(source, parts)
    ends: list[Expression] = [a_literal(source, operand), a_literal(source, operand)]
    if parts.arithmetic and seldom(source):
        ends[source.pick((0, 1))] = an_operand(source, parts)
    low, high = ends
    if (
        isinstance(low, Literal)
        and isinstance(high, Literal)
        and often(source)
        and _greater(low.value, high.value)
    ):
        low, high = high, low
    return Between(operand, low, high)


def _greater(one: Scalar, other: Scalar) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one > other
    return one > other


def _in_list(source: Source, parts: Parts) -> Condition:
    operand = an_operand(source, parts)
    return In(operand, tuple(some(source, 4, lambda: a_literal(source, operand), least=1)))


def _like(source: Source, parts: Parts) -> Condition:
    operand = Attribute(source.pick(("s", "in"))) if often(source) else an_operand(source, parts)
    escape_char = source.pick((None, None, None, "\\", "!", "a", "%"))
    return Like(operand, like_text(a_like(source), escape_char), escape_char)


def a_like(source: Source) -> list[str | None]:
    """The places of a LIKE pattern: characters, ``""`` for ``%`` and None for ``_``."""
    return some(source, 4, lambda: source.pick(("a", "", "b", None, "c", "", "\U0001f600", "%", "_")))


def like_text(places: Sequence[str | None], escape_char: str | None) -> str:
    """The pattern as it is written. What cannot be written means something else: a plain ``%`` without an escape
    character becomes a wildcard, and a wildcard that is itself the escape character becomes plain.
    """
    text = ""
    for place in places:
        char = "%" if place == "" else "_" if place is None else place
        plain = bool(place) and char in ("%", "_")
        text += escape_char + char if escape_char and (plain or char == escape_char) else char
    return text


def _is_null(source: Source, parts: Parts) -> Condition:
    return IsNull(an_operand(source, parts))


def _truth(source: Source, parts: Parts) -> Condition:
    if often(source):
        return Truth(Attribute("flag"))
    return Truth(Literal(source.pick((True, False))) if seldom(source) else an_attribute(source))


def _shard(source: Source, parts: Parts) -> Condition:
    count = source.pick((2, 1, 3, 4))
    return Shard(an_attribute(source), count, source.pick(range(count)))


def _xpath(source: Source, parts: Parts) -> Condition:
    return XPath(a_path(source))


def a_filter(source: Source, parts: Parts = ALL) -> Filter:
    return Filter(a_topic_pattern(source), None if seldom(source) else a_condition(source, parts))


# Paths


def a_path(source: Source) -> Path:
    return Path(_steps(source, 3, depth=2, axes=(False, True)))


def _steps(source: Source, most: int, *, depth: int, axes: Sequence[bool]) -> tuple[Step, ...]:
    steps = some(source, most - 1, lambda: _element_step(source, depth, source.pick(axes)))
    return (*steps, _last_step(source, depth, source.pick(axes)))


def _element_step(source: Source, depth: int, descendant: bool) -> Step:
    predicates = some(source, 2, lambda: a_predicate(source, depth - 1)) if depth and seldom(source) else []
    return Step(Kind.ELEMENT, source.pick((*ELEMENTS, "*", "*")), descendant, tuple(predicates))


def _last_step(source: Source, depth: int, descendant: bool) -> Step:
    kind = source.pick((Kind.ELEMENT, Kind.ELEMENT, Kind.ELEMENT, Kind.ATTRIBUTE, Kind.TEXT))
    if kind is Kind.ELEMENT:
        predicates = some(source, 2, lambda: a_predicate(source, depth - 1)) if depth else []
        return Step(kind, source.pick((*ELEMENTS, "*", "*")), descendant, tuple(predicates))
    tests = some(source, 1, lambda: Predicate((), *_value_test(source)))
    return Step(kind, source.pick(XML_ATTRIBUTES) if kind is Kind.ATTRIBUTE else "", descendant, tuple(tests))


def a_predicate(source: Source, depth: int = 1) -> Predicate:
    steps = () if seldom(source) else _steps(source, 2, depth=depth, axes=(False, False, True))
    if source.pick((True, False)):
        return Predicate(steps, *_value_test(source))
    return Predicate(steps)


def _value_test(source: Source) -> tuple[XPathRelation, str | float]:
    return source.pick(tuple(XPathRelation)), source.pick(XPATH_LITERALS)
