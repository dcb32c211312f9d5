"""Topic patterns: ``+`` stands for one level, a final ``#`` for the rest, including nothing (``a/#`` matches ``a``)."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import FilterError
from holdfast.filters.limits import DEFAULT_LIMITS, FilterLimits

__all__ = ["ANYTHING", "TopicPattern", "parse_pattern", "refuse_odd_space"]


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Levels to match, ``+`` for any one; with ``rest``, any further levels too."""

    levels: tuple[str, ...]
    rest: bool = False

    @property
    def is_literal(self) -> bool:
        """Whether it matches exactly one topic."""
        return not self.rest and "+" not in self.levels

    def matches(self, levels: list[str]) -> bool:
        """Whether an event's topic, split by ``topic_levels``, matches."""
        if len(levels) < len(self.levels) or (len(levels) > len(self.levels) and not self.rest):
            return False
        return all(mine in ("+", theirs) for mine, theirs in zip(self.levels, levels, strict=False))

    def covers(self, other: TopicPattern) -> bool:
        """Whether every topic the other matches is matched by this one.

        Exact but for one pair: ``+/#`` covers ``#``, since every topic has a level, and this says no.
        """
        if other.rest and not self.rest:
            return False
        if len(other.levels) < len(self.levels) or (len(other.levels) > len(self.levels) and not self.rest):
            return False
        return all(mine in ("+", theirs) for mine, theirs in zip(self.levels, other.levels, strict=False))

    def overlaps(self, other: TopicPattern) -> bool:
        """Whether there can be a topic that both match."""
        mine, theirs = self.levels, other.levels
        if (len(mine) < len(theirs) and not self.rest) or (len(theirs) < len(mine) and not other.rest):
            return False
        return all(a == b or "+" in (a, b) for a, b in zip(mine, theirs, strict=False))

    def __str__(self) -> str:
        text = "/".join((*self.levels, "#") if self.rest else self.levels)
        return f"/{text}" if not text or text.startswith("/") else text


ANYTHING = TopicPattern((), rest=True)


def parse_pattern(
    text: str, start: int = 0, end: int | None = None, limits: FilterLimits = DEFAULT_LIMITS
) -> TopicPattern:
    """Parse the topic pattern that stands at ``text[start:end]``.

    :raises FilterError: if a wildcard does not fill its level, ``#`` is not last, or it is empty or too long.
    """
    end = len(text) if end is None else end
    if start == end:
        expected = "a topic pattern ('#' stands for every topic)"
        raise FilterError("the filter is empty", text=text, offset=start, expected=expected)
    if end - start > limits.topic_chars:
        problem = f"the topic pattern has {end - start} characters"
        raise FilterError(problem, text=text, offset=start, expected=f"at most {limits.topic_chars}")
    at = start + text.startswith("/", start)
    levels = text[at:end].split("/")
    if len(levels) > limits.topic_levels:
        problem = f"the topic pattern has {len(levels)} levels"
        raise FilterError(problem, text=text, offset=start, expected=f"at most {limits.topic_levels}")
    for i, level in enumerate(levels):
        for wildcard in "+#":
            if wildcard in level and level != wildcard:
                refuse_odd_space(text, at, at + len(level))
                problem = f"'{wildcard}' is not alone in its level"
                offset = at + level.index(wildcard)
                raise FilterError(problem, text=text, offset=offset, expected="'/' around it")
        if level == "#" and i + 1 < len(levels):
            raise FilterError(
                "levels after '#'", text=text, offset=at + 1, expected="'#' to be the last level"
            )
        at += len(level) + 1
    rest = levels[-1] == "#"
    return TopicPattern(tuple(levels[:-1] if rest else levels), rest)


def refuse_odd_space(text: str, start: int, end: int) -> None:
    """Where a pattern is in trouble, a no-break space in it was probably meant to end it."""
    for at in range(start, end):
        if text[at].isspace():
            problem = f"character U+{ord(text[at]):04X} does not end the topic pattern"
            raise FilterError(problem, text=text, offset=at, expected="a plain space")
