"""How long to wait before dialling again: longer each time, and for every client a little different.

The clients of a broker lose it at the same moment; they must not all come back at the same moment.
"""

from __future__ import annotations

import zlib

from holdfast.clock import Instant
from holdfast.overlay.transport import Connect

__all__ = ["Backoff", "Dials"]


class Backoff:
    """The pauses between attempts to reach one node."""

    def __init__(self, name: str, least_ns: int, most_ns: int) -> None:
        self._name = name  #: whose pauses they are: no two clients have the same
        self._least_ns = least_ns
        self._most_ns = most_ns
        self._attempts = 0

    def next_pause(self) -> int:
        """From half of the longest possible pause to all of it; it doubles each time."""
        longest = min(self._least_ns << min(self._attempts, 30), self._most_ns)
        spread = zlib.crc32(f"{self._name}/{self._attempts}".encode()) / 2**32
        self._attempts += 1
        return int(longest * (0.5 + spread / 2))

    def reset(self) -> None:
        """There was an answer."""
        self._attempts = 0


class Dials:
    """Dials of several nodes, held back until it is time for them.

    Who asks has waited for ``waited_ns`` since the last attempt already. A node that was not asked for for long, or has
    answered since, is dialled at once.
    """

    def __init__(self, name: str, least_ns: int, most_ns: int, waited_ns: int) -> None:
        self._name = name
        self._least_ns = least_ns
        self._most_ns = most_ns
        self._waited_ns = waited_ns
        self._backoffs: dict[str, Backoff] = {}  #: of those who have not answered
        self._asked_at: dict[str, Instant] = {}
        self._held: dict[str, tuple[Instant, Connect]] = {}

    def ask(self, dial: Connect, now: Instant) -> list[Connect]:
        """Somebody is to be dialled: at once, or when it is due."""
        peer = dial.peer
        asked_at, self._asked_at[peer] = self._asked_at.get(peer, now), now
        backoff = self._backoffs.get(peer)
        if backoff is None or now - asked_at > 2 * (self._most_ns + self._waited_ns):
            self._backoffs[peer] = self._new(peer)
            return [dial]
        pause = backoff.next_pause() - self._waited_ns
        if pause <= 0:
            return [dial]
        self._held[peer] = now + pause, dial
        return []

    def _new(self, peer: str) -> Backoff:
        return Backoff(f"{self._name}/{peer}", self._least_ns, self._most_ns)

    def answered(self, peer: str) -> None:
        """There is a session with a node."""
        self._backoffs.pop(peer, None)

    def lost(self, peer: str, now: Instant) -> None:
        """A node others have lost at this moment too: already the first attempt to reach it again is spread."""
        self._asked_at[peer] = now
        self._backoffs[peer] = self._new(peer)

    def clear(self) -> None:
        """Whoever is dialled next is dialled at once: it is we who went away."""
        self._backoffs.clear()

    def due(self, now: Instant) -> list[Connect]:
        """Whom it is time to dial."""
        due = [dial for at, dial in self._held.values() if now >= at]
        for dial in due:
            del self._held[dial.peer]
        return due

    def next_deadline(self) -> Instant | None:
        """When the next is due."""
        return min((at for at, _ in self._held.values()), default=None)
