"""Names and numbers as people say them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["NAMES_MAX", "counted", "listed", "they_are"]

#: Longer lists are cut.
NAMES_MAX: Final = 8
_SMALL: Final = ("no", "one", "two", "three", "four", "five", "six")


def listed(names: Sequence[str], most: int = NAMES_MAX) -> str:
    """Names with commas and an "and"; of many the first, and how many others there are."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} others"
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """A number and its noun: "one broker", "7 brokers"."""
    number = _SMALL[count] if count < len(_SMALL) else f"{count:,}"
    return f"{number} {noun if count == 1 else nouns or noun + 's'}"


def they_are(count: int) -> str:
    """For so many things: "it is" or "they are"."""
    return "it is" if count == 1 else "they are"
