"""Documents and events that the filters of ``drawn_filters`` have something to say about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, cast
from xml.sax.saxutils import escape, quoteattr

from drawn_filters import (
    ATTRIBUTES,
    BYTES,
    ELEMENTS,
    LEVELS,
    NAMES,
    SCALARS,
    XML_ATTRIBUTES,
    Source,
    often,
    seldom,
    some,
    topic_text,
)
from holdfast.events.event import Event, make_event
from holdfast.events.value import INT_MAX, INT_MIN, Value
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
    Like,
    Literal,
    Not,
    Or,
    Scalar,
    Signed,
    XPath,
)
from holdfast.filters.topic import ANYTHING, TopicPattern
from holdfast.filters.xpath import Kind, Path, Predicate, Step, XPathRelation

TEXTS: Final = ("1", "2", "2.5", "-3", "x", "abc", " 1 ", "1e3", "it's", "0")


@dataclass
class Node:
    """An element of a document to be written."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    content: list[Node | str] = field(default_factory=list)  #: text is escaped where it is written
    namespace: str = ""

    def __str__(self) -> str:
        inner = "".join(escape(part) if isinstance(part, str) else str(part) for part in self.content)
        attributes = "".join(f" {name}={quoteattr(value)}" for name, value in self.attributes.items())
        prefix, declared = ("n:", f" xmlns:n={quoteattr(self.namespace)}") if self.namespace else ("", "")
        return f"<{prefix}{self.name}{declared}{attributes}>{inner}</{prefix}{self.name}>"


def a_node(source: Source, depth: int = 3) -> Node:
    attributes = {name: source.pick(TEXTS) for name in XML_ATTRIBUTES if seldom(source) or seldom(source)}
    node = Node(source.pick(ELEMENTS), attributes, namespace="u" if seldom(source) else "")
    for _ in range(source.pick(range(3)) if depth else 0):
        node.content.append(a_node(source, depth - 1))
    if source.pick((True, False)):
        node.content.insert(source.pick(range(len(node.content) + 1)), source.pick(TEXTS))
    return node


def a_document(source: Source, near: Sequence[Path] = ()) -> bytes:
    """A well-formed document; if paths are given, mostly one that some of them select something in."""
    node = a_node_for(source, source.pick(near)) if near and often(source) else a_node(source)
    return source.pick(("", "", "<!-- c -->", '<?xml version="1.0"?>')).encode() + str(node).encode()


def a_node_for(source: Source, path: Path) -> Node:
    """A tree on which the path fits, more or less: contradictory or odd tests are not seen to."""
    root = Node("")  # stands for the document
    _grow(source, root, path.steps)
    elements = [part for part in root.content if isinstance(part, Node)]
    if len(elements) == 1 and not seldom(source):
        return elements[0]
    return Node(source.pick(ELEMENTS), dict(root.attributes), list(root.content))


def _grow(source: Source, node: Node, steps: Sequence[Step]) -> Node:
    """Add the steps below a node; the node at their end."""
    for step in steps:
        if step.kind is not Kind.ELEMENT:
            value = next((_passing(source, p) for p in step.predicates if p.relation), source.pick(TEXTS))
            if step.kind is Kind.TEXT:
                node.content.append(value)
            else:
                node.attributes[step.name] = value
            continue
        if step.descendant and source.pick((False, True)):
            node = _child(node, source.pick(ELEMENTS))
        node = _child(node, source.pick(ELEMENTS) if step.name == "*" else step.name)
        for predicate in step.predicates:
            end = _grow(source, node, predicate.steps)
            leaf = predicate.steps[-1] if predicate.steps else None
            if predicate.relation is None:
                continue
            if leaf is not None and leaf.kind is Kind.ATTRIBUTE:
                end.attributes[leaf.name] = _passing(source, predicate)
            elif leaf is not None and leaf.kind is Kind.TEXT:
                end.content[-1] = _passing(source, predicate)
            else:
                end.content.append(_passing(source, predicate))
    return node


def _child(node: Node, name: str) -> Node:
    child = Node(name)
    node.content.append(child)
    return child


def _passing(source: Source, predicate: Predicate) -> str:
    """A text that mostly passes the test of a predicate."""
    literal = predicate.literal
    if not isinstance(literal, float):
        return literal if predicate.relation is XPathRelation.EQ and literal else source.pick(TEXTS)
    step = {XPathRelation.LT: -1, XPathRelation.GT: 1, XPathRelation.NE: source.pick((1, -1))}
    return str(literal + step.get(cast(XPathRelation, predicate.relation), 0)).removesuffix(".0")


# Events

XML_TYPES: Final = ("application/xml", "text/xml", "application/atom+xml; charset=utf-8")
OTHER_TYPES: Final = ("", "text/plain", "application/json")
NO_DOCUMENTS: Final = (b"", b"<a>", b"not xml", b'<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>')


def an_event(source: Source, near: Sequence[Filter] = ()) -> Event:
    """An event; if filters are given, mostly one that comes close to matching some of them."""
    pattern = source.pick(near).pattern if near and often(source) else ANYTHING
    hints = _hints(near)
    attributes = {
        name: _value(source, name, hints.values.get(name, ())) for name in hints.names if often(source)
    }
    topic = topic_text(_levels(source, pattern))
    if source.pick((True, False)) if hints.paths else seldom(source):
        return make_event(topic, attributes, a_document(source, hints.paths), source.pick(XML_TYPES))
    if seldom(source):
        return make_event(topic, attributes, source.pick(NO_DOCUMENTS), source.pick(XML_TYPES))
    return make_event(topic, attributes, source.pick((b"", b"<a/>")), source.pick(OTHER_TYPES))


def _levels(source: Source, pattern: TopicPattern) -> list[str]:
    levels = [source.pick(LEVELS) if level == "+" else level for level in pattern.levels]
    return levels + (some(source, 2, lambda: source.pick(LEVELS)) if pattern.rest else []) or [
        source.pick(LEVELS)
    ]


def _value(source: Source, name: str, hinted: Sequence[Scalar]) -> Value:
    if hinted and often(source):
        return _beside(source, source.pick(hinted))
    kinds: Sequence[Sequence[Value]] = (
        (SCALARS, BYTES) if seldom(source) else (ATTRIBUTES.get(name, SCALARS),)
    )
    return source.pick(source.pick(kinds))


def _beside(source: Source, value: Scalar) -> Value:
    """The value itself, mostly, or one close to it."""
    if often(source) or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return source.pick((value + "a", value[:-1], value + "\U0010ffff", value + "\0"))
    near: list[int | float] = [value]
    near += [v for v in (int(value) - 1, int(value), int(value) + 1) if INT_MIN <= v <= INT_MAX]
    near += [
        v
        for v in (float(value), math.nextafter(value, math.inf), math.nextafter(value, -math.inf))
        if math.isfinite(v)
    ]
    return source.pick(near)


@dataclass
class Hints:
    """What filters speak of."""

    names: tuple[str, ...] = NAMES
    values: dict[str, list[Scalar]] = field(default_factory=dict)
    paths: list[Path] = field(default_factory=list)

    def add(self, operand: Expression, *values: Expression) -> None:
        found = [value.value for value in values if isinstance(value, Literal)]
        for attribute in leaves_of(operand):
            if isinstance(attribute, Attribute):
                self.values.setdefault(attribute.name, []).extend(found)


def _hints(filters: Sequence[Filter]) -> Hints:
    hints = Hints()
    for filter in filters:
        for test in simple_conditions(filter.condition):
            match test:
                case Comparison(_, left, right):
                    hints.add(left, right)
                    hints.add(right, left)
                case Between(operand, low, high):
                    hints.add(operand, low, high)
                case In(operand, values):
                    hints.add(operand, *values)
                case Like(operand, pattern, escape_char):
                    hints.add(operand, *(Literal(text) for text in like_examples(pattern, escape_char)))
                case XPath(path):
                    hints.paths.append(path)
    hints.names = tuple(dict.fromkeys((*NAMES, *hints.values)))
    return hints


def like_examples(pattern: str, escape_char: str | None) -> Iterator[str]:
    """A few strings the pattern matches."""
    for run, single in (("", "a"), ("b", "z"), ("abc", "b")):
        text, at = "", 0
        while at < len(pattern):
            char = pattern[at]
            if char == escape_char:
                at += 1
                text += pattern[at]
            else:
                text += {"%": run, "_": single}.get(char, char)
            at += 1
        yield text


def simple_conditions(condition: Condition | None) -> Iterator[Condition]:
    """The conditions within one that have no NOT, AND or OR."""
    match condition:
        case And(operands) | Or(operands):
            for operand in operands:
                yield from simple_conditions(operand)
        case Not(operand):
            yield from simple_conditions(operand)
        case None:
            return
        case _:
            yield condition


def leaves_of(expression: Expression) -> Iterator[Attribute | Literal]:
    """The attributes and literals of an expression."""
    match expression:
        case Signed(_, operand):
            yield from leaves_of(operand)
        case Arithmetic(_, left, right):
            yield from leaves_of(left)
            yield from leaves_of(right)
        case Attribute() | Literal():
            yield expression
