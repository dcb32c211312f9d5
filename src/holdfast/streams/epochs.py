"""Epochs as events of a stream: under which numbers they stand, and at which broker.

The publisher of an epoch's events is its application, and their numbers say which version they are of:

    n = (version + 1) · 2^22 + position in the epoch, from 0

So the last number a pubend has of an application is the record that its versions up to there are done: it is written
with the events themselves, in the same append, and is kept when they are gone, as every publisher's is [contracts.md
§1: holes are allowed, numbers grow]. A commit that is repeated finds its numbers used.

All epochs of an application on a stream go to one broker, its *home*, or a repeated commit would not meet its record.
That is a function of the name and of which brokers there are, of which each has a say (rendezvous hashing): one more
broker takes over its share of applications and moves no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from zlib import crc32

__all__ = ["EPOCH_BYTES_MAX", "EPOCH_EVENTS_MAX", "VERSION_MAX", "first_number", "home_of", "is_done"]

_BITS: Final = 22
EPOCH_EVENTS_MAX: Final = 1 << _BITS
VERSION_MAX: Final = (1 << (63 - _BITS)) - 2  #: enough for a clock in milliseconds

#: Of the events of one epoch, each as it stands in the log: one append has to hold them.
EPOCH_BYTES_MAX: Final = 128 << 20


def first_number(version: int) -> int:
    """The number of the first event of a version."""
    return (version + 1) << _BITS


def is_done(version: int, last: int) -> bool:
    """Whether a version is, or a later one, if ``last`` is the last number of its application."""
    return last >= first_number(version)


def home_of(app: str, brokers: Iterable[str]) -> str:
    """The broker an application's epochs are committed at; there must be one."""
    return max(brokers, key=lambda broker: (crc32(f"{broker}\0{app}".encode()), broker))
