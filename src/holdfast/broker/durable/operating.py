"""What an operator may want of durable streams: to move a subscription, to end it, to wait for a broker no longer.

Each of these changes what the logs must keep, so it is answered once it is on disk. A subscription that somebody reads
is not moved under its reader. A broker that can be reached is not forgotten: it would report again, and pin the logs
again; its subscriptions are to be ended instead. Who comes back after it was forgotten is told what it has missed, by
gaps [B1.8].
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from holdfast.broker.durable.reader import Reader
from holdfast.broker.durable.seeking import Seeking
from holdfast.broker.effect import Operated
from holdfast.broker.input import End, ForgetBroker, Operate, Seek
from holdfast.messages.ticks import Tick
from holdfast.overlay.transport import Log

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["Operating"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = 1_000_000  #: in ticks


class Operating:
    """Of one broker."""

    def __init__(self, plane: DurablePlane, expire_after_ns: int | None) -> None:
        self._plane = plane
        self.seeking = Seeking(plane)
        self._expire_after = None if expire_after_ns is None else expire_after_ns // 1_000

    def on_wish(self, wish: Operate) -> None:
        """Carry out a wish; ``Operated`` says when that is done."""
        match wish.action:
            case Seek():
                problem = self._seek(wish.action)
            case End(durable):
                problem = self._end(durable)
            case ForgetBroker(broker, stream):
                problem = self._forget(broker, stream)
        if problem is not None:
            self._plane.emit(Operated(wish.ticket, problem))
        else:
            self._plane.saving.add(then=lambda: self._plane.emit(Operated(wish.ticket)))

    # Subscriptions

    def _seek(self, wish: Seek) -> str | None:
        reader = self._plane.readers.durable.get(wish.durable)
        if reader is None:
            return f"there is no durable subscription {wish.durable!r} here"
        if reader.port is not None:
            return f"{wish.durable!r} is being read by {reader.port.name}: stop that first"
        here, elsewhere = self._plane.readers.find(wish.durable)
        taker = self._plane.moving.given_to(wish.durable)
        if here is None or (reader.is_held and taker is not None):
            where = taker if elsewhere is None else elsewhere.subscription.subscriber
            return f"{wish.durable!r} is at {where} now, or is about to be"
        wished = [tick for tick in (wish.tick, *(wish.places or {}).values()) if tick is not None]
        latest = max(wished, default=0)
        if latest > self._plane.clock:
            return f"{_date(latest)} has not come yet: this broker's clock is at {_date(self._plane.clock)}"
        if not reader.is_confirmed or reader.awaited:
            awaited = ", ".join(reader.awaited) or "the network"
            return f"{wish.durable!r} waits for {awaited}: try again when that is there"
        if wish.forward:
            self.seeking.advance(reader, wish.places or {})
            return None
        self.seeking.seek(reader, wish.tick, wish.places)
        self._say("a durable subscription was moved", reader)
        return None

    def _end(self, durable: str) -> str | None:
        reader = self._plane.readers.durable.get(durable)
        if reader is None:
            return f"there is no durable subscription {durable!r} here"
        self._plane.readers.end(durable, f"{durable} was ended by an operator")
        self._say("a durable subscription was ended by an operator", reader)
        return None

    def expire(self) -> None:
        """Forget those that nobody has read here for too long; another broker that has one knows when it is read."""
        if self._expire_after is None:
            return
        limit = self._plane.clock - self._expire_after
        for reader in list(self._plane.readers.durable.values()):
            # Somebody has come, there or here.
            is_wanted = reader.is_held or reader.name in self._plane.wishes
            if 0 < reader.away_since < limit and not is_wanted:
                self._plane.readers.give_away(reader, "expired")
                self._say("a durable subscription has expired: nobody has read it for too long", reader)

    def _say(self, text: str, reader: Reader) -> None:
        fields = {"durable": reader.name, "filter": str(reader.filter)}
        self._plane.emit(Log("info", text, fields))

    # Brokers

    def _forget(self, broker: str, stream: str | None) -> str | None:
        if broker == self._plane.name or self._plane.toward(self._plane.brokers.get(broker)) is not None:
            return f"{broker} can be reached, and would be waited for again: end its subscriptions instead"
        found = [
            own
            for own in self._plane.own.values()
            if stream in (None, own.stream.name) and any(each.shb == broker for each in own.minima.reports)
        ]
        is_owed = self._plane.readers.endings.forget(broker)
        for own in found:
            self._plane.saving.add(own.remove(broker))
            fields = {"pubend": own.core.name, "broker": broker}
            self._plane.emit(Log("warning", "a log does not wait for a broker any more", fields))
        return None if found or is_owed else f"no log here waits for {broker}"


def _date(tick: Tick) -> str:
    """A tick as a time, to the nearest second; one that is none in any calendar as it is."""
    try:
        at = _EPOCH + timedelta(seconds=(tick + _SECOND // 2) // _SECOND)
    except OverflowError:
        return f"tick {tick}"
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
