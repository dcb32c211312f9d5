"""Pieces of Spark SQL: text that knows how tightly it binds, attributes of the VARIANT, literals."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from holdfast.events.value import lone_surrogate
from holdfast.filters.expression import Scalar
from holdfast.filters.region import Cut

__all__ = [
    "AND",
    "ATOM",
    "FALSE_SQL",
    "NOT",
    "OR",
    "PRODUCT",
    "SIGN",
    "SUM",
    "TRUE_SQL",
    "Sql",
    "all_of",
    "any_of",
    "cast_sql",
    "encodable_cut",
    "equality",
    "field_sql",
    "literal_sql",
    "negation",
    "string_sql",
    "type_test",
]


# How tightly SQL binds: conditions, and in the same places numbers.
OR, AND, NOT, ATOM = range(4)
SUM, PRODUCT, SIGN = range(3)


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL and how tightly it binds."""

    text: str
    binding: int = ATOM

    def within(self, binding: int) -> str:
        """The text as an operand where everything that binds at least so tightly can stand."""
        return self.text if self.binding >= binding else f"({self.text})"


TRUE_SQL: Final = Sql("TRUE")
FALSE_SQL: Final = Sql("FALSE")


def all_of(parts: Iterable[Sql]) -> Sql:
    """AND of the parts."""
    return _joined(list(parts), " AND ", AND, neutral=TRUE_SQL, absorbing=FALSE_SQL)


def any_of(parts: Iterable[Sql]) -> Sql:
    """OR of the parts."""
    return _joined(list(parts), " OR ", OR, neutral=FALSE_SQL, absorbing=TRUE_SQL)


def _joined(parts: list[Sql], word: str, binding: int, *, neutral: Sql, absorbing: Sql) -> Sql:
    if absorbing in parts:
        return absorbing
    parts = [part for part in parts if part != neutral]
    if len(parts) <= 1:
        return parts[0] if parts else neutral
    return Sql(word.join(part.within(binding) for part in parts), binding)


def negation(part: Sql) -> Sql:
    """NOT; only for what is never NULL where it matters."""
    return Sql(f"NOT {part.within(ATOM)}", NOT)


def equality(value: str, literals: list[str], *, negated: bool = False) -> Sql:
    """Whether a value is one of the literals, or none of them."""
    if len(literals) == 1:
        return Sql(f"{value} {'<>' if negated else '='} {literals[0]}")
    return Sql(f"{value} {'NOT IN' if negated else 'IN'} ({', '.join(literals)})")


_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def field_sql(name: str) -> str:
    """An attribute as a VARIANT, NULL if absent."""
    if _PLAIN_NAME.fullmatch(name):
        return f"attributes:{name}"
    quote = "'" if '"' in name else '"'
    if quote not in name:
        return f"variant_get(attributes, {string_sql(f'$[{quote}{name}{quote}]')})"
    return f"try_cast(attributes AS MAP<STRING, VARIANT>)[{string_sql(name)}]"  # paths cannot escape a quote


def type_test(name: str, *types: str) -> Sql:
    """Whether an attribute is there and has one of the types."""
    return equality(f"schema_of_variant({field_sql(name)})", [f"'{sql_type}'" for sql_type in types])


def cast_sql(name: str, sql_type: str) -> str:
    """The value of an attribute as a type; beside a ``type_test``, for a VARIANT casts itself to anything."""
    return f"try_cast({field_sql(name)} AS {sql_type})"


def literal_sql(value: Scalar) -> str:
    """A constant."""
    if isinstance(value, str):
        return string_sql(value)
    if isinstance(value, float):
        return f"{value!r}D"
    return str(value)


def string_sql(text: str) -> str:
    """A string literal that reads the same on any terminal, and in which Spark substitutes no ``${variable}``."""
    return "'" + text.translate(_Escapes()).replace("${", "\\u0024{") + "'"


class _Escapes(dict[int, str]):
    """For ``str.translate``: what stands for each character in a string literal."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char in "\\'":
            char = "\\" + char
        elif not char.isprintable():
            char = f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        self[code] = char
        return char


def encodable_cut(cut: Cut) -> Cut:
    """The same place among strings without surrogates: one can come from raising U+D7FF, the end of a prefix."""
    at = lone_surrogate(cut[0]) if isinstance(cut[0], str) else None
    return cut if at is None else (cut[0][:at] + "\ue000", 0)
