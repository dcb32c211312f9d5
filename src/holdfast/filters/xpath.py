"""The XPath subset as tree patterns, its parser and its canonical text.

A path selects something exactly when a tree pattern can be laid over the document: each step is a node of the
pattern, ``/`` an edge to a child, ``//`` an edge to any descendant, and each predicate another branch [XNET §3].
Nothing distinguishes the last step: the question is only whether the pattern fits.

    path      = ( "/" | "//" ) steps
    steps     = step { ( "/" | "//" ) step }
    step      = ( name | "*" ) { predicate }  |  last
    last      = ( "@" name | "text()" ) { predicate }          only at the end of a path
    predicate = "[" relative [ op literal ] "]"
    relative  = "." | [ ".//" ] steps
    op        = "=" | "!=" | "<" | "<=" | ">" | ">="
    literal   = '"…"' | "'…'" | [ "-" ] digits [ "." digits ]

``//@a`` reaches the attributes of the context itself too, as in XPath 1.0, where ``//`` stands for
``/descendant-or-self::node()/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Final

from holdfast.errors import FilterError
from holdfast.events.value import shown

__all__ = ["STEPS_MAX", "Kind", "Path", "Predicate", "Step", "XPathRelation", "parse_xpath", "walk"]

STEPS_MAX: Final = 256  #: of one expression, branches included
NESTING_MAX: Final = 16  #: of predicates in predicates

_RELATIVE: Final = "'.', './/', '@name', 'text()', a name or '*'"


class Kind(Enum):
    """What a step selects."""

    ELEMENT = "element"
    ATTRIBUTE = "attribute"
    TEXT = "text"


class XPathRelation(Enum):
    """The comparisons of XPath 1.0, by their spelling."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Step:
    """One node of the pattern; ``name`` is ``*`` for any element and empty for ``text()``."""

    kind: Kind
    name: str
    descendant: bool
    predicates: tuple[Predicate, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case Kind.ELEMENT:
                test = self.name
            case Kind.ATTRIBUTE:
                test = f"@{self.name}"
            case Kind.TEXT:
                test = "text()"
        return test + "".join(map(str, self.predicates))


@dataclass(frozen=True, slots=True)
class Predicate:
    """A branch: some node at the end of ``steps`` (none: the context itself) stands in ``relation`` to a literal.

    Without a relation it is enough that there is such a node.
    """

    steps: tuple[Step, ...]
    relation: XPathRelation | None = None
    literal: str | float | None = None

    def __str__(self) -> str:
        path = _steps_text(self.steps, absolute=False) if self.steps else "."
        if self.relation is None:
            return f"[{path}]"
        assert self.literal is not None
        return f"[{path} {self.relation.value} {_literal_text(self.literal)}]"


@dataclass(frozen=True, slots=True)
class Path:
    """An absolute path; ``str()`` gives its canonical text."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return _steps_text(self.steps, absolute=True)


def _steps_text(steps: tuple[Step, ...], *, absolute: bool) -> str:
    parts: list[str] = []
    for step in steps:
        if step.descendant:
            parts.append("//" if absolute or parts else ".//")
        elif absolute or parts:
            parts.append("/")
        parts.append(str(step))
    return "".join(parts)


def _literal_text(literal: str | float) -> str:
    if isinstance(literal, str):
        return f"'{literal}'" if "'" not in literal else f'"{literal}"'
    # XPath numbers know no exponent; Decimal writes the shortest digits without one.
    return format(Decimal(repr(literal)), "f").removesuffix(".0")


def parse_xpath(source: str, text: str | None = None, places: list[int] | None = None) -> Path:
    """Parse one expression.

    Where it stands inside a filter, ``text`` is the filter and ``places[i]`` the offset in it of ``source[i]``
    (one entry more than there are characters), so that an error points into what the user wrote.

    :raises FilterError: if the expression is malformed, outside the subset or too large.
    """
    return _Parser(source, text, places).path()


# An NCName of Namespaces in XML, so a Name of XML 1.0 (fifth edition, §2.3) without the colon.
_NAME_START: Final = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME: Final = re.compile(f"[{_NAME_START}][{_NAME_START}.0-9\u00b7\u0300-\u036f\u203f\u2040-]*")


class _Parser:
    def __init__(self, source: str, text: str | None, places: list[int] | None) -> None:
        self.source = source
        self.text = source if text is None else text
        self.places = list(range(len(source) + 1)) if places is None else places
        self.at = 0
        self.steps = 0
        self.nesting = 0

    def error(self, problem: str, expected: str | None = None, at: int | None = None) -> FilterError:
        offset = self.places[self.at if at is None else at]
        return FilterError(f"in XPATH: {problem}", text=self.text, offset=offset, expected=expected)

    def unexpected(self, expected: str) -> FilterError:
        if self.at == len(self.source):
            return self.error("unexpected end", expected)
        return self.error(f"unexpected '{shown(self.source[self.at])}'", expected)

    def space(self) -> None:
        while self.at < len(self.source) and self.source[self.at] in " \t\r\n":
            self.at += 1

    def take(self, token: str) -> bool:
        self.space()
        if self.source.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def path(self) -> Path:
        self.space()
        if not self.source.startswith("/", self.at):
            raise self.unexpected("'/' or '//': paths are absolute")
        steps = self.axis_and_steps()
        self.space()
        if self.at < len(self.source):
            if self.source[self.at] == "|":
                raise self.error("unions are not in the subset", "two XPATH conditions joined by OR")
            raise self.unexpected("'/', '//', '[' or the end")
        return Path(steps)

    def axis_and_steps(self) -> tuple[Step, ...]:
        """Steps that begin with their ``/`` or ``//``."""
        steps: list[Step] = []
        while True:
            if self.take("//"):
                steps.append(self.step(descendant=True))
            elif self.take("/"):
                steps.append(self.step(descendant=False))
            else:
                return tuple(steps)
            self.forbid_steps_after(steps[-1])

    def forbid_steps_after(self, step: Step) -> None:
        self.space()
        if step.kind is not Kind.ELEMENT and self.source.startswith("/", self.at):
            raise self.error(f"'{shown(str(step))}' has no children", "it to be the last step")

    def step(self, *, descendant: bool) -> Step:
        self.space()
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise self.error(f"more than {STEPS_MAX} steps", "a smaller expression")
        char = self.source[self.at : self.at + 1]
        if char == "*":
            self.at += 1
            kind, name = Kind.ELEMENT, "*"
        elif char == "@":
            self.at += 1
            kind, name = Kind.ATTRIBUTE, self.name("an attribute's name")
        elif char == ".":
            raise self.error("'.' and '..' are not steps of the subset", "a name, '*', '@name' or 'text()'")
        else:
            start = self.at
            name = self.name("a name, '*', '@name' or 'text()'")
            kind = Kind.ELEMENT
            if self.take("("):
                if name != "text":
                    problem = f"'{shown(name)}()' is not in the subset"
                    raise self.error(problem, "a name, '*', '@name' or 'text()'", start)
                if not self.take(")"):
                    raise self.unexpected("')'")
                kind, name = Kind.TEXT, ""
        return Step(kind, name, descendant, self.predicates())

    def name(self, expected: str) -> str:
        self.space()
        start = self.at
        match = _NAME.match(self.source, start)
        if match is None:
            raise self.unexpected(expected)
        self.at = match.end()
        name = match[0]
        if self.source.startswith("::", self.at):
            raise self.error(f"axis '{shown(name)}::' is not in the subset", "'/' or '//'", start)
        if self.source.startswith(":", self.at):
            raise self.error(f"prefix '{shown(name)}:' is refused", "a name without a prefix", start)
        return name

    def predicates(self) -> tuple[Predicate, ...]:
        predicates: list[Predicate] = []
        while self.take("["):
            self.nesting += 1
            if self.nesting > NESTING_MAX:
                raise self.error(f"predicates nested deeper than {NESTING_MAX}", "a flatter expression")
            predicates.append(self.predicate())
            self.nesting -= 1
        return tuple(predicates)

    def predicate(self) -> Predicate:
        steps = self.relative()
        relation = self.relation()
        literal = self.literal() if relation else None
        if not self.take("]"):
            word = self.source[self.at :].split(None, 1)[0] if self.source[self.at :].strip() else ""
            if word in ("and", "or"):
                hint = (
                    "']'; write [a][b]" if word == "and" else "']'; write two XPATH conditions joined by OR"
                )
                raise self.error(f"'{word}' is not in the subset", hint)
            if isinstance(literal, str) and self.source[self.at : self.at + 1] in ("'", '"'):
                raise self.unexpected(
                    "']' (a quote inside is not doubled here: put the other quotes around it)"
                )
            raise self.unexpected("']'" if relation else "a comparison or ']'")
        return Predicate(steps, relation, literal)

    def relative(self) -> tuple[Step, ...]:
        self.space()
        char = self.source[self.at : self.at + 1]
        if char == "/":
            raise self.error("a path inside [ ] is relative", _RELATIVE)
        if char.isdigit():
            raise self.error("positions are not in the subset", _RELATIVE)
        if not (char and (char in ".*@" or _NAME.match(char))):
            raise self.unexpected(_RELATIVE)
        if self.take(".//"):
            first = self.step(descendant=True)
        elif char == "." and not self.source.startswith("..", self.at):
            self.at += 1
            if self.source.startswith("/", self.at):
                raise self.error("'./' is not in the subset", "the name alone")
            return ()
        else:
            first = self.step(descendant=False)
        self.forbid_steps_after(first)
        return (first, *self.axis_and_steps())

    def relation(self) -> XPathRelation | None:
        for spelling in ("!=", "<=", ">=", "=", "<", ">"):
            if self.take(spelling):
                return XPathRelation(spelling)
        return None

    def literal(self) -> str | float:
        self.space()
        char = self.source[self.at : self.at + 1]
        if char and char in "'\"":
            end = self.source.find(char, self.at + 1)
            if end < 0:
                raise self.error("the string does not end", f"a closing {char}")
            value = self.source[self.at + 1 : end]
            self.at = end + 1
            return value
        return self.number()

    def number(self) -> float:
        start = self.at
        if self.source.startswith("-", self.at):
            self.at += 1
        digits = self.at
        while self.at < len(self.source) and self.source[self.at] in "0123456789.":
            self.at += 1
        token = self.source[start : self.at]
        if self.at == digits:
            self.at = start
            raise self.unexpected("a number or a quoted string")
        if token.count(".") > 1 or self.source[digits : self.at] == ".":
            raise self.error(f"'{shown(token)}' is not a number", "a number or a quoted string", start)
        value = float(token)
        if value in (float("inf"), float("-inf")):
            raise self.error("the number is too large", "a finite number", start)
        return value + 0.0  # comparisons cannot tell -0 from 0, so equal paths shall print alike


def walk(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Every step of a path and of its branches."""
    for step in steps:
        yield step
        for predicate in step.predicates:
            yield from walk(predicate.steps)
