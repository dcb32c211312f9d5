"""On which line of a TOML file each key stands, so that an error about its value can say where.

``tomllib`` gives the values of a file and the place of a syntax error, but not the places of the values. This
walks over a text that ``tomllib`` has accepted, so it need not find out what is legal: only what is a key, and
where a value ends. A place is a path of keys, with positions (from 0) for the elements of arrays.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final

__all__ = ["Path", "line_of", "places"]

Path = tuple[str | int, ...]

_SPACE: Final = re.compile(r"[ \t]*")
_SPACE_AND_COMMENTS: Final = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE: Final = re.compile(r"[^,\]}#\n]+")
_STRINGS: Final = (  # the longer quotes first; a string in three quotes may end with up to two more of its own
    re.compile(r'"""(?:[^\\"]|\\.|"{1,2}(?!"))*"{3,5}', re.DOTALL),
    re.compile(r"'''(?:[^']|'{1,2}(?!'))*'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^\\"\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)


def places(text: str) -> dict[Path, int]:
    """The line, from 1, of every key, table and element of an array in a text that ``tomllib`` accepts."""
    return _Walk(text).places


def line_of(found: dict[Path, int], path: Path) -> int:
    """The line of a path, or of the nearest thing around it that is in the file: what is missing has no line."""
    while path and path not in found:
        path = path[:-1]
    return found.get(path, 1)


class _Walk:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted = 0  # newlines were counted up to here
        self._line = 1
        self._last_of: dict[Path, int] = {}  # the position of the latest table in each array of tables
        self.places: dict[Path, int] = {}
        self._document()

    def _document(self) -> None:
        table: Path = ()
        while self._more():
            if self._took("[["):
                *above, last = self._key()
                array = (*self._resolved(above), last)
                self._note(array)
                self._last_of[array] = self._last_of.get(array, -1) + 1
                table = (*array, self._last_of[array])
                self._note(table)
                self._take("]]")
            elif self._took("["):
                table = self._resolved(self._key())
                self._note(table)
                self._take("]")
            else:
                self._pair(table)

    def _pair(self, table: Path) -> None:
        path = table
        for part in self._key():
            path = (*path, part)
            self._note(path)
        self._take("=")
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip(_SPACE)
        if self._took("["):
            position = 0
            while self._more() and not self._took("]"):
                self._note((*path, position))
                self._value((*path, position))
                position += 1
        elif self._took("{"):
            while self._more() and not self._took("}"):
                self._pair(path)
        elif self._string() is None:
            self._skip(_BARE_VALUE)

    def _key(self) -> list[str]:
        """The parts of a dotted key, each bare or in quotes."""
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            quoted = self._string()
            if quoted is None:
                parts.append(self._skip(_BARE_KEY))
            else:
                parts.append(tomllib.loads(f"key = {quoted}")["key"])
            self._skip(_SPACE)
            if not self._took("."):
                return parts

    def _string(self) -> str | None:
        for quoted in _STRINGS:
            if quoted.match(self._text, self._at):
                return self._skip(quoted)
        return None

    def _resolved(self, parts: list[str]) -> Path:
        """What a header's key means: in an array of tables, the latest one."""
        path: Path = ()
        for part in parts:
            path = (*path, part)
            if path in self._last_of:
                path = (*path, self._last_of[path])
        return path

    def _note(self, path: Path) -> None:
        """Remember the line we are on; of a table opened twice, the first."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        for length in range(1, len(path) + 1):
            self.places.setdefault(path[:length], self._line)

    def _more(self) -> bool:
        """Go to the next thing that is neither space, comma nor comment, if there is one."""
        self._skip(_SPACE_AND_COMMENTS)
        return self._at < len(self._text)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        assert found is not None, f"no TOML at character {self._at}"
        self._at = found.end()
        return found[0]

    def _took(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _take(self, text: str) -> None:
        self._skip(_SPACE)
        took = self._took(text)
        assert took, f"no {text} at character {self._at}"
