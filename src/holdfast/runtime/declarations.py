"""Declared attributes: names with types, as text, in the words of Spark's DDL: ``price DOUBLE, `order id` BIGINT``.

They become the typed columns of ``a`` where a stream is a table [contracts.md §7]. An attribute has one of five types,
and so has a declaration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from holdfast.errors import CallersFault

__all__ = ["KINDS", "BadDeclaration", "ddl_of", "declared_in"]

#: By Spark's name of a type the Python type of the values that have it.
KINDS: Final[dict[str, type]] = {
    "BOOLEAN": bool,
    "BIGINT": int,
    "DOUBLE": float,
    "STRING": str,
    "BINARY": bytes,
}
_ALIASES: Final = {"LONG": "BIGINT"}
_FIELD: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([A-Za-z_][A-Za-z0-9_]*))(?:\s*:\s*|\s+)([A-Za-z]+)\s*")


class BadDeclaration(CallersFault):
    """A text that declares no attributes; ``problem`` says what is wrong, and where."""

    def __init__(self, problem: str, expected: str = "") -> None:
        super().__init__(f"{problem}; expected {expected}" if expected else problem)
        self.problem = problem
        self.expected = expected


def declared_in(ddl: str) -> dict[str, str]:
    """By name the type, in the order of the text.

    :raises BadDeclaration: naming what is wrong, and where.
    """
    found: dict[str, str] = {}
    at = 0
    while True:
        field = _FIELD.match(ddl, at)
        if field is None or ddl[field.end() : field.end() + 1] not in ("", ","):
            problem = f"{ddl[at : at + 40]!r} at character {at + 1} declares no attribute"
            raise BadDeclaration(problem, "such as price DOUBLE, `order id` BIGINT")
        name = field[2] or field[1].replace("``", "`")
        kind = _ALIASES.get(field[3].upper(), field[3].upper())
        if kind not in KINDS:
            raise BadDeclaration(f"{name} is {field[3]}", ", ".join(KINDS))
        if name.lower() in map(str.lower, found):
            raise BadDeclaration(f"{name} is declared twice, as Spark sees it")
        found[name] = kind
        at = field.end() + 1
        if at > len(ddl):
            return found


def ddl_of(attributes: Mapping[str, str]) -> str:
    """The text that declares them."""
    return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in attributes.items())
