"""The frames of durable streams [BZA]: what is known of ticks, letters between brokers, portions for subscribers.

Three of them carry events, and are arrays; all others are maps, so that a later version may add fields::

    Items           [ pubend, under, answers, after, [step …], [[position, gap] …], [publication or nil …], [lost …] ]
    Requests        [ to, origin, pubend, heard, [previous …], [publication …] ]
    Portion         [ subscription, pubend, incarnation, upto, lost_through, reason, [ [tick, publication] … ] ]
    publication     [ publisher, n, event as bytes ]
    lost            [ after, upto, reason ]

**Items.** Nearly always an item begins at the tick before it. So ticks are said as steps from one to the next, the
first from ``after``, where the first item begins; and only where a later one begins above the tick before it, ``gap``
says by how much. Steps are not below 1 and a gap is below its step: what is not in order cannot be said. That takes 17
bytes an item less than two columns of ticks.

**Portions** of one batch go to many subscribers, each with its own choice: a pair of tick and publication is written
once for all of them, and the same portion once for all who get it one after another. Items and requests go to one
receiver, or a few: they are written in one go, which costs less than making pieces first.

What would be too large for a frame, or longer than a receiver takes, is said in parts (``PARTINGS``), each of them a
message that could have been sent so: the receiver cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import lt, sub
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from holdfast.messages.durable import (
    BEGIN,
    Acknowledge,
    Admit,
    Admitted,
    Answers,
    Claim,
    Credit,
    Detach,
    Ended,
    Fetch,
    Fetched,
    Logged,
    Moved,
    MovedTaken,
    Ousted,
    Portion,
    Report,
    Reported,
    Requests,
    Resign,
    Saved,
    Withheld,
)
from holdfast.messages.publications import PUBLICATIONS_MAX, Batch, Publication
from holdfast.messages.ticks import (
    ORIGIN,
    SPANS_MAX,
    Follow,
    Items,
    Lost,
    Nack,
    Start,
    Taken,
    Tick,
    Unfollow,
    Version,
    Wants,
)
from holdfast.wire.primitives import array_header

__all__ = ["DECODERS", "ENCODERS", "KINDS", "PARTINGS", "Parting"]

#: Those without events in them, encoded as maps like all control messages.
KINDS: Final = {
    80: Wants,
    81: Follow,
    82: Unfollow,
    83: Start,
    85: Nack,
    86: Taken,
    91: Answers,
    92: Admit,
    93: Admitted,
    94: Report,
    95: Reported,
    96: Resign,
    97: Claim,
    98: Moved,
    99: MovedTaken,
    100: Fetch,
    101: Fetched,
    102: Withheld,
    103: Ended,
    105: Credit,
    106: Acknowledge,
    107: Saved,
    108: Detach,
    109: Ousted,
    110: Logged,
}

TICK_MAX: Final = 2**63 - 1

_encode = msgspec.msgpack.Encoder().encode

_Step = Annotated[int, msgspec.Meta(ge=1, le=TICK_MAX)]
_BOUNDED: Final = msgspec.Meta(max_length=PUBLICATIONS_MAX)


# Items

_decode_items = msgspec.msgpack.Decoder(
    tuple[
        str,
        Version,
        bool,
        Tick,
        Annotated[list[_Step], _BOUNDED],
        Annotated[list[tuple[int, _Step]], _BOUNDED],
        Annotated[list[Publication | None], _BOUNDED],
        Annotated[list[Lost], msgspec.Meta(max_length=SPANS_MAX)],
    ]
).decode


def encode_items(message: Items) -> bytes:
    """What a node is told of a pubend."""
    los, ticks = message.los, message.ticks
    assert len(los) == len(ticks) == len(message.publications)
    after = los[0] if los else ORIGIN
    steps = list(map(sub, ticks, [after, *ticks]))
    gaps = () if list(los[1:]) == list(ticks[:-1]) else _gaps(los, ticks)
    told = message.pubend, message.under, message.answers
    return _encode((*told, after, steps, gaps, message.publications, message.lost))


def _gaps(los: Sequence[Tick], ticks: Sequence[Tick]) -> list[tuple[int, int]]:
    """Where an item does not begin at the tick before it, and how far above."""
    pairs = zip(los[1:], ticks, strict=False)
    return [(at, lo - before) for at, (lo, before) in enumerate(pairs, start=1) if lo != before]


def decode_items(body: bytes | bytearray) -> Items:
    """What a node tells of a pubend: in order, and with a publication or nil for every tick.

    :raises msgspec.DecodeError: also if that is not so.
    """
    pubend, under, answers, after, steps, gaps, publications, lost = _decode_items(body)
    if len(publications) != len(steps):
        raise msgspec.ValidationError(f"{len(publications)} publications at {len(steps)} ticks")
    ticks = list(accumulate(steps, initial=after))
    if ticks[-1] > TICK_MAX:
        raise msgspec.ValidationError(f"the tick {ticks[-1]}")
    los = ticks[:-1]
    del ticks[0]
    last = 0
    for at, gap in gaps:
        if not last < at < len(los) or gap >= steps[at]:
            raise msgspec.ValidationError(f"a gap of {gap} before item {at}")
        los[at] += gap
        last = at
    _check_ranges(lost)
    return Items(pubend, under, los, ticks, publications, lost, answers)


def _check_ranges(lost: Sequence[Lost]) -> None:
    before = ORIGIN
    for after, upto, _ in lost:
        if not before <= after < upto <= TICK_MAX:
            raise msgspec.ValidationError(f"lost from {after} to {upto}, above {before}")
        before = upto


def _items_halves(message: Items) -> tuple[Items, Items]:
    """Near ticks first, lost or not: a relay that heard of far ones before would pass them on."""
    ticks, lost = message.ticks, message.lost
    rows = (len(ticks) + 1) // 2
    below = sum(each.upto <= ticks[rows - 1] for each in lost) if ticks else len(lost) // 2
    if len(ticks) == 1 and below:  # the item goes with what is lost above it
        rows, below = 0, (below + 1) // 2
    return (
        _items_part(message, slice(rows), lost[:below]),
        _items_part(message, slice(rows, None), lost[below:]),
    )


def _items_part(message: Items, part: slice, lost: Sequence[Lost]) -> Items:
    los, ticks, publications = message.los[part], message.ticks[part], message.publications[part]
    return replace(message, los=los, ticks=ticks, publications=publications, lost=lost)


# Nacks

_decode_nack = msgspec.msgpack.Decoder(Nack).decode


def decode_nack(body: bytes | bytearray) -> Nack:
    """What a node wants to know: ranges of ticks, none of them empty.

    :raises msgspec.DecodeError: also if one is.
    """
    nack = _decode_nack(body)
    for after, upto in nack.spans:
        if not 0 <= after < upto <= TICK_MAX:
            raise msgspec.ValidationError(f"the ticks from {after} to {upto}")
    return nack


def _nack_halves(message: Nack) -> tuple[Nack, Nack]:
    middle = len(message.spans) // 2
    return replace(message, spans=message.spans[:middle]), replace(message, spans=message.spans[middle:])


# Requests

_decode_requests = msgspec.msgpack.Decoder(
    tuple[
        str,
        str,
        str,
        Annotated[int, msgspec.Meta(ge=0)],
        Annotated[list[Annotated[int, msgspec.Meta(ge=BEGIN)]], _BOUNDED],
        Annotated[list[Publication], _BOUNDED],
    ]
).decode


def encode_requests(message: Requests) -> bytes:
    """Publications on their way to a pubend."""
    publications = message.batch.publications
    assert len(message.previous) == len(publications)
    addressed = message.to, message.origin, message.pubend, message.heard
    return _encode((*addressed, message.previous, publications))


def decode_requests(body: bytes | bytearray) -> Requests:
    """Publications on their way to a pubend.

    :raises msgspec.DecodeError: also if not each of them has the number before it.
    """
    to, origin, pubend, heard, previous, publications = _decode_requests(body)
    if len(previous) != len(publications):
        raise msgspec.ValidationError(f"{len(previous)} numbers before {len(publications)} publications")
    return Requests(to, origin, pubend, previous, Batch(publications), heard)


def _requests_halves(message: Requests) -> tuple[Requests, Requests]:
    middle = len(message.batch) // 2
    return _requests_part(message, slice(middle)), _requests_part(message, slice(middle, None))


def _requests_part(message: Requests, part: slice) -> Requests:
    batch = Batch(message.batch.publications[part])
    return replace(message, previous=message.previous[part], batch=batch)


# Portions

_decode_portion = msgspec.msgpack.Decoder(
    tuple[int, str, int, Tick, Tick, str, Annotated[list[tuple[Tick, Publication]], _BOUNDED]]
).decode

_SEVEN: Final = array_header(7)


def encode_portion(message: Portion) -> bytes:
    """What one subscription gets of a batch."""
    batch, ticks, at = message.batch, message.ticks, message.at
    told = message.subscription, message.pubend, message.incarnation
    head = *told, message.upto, message.lost_through, message.reason
    if batch.portion is not None and batch.portion[0] == head and batch.portion[1] == at:
        return batch.portion[2]
    assert not at or message.lost_through < ticks[at[0]]
    assert not at or ticks[at[-1]] <= message.upto
    if batch.ticked is None:
        batch.ticked = list(map(_encode, zip(ticks, batch.publications, strict=True)))
    # The head is an array of six; with the events behind it, it is one of seven.
    rows = map(batch.ticked.__getitem__, at)
    body = b"".join([_SEVEN, _encode(head)[1:], array_header(len(at)), *rows])
    batch.portion = head, at, body
    return body


def decode_portion(body: bytes | bytearray) -> Portion:
    """What a subscription gets: ticks in order, above what is lost, and none above ``upto``.

    :raises msgspec.DecodeError: also if that is not so.
    """
    subscription, pubend, incarnation, upto, lost_through, reason, rows = _decode_portion(body)
    ticks = [row[0] for row in rows]
    edges = [lost_through, *ticks]
    if not all(map(lt, edges, ticks)) or edges[-1] > upto:
        raise msgspec.ValidationError(f"ticks that are not in order between {lost_through} and {upto}")
    batch = Batch([row[1] for row in rows])
    return Portion(
        subscription, pubend, incarnation, batch, ticks, range(len(rows)), upto, lost_through, reason
    )


def _portion_halves(message: Portion) -> tuple[Portion, Portion]:
    """The first half ends at its last tick; only there something may be lost."""
    middle = (len(message.at) + 1) // 2
    first, second = message.at[:middle], message.at[middle:]
    return (
        replace(message, at=first, upto=message.ticks[first[-1]]),
        replace(message, at=second, lost_through=ORIGIN, reason=""),
    )


# Parts


class Parting(NamedTuple):
    """How a message is said in two: how much it says, and its halves if that is more than one thing."""

    count: Callable[[Any], int]
    halves: Callable[[Any], tuple[Any, Any]]


PARTINGS: Final[dict[type, Parting]] = {
    Items: Parting(lambda message: len(message.ticks) + len(message.lost), _items_halves),
    Nack: Parting(lambda message: len(message.spans), _nack_halves),
    Requests: Parting(lambda message: len(message.batch), _requests_halves),
    Portion: Parting(lambda message: len(message.at), _portion_halves),
}

#: Message class to kind and encoder; kind to decoder.
ENCODERS: Final[dict[type, tuple[int, Callable[[Any], bytes]]]] = {
    Items: (84, encode_items),
    Requests: (90, encode_requests),
    Portion: (104, encode_portion),
}
DECODERS: Final[dict[int, Callable[[bytes | bytearray], Items | Nack | Requests | Portion]]] = {
    84: decode_items,
    85: decode_nack,
    90: decode_requests,
    104: decode_portion,
}
