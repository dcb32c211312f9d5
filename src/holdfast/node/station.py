"""Stations: the other nodes within reach, each with the session there is with it, if any."""

from __future__ import annotations

from enum import Enum, auto

from holdfast.clock import Instant
from holdfast.node.flight import Flight
from holdfast.node.topology import Path, Place
from holdfast.routing.port import Port

__all__ = ["Phase", "Station"]


class Phase(Enum):
    """How it stands with the session.

    The paper's names [KJ §9]: an open station is *active* or *inactive*, depending on the others; one that is down is
    *beingReplaced*, those wanted in its place are *replacing* until they are open.
    """

    IDLE = auto()  #: nobody wants one
    TRYING = auto()  #: wanted; not met yet, and not given up
    DOWN = auto()  #: given up, and tried again from time to time
    MEETING = auto()  #: in session; each tells the other what it knows
    OPEN = auto()  #: publications may be sent


class Station(Port):
    """One other node.

    Invariant: ``connection`` is None unless the phase is MEETING or OPEN.
    """

    __slots__ = (
        "cursor",
        "dial_at",
        "dialling",
        "flight",
        "has_told",
        "incarnation",
        "is_bypassed",
        "is_dialler",
        "is_endpoint",
        "is_ready",
        "is_ready_said",
        "is_restarted",
        "is_told",
        "need_said",
        "needs_unheard",
        "needs_us",
        "phase",
        "place",
        "replays",
        "row",
        "tried_since",
        "vouched",
    )

    def __init__(self, place: Place) -> None:
        super().__init__(place.name)
        self.place = place
        self.phase = Phase.IDLE
        self.incarnation = 0  #: the last one met
        self.dialling = False
        self.dial_at: Instant | None = None
        self.tried_since: Instant = 0
        self.replays = False  #: it is about to be sent what an earlier life of it was known to hold
        self.is_restarted = False  #: it has lost its memory since we last met, or has not regained it
        self.is_dialler = False  #: we dialled for the present session
        self.is_bypassed = False  #: given up and not open since: others are tried in its place
        self.is_endpoint = False  #: publications are being sent to it
        self.cursor = 0  #: up to which of our numbers it has been served
        self.flight = Flight()  #: what is on its way to it
        self._become_strange()

    def _become_strange(self) -> None:
        self.is_told = False  #: we have told it what we know, on this session
        self.has_told = False  #: it has told us
        self.vouched: tuple[str, ...] = ()  #: brokers beside it that have not lost their memory
        self.row = 0  #: how many brokers in a row, it and those beyond it, had lost their memory
        self.is_ready_said = False  #: we have said Ready
        self.is_ready = False  #: it has
        self.needs_us = False  #: it reaches nobody nearer on the way to us
        self.need_said = False  #: what we last said of our own need
        self.needs_unheard = 0  #: how often we said that we do not, and it is not known to have heard it

    @property
    def path(self) -> Path:
        """The way there."""
        return self.place.path

    @property
    def distance(self) -> int:
        """Hops."""
        return len(self.place.path)

    @property
    def direction(self) -> str:
        """The neighbour it lies behind."""
        return self.place.path[0]

    @property
    def is_open(self) -> bool:
        """Whether publications may be sent to it."""
        return self.phase is Phase.OPEN

    @property
    def is_decided(self) -> bool:
        """Whether it is known if it can be reached: it is open, or was given up."""
        return self.phase is Phase.OPEN or self.is_bypassed

    def meet(self, connection: int, incarnation: int, *, is_dialler: bool, is_restarted: bool) -> None:
        """A session has begun."""
        self.is_restarted = is_restarted
        assert self.connection is None
        self.connection = connection
        self.incarnation = incarnation
        self.is_dialler = is_dialler
        self.phase = Phase.MEETING
        self.dialling = False
        self.dial_at = None
        self._become_strange()

    def lose(self) -> None:
        """The session is over; the node is given up until it is met again."""
        self.connection = None
        self.phase = Phase.DOWN
        self.is_bypassed = True
        self.is_endpoint = False
        self._become_strange()

    def open(self) -> None:
        """Both have told what they know, and it accepts publications."""
        assert self.phase is Phase.MEETING
        self.phase = Phase.OPEN
        self.is_bypassed = False
