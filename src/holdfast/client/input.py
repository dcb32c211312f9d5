"""What an application asks of the client's core; what the network does to it comes as ``overlay.transport`` inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Tick
from holdfast.overlay.transport import TransportInput
from holdfast.streams.checkpoint_token import Token

__all__ = [
    "AddSubscription",
    "Commit",
    "Consumed",
    "EndSubscription",
    "Input",
    "Leave",
    "Open",
    "SetHome",
    "Submit",
]


@dataclass(frozen=True, slots=True)
class Open:
    """Connect, and stay connected; ``address`` is where other nodes can dial us, if they can."""

    address: str | None = None


@dataclass(frozen=True, slots=True)
class SetHome:
    """Events are logged at this broker, as those of an earlier life were; to be said before the first ``Submit``."""

    broker: str


@dataclass(frozen=True, slots=True)
class Submit:
    """Publish these, in order; their numbers increase from one to the next, over all submissions.

    The caller keeps within the window: no more than ``Settings.unacknowledged_max`` may be waiting for their
    acknowledgement.
    """

    publications: list[Publication]


@dataclass(frozen=True, slots=True)
class AddSubscription:
    """Subscribe under a number of the caller's, from 1 and never used again; the filter is canonical text.

    The rest is for the streams that are logged: where a ``token`` is given it goes on from there, else from ``start``.
    """

    number: int
    filter: str
    buffer: int  #: how many delivered items may wait to be consumed before no more are sent, or read
    durable: str | None = (
        None  #: the name under which the broker keeps its place; None: it ends with the client
    )
    start: Tick | None = None  #: begin behind this tick of every pubend; None: now
    token: Token | None = None


@dataclass(frozen=True, slots=True)
class EndSubscription:
    """Nothing is delivered any more from this step on. Unsubscribe; or ``keep`` a durable one for later."""

    number: int
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Consumed:
    """The application has taken so many more items of ``Delivered``, and so many more events of ``Stretch``."""

    number: int
    count: int
    logged: int = 0


@dataclass(frozen=True, slots=True)
class Commit:
    """A durable subscription has consumed everything up to these ticks, by pubend; ``Committed`` answers.

    Tickets are the caller's, from 1, each above the one before.
    """

    number: int
    places: Mapping[str, Tick]
    ticket: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Say goodbye and end."""


Input = (
    TransportInput | Open | SetHome | Submit | AddSubscription | EndSubscription | Consumed | Commit | Leave
)
