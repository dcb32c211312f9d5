"""Attributes that a Publish command draws: ``price=uniform(1,200) qty=randint(1,9) sym=choice(IBM,SAP) urgent=true``.

A literal is an int or a float if it looks like one, a bool if it is ``true`` or ``false``, and text otherwise; in
``"..."`` it is text whatever it looks like. An attribute's name may stand in quotes too. Spaces are allowed around
commas and inside parentheses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor, isfinite
from random import Random
from typing import Final, TypeAlias

from holdfast.events.value import INT_MAX, INT_MIN, Value, shown, value_bytes
from holdfast.filters.lexer import WHITESPACE
from holdfast.scenarios.language import Line, quoted

__all__ = [
    "Choice",
    "Constant",
    "Distribution",
    "Literal",
    "RandInt",
    "Uniform",
    "attribute_text",
    "largest_value",
    "read_attributes",
]

Literal: TypeAlias = bool | int | float | str

_UNIFORM_DIGITS_MAX: Final = 12  # beyond 2**53 hundredths a float has no two decimals any more
_NUMBER: Final = re.compile(
    r"[+-]?(?:[0-9]+(?P<point>\.[0-9]*)?|(?P<bare>\.[0-9]+))(?P<power>[eE][+-]?[0-9]+)?\Z"
)
_INTEGER_CHARS_MAX: Final = 20  # a sign and the 19 digits of 64 bits
_DECIMAL: Final = re.compile(rf"[+-]?[0-9]{{1,{_UNIFORM_DIGITS_MAX}}}(?:\.[0-9]{{0,9}})?\Z")
_CALL: Final = re.compile(r"(uniform|randint|choice)\s*\(\s*", re.IGNORECASE)
#: What ends a bare literal, where a list of them may stand and where it may not.
_IN_LIST, _ALONE = f'{WHITESPACE},()"', f'{WHITESPACE}"'


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value every time."""

    value: Literal

    def draw(self, random: Random) -> Value:
        """The next value."""
        return self.value

    def __str__(self) -> str:
        return _literal_text(self.value)


@dataclass(frozen=True, slots=True)
class Uniform:
    """A float with two decimals: any hundredth from ``low`` to ``high``, each as likely."""

    low: Decimal
    high: Decimal

    @property
    def hundredths(self) -> tuple[int, int]:
        """The bounds, in whole hundredths."""
        return ceil(self.low * 100), floor(self.high * 100)

    def draw(self, random: Random) -> Value:
        """The next value."""
        return random.randint(*self.hundredths) / 100

    def __str__(self) -> str:
        return f"uniform({self.low:f},{self.high:f})"


@dataclass(frozen=True, slots=True)
class RandInt:
    """An int from ``low`` to ``high``, each as likely."""

    low: int
    high: int

    def draw(self, random: Random) -> Value:
        """The next value."""
        return random.randint(self.low, self.high)

    def __str__(self) -> str:
        return f"randint({self.low},{self.high})"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these values, each as likely."""

    values: tuple[Literal, ...]

    def draw(self, random: Random) -> Value:
        """The next value."""
        return self.values[random.randrange(len(self.values))]

    def __str__(self) -> str:
        return f"choice({','.join(map(_literal_text, self.values))})"


Distribution: TypeAlias = Constant | Uniform | RandInt | Choice


def largest_value(distribution: Distribution) -> Value:
    """The value that takes the most room."""
    match distribution:
        case Constant(value):
            return value
        case Choice(values):
            return max(values, key=value_bytes)
        case Uniform() | RandInt():
            return 0


def attribute_text(name: str, distribution: Distribution) -> str:
    """An attribute as it stands behind ``With``."""
    bare = name and not any(char in f'{WHITESPACE}="' or char.isspace() for char in name)
    return f"{name if bare else quoted(name)}={distribution}"


def _literal_text(value: Literal) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    bare = value and _bare_literal(value) == value and not any(c in _IN_LIST or c.isspace() for c in value)
    return value if bare else quoted(value)


def _bare_literal(text: str) -> Literal | None:
    """What a word without quotes stands for; None for a number out of range."""
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    number = _NUMBER.match(text)
    if number is None:
        return text
    if number["point"] is number["bare"] is number["power"] is None:
        in_range = len(text) <= _INTEGER_CHARS_MAX and INT_MIN <= int(text) <= INT_MAX
        return int(text) if in_range else None
    return float(text) if isfinite(float(text)) else None


def read_attributes(line: Line) -> tuple[tuple[str, Distribution], ...]:
    """The attributes behind ``With``, up to the keyword Payload or the end of the line; one at least."""
    found: dict[str, Distribution] = {}
    while not found or not (line.is_at_end() or line.is_at_keyword("Payload")):
        name = _read_name(line)
        if name in found:
            line.fail(f"the attribute {shown(name)} stands twice", "each attribute once")
        found[name] = _read_distribution(line, name)
    return tuple(found.items())


def _read_name(line: Line) -> str:
    expected = "an attribute, such as price=uniform(1,200)"
    if line.is_at_end():
        line.unexpected(expected)
    text = line.rest()
    if line.is_quoted():
        name, length = line.unquote(text)
    else:
        name = text.partition("=")[0]
        length = len(name)
        if any(char in f'{WHITESPACE}"' for char in name):
            line.unexpected(expected)
    if not name or text[length : length + 1] != "=":
        line.unexpected(expected)
    line.at += length + 1
    return name


def _read_distribution(line: Line, name: str) -> Distribution:
    call = _CALL.match(line.rest())
    if call is None:
        if line.text[line.at : line.at + 1] in ("", *WHITESPACE):
            line.fail(f"{shown(name)} has no value", f"a literal behind {shown(name)}=, without a space")
        value = Constant(_read_literal(line, _ALONE))
        _require_space(line)
        return value
    line.at += call.end()
    function = call[1].casefold()
    values: list[Literal] = []
    texts: list[str] = []
    while True:
        start = line.at
        values.append(_read_literal(line, _IN_LIST))
        texts.append(line.text[start : line.at])
        line.skip(0)
        if not line.text.startswith(",", line.at):
            break
        line.skip(1)
    if not line.text.startswith(")", line.at):
        line.unexpected(f"',' or ')' in {function}(...)")
    line.at += 1
    _require_space(line)
    if function == "choice":
        return Choice(tuple(values))
    return _uniform(line, texts) if function == "uniform" else _randint(line, values)


def _require_space(line: Line) -> None:
    if not line.is_at_end() and line.text[line.at] not in WHITESPACE:
        line.unexpected("a space before the next attribute")
    line.skip(0)


def _read_literal(line: Line, ends: str) -> Literal:
    if line.is_quoted():
        text, length = line.unquote(line.rest())
        line.at += length
        return text
    end = line.at
    while end < len(line.text) and line.text[end] not in ends:
        end += 1
    if end == line.at:
        line.unexpected('a number, true, false, a word or "text"')
    text = line.text[line.at : end]
    line.at = end
    value = _bare_literal(text)
    if value is None:
        line.fail(
            f"the number {shown(text)} is out of range", "64 bits, a finite float, or quotes around text"
        )
    return value


def _uniform(line: Line, texts: list[str]) -> Distribution:
    expected = "uniform(low,high) with numbers of at most 12 digits before the point, low <= high"
    if len(texts) != 2 or not all(map(_DECIMAL.match, texts)):
        line.fail("the bounds of uniform will not do", expected)
    distribution = Uniform(Decimal(texts[0]), Decimal(texts[1]))
    low, high = distribution.hundredths
    if low > high:
        line.fail(f"there is no number with two decimals in {distribution}", expected)
    return distribution


def _randint(line: Line, values: list[Literal]) -> Distribution:
    match values:
        case [int() as low, int() as high] if low <= high and type(low) is type(high) is int:
            return RandInt(low, high)
        case _:
            line.fail(
                "the bounds of randint will not do", "randint(low,high) with whole numbers, low <= high"
            )
