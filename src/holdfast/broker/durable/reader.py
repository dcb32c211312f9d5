"""A subscription as its broker serves it on streams that are logged: who reads it, how far, and with how much room."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from holdfast.broker.durable.elsewhere import Claim
from holdfast.clock import Instant
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import Filter
from holdfast.identity import SubscriptionId
from holdfast.intervals import Span
from holdfast.messages.durable import Stand
from holdfast.messages.subscriptions import NO_SEAT, Durable, Partition, Resume, Seat
from holdfast.messages.ticks import Tick, Version
from holdfast.routing.port import ClientPort

__all__ = ["Reader", "consumed_in", "informed", "withheld"]

#: So many silences of a pubend are remembered for who is here: whoever is behind by more is believed to have had
#: something in them.
SILENT_MAX: Final = 32


@dataclass(slots=True, eq=False)
class Reader:
    """One of them. ``number`` is its own for ever: filtering logs know it by that."""

    number: int
    filter: Filter
    durable: Durable | None
    own: SubscriptionId  #: what the network calls it
    port: ClientPort | None = None  #: who reads it now
    subscription: int = 0  #: what that client calls it
    credit: int = 0  #: how many events more it has room for
    served: str = ""  #: the pubend whose events it was sent last
    start: Tick | None = None  #: where it was to begin; None: when it was confirmed
    resume: Resume | None = None  #: how its client wants to go on, until it does
    presented: Resume | None = None  #: how that says itself that it stands
    #: By pubend, where it was when it came here, until it is read from there on; any other is new to it.
    #: None: it began here.
    stood: dict[str, Stand] | None = None
    is_held: bool = False  #: another broker was told where it stands, and goes on from there
    #: It began here, and nobody has heard so yet: if we are started again it was never there.
    is_new: bool = False
    version: Version = 0
    is_stored: bool = False  #: it is on disk
    is_restored: bool = False  #: it was here before we were started again
    is_confirmed: bool = False  #: the network knows it
    is_greeted: bool = False  #: so does its client
    partial: tuple[Partition, ...] = ()
    confirmed_at: Instant = 0
    confirmed_on: Tick = 0  #: the same by the wall clock
    absent: dict[str, Partition] = field(default_factory=dict)  #: pubends its client was confirmed without
    #: And such as nobody had told of then, by where they are read from, until it is told so.
    unheard: dict[str, Tick] = field(default_factory=dict)
    #: pubends that have not admitted us yet, and from where on they are read
    awaited: dict[str, Tick | None] = field(default_factory=dict)
    #: by pubend, up to where its client was sent everything
    told: dict[str, Tick] = field(default_factory=dict)
    #: and the last stretches of that which were silence
    silent: dict[str, deque[Span]] = field(default_factory=dict)
    #: brokers it may still be at, with the epoch there
    moved_from: dict[str, int] = field(default_factory=dict)
    #: The claim by which it began, wherever that was; (0, ""): its client said where it stood.
    born: Claim = (0, "")
    #: Brokers that have it, too, until they have said how far it is there; and so long it waits for them to begin.
    unmerged: dict[str, Instant] = field(default_factory=dict)
    seated_on: Tick = 0  #: when its client came, by the wall clock
    seat: Seat = NO_SEAT
    #: by pubend, the report from which on it is waited for
    pins: dict[str, int] = field(default_factory=dict)
    away_since: Tick = 0  #: 0: it is being read
    gaps: dict[str, int] = field(default_factory=dict)  #: that it was told since we started, by reason
    _accepts: Callable[[Any], bool] | None = None

    @property
    def name(self) -> str:
        """For people."""
        return self.durable.name if self.durable is not None else str(self.own)

    @property
    def has_own_token(self) -> bool:
        """Whether the application that reads it now has said itself where it stands."""
        return self.port is not None and self.presented is not None and self.presented.has_own_token

    @property
    def has_begun(self) -> bool:
        """Whether who reads it now has been told anything, here or before an interruption."""
        has_token = self.presented is not None and self.presented.token is not None
        return self.is_greeted or (self.port is not None and has_token)

    @property
    def connection(self) -> int | None:
        """Where its client hears us."""
        return None if self.port is None else self.port.connection

    def on_silence(self, pubend: str, after: Tick, upto: Tick) -> None:
        """Its client is told that there was nothing for it."""
        silent = self.silent.setdefault(pubend, deque(maxlen=SILENT_MAX))
        if silent and silent[-1][1] == after:
            after, _ = silent.pop()
        silent.append((after, upto))

    def had(self, pubend: str, tick: Tick) -> Tick:
        """Its client has consumed everything up to a tick: what it has had of that; what followed was silence."""
        silent = self.silent.get(pubend)
        if not silent:
            return tick
        while len(silent) > 1 and silent[0][1] < tick:
            silent.popleft()
        after, upto = silent[0]
        return after if after <= tick <= upto else tick

    def accepts(self, event: Any) -> bool:
        """Whether an event matches, where it has to be asked once more."""
        if self._accepts is None:
            self._accepts = compile_filter(self.filter)
        return self._accepts(event)


def withheld(durable: str, seat: Seat, born: Claim, *, had: Seat, read: Claim | None) -> str:
    """Why a client that was interrupted, had a seat and read what was born so, cannot go on; empty: it can."""
    if seat.is_after(had):
        came = f"another client has come to read {durable} since"
        return came if seat.client else f"{durable} was begun twice, and goes on before that"
    if read is not None and read[0] and born[0] and read != born:
        return f"{durable} was begun at {read[1]} and at {born[1]}, and goes on where neither was read"
    return ""


def informed(resume: Resume, stands: Mapping[str, Stand]) -> Resume:
    """Where a subscription goes on: what its client says counts, and what is known to be nothing is left out.

    Of a pubend that it does not name its client has had nothing. If it keeps its token itself, that goes for all who
    keep that; else others may have read there before it.
    """
    if resume.token is None:
        return replace(resume, token={pubend: (0, stand.released) for pubend, stand in stands.items()})
    token, consumed = dict(resume.token), None if resume.consumed is None else dict(resume.consumed)
    for pubend, (start, acknowledged, released) in stands.items():
        unnamed = min(start, acknowledged) if resume.has_own_token else acknowledged
        incarnation, tick = token.get(pubend, (0, unnamed))
        if tick >= acknowledged:
            token[pubend] = incarnation, max(tick, released)
        if consumed is not None and consumed.get(pubend, tick) >= acknowledged:
            consumed[pubend] = max(consumed.get(pubend, tick), released)
    return replace(resume, token=token, consumed=consumed)


def consumed_in(resume: Resume, pubend: str) -> Tick | None:
    """Up to where a client has consumed a pubend; None: it says nothing of it."""
    _, received = (resume.token or {}).get(pubend, (0, None))
    if received is None or resume.consumed is None:
        return received
    return min(received, resume.consumed.get(pubend, received))
