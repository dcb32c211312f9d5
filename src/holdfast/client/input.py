"""What an application asks of the client's core; what the network does to it comes as ``overlay.transport`` inputs."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.messages.publications import Publication
from holdfast.overlay.transport import TransportInput

__all__ = ["AddSubscription", "Consumed", "EndSubscription", "Input", "Leave", "Open", "Submit"]


@dataclass(frozen=True, slots=True)
class Open:
    """Connect, and stay connected; ``address`` is where other nodes can dial us, if they can."""

    address: str | None = None


@dataclass(frozen=True, slots=True)
class Submit:
    """Publish these, in order; their numbers increase from one to the next, over all submissions.

    The caller keeps within the window: no more than ``Settings.unacknowledged_max`` may be waiting for their
    acknowledgement.
    """

    publications: list[Publication]


@dataclass(frozen=True, slots=True)
class AddSubscription:
    """Subscribe under a number of the caller's, from 1 and never used again; the filter is canonical text."""

    number: int
    filter: str
    buffer: int  #: how many delivered items may wait to be consumed before the client stops reading


@dataclass(frozen=True, slots=True)
class EndSubscription:
    """Unsubscribe; nothing is delivered any more from this step on."""

    number: int


@dataclass(frozen=True, slots=True)
class Consumed:
    """The application has taken so many more items of a subscription."""

    number: int
    count: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Say goodbye and end."""


Input = TransportInput | Open | Submit | AddSubscription | EndSubscription | Consumed | Leave
