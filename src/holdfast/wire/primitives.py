"""MessagePack by hand, for the few places where parts that were encoded before are put together.

Everything else is encoded and decoded by msgspec, which checks types on the way.
"""

from __future__ import annotations

import struct

__all__ = ["NIL", "array_header"]

NIL = b"\xc0"

_ARRAYS_SMALL = tuple(bytes((0x90 | length,)) for length in range(16))
_ARRAY_16 = struct.Struct(">BH").pack
_ARRAY_32 = struct.Struct(">BI").pack


def array_header(length: int) -> bytes:
    """What an array of this length begins with."""
    if length < 16:
        return _ARRAYS_SMALL[length]
    if length < 65_536:
        return _ARRAY_16(0xDC, length)
    return _ARRAY_32(0xDD, length)
