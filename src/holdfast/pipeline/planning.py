"""From where to where is read, and by how many tasks: functions of two places and nothing else.

A place is a tick for each pubend. What is between two of them is read by tasks, each a range of ticks of one pubend;
the same two places make the same tasks, whenever and wherever they are planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.pipeline.errors import BadOption
from holdfast.pipeline.options import Offset
from holdfast.pipeline.ranges import End
from holdfast.streams.checkpoint_token import Place, Token
from holdfast.streams.pubend_names import stream_in

__all__ = ["TickRange", "placed", "ranges_between", "token_of"]

Places = Mapping[str, Tick]


class TickRange(NamedTuple):
    """(after, upto] of a pubend."""

    pubend: str
    after: Tick
    upto: Tick


def placed(offset: Offset, ends: Mapping[str, End], stream: str, option: str) -> dict[str, Tick]:
    """A tick for each pubend there is.

    A pubend that a token does not name is meant from its beginning: it was not known then.

    :raises BadOption: if a token names a pubend of the stream that does not exist.
    """
    if isinstance(offset, Token):
        unknown = [each for each in offset if stream_in(each) == stream and each not in ends]
        if unknown:
            problem = f"the token names {', '.join(unknown)}, and no broker has that"
            raise BadOption(option, f"{problem}; is it of another network?")
        return {pubend: offset[pubend].tick if pubend in offset else ORIGIN for pubend in ends}
    if offset == "earliest":
        return {pubend: end.first for pubend, end in ends.items()}
    if offset == "latest":
        return {pubend: end.last for pubend, end in ends.items()}
    return dict.fromkeys(ends, offset)


def token_of(places: Places, ends: Mapping[str, End]) -> Token:
    """The token that says the same."""
    return Token({pubend: Place(ends[pubend].incarnation, tick) for pubend, tick in places.items()})


def ranges_between(start: Places, end: Places, least: int = 1) -> list[TickRange]:
    """What is to be read, in the order of the pubends' names, in at least so many ranges if that makes sense.

    Longer ranges are divided more often. Ticks are moments, so that is by time, not by events.
    """
    whole = [
        TickRange(pubend, start.get(pubend, ORIGIN), upto)
        for pubend, upto in sorted(end.items())
        if start.get(pubend, ORIGIN) < upto
    ]
    ticks = sum(upto - after for _, after, upto in whole)
    ranges: list[TickRange] = []
    for each in whole:
        share = -(-least * (each.upto - each.after) // ticks)  # rounded up: none is below 1
        ranges += _divided(each, share)
    return ranges


def _divided(whole: TickRange, parts: int) -> list[TickRange]:
    pubend, after, upto = whole
    cuts = [after + (upto - after) * i // parts for i in range(parts + 1)]
    return [TickRange(pubend, low, high) for low, high in pairwise(cuts) if low < high]
