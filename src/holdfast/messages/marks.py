"""Marks: what a publisher says of itself where events may have been lost.

A mark travels the way of its publisher's events, behind them, to everybody, whatever they subscribe to. So who gets it
has had everything before it that was not lost. It is a publication with a number that no event has, 0 or less; its
content is up to where its publisher has published, and of which lapses it knew.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from holdfast.messages.overlay import PLACES_MAX
from holdfast.messages.publications import Publication

__all__ = ["Answers", "Mark", "is_mark", "new_mark", "read_mark"]

#: Lapses, by the node that noticed: its incarnation, and the number.
Answers = dict[str, tuple[int, int]]


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """Everything up to a number has been sent before."""

    upto: int
    answers: Annotated[Answers, msgspec.Meta(max_length=PLACES_MAX)]


_encode: Final = msgspec.msgpack.Encoder().encode
_decoder: Final = msgspec.msgpack.Decoder(Mark)


def new_mark(publisher: str, number: int, mark: Mark) -> Publication:
    """A mark on its way; ``number`` tells those of one publisher apart."""
    return Publication(publisher, -number, _encode(mark))


def is_mark(publication: Publication) -> bool:
    """Whether it is a mark and no event."""
    return publication.n <= 0


def read_mark(publication: Publication) -> Mark:
    """What a mark says.

    :raises ValueError: if it cannot be read.
    """
    try:
        return _decoder.decode(publication.event)
    except msgspec.DecodeError as error:
        raise ValueError(f"a mark of {publication.publisher} that cannot be read: {error}") from error
