"""Between the network and the programs: what has arrived at a host waits here while its program does not read.

A program does not read while it is frozen, and not from a connection it has paused. What waits is bounded: if more
than the host's ``buffer_bytes_max`` waits for ``SLOW_NS``, or ever ``BURST_BUFFERS_MAX`` times as much, the sender
gives up, what waits is replaced by a ``Goodbye(TOO_SLOW)``, and the connection ends. The peer may read that for
``LINGER_NS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.messages.message import Message
from holdfast.messages.session import Farewell, Goodbye
from holdfast.overlay.slowness import BURST_BUFFERS_MAX, LINGER_NS, SLOW_NS
from holdfast.overlay.transport import Disconnected, Received
from holdfast.simulator.clock import VirtualClock
from holdfast.simulator.connection import End, Host, State, bytes_of

__all__ = ["Arrivals"]


class Arrivals:
    """Hands to programs what has arrived for them, as soon as they read it.

    ``take`` gives an input to the program of a host; it is called only while that is up and not frozen.
    """

    def __init__(self, clock: VirtualClock, take: Callable[[Any, Any], None]) -> None:
        self._clock = clock
        self._take = take

    # What arrives

    def stimulus(self, host: Host, stimulus: Any) -> None:
        """News of a connection; a host that is down does not hear it."""
        if not host.is_up:
            return
        if host.is_frozen:
            host.backlog.append(stimulus)
        else:
            self._hand(host, stimulus)

    def _hand(self, host: Host, stimulus: Any) -> None:
        if isinstance(stimulus, Disconnected):
            if stimulus.connection not in host.ends:
                return  # the program closed it while this was waiting
            del host.ends[stimulus.connection]
        self._take(host, stimulus)

    def messages(self, end: End, messages: list[Message]) -> None:
        """Messages on a connection."""
        host = end.host
        if not end.unread and not end.is_paused and not host.is_frozen:
            self._take(host, Received(end.id, messages))
            return
        end.unread += messages
        end.unread_bytes += sum(map(bytes_of, messages))
        if end.unread_bytes > host.buffer_bytes_max:
            self._fall_behind(end)
        if host.is_frozen:
            host.backlog.append(end)

    def _fall_behind(self, end: End) -> None:
        now = self._clock.now
        if end.behind_since is None:
            end.behind_since = now
        is_burst_too_large = end.unread_bytes > BURST_BUFFERS_MAX * end.host.buffer_bytes_max
        if is_burst_too_large or now - end.behind_since >= SLOW_NS:
            self._drop_slow(end)

    def _drop_slow(self, end: End) -> None:
        reason = f"more than {end.host.buffer_bytes_max} bytes were not read"
        end.unread = [Goodbye(Farewell.TOO_SLOW, reason)]
        end.unread_bytes = 0
        end.is_ending = "closed by the peer: too slow"
        dropped = end.other
        self.lose(dropped, f"too slow: {reason}")
        dropped.state = State.LINGERING
        self._clock.at(self._clock.now + LINGER_NS, self._end_linger, dropped)

    def _end_linger(self, end: End) -> None:
        if end.state is State.LINGERING:
            end.state = State.CLOSED

    def ended(self, end: End, reason: str) -> None:
        """The peer has closed a connection; its program learns that behind what it has not read yet."""
        end.is_ending = end.is_ending or reason
        if end.host.is_frozen:
            end.host.backlog.append(end)
        elif not end.is_paused:
            self._read(end)

    def lose(self, end: End, reason: str) -> None:
        """An end is gone, and not by its program's doing."""
        if end.state is State.OPEN:
            end.state = State.CLOSED
            end.unread.clear()
            self.stimulus(end.host, Disconnected(end.id, reason))

    # Programs that read, or do not

    def pause(self, host: Host, connection: int) -> None:
        """The program does not read a connection for a while."""
        host.ends[connection].is_paused = True

    def resume(self, host: Host, connection: int) -> None:
        """The program reads a connection again, from its next turn on."""
        end = host.ends[connection]
        end.is_paused = False
        if end.is_unread:
            self._clock.at(self._clock.now, self._read, end)

    def _read(self, end: End) -> None:
        """Hand over what lies unread, and the end of the connection if that is next."""
        if end.host.is_frozen:
            end.host.backlog.append(end)
            return
        if end.unread and not end.is_paused and end.state is State.OPEN:
            messages, end.unread, end.unread_bytes = end.unread, [], 0
            end.behind_since = None
            self._take(end.host, Received(end.id, messages))
        if end.is_ending is not None and not end.is_paused and end.state is State.OPEN:
            self.lose(end, end.is_ending)

    def unfreeze(self, host: Host) -> None:
        """The program reads what came while it was frozen, in the order in which it came."""
        host.is_frozen = False
        while host.backlog and host.is_up and not host.is_frozen:
            entry = host.backlog.popleft()
            if isinstance(entry, End):
                self._read(entry)
            else:
                self._hand(host, entry)
