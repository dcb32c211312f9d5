"""Where a subscriber of a scenario stands in the streams that are logged: what it has read, told, and acknowledged.

What its application does with events is to write them into the trace. So its own record of how far it has come must
never say more than the trace, nor less: both leave in one step, and whoever drives the actor keeps both or neither. A
subscriber that starts again, or moves to another broker, goes on from the record [R1.8, R1.10].

Silence is told late, all that came within ``SETTLE_NS`` at once, and not at all where an event follows, which says as
much. Likewise what was read is acknowledged in batches [R1.30].
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.input import Commit
from holdfast.client.item import Gap
from holdfast.clock import MILLISECOND, Instant
from holdfast.messages.ticks import ORIGIN
from holdfast.overlay.transport import Trace
from holdfast.scenarios.actor_commands import Remember, Wish
from holdfast.streams.checkpoint_token import Place, Token

__all__ = ["SETTLE_NS", "Record", "Records"]

#: For so long silence may be untold, and what was read unacknowledged.
SETTLE_NS: Final = 250 * MILLISECOND

_NOWHERE: Final = Place(0, ORIGIN)


class Record:
    """The places of one subscription.

    Invariant: in each pubend, what was told is not above what was read, and between the two there is only silence.
    """

    def __init__(self, subscriber: str, wish: Wish, token: Token | None) -> None:
        self.durable = wish.durable
        self.subscription = wish.subscription
        self._asked = {"subscriber": subscriber, "subscription": wish.subscription}
        self._told: dict[str, Place] = dict(token or {})
        self._read: dict[str, Place] = dict(self._told)
        self._has_begun = token is not None
        self._is_changed = False  #: since it was remembered
        self._ticket = 0  #: of the last commit
        self._committed: dict[str, int] = {}
        self._has_news = False  #: something else than silence was told since that
        self._awaited = 0  #: the ticket of the last commit with such news; 0: it is answered

    @property
    def token(self) -> Token | None:
        """What the trace tells of; None until the subscription is confirmed. An empty one says that all is to come."""
        return Token(self._told) if self._has_begun else None

    @property
    def is_settled(self) -> bool:
        """Whether everything that was read has been told and, if anybody keeps it, said to be consumed."""
        return self._read == self._told and not (self.durable and self._uncommitted())

    @property
    def is_acknowledged(self) -> bool:
        """Whether all events and gaps that were read are acknowledged and saved, where that is due."""
        return not self.durable or not (self._has_news or self._awaited)

    def begin(self, token: Token) -> None:
        """The subscription begins here, in all pubends in which it has not begun."""
        new = {pubend: place for pubend, place in token.items() if pubend not in self._told}
        if new or not self._has_begun:
            self._has_begun = self._is_changed = True
            self._told.update(new)
            self._read.update(new)

    # Reading

    def read_event(self, pubend: str, place: Place) -> None:
        """An event was told."""
        self._advance(pubend, place)

    def read_gap(self, gap: Gap, incarnation: int) -> list[Trace]:
        """A gap was read; its lines, and that of the silence before it."""
        lines = self._silence(gap.pubend)
        told = {"pubend": gap.pubend, "after": gap.after, "upto": gap.upto, "reason": gap.reason}
        self._advance(gap.pubend, Place(incarnation, gap.upto))
        return [*lines, Trace("gap", {**self._asked, **told})]

    def read_silence(self, pubend: str, place: Place) -> None:
        """Nothing more matched up to here."""
        if place.tick > self._read.get(pubend, _NOWHERE).tick:
            self._read[pubend] = place

    def _advance(self, pubend: str, place: Place) -> None:
        self._told[pubend] = self._read[pubend] = place
        self._is_changed = self._has_news = True

    # Telling

    def _silence(self, pubend: str) -> list[Trace]:
        read, told = self._read.get(pubend, _NOWHERE), self._told.get(pubend, _NOWHERE)
        if read == told:
            return []
        self._told[pubend] = read
        self._is_changed = True
        if read.tick == told.tick:
            return []  # another incarnation of the pubend, at the same place
        return [Trace("silence", {**self._asked, "pubend": pubend, "after": told.tick, "upto": read.tick})]

    def tell_silence(self) -> list[Trace]:
        """The lines for what was read and not told."""
        return [line for pubend in self._read for line in self._silence(pubend)]

    def remember(self) -> list[Remember]:
        """What is to be kept now, with the lines of this step."""
        token = self.token
        if token is None or not self._is_changed or not self.durable:
            return []
        self._is_changed = False
        return [Remember(self.subscription, token)]

    # Acknowledging

    def _uncommitted(self) -> dict[str, int]:
        places = ((pubend, place.tick) for pubend, place in self._told.items())
        return {pubend: tick for pubend, tick in places if tick > self._committed.get(pubend, ORIGIN)}

    def commit(self, number: int) -> Commit | None:
        """What to acknowledge, if anything."""
        places = self._uncommitted()
        if not self.durable or not places:
            return None
        self._ticket += 1
        self._committed.update(places)
        if self._has_news:
            self._has_news, self._awaited = False, self._ticket
        return Commit(number, places, self._ticket)

    def on_committed(self, ticket: int) -> None:
        """The broker has saved it."""
        if ticket >= self._awaited:
            self._awaited = 0


class Records:
    """All subscriptions of one subscriber, by their numbers; empty where nothing is logged."""

    def __init__(self, subscriber: str) -> None:
        self._subscriber = subscriber
        self._records: dict[int, Record] = {}
        self._due: Instant | None = None

    @property
    def due(self) -> Instant | None:
        """When silence is to be told and reading to be acknowledged."""
        return self._due

    @property
    def is_acknowledged(self) -> bool:
        """Whether the network knows of all that was read, and has saved it."""
        return all(record.is_acknowledged for record in self._records.values())

    def open(self, number: int, wish: Wish, token: Token | None) -> None:
        """A subscription is asked for; ``token``: it goes on from there."""
        self._records[number] = Record(self._subscriber, wish, token)

    def close(self, number: int) -> None:
        """It is over."""
        self._records.pop(number, None)

    def __getitem__(self, number: int) -> Record:
        return self._records[number]

    def tokens(self) -> dict[str, Token]:
        """What they are to go on from, by the subscriptions' names."""
        tokens = ((record.subscription, record.token) for record in self._records.values())
        return {subscription: token for subscription, token in tokens if token is not None}

    def remember(self, now: Instant, effects: list[Any]) -> None:
        """At the end of a step: keep what has changed, and see that it is settled before long."""
        for record in self._records.values():
            effects += record.remember()
            if self._due is None and not record.is_settled:
                self._due = now + SETTLE_NS

    def settle(self, now: Instant, effects: list[Any]) -> list[Commit]:
        """When it is time, tell of silence; and what is to be acknowledged after that."""
        if self._due is None or now < self._due:
            return []
        self._due = None
        commits: list[Commit] = []
        for number, record in self._records.items():
            effects += record.tell_silence()
            effects += record.remember()
            commit = record.commit(number)
            commits += [] if commit is None else [commit]
        return commits
