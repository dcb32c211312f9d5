"""The filter in a Subscribe or Unsubscribe line: quoted, or bare up to ``As``, ``Durable`` or the end of the line.

A bare filter may itself contain those words: inside a string, or as the name of an attribute. Where the filter ends is
still never in doubt, for no filter continues with a name once it is complete: of all places where it could end, at
most one leaves a filter on the left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NoReturn

from holdfast.errors import FilterError
from holdfast.filters.expression import Filter
from holdfast.filters.lexer import WHITESPACE
from holdfast.filters.parse import parse_filter
from holdfast.scenarios.language import Line

__all__ = ["read_filter_before_clauses", "read_whole_filter"]

_WORD: Final = re.compile(rf"[^{WHITESPACE}]+")


def read_filter_before_clauses(line: Line) -> tuple[str, Filter]:
    """The filter that stands here, as text and tree; ``As`` and ``Durable`` are left to be taken."""
    if line.is_quoted() or line.is_at_end():
        return _read_quoted(line)
    rest = line.rest()
    first_error: FilterError | None = None
    for end in _possible_ends(rest):
        text = rest[:end].rstrip(WHITESPACE)
        try:
            filter = parse_filter(text)
        except FilterError as error:
            first_error = first_error or error
        else:
            line.skip(end)
            return text, filter
    assert first_error is not None, "the end of the line is always a possible end"
    _refuse(line, first_error)


def read_whole_filter(line: Line) -> tuple[str, Filter]:
    """The filter up to the end of the line, as text and tree."""
    if line.is_quoted() or line.is_at_end():
        return _read_quoted(line)
    text = line.rest()
    line.skip(len(text))
    return text, _parse(line, text)


def _read_quoted(line: Line) -> tuple[str, Filter]:
    text = line.word("a filter")
    return text, _parse(line, text)


def _parse(line: Line, text: str) -> Filter:
    try:
        return parse_filter(text)
    except FilterError as error:
        _refuse(line, error)


def _refuse(line: Line, error: FilterError) -> NoReturn:
    line.fail(f"the filter, column {error.column}: {error.problem}", error.expected)


def _possible_ends(rest: str) -> Iterator[int]:
    """Where a bare filter may end, by the words alone: before the longest run of clauses first, and at the end."""
    words = list(_WORD.finditer(rest))
    tail = [word[0].casefold() for word in words[-3:]]
    clauses = []
    if len(tail) == 3 and tail[0] == "as" and tail[2] == "durable":
        clauses.append(3)
    if len(tail) >= 2 and tail[-2] == "as":
        clauses.append(2)
    if tail[-1] == "durable":
        clauses.append(1)
    for count in clauses:
        if count < len(words) and not _is_in_quotes(rest[words[0].end() : words[-count].start()]):
            yield words[-count].start()
    yield len(rest)


def _is_in_quotes(condition: str) -> bool:
    """Whether a string or quoted name is still open where this ends."""
    quote = ""
    for char in condition:
        if not quote and char in "'\"":
            quote = char
        elif char == quote:  # a doubled quote closes and opens again, which comes to the same
            quote = ""
    return bool(quote)
