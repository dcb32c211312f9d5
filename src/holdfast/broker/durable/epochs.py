"""Epochs at a broker: what those say who write streams by tasks, and what the disk says of it.

``staging`` keeps what tasks have handed in, ``committing`` makes epochs of it; here is what is asked of a broker before
either: that the stream is logged, that the application's home is here, and that every event may enter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, assert_never

from holdfast.broker.admission import Entrance
from holdfast.broker.durable.committing import Committing
from holdfast.broker.durable.names import owner_in
from holdfast.broker.durable.publishing import pubend_for
from holdfast.broker.durable.staging import Staging
from holdfast.broker.settings import Settings
from holdfast.messages.staging import Commit, Discard, Discarded, Epoch, Stage
from holdfast.messages.streams import Order
from holdfast.overlay.transport import Send
from holdfast.routing.port import ClientPort
from holdfast.streams.epochs import VERSION_MAX, home_of
from holdfast.streams.storing import (
    STAGED,
    DiskInput,
    EventsChopped,
    EventsRead,
    EventsRefused,
    EventsStable,
)

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["Epochs", "concerns_staged"]

_STAGED_INPUTS: Final = (EventsStable, EventsRefused, EventsRead, EventsChopped)


def concerns_staged(done: DiskInput) -> bool:
    """Whether what the disk has done is about what is staged, and not about a pubend."""
    return isinstance(done, _STAGED_INPUTS) and done.pubend == STAGED


class Epochs:
    """Of one broker."""

    def __init__(self, plane: DurablePlane, settings: Settings) -> None:
        self._plane = plane
        self._brokers = settings.brokers
        self._name_bytes_max = settings.limits.publisher_bytes
        keep = None if settings.staged_keep_ns is None else settings.staged_keep_ns // 1_000
        self.staging = Staging(plane.emit, settings.staged_bytes_max, keep)
        self.committing = Committing(self.staging, plane.emit)

    def on_message(self, port: ClientPort, message: Stage | Commit | Discard, entrance: Entrance) -> None:
        """A client in session says something of an epoch."""
        match message:
            case Stage(_, epoch, _, events):
                problem = self._problem(epoch) or entrance.problem_in(epoch.stream, events)
                self.staging.stage(port, message, problem, self._plane.clock)
                self._plane.throttle.slow_down(port.connection)
            case Commit(epoch):
                self._commit(port, message, self._problem(epoch))
            case Discard(attempts):
                self.staging.drop(attempts)
                if port.connection is not None:
                    self._plane.emit(Send(port.connection, [Discarded()]))
            case _:
                assert_never(message)

    def _problem(self, epoch: Epoch) -> str | None:
        """Why there can be no such epoch here, if there cannot."""
        stream, app, version = epoch
        if not 1 <= len(app.encode()) <= self._name_bytes_max:
            return (
                f"the name of an application has 1 to {self._name_bytes_max} bytes, not {len(app.encode())}"
            )
        if version > VERSION_MAX:
            return f"version {version} is above {VERSION_MAX}"
        known = self._plane.streams.get(stream)
        if known is None:
            return f"there is no durable stream {stream!r} here"
        here = self._plane.name
        is_total = known.order is Order.TOTAL
        home = owner_in(pubend_for(known, app, here)) if is_total else home_of(app, self._brokers or (here,))
        if home != here:
            return f"epochs of {app} on {stream} are committed at {home}, not at {here}: two network files differ"
        return None

    def _commit(self, port: ClientPort, message: Commit, problem: str | None) -> None:
        epoch, plane = message.epoch, self._plane
        if problem is not None:
            self.committing.refuse(port, epoch, problem)
            return
        stream = plane.streams[epoch.stream]
        pubend = pubend_for(stream, epoch.app, plane.name)
        self.committing.commit(port, message, plane.own.get(pubend) or plane.pubends.create(pubend, stream))

    # The disk

    def on_disk(self, done: Any) -> None:
        """What the disk has done with what is staged."""
        match done:
            case EventsStable(_, appends):
                self._plane.throttle.on_stable(STAGED, appends)
                self.staging.on_stable(appends)
            case EventsRefused(_, reason, is_final):
                self._plane.throttle.on_refused(STAGED)
                self.staging.on_refused(reason, is_final=is_final)
            case EventsRead():
                self.committing.on_read(done, self._plane.clock)

    # Looking at it

    def status(self) -> dict[str, Any]:
        """What is staged, how long the oldest of it has waited, and what nobody came for."""
        attempts = self.staging.attempts.values()
        return {
            "attempts": len(attempts),
            "events": sum(each.stable for each in attempts),
            "bytes": self.staging.size,
            "oldest": self.staging.oldest,
            "swept": self.staging.swept,
            "committing": self.committing.count,
            "committed": self.committing.committed,
            "problem": self.staging.failure,
        }
