"""A session seen from one of its ends: when the peer was last heard, and when it must hear from us."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.messages.session import VERSION, Hello

__all__ = [
    "HEARTBEATS_MISSED_MAX",
    "HEARTBEAT_MAX_NS",
    "HEARTBEAT_MIN_NS",
    "HELLO_WITHIN_NS",
    "Session",
    "common_version",
    "heartbeat_problem",
]

#: A peer that promised to be heard every h is given up after this many h at the earliest.
HEARTBEATS_MISSED_MAX = 3

#: A peer must introduce itself within this time. Silence is judged by heartbeats, and before the Hello there are none:
#: a round trip may be longer than the time after which a neighbour is given up.
HELLO_WITHIN_NS = 5 * SECOND

#: What a peer may promise: less often and its death goes unnoticed, more often and it is noise.
HEARTBEAT_MIN_NS = 1 * MILLISECOND
HEARTBEAT_MAX_NS = 60 * SECOND


@dataclass(slots=True)
class Session:
    """What is known of one connection. Before the peer's Hello it is nobody's."""

    connection: int
    heard_at: Instant
    silent_after_ns: int
    heartbeat_every_ns: int = 0  #: 0: none until the session has begun
    heartbeat_at: Instant = 0
    begun_at: Instant | None = None
    silent_after_hearing_ns: int = 0  #: what counts once the peer has been heard in the session

    def begin(
        self, now: Instant, heartbeat_every_ns: int, peer_heartbeat_ns: int, detect_after_ns: int
    ) -> None:
        """Both ends have introduced themselves."""
        self.begun_at = self.heard_at = now
        self.heartbeat_every_ns = heartbeat_every_ns
        self.heartbeat_at = now + heartbeat_every_ns
        # Its heartbeats begin when our answer has reached it, which may take as long as a round trip.
        self.silent_after_hearing_ns = max(detect_after_ns, HEARTBEATS_MISSED_MAX * peer_heartbeat_ns)
        self.silent_after_ns = max(self.silent_after_hearing_ns, HELLO_WITHIN_NS)

    def hear(self, now: Instant) -> None:
        """The peer has said something. Before its Hello that counts for nothing: a stranger has only so long."""
        if self.begun_at is not None:
            self.heard_at = now
            self.silent_after_ns = self.silent_after_hearing_ns

    def is_silent(self, now: Instant) -> bool:
        """Whether the peer must be given up [KJ §3.3]; it may be alive all the same."""
        return now >= self.heard_at + self.silent_after_ns

    def may_beat(self, now: Instant) -> bool:
        """Whether a heartbeat is due."""
        return self.heartbeat_every_ns > 0 and now >= self.heartbeat_at


def common_version(hello: Hello) -> int | None:
    """The protocol version to speak with a peer, the highest both know; None if there is none."""
    return VERSION if hello.version_min <= VERSION <= hello.version_max else None


def heartbeat_problem(heartbeat_ns: int) -> str | None:
    """Why a peer's promise cannot be accepted, if it cannot."""
    if HEARTBEAT_MIN_NS <= heartbeat_ns <= HEARTBEAT_MAX_NS:
        return None
    return f"a heartbeat every {heartbeat_ns} ns; from 1 ms to 60 s is possible"
