"""Tokens of the condition language, each with the place where it stands.

Whitespace is ASCII whitespace. A number must end where a word cannot begin, so ``1abc`` is one error, not a number
and a name. What other dialects write and this one does not (``!=``, ``==``, ``&&``, ``;``, comments) is refused with
what to write instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from holdfast.errors import FilterError
from holdfast.events.value import shown

__all__ = ["KEYWORDS", "WHITESPACE", "Token", "TokenKind", "tokens"]

WHITESPACE: Final = " \t\n\r\f\v"
KEYWORDS: Final = frozenset(
    (
        "WHERE",
        "AND",
        "OR",
        "NOT",
        "BETWEEN",
        "IN",
        "LIKE",
        "ESCAPE",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "XPATH",
        "SHARD",
    )
)

# Every alternative is a fixed sequence of character classes: the scanner never backtracks over text it took.
_TOKEN: Final = re.compile(
    r"(?P<space>[ \t\n\r\f\v]+)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<symbol><=|>=|<>|[=<>()+\-*/,])"
)
_SHOWN_MAX: Final = 24  # characters of a token in a message
_QUOTES: Final = {"'": "string", '"': "quoted name"}
#: Operators of other dialects that begin like ours; looked up before two tokens are made of them.
_SLIPS: Final = {"==": "'='", "=<": "'<='", "=>": "'>='", "><": "'<>'"}
_ADVICE: Final = {
    "!=": "'<>'",
    "&&": "AND",
    "||": "OR",
    ";": "the end of the filter",
    "!": "NOT",
    "%": "one of + - * /",
    ".": 'quotation marks around a name with a dot: "a.b"',
    "`": 'an attribute\'s name, or "…" around it',
    "[": "an attribute's name",
    "@": "an attribute's name; payload attributes are read with XPATH '…'",
    "?": "a literal",
    ":": "a literal",
    **dict.fromkeys("‘’‚“”„«»´", "a string in ' or a name in \""),
}


class TokenKind(Enum):
    """What a token is."""

    KEYWORD = auto()
    NAME = auto()
    STRING = auto()
    INTEGER = auto()
    FLOAT = auto()
    SYMBOL = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """One token: ``value`` is the keyword in capitals, the symbol, the name, or the constant's own text."""

    kind: TokenKind
    value: str
    offset: int
    shown: str  #: as the user wrote it

    def __str__(self) -> str:
        if self.kind is TokenKind.END:
            return "end of the filter"
        cut = shown(self.shown if len(self.shown) <= _SHOWN_MAX else self.shown[: _SHOWN_MAX - 1] + "…")
        if self.shown[0] in _QUOTES:
            return f"{_QUOTES[self.shown[0]]} {cut}"
        return f"'{cut}'"


def tokens(text: str, start: int) -> list[Token]:
    """The tokens from ``start`` on, closed by one of kind END.

    :raises FilterError: at the first character that begins no token.
    """
    found: list[Token] = []
    at = start
    while at < len(text):
        if text[at] in "'\"":
            found.append(_quoted(text, at))
            at += len(found[-1].shown)
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise _stranger(text, at)
        if match.lastgroup != "space":
            found.append(_token(text, match))
        at = match.end()
    # The filter ends where its last word does: an error "at the end" is not on an empty line below it.
    found.append(Token(TokenKind.END, "", len(text.rstrip(WHITESPACE)), ""))
    return found


def _token(text: str, match: re.Match[str]) -> Token:
    value, at = match.group(), match.start()
    if match.lastgroup == "symbol":
        _refuse_slips(text, at)
        return Token(TokenKind.SYMBOL, value, at, value)
    if match.lastgroup == "word":
        if value.upper() in KEYWORDS:
            return Token(TokenKind.KEYWORD, value.upper(), at, value)
        return Token(TokenKind.NAME, value, at, value)
    number = Token(TokenKind.INTEGER if value.isdigit() else TokenKind.FLOAT, value, at, value)
    following = text[match.end() : match.end() + 1]
    if following and (following.isalnum() or following in "_$."):
        problem = f"'{following}' directly after the number {number}"
        raise FilterError(problem, text=text, offset=match.end(), expected="a space or an operator")
    return number


def _refuse_slips(text: str, at: int) -> None:
    pair = text[at : at + 2]
    if pair in _SLIPS:
        raise FilterError(f"unknown operator '{pair}'", text=text, offset=at, expected=_SLIPS[pair])
    if pair in ("/*", "//") or (pair == "--" and _begins_prose(text[at + 2 :])):
        raise FilterError(
            f"unexpected '{pair}'", text=text, offset=at, expected="no comment: a filter has none"
        )


def _begins_prose(rest: str) -> bool:
    """Whether what follows ``--`` is meant as a comment: a space and a word, or nothing.

    ``price > 5 -- dear`` would be read as 5 minus minus dear and never match. ``--5``, ``-- 5`` and ``- -dear`` are
    arithmetic (docs/decisions/0006).
    """
    following = rest.lstrip(WHITESPACE)[:1]
    return rest[:1] in ("", *WHITESPACE) and (not following or following.isalpha() or following == "_")


def _quoted(text: str, at: int) -> Token:
    """``'…'`` or ``"…"``, the quote itself doubled inside."""
    quote = text[at]
    end = at + 1
    while True:
        end = text.find(quote, end)
        if end < 0:
            expected = f"a closing {quote} ({quote * 2} is one inside)"
            problem = f"the {_QUOTES[quote]} does not end"
            raise FilterError(problem, text=text, offset=at, expected=expected)
        if text[end + 1 : end + 2] != quote:
            break
        end += 2
    value = text[at + 1 : end].replace(quote * 2, quote)
    shown = text[at : end + 1]
    if quote == "'":
        return Token(TokenKind.STRING, value, at, shown)
    if not value:
        raise FilterError("a quoted name is empty", text=text, offset=at, expected="an attribute's name")
    return Token(TokenKind.NAME, value, at, shown)


def _stranger(text: str, at: int) -> FilterError:
    for wrong in (text[at : at + 2], text[at]):
        if wrong in _ADVICE:
            return FilterError(f"unexpected '{wrong}'", text=text, offset=at, expected=_ADVICE[wrong])
    char = text[at]
    what = f"'{char}'" if char.isprintable() else f"character U+{ord(char):04X}"
    if char.isspace():
        expected = "a plain space"
    elif char.isalnum():
        expected = f"quotation marks around a name with '{char}': \"…\""
    else:
        expected = "an attribute, a literal or an operator"
    return FilterError(f"unexpected {what}", text=text, offset=at, expected=expected)
