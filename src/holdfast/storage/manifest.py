"""The manifest: which log this is, where it was chopped, and how far it is known to have come.

A small file, replaced as a whole when a segment begins, when the log is chopped and when it is closed. The last two
numbers are what no later block can say about the end of a log: a last segment that is shorter than this, or gone,
was once longer.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from google_crc32c import value

from holdfast.storage.segment_format import UnknownFormat

__all__ = ["MANIFEST", "Manifest", "read_manifest"]

MANIFEST: Final = "manifest"
VERSION: Final = 1
_MAGIC: Final = b"HFmanifs"
_FIELDS: Final = Struct("<8sI16sQQQQ")
_CRC: Final = Struct("<I")


class Manifest(NamedTuple):
    """``chopped``: the highest index dropped; ``base``: of the last segment, whose first ``size`` bytes are stable."""

    identity: bytes
    chopped: int = 0
    base: int = 0
    size: int = 0
    last: int = 0

    def encode(self) -> bytes:
        """As it stands in its file."""
        fields = _FIELDS.pack(_MAGIC, VERSION, *self)
        return fields + _CRC.pack(value(fields))


def read_manifest(data: bytes) -> Manifest | None:
    """The manifest that is all of these bytes; None if it is broken.

    :raises UnknownFormat: if it is whole and of another version.
    """
    if len(data) != _FIELDS.size + _CRC.size:
        return None
    fields = data[: _FIELDS.size]
    magic, version, *rest = _FIELDS.unpack(fields)
    if magic != _MAGIC or _CRC.unpack_from(data, _FIELDS.size)[0] != value(fields):
        return None
    if version != VERSION:
        raise UnknownFormat(MANIFEST, version)
    return Manifest(*rest)
