"""Values at the edges of their types, and bytes with one thing wrong, by seed: ``hostile`` peers are made of them."""

from __future__ import annotations

from random import Random

from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication

__all__ = ["INTS", "TEXTS", "damaged", "event", "number", "publications", "text"]

INTS = (0, 1, 2, -1, 7, 2**31, 2**32 - 1, 2**53, 2**63 - 1, -(2**63), 2**64 - 1)
TEXTS = ("", "x", "b1", "b2", "hostile", "#", "a/b", "\0", "é\u202e", "x" * 300, "x" * 5_000)


def number(draw: Random) -> int:
    return draw.choice(INTS)


def text(draw: Random) -> str:
    return draw.choice(TEXTS)


def event(draw: Random) -> bytes:
    packed = pack(make_event("a/b", {"n": 4, "s": "x", "raw": b"\0"}, b"<a><b/></a>", "text/xml"))
    return draw.choice((packed, b"", b"\xc1", damaged(draw, packed), b"\x91" * 5_000, bytes(100_000)))


def publications(draw: Random, publisher: str | None = None) -> list[Publication]:
    return [
        Publication(publisher or text(draw), draw.choice((n, number(draw))), event(draw))
        for n in range(draw.randrange(5))
    ]


def damaged(draw: Random, data: bytes) -> bytes:
    """The same with one thing wrong."""
    if not data:
        return data
    at = draw.randrange(len(data))
    to = min(len(data), at + draw.choice((1, 2, 4, 9, 100)))
    match draw.randrange(7):
        case 0:
            return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
        case 1:
            return data[:at]
        case 2:
            return data[:at] + data[to:]
        case 3:
            return data[:at] + data[at:to] * draw.choice((2, 3, 1_000)) + data[to:]
        case 4:
            return data[:at] + draw.randbytes(to - at) + data[to:]
        case 5:
            return (
                data[:at]
                + draw.choice(
                    (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\xdd\xff\xff\xff\xff")
                )
                + data[to:]
            )
        case _:
            return data[:at] + data[draw.randrange(len(data)) :]
