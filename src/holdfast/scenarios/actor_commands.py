"""What a script asks of an actor, and what an actor tells the driver beyond the effects of every core.

A ticket is a number of the driver's; ``Done`` gives it back when what was asked for is complete.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.clock import Instant
from holdfast.filters.text import filter_text
from holdfast.scenarios.commands import Publish, Subscribe
from holdfast.streams.checkpoint_token import Token

__all__ = [
    "ActorCommand",
    "DoDisconnect",
    "DoLeave",
    "DoPublish",
    "DoReconnect",
    "DoSlow",
    "DoSubscribe",
    "DoUnsubscribe",
    "Done",
    "Dwell",
    "Remember",
    "Reserve",
    "Wish",
]


@dataclass(frozen=True, slots=True)
class Wish:
    """A subscription as the trace knows it; it outlives the process that made it."""

    subscription: str  #: its name in the trace
    text: str  #: the filter as given
    filter: str  #: its canonical text
    durable: bool = False

    @classmethod
    def of(cls, command: Subscribe) -> Wish:
        """What a Subscribe line asks for."""
        return cls(command.subscription, command.text, filter_text(command.filter), command.durable)


@dataclass(frozen=True, slots=True)
class DoSubscribe:
    """Subscribe; done when the confirmation has come, or a refusal."""

    wish: Wish
    ticket: int


@dataclass(frozen=True, slots=True)
class DoUnsubscribe:
    """Give a subscription up; done when the network has forgotten it. One that is not there is given up at once."""

    subscription: str
    ticket: int


@dataclass(frozen=True, slots=True)
class DoPublish:
    """Publish what the command draws, beside whatever is being published; done when the last event is submitted."""

    publish: Publish
    seed: int  #: of the scenario
    ticket: int
    start: Instant | None = None  #: when its first event is due; None: at once


@dataclass(frozen=True, slots=True)
class DoSlow:
    """Let the application take so long for each event from now on."""

    per_event_ns: int


@dataclass(frozen=True, slots=True)
class DoDisconnect:
    """Close the connection, and stay away until ``DoReconnect``."""


@dataclass(frozen=True, slots=True)
class DoReconnect:
    """Connect again; done when there is a session."""

    ticket: int
    broker: str | None = None  #: the address of another one than before


@dataclass(frozen=True, slots=True)
class DoLeave:
    """Publish nothing more, and when everything published is accepted say goodbye and end; done then."""

    ticket: int
    at_once: bool = False  #: accepted or not


ActorCommand = DoSubscribe | DoUnsubscribe | DoPublish | DoSlow | DoDisconnect | DoReconnect | DoLeave


@dataclass(frozen=True, slots=True)
class Done:
    """What the ticket was for is complete."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Dwell:
    """A publisher that may go to several brokers has its home at this one; to be kept on disk for its later lives."""

    home: str


@dataclass(frozen=True, slots=True)
class Reserve:
    """Numbers of events up to this one will be used: have it on disk before what follows becomes visible.

    The next life of the actor starts above it.
    """

    upto: int


@dataclass(frozen=True, slots=True)
class Remember:
    """A durable subscription has been read up to here, as the trace lines of the same step tell.

    To be kept together with them, or not at all: the next life of the actor goes on from it.
    """

    subscription: str
    token: Token
