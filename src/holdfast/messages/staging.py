"""Epochs: events that many tasks hand in and that become visible together, or not at all [contracts.md §7].

A task *stages* its events at the broker, under the name of an *attempt* that nobody else has; several attempts may have
computed the same part of an epoch. Whoever leads them *commits* the epoch and names the attempts that count; one append
makes their events visible. A commit that is repeated, by whomever and with whatever attempts, finds the epoch done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from holdfast.messages.publications import PUBLICATIONS_MAX
from holdfast.messages.subscriptions import Number

__all__ = [
    "ATTEMPT_BYTES_MAX",
    "SHARES_MAX",
    "Commit",
    "Committed",
    "Discard",
    "Discarded",
    "Epoch",
    "Share",
    "Stage",
    "Staged",
]

#: An epoch has no more attempts that count: Spark's largest shuffles have as many tasks.
SHARES_MAX: Final = 10_000

ATTEMPT_BYTES_MAX: Final = 128

_Name = Annotated[str, Meta(min_length=1, max_length=ATTEMPT_BYTES_MAX)]


class Epoch(NamedTuple):
    """What becomes visible at once: the ``version`` of an application on a stream; its versions only grow."""

    stream: str
    app: str
    version: Number


@dataclass(frozen=True, slots=True)
class Stage:
    """To a broker: further events of an attempt, ``first`` of which were sent before these."""

    attempt: _Name
    epoch: Epoch
    first: Number
    events: Annotated[tuple[bytes, ...], Meta(max_length=PUBLICATIONS_MAX)]


@dataclass(frozen=True, slots=True)
class Staged:
    """So many events of an attempt are on disk; with a ``problem`` none is, and none will be taken."""

    attempt: str
    count: Number
    problem: str = ""


class Share(NamedTuple):
    """An attempt that counts, and how many events it has."""

    attempt: _Name
    events: Number


@dataclass(frozen=True, slots=True)
class Commit:
    """To a broker: these attempts are the epoch, in this order."""

    epoch: Epoch
    shares: Annotated[tuple[Share, ...], Meta(max_length=SHARES_MAX)]


@dataclass(frozen=True, slots=True)
class Committed:
    """The epoch is visible, with so many events, or had been before; with a ``problem`` nothing has changed."""

    epoch: Epoch
    events: Number
    is_repeat: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Discard:
    """To a broker: these attempts are of no use; ``Discarded`` answers."""

    attempts: Annotated[tuple[_Name, ...], Meta(max_length=SHARES_MAX)]


@dataclass(frozen=True, slots=True)
class Discarded:
    """They are not there any more."""
