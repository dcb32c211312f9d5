"""LIKE without backtracking.

The pattern is cut at its ``%`` into segments. The first must stand at the start, the last at the end, and those
between are found leftmost, one after the other: taking the leftmost place never spoils a later one. A segment
without ``_`` is found by ``str.find``; one with ``_`` by shift-and [Baeza-Yates & Gonnet 1992], one step per
character with a bit per place of the segment. So a string is read once, whatever the pattern.
"""

from __future__ import annotations

from typing import Final, TypeAlias

__all__ = ["BadEscape", "LikePattern", "Parts", "like_covers"]

#: The segments between the ``%`` of a pattern, each a list of characters and, for ``_``, None.
Parts: TypeAlias = list[list[str | None]]


class BadEscape(ValueError):
    """The escape character stands before something it may not precede; ``at`` is its place in the pattern."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class _Segment:
    """A run of characters and ``_`` between two ``%``."""

    __slots__ = ("any_mask", "last", "length", "masks", "text")

    def __init__(self, places: list[str | None]) -> None:
        self.length = len(places)
        #: the characters, if there is no ``_`` among them
        self.text: str | None = "".join(p for p in places if p is not None) if None not in places else None
        self.any_mask = sum(1 << i for i, place in enumerate(places) if place is None)
        self.masks: dict[str, int] = {}
        for i, place in enumerate(places):
            if place is not None:
                self.masks[place] = self.masks.get(place, self.any_mask) | 1 << i
        self.last = 1 << self.length >> 1

    def stands_at(self, string: str, start: int) -> bool:
        if self.text is not None:
            return string.startswith(self.text, start)
        return self.find(string, start, start + self.length) >= 0

    def find(self, string: str, start: int, stop: int) -> int:
        """The end of the leftmost occurrence within [start, stop), or -1."""
        if self.text is not None:
            at = string.find(self.text, start, stop)
            return at + self.length if at >= 0 else -1
        state = 0
        masks, any_mask, last = self.masks, self.any_mask, self.last
        for i in range(start, min(stop, len(string))):
            state = (state << 1 | 1) & masks.get(string[i], any_mask)
            if state & last:
                return i + 1
        return -1


class LikePattern:
    """A parsed LIKE pattern.

    :raises BadEscape: if ``escape`` stands before anything but ``%``, ``_`` or itself.
    """

    __slots__ = ("_segments", "parts", "prefix", "shape")

    #: ``shape``: what kind of set of strings the pattern is
    EXACT: Final = "exact"  # no wildcard: the string ``prefix``
    PREFIX: Final = "prefix"  # ``prefix`` and anything
    GENERAL: Final = "general"  # begins with ``prefix``, and more

    def __init__(self, pattern: str, escape: str | None = None) -> None:
        self.parts: Final = _parts(pattern, escape)
        parts = self.parts
        self._segments = [_Segment(part) for part in parts]
        first = parts[0]
        literal = first.index(None) if None in first else len(first)
        self.prefix = "".join(p for p in first[:literal] if p is not None)
        if literal < len(first) or any(parts[1:]):
            self.shape = self.GENERAL
        else:
            self.shape = self.EXACT if len(parts) == 1 else self.PREFIX

    def matches(self, string: str) -> bool:
        """Whether the whole string matches; time linear in its length."""
        first, *others = self._segments
        if not others:
            return len(string) == first.length and first.stands_at(string, 0)
        last = others.pop()
        at, stop = first.length, len(string) - last.length
        if at > stop or not first.stands_at(string, 0) or not last.stands_at(string, stop):
            return False
        for segment in others:
            at = segment.find(string, at, stop)
            if at < 0:
                return False
        return True


def _parts(pattern: str, escape: str | None) -> Parts:
    parts: Parts = [[]]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            at += 1
            if pattern[at : at + 1] not in ("%", "_", escape):
                raise BadEscape(at - 1)
            parts[-1].append(pattern[at])
        elif char == "%":
            if parts[-1] or len(parts) == 1:
                parts.append([])
        else:
            parts[-1].append(None if char == "_" else char)
        at += 1
    return parts


def like_covers(general: Parts, special: Parts) -> bool:
    """Whether it is certain that one pattern matches every string another matches.

    The general pattern is laid over the special one as over a string: a character lies on the same character, ``_``
    on a character or ``_``, ``%`` on any run. Not found are pairs such as ``_%`` and ``%a``, where ``_`` would lie on
    part of a ``%``. One bit stands for each place of the special pattern, so it costs as little as matching.
    """
    singles, places, length = 0, dict[str, int](), 0
    for number, part in enumerate(special):
        length += number > 0  # the ``%`` before it, on which nothing but a ``%`` can lie
        for place in part:
            singles |= 1 << length
            if place is not None:
                places[place] = places.get(place, 0) | 1 << length
            length += 1
    reached = 1  # bit i: what was laid so far can end before place i
    for number, part in enumerate(general):
        if number > 0:
            # anywhere from the leftmost on
            reached = (1 << length + 1) - (reached & -reached) if reached else 0
        for place in part:
            reached = (reached & (singles if place is None else places.get(place, 0))) << 1
    return bool(reached >> length & 1)
