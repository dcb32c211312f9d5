"""How an event stands in a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.messages.publications import Publication

__all__ = ["read_record", "read_records", "record_of"]

_decoder: Final = msgspec.msgpack.Decoder(Publication)

#: The record of an event.
record_of: Final = msgspec.msgpack.Encoder().encode


def read_record(record: bytes) -> Publication:
    """An event from the log.

    :raises msgspec.DecodeError: if it is none.
    """
    return _decoder.decode(record)


def read_records(records: Sequence[bytes]) -> list[Publication]:
    """Many of them.

    :raises msgspec.DecodeError: if one is none.
    """
    return list(map(_decoder.decode, records))
