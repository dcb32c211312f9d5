"""Lines, words and numbers: what configurations and scripts are written in, and how they are refused.

One directive per line; ``#`` first on a line starts a comment; a word ends at a space, or stands in ``"..."`` with
``""`` for a quote inside; keywords are case-insensitive and never quoted. A ``Line`` is read from the left, so that a
directive whose tail has a grammar of its own (a filter, a list of attributes) takes the rest as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NoReturn, TypeVar

from holdfast.clock import MILLISECOND
from holdfast.errors import CallersFault
from holdfast.events.value import shown
from holdfast.filters.lexer import WHITESPACE

__all__ = [
    "NAME_CHARS_MAX",
    "Line",
    "ScenarioError",
    "lines_of",
    "milliseconds_text",
    "quoted",
    "read_each",
    "together",
    "word_text",
]

T = TypeVar("T")

NAME_CHARS_MAX: Final = 64
_WHOLE_MILLISECONDS_DIGITS: Final = 12  # 31 years; as nanoseconds it fits in 64 bits
_NAME: Final = re.compile(r"\w[\w.-]*\Z")
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}\Z")
_MILLISECONDS: Final = re.compile(rf"(-?)([0-9]{{1,{_WHOLE_MILLISECONDS_DIGITS}}})(?:\.([0-9]{{1,6}}))?\Z")
_SHARE: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\Z")
_BARE: Final = re.compile(r"[^\s\"]+\Z")


class ScenarioError(CallersFault):
    """A configuration or script that is refused: file, line from 1, why, and what was expected there.

    ``also`` holds what else is wrong with the same file; the text names everything, one problem per line.
    """

    def __init__(
        self,
        file: str,
        line: int,
        problem: str,
        expected: str | None = None,
        *,
        also: Sequence[ScenarioError] = (),
    ) -> None:
        self.file = file
        self.line = line
        self.problem = problem
        self.expected = expected
        self.also = tuple(also)
        wanted = f"; expected {expected}" if expected else ""
        super().__init__("\n".join([f"{file}, line {line}: {problem}{wanted}", *map(str, self.also)]))

    @property
    def problems(self) -> tuple[ScenarioError, ...]:
        """The error itself and the others, in the order of the file."""
        return (self, *self.also)


def together(errors: Sequence[ScenarioError]) -> ScenarioError:
    """All that is wrong with a file, as one error; there must be something wrong with it."""
    flat = sorted((one for error in errors for one in error.problems), key=lambda one: one.line)
    first = flat[0]
    also = [ScenarioError(one.file, one.line, one.problem, one.expected) for one in flat[1:]]
    return ScenarioError(first.file, first.line, first.problem, first.expected, also=also)


class Line:
    """One directive, read from the left; ``at`` is how far.

    Every method that takes something raises ScenarioError if it is not there.
    """

    def __init__(self, file: str, number: int, text: str) -> None:
        self.file = file
        self.number = number
        self.text = text.rstrip(WHITESPACE)
        self.at = 0
        self._skip_space()

    def _skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in WHITESPACE:
            self.at += 1

    def fail(self, problem: str, expected: str | None = None) -> NoReturn:
        """Refuse this line."""
        raise self.error(problem, expected)

    def error(self, problem: str, expected: str | None = None) -> ScenarioError:
        """An error about this line."""
        return ScenarioError(self.file, self.number, problem, expected)

    def unexpected(self, expected: str) -> NoReturn:
        """Refuse what stands here."""
        self.fail("the line ends" if self.is_at_end() else f"unexpected '{shown(self.peek())}'", expected)

    def refuse_odd_characters(self) -> None:
        """Text that has no UTF-8, and NUL, have no place in names, topics and filters."""
        for char in self.text:
            if char == "\0" or "\ud800" <= char <= "\udfff":
                self.fail(f"character U+{ord(char):04X} is not allowed")

    # Looking

    def is_at_end(self) -> bool:
        """Whether everything has been taken."""
        return self.at >= len(self.text)

    def is_quoted(self) -> bool:
        """Whether a quoted word comes next."""
        return self.text.startswith('"', self.at)

    def peek(self) -> str:
        """The next word as it stands, quotes and all; empty at the end."""
        end = self.at
        while end < len(self.text) and self.text[end] not in WHITESPACE:
            end += 1
        return self.text[self.at : end]

    def is_at_keyword(self, keyword: str) -> bool:
        """Whether this keyword comes next."""
        return self.peek().casefold() == keyword.casefold()

    # Taking

    def rest(self) -> str:
        """All that is left, as it stands."""
        return self.text[self.at :]

    def skip(self, chars: int) -> None:
        """Go on behind the next ``chars`` characters of ``rest`` and the space after them."""
        self.at += chars
        self._skip_space()

    def word(self, expected: str) -> str:
        """The next word, without its quotes."""
        if self.is_at_end():
            self.unexpected(expected)
        if not self.is_quoted():
            word = self.peek()
            self.skip(len(word))
            return word
        word, length = self.unquote(self.rest())
        following = self.text[self.at + length : self.at + length + 1]
        if following and following not in WHITESPACE:
            self.fail(f"'{shown(following)}' directly after a closing quote", 'a space, or "" for a quote')
        self.skip(length)
        return word

    def unquote(self, text: str) -> tuple[str, int]:
        """The value and the length of the quoted string ``text`` begins with."""
        end = 1
        while True:
            end = text.find('"', end)
            if end < 0:
                self.fail("a quote is not closed", '"')
            if text[end + 1 : end + 2] != '"':
                return text[1:end].replace('""', '"'), end + 1
            end += 2

    def end(self, expected: str = "the end of the line") -> None:
        """Nothing more may follow."""
        if not self.is_at_end():
            self.unexpected(expected)

    def take_keyword(self, keyword: str) -> bool:
        """Take this keyword if it comes next."""
        found = self.is_at_keyword(keyword)
        if found:
            self.skip(len(self.peek()))
        return found

    def keyword(self, *choices: str) -> str:
        """One of these keywords, spelt as given here."""
        for choice in choices:
            if self.take_keyword(choice):
                return choice
        self.unexpected(_listed(choices))

    def name(self, what: str) -> str:
        """A name: a letter, digit or ``_``, then those, ``.`` and ``-``; fit to name a file, too."""
        word = self.word(what)
        if not _NAME.match(word):
            self.fail(f"'{shown(word)}' is no name", f"{what}: letters, digits, '_', '-' and '.'")
        if len(word) > NAME_CHARS_MAX:
            self.fail(f"the name '{shown(word)}' has {len(word)} characters", f"at most {NAME_CHARS_MAX}")
        return word

    def integer(self, what: str, low: int, high: int) -> int:
        """A whole number within bounds."""
        expected = f"{what}, a whole number from {low} to {high}"
        word = self.word(expected)
        if not _INTEGER.match(word) or not low <= int(word) <= high:
            self.fail(f"'{shown(word)}' will not do", expected)
        return int(word)

    def milliseconds(self, what: str, *, positive: bool = False, signed: bool = False) -> int:
        """A time in milliseconds, with up to six decimals, as nanoseconds; ``positive``: more than none."""
        expected = f"{what}: milliseconds{' above 0' if positive else ''}, such as 200 or 0.5"
        word = self.word(expected)
        found = _MILLISECONDS.match(word)
        if found is None:
            self.fail(f"'{shown(word)}' will not do", expected)
        sign, whole, decimals = found.groups(default="")
        value = int(whole) * MILLISECOND + int(decimals.ljust(6, "0"))
        if (sign and not signed) or (positive and not value):
            self.fail(f"'{shown(word)}' will not do", expected)
        return -value if sign else value

    def share(self, what: str) -> float:
        """A share of everything, from 0 to 1."""
        expected = f"{what}: a share from 0 to 1, such as 0.05"
        word = self.word(expected)
        if not _SHARE.match(word) or not 0 <= float(word) <= 1:
            self.fail(f"'{shown(word)}' will not do", expected)
        return float(word)


def lines_of(text: str, file: str) -> Iterator[Line]:
    """The lines that say something: no comments, no blank ones."""
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = Line(file, number, raw)
        if not line.is_at_end() and line.text[line.at] != "#":
            yield line


def read_each(lines: Iterable[Line], read: Callable[[Line], T], errors: list[ScenarioError]) -> list[T]:
    """What ``read`` makes of each line; the lines it refuses are collected in ``errors``."""
    made: list[T] = []
    for line in lines:
        try:
            line.refuse_odd_characters()
            made.append(read(line))
        except ScenarioError as error:
            errors.append(error)
    return made


def _listed(choices: Sequence[str]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


def quoted(text: str) -> str:
    """A word in quotes."""
    return '"' + text.replace('"', '""') + '"'


def word_text(text: str) -> str:
    """A word as it may stand in a line, quoted if it must be."""
    return text if _BARE.match(text) else quoted(text)


def milliseconds_text(ns: int) -> str:
    """Nanoseconds as ``milliseconds`` reads them."""
    whole, decimals = divmod(abs(ns), MILLISECOND)
    fraction = f".{decimals:06}".rstrip("0") if decimals else ""
    return f"{'-' if ns < 0 else ''}{whole}{fraction}"
