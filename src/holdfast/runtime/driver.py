"""Drives a core, a broker or a client, on asyncio: the real world's twin of ``simulator.world``.

Everything that has arrived since the last turn is one turn: each input goes through ``core.step``, its effects are
carried out in order, and at the end every link that got something is flushed once. So whatever has accumulated is
sent, and nothing waits for more [measured.md, fan-out]. What arrives first in an iteration of the loop has nothing to
wait for and is a turn of its own; all that arrives after it in the same iteration is the next.

An exception that escapes from a turn is a bug. The driver logs it, breaks all connections and stops: ``failure`` is
set and ``wait_stopped`` raises ``DriverFailed``. It never goes on with a core it cannot trust.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.errors import HoldfastError
from holdfast.overlay.transport import (
    Close,
    Connect,
    Core,
    Disconnected,
    Log,
    Pause,
    Received,
    Resume,
    Send,
    Trace,
    Wake,
)
from holdfast.runtime import clock, logs
from holdfast.runtime.connections import Connections
from holdfast.runtime.faults import Faults
from holdfast.runtime.link import Link, LinkLimits
from holdfast.runtime.real_store import RealStore
from holdfast.streams.store import LANES
from holdfast.streams.storing import DiskInput

__all__ = ["Driver", "DriverFailed"]

#: uvloop counts in whole milliseconds, and from the one before the loop's last look at the clock: a timer that is to
#: fire in less fires at once, over and over until it is time. So much later it never comes too early.
TIMER_LATE_MS: Final = 2

#: A timer that fires so late means that the whole process stood still; then everything is read before it is obeyed.
LATE_NS: Final = 50 * MILLISECOND
LET_READ_NS: Final = 5 * MILLISECOND


class DriverFailed(HoldfastError):
    """The core, or whoever its effects are handed to, raised; the exception is the ``__cause__`` of this one."""


class Driver:
    """One core, its connections and its timer. All methods belong to the loop's thread.

    ``store``, which has been started, gets what the core asks of its disk; it stays its owner's to close.
    ``application`` gets the effects the driver does not know, ``trace`` the trace; ``before_flush`` is called before
    the effects of a turn become visible to others, so that a trace can be written out in time; ``rest`` after a turn
    when nothing waits, neither here nor for the disk. ``transcribe``: every message goes to the log, at level debug.
    """

    def __init__(
        self,
        core: Core,
        *,
        store: RealStore | None = None,
        application: Callable[[Any], None] | None = None,
        trace: Callable[[str, Mapping[str, Any]], None] | None = None,
        before_flush: Callable[[], None] | None = None,
        rest: Callable[[], None] | None = None,
        log: Callable[[str, str, Mapping[str, Any]], None] = logs.log,
        faults: Faults | None = None,
        limits: LinkLimits | None = None,
        links_max: int = 20_000,
        insecure: bool = False,
        transcribe: bool = False,
    ) -> None:
        self.core = core
        self.failure: BaseException | None = None
        self.turns = 0
        self.connections = Connections(
            self.submit,
            self._turn,
            self._say,
            faults=faults,
            limits=limits or LinkLimits(),
            links_max=links_max,
            insecure=insecure,
        )
        self._open = self.connections.open
        self._store = store
        self._application = application
        self._trace = trace
        self._before_flush = before_flush
        self._rest = rest
        self._has_submitted = False  #: something to the disk, in this turn
        self._log = log
        self._transcribe = transcribe
        self._inbox: list[Any] = []
        self._touched: dict[int, Link] = {}  #: to be flushed at the end of the turn
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: Instant = 0
        self._turn_is_due = False
        self._is_turning = False
        self._has_let_read = False  #: the timer that is armed was put off for that
        self._running = True
        self._ending: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        if store is not None:
            store.attach(self._on_stored, self._fail)

    # What the process around it calls.

    async def start(self, *inputs: Any) -> None:
        """Hand the core its first inputs (``Wake()`` to a broker, ``Open()`` to a client)."""
        for stimulus in inputs:
            self.submit(stimulus)

    async def listen(self, host: str, port: int) -> int:
        """Accept connections; returns the port, which matters if 0 was asked for.

        :raises BadAddress: unless it is loopback, or the driver is insecure.
        :raises OSError: if it cannot be had.
        """
        return await self.connections.listen(host, port)

    async def serve(self, listener: socket.socket) -> None:
        """Accept connections on a socket that listens already."""
        await self.connections.serve(listener)

    def submit(self, stimulus: Any) -> None:
        """An input for the core, in the next turn; ignored once stopping."""
        if not self._running:
            return
        self._inbox.append(stimulus)
        if not self._turn_is_due:
            self._turn_is_due = True
            if type(stimulus) is Received and not self._is_turning:
                self._turn()
            asyncio.get_running_loop().call_soon(self._on_turn_due)

    def _on_stored(self, stimuli: Sequence[DiskInput]) -> None:
        """What became of a turn of the disk; a turn of its own if it is the first thing to come."""
        if not self._running:
            return
        self._inbox += stimuli
        if not self._turn_is_due:
            self._turn_is_due = True
            self._turn()
            asyncio.get_running_loop().call_soon(self._on_turn_due)

    async def stop(self) -> None:
        """Accept nothing more, do what is due, send what is queued, close everything.

        Goodbyes are the core's to say: submit what makes it say them first. Does nothing if it has stopped.
        """
        self.connections.stop_listening()
        if self._inbox:
            self._turn()
        self._end()
        await self._ended.wait()

    async def wait_stopped(self) -> None:
        """Wait until everything is closed.

        :raises DriverFailed: if that was by a bug.
        """
        await self._ended.wait()
        if self.failure is not None:
            raise DriverFailed(f"{self.core.name}: {self.failure!r}") from self.failure

    def cut(self, names: Iterable[str]) -> None:
        """Black-hole the connections with these nodes; only for drivers with ``faults``."""
        self.connections.cut(names)

    def heal(self, names: Iterable[str]) -> None:
        """Undo ``cut``."""
        self.connections.heal(names)

    # One turn.

    def _on_turn_due(self) -> None:
        self._turn_is_due = False
        if self._inbox:
            self._turn()

    def _turn(self) -> None:
        if not self._running:
            return
        self._is_turning = True
        self.turns += 1
        inbox, self._inbox = self._inbox, []
        self._has_submitted = False
        self.connections.unserved_bytes = 0
        stimulus: Any = None
        try:
            now = clock.now()
            step, links, touched = self.core.step, self._open, self._touched
            for stimulus in inbox:
                if type(stimulus) is Received:
                    if (link := links.get(stimulus.connection)) is None:
                        continue  # nothing comes from a connection after its end
                    link.arrived = None
                    if self._transcribe:
                        self._say("debug", "received", logs.transcribed("<", link.name, stimulus.messages))
                elif type(stimulus) is Disconnected and links.pop(stimulus.connection, None) is None:
                    continue
                for effect in step(stimulus, now):
                    if type(effect) is not Send:
                        self._carry_out(effect)
                    elif (link := links.get(effect.connection)) is not None:
                        link.put(effect.messages)
                        touched.pop(effect.connection, None)  # flushed in the order of what came last:
                        touched[effect.connection] = link  # a delivery does not wait for a receipt to be sent
                        if self._transcribe:
                            self._say("debug", "sent", logs.transcribed(">", link.name, effect.messages))
            if self._before_flush is not None:
                self._before_flush()
            self._touched = {}
            for link in touched.values():
                link.flush()
            self._set_timer()
            if self._rest is not None and not self._inbox and not self._has_submitted:
                self._rest()
        except Exception as error:  # whatever it is, the core cannot be trusted any more
            self._fail(error, stimulus)
        finally:
            self._is_turning = False

    def _carry_out(self, effect: Any) -> None:
        match effect:
            case Trace(kind, fields):
                if self._trace is not None:
                    self._trace(kind, fields)
            case Connect(peer, address):
                self.connections.dial(peer, address)
            case Close(connection, reason):
                if (link := self._open.get(connection)) is not None:
                    self.connections.close(link, reason)
                    self._touched[connection] = link
            case Pause(connection):
                if (link := self._open.get(connection)) is not None:
                    link.pause()
            case Resume(connection):
                if (link := self._open.get(connection)) is not None:
                    link.resume()
            case Log(level, text, fields):
                self._say(level, text, fields)
            case _ if self._store is not None and type(effect) in LANES:
                self._store.submit(effect)
                self._has_submitted = True
            case _:
                assert self._application is not None, f"nobody takes {type(effect).__name__}"
                self._application(effect)

    def _set_timer(self) -> None:
        """Arm the timer, unless one is armed that fires early enough: it looks again when it does."""
        if self._has_let_read:
            return
        deadline = self.core.next_deadline()
        if deadline is None or (self._timer is not None and self._timer_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        delay_ns = deadline - clock.now()
        delay_ms = delay_ns // MILLISECOND + TIMER_LATE_MS if delay_ns > 0 else 0
        self._timer = asyncio.get_running_loop().call_later(delay_ms / 1_000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        has_let_read, self._has_let_read = self._has_let_read, False
        try:
            deadline = self.core.next_deadline()
            if deadline is None or deadline > (now := clock.now()):
                self._set_timer()
            elif now - deadline > LATE_NS and not has_let_read:
                self._let_read()
            else:
                self.submit(Wake())
        except Exception as error:
            self._fail(error, Wake())

    def _let_read(self) -> None:
        """We were stopped, or busy, for long: what peers sent meanwhile is unread, and they must not seem silent."""
        self._has_let_read = True
        self._timer_at = clock.now() + LET_READ_NS
        self._timer = asyncio.get_running_loop().call_later(LET_READ_NS / SECOND, self._on_timer)

    # The end.

    def _fail(self, error: Exception, stimulus: Any) -> None:
        self.failure = error
        kind = type(stimulus).__name__
        logs.bug("a turn failed, stopping", error, {"node": self.core.name, "input": kind})
        self.connections.abort()
        self._end()

    def _end(self) -> None:
        self._running = False
        if self._timer is not None:
            self._timer.cancel()
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._close_all())

    async def _close_all(self) -> None:
        await self.connections.close_all()
        self._ended.set()

    def _say(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        self._log(level, text, {"node": self.core.name, **fields})
