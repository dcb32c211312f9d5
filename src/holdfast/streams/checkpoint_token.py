"""Checkpoint tokens: how far a subscriber has consumed each pubend [BZA §2, R1.6, R1.8].

A token is a value, to be kept by whoever consumes, in its own transaction if it likes. Its text has a version and a
checksum, so that what was cut off, mistyped or made by somebody else is refused, and not taken for another place in the
stream. It is as long as what it says: about 20 characters and, for each pubend, its name and a dozen more.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, NamedTuple

import msgspec
from google_crc32c import value as crc32c

from holdfast.errors import CallersFault
from holdfast.events.value import kind_of

__all__ = ["InvalidToken", "Place", "Token"]

PREFIX: Final = "hf1."
TEXT_MAX: Final = 1 << 20


class InvalidToken(CallersFault):
    """A text that is no token, or not one of ours any more."""


class Place(NamedTuple):
    """Everything of a pubend up to a tick has been consumed; the incarnation is that of the log that gave the tick."""

    incarnation: int
    tick: int


_Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_encode: Final = msgspec.msgpack.Encoder(order="sorted").encode
_decoder: Final = msgspec.msgpack.Decoder(dict[str, tuple[_Number, _Number]])


class Token(Mapping[str, Place]):
    """By pubend the place; those it does not name were unknown when it was made. Immutable, and hashable."""

    __slots__ = ("_hash", "_places")

    def __init__(self, places: Mapping[str, Place] | None = None) -> None:
        if places is not None and not isinstance(places, Mapping):
            raise InvalidToken(f"a token is made of places, not of {kind_of(places)}; Token.parse reads one")
        self._places = dict(sorted((places or {}).items()))
        self._hash = hash(tuple(self._places.items()))

    def __getitem__(self, pubend: str) -> Place:
        return self._places[pubend]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and self._places == other._places

    def __repr__(self) -> str:
        inner = ", ".join(f"{pubend}: {place.tick}" for pubend, place in self._places.items())
        return f"Token({inner})"

    def advanced(self, pubend: str, place: Place) -> Token:
        """After more of one pubend; a place never goes back [B1.10]."""
        if self._places.get(pubend, Place(0, 0)) >= place:
            return self
        return Token({**self._places, pubend: place})

    # Text

    def __str__(self) -> str:
        data = _encode(self._places)
        return PREFIX + urlsafe_b64encode(crc32c(data).to_bytes(4, "big") + data).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Token:
        """A token from its text.

        :raises InvalidToken: if it is none.
        """
        if not isinstance(text, str):
            raise InvalidToken(f"a token is read from text, not from {kind_of(text)}")
        if len(text) > TEXT_MAX:
            raise InvalidToken(f"a token has at most {TEXT_MAX} characters, this has {len(text)}")
        if not text.startswith(PREFIX):
            version = text.partition(".")[0][:20]
            raise InvalidToken(
                f"a token begins with {PREFIX}, not with {version!r}: from another version, or no token"
            )
        body = text[len(PREFIX) :]
        try:
            data = urlsafe_b64decode(body + "=" * (-len(body) % 4))
        except (binascii.Error, ValueError) as error:
            raise InvalidToken(f"a token that is not whole: {error}") from error
        if urlsafe_b64encode(data).decode().rstrip("=") != body:
            raise InvalidToken("a token with characters that do not belong there")
        if crc32c(data[4:]).to_bytes(4, "big") != data[:4]:
            raise InvalidToken("a token that is not as it was made: its checksum is wrong")
        try:
            places = _decoder.decode(data[4:])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidToken(f"a token that cannot be read: {error}") from error
        return cls({pubend: Place(*place) for pubend, place in places.items()})
