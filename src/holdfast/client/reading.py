"""Where one subscription stands in the streams that are logged, and how much more it may be sent [BZA §2].

In each pubend it stands at a place, and goes on from there: ticks increase, what came before is turned away, and
where something is lost it is a gap. After an interruption it presents the places, and goes on from them wherever it
comes back [R1.8]; and says how much of that was consumed, for whoever comes after it. A pubend nobody has told of
begins at its origin [B1.11].

The broker sends no more events than it was given credit for, so nothing need stop the connection. Credit goes out
when half of the buffer has been consumed: the other half is on its way or waits here, so nobody waits for a message,
and a message is never for one event, unless the buffer is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.client.effect import Stretch
from holdfast.messages.credit import cost_of
from holdfast.messages.durable import Portion
from holdfast.messages.subscriptions import NO_SEAT, Resume, Seat
from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.streams.checkpoint_token import Place, Token

__all__ = ["NOT_RESUMED", "Reading"]

#: Why a gap is there: the broker went on behind where we stood. None should.
NOT_RESUMED: Final = "not resumed"

_UNKNOWN: Final = Place(0, ORIGIN)


class Reading:
    """One subscription's places and credit.

    Invariant: the credit the broker has, what waits here and what is owed to the broker are the room of ``buffer``
    events. A large one takes that of several; for the last of them there may be less, and then less than none is left.
    """

    def __init__(
        self,
        buffer: int = 1,
        *,
        durable: str | None = None,
        start: Tick | None = None,
        token: Token | None = None,
    ) -> None:
        self.durable = durable
        #: Nothing was asked for that only streams that are logged have.
        self.is_plain = durable is None and start is None and token is None
        self._buffer = buffer
        self._start = start
        self._places: dict[str, Place] = dict(token or {})
        self._has_begun = token is not None  #: there are places to go on from
        #: where it went on from first
        self._began = {pubend: place.tick for pubend, place in self._places.items()}
        #: What brokers are told when it goes on: which of its name it reads, and since when.
        self._born: tuple[int, str] | None = None
        self._seat = NO_SEAT
        self._waiting = 0  #: events that were delivered and not consumed
        self._room = 0  #: that they take
        self._owed = 0  #: of the credit that was used up, what may be given again

    @property
    def token(self) -> Token:
        """Everything up to here has been received."""
        return Token(self._places)

    def resume(self, consumed: Mapping[str, Tick]) -> Resume:
        """What to tell a broker that does not know of us, or not any more; some of it the application has consumed."""
        credit = self._buffer - self._room
        self._owed, credit = min(0, credit), max(0, credit)
        if not self._has_begun:
            return Resume(credit, self.durable, self._start)
        if self.durable is None:
            return Resume(credit, None, ORIGIN, {**self._places})
        done = {each: max(consumed.get(each, ORIGIN), self._began.get(each, ORIGIN)) for each in self._places}
        return Resume(credit, self.durable, ORIGIN, {**self._places}, done, self._born, self._seat)

    def begin(
        self,
        number: int,
        token: Mapping[str, tuple[int, Tick]],
        born: tuple[int, str] | None = None,
        seat: Seat = NO_SEAT,
    ) -> list[Stretch]:
        """A broker says where it will go on; behind where we stood, that is a gap."""
        self._born, self._seat = born, seat
        jumps: list[Stretch] = []
        for pubend, (incarnation, tick) in token.items():
            stood = self._places.get(pubend)
            if stood is not None and tick > stood.tick:
                jumps.append(
                    Stretch(number, pubend, incarnation, stood.tick, tick, NOT_RESUMED, (), (), tick)
                )
            self._advance(pubend, incarnation, tick)
            self._began.setdefault(pubend, tick)
        self._has_begun = True
        return jumps

    def take(self, portion: Portion) -> Stretch | None:
        """What is new in a portion; None: nothing."""
        after = position = self._places.get(portion.pubend, _UNKNOWN).tick
        position = lost_through = max(position, portion.lost_through)
        new: list[int] = []
        for i in portion.at:
            if portion.ticks[i] > position:
                position = portion.ticks[i]
                new.append(i)
        publications = [portion.batch.publications[i] for i in new]
        ticks = [portion.ticks[i] for i in new]
        room = cost_of(portion.batch, new)
        self._owed += cost_of(portion.batch, portion.at) - room  # nobody will consume what is not new
        self._waiting += len(ticks)
        self._room += room
        upto = max(position, portion.upto)
        if upto == after:
            return None
        self._advance(portion.pubend, portion.incarnation, upto)
        return Stretch(
            portion.subscription,
            portion.pubend,
            portion.incarnation,
            after,
            lost_through,
            portion.reason,
            publications,
            ticks,
            upto,
        )

    def consume(self, events: int) -> None:
        """The application has taken events. Which ones is not said: they take their share of the room."""
        assert 0 <= events <= self._waiting, "no more can be consumed than was delivered"
        room = self._room * events // self._waiting if events else 0
        self._waiting -= events
        self._room -= room
        self._owed += room

    def next_credit(self) -> int:
        """How much credit to give now; 0: it is not time yet."""
        if self._owed <= 0 or 2 * self._owed < self._buffer:
            return 0
        credit, self._owed = self._owed, 0
        return credit

    def _advance(self, pubend: str, incarnation: int, tick: Tick) -> None:
        stood = self._places.get(pubend, _UNKNOWN)
        self._places[pubend] = Place(max(incarnation, stood.incarnation), max(tick, stood.tick))
