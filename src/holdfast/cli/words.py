"""Names and numbers as people say them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

__all__ = ["NAMES_MAX", "counted", "duration", "listed", "moment", "plain", "sized", "they_are"]

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


def duration(elapsed: float) -> str:
    """A time as people say it, in its two largest units."""
    left = int(elapsed)
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if left >= size or (unit == "s" and not parts):
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2])


def sized(count: int) -> str:
    """So many bytes as people say it."""
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count:,} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def moment(at: datetime) -> str:
    """A time as the clock on the wall has it, with the day if that is not today."""
    local = at.astimezone()
    is_today = local.date() == datetime.now(local.tzinfo).date()
    return f"{local:%H:%M}" if is_today else f"{local:%Y-%m-%d %H:%M}"


def plain(text: str) -> str:
    """Without what would move a terminal's cursor or worse: the text is a stranger's."""
    return "".join(character if character.isprintable() else "·" for character in text)
