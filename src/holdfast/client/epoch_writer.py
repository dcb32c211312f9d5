"""Who writes epochs: a task that stages, or the driver that commits, in session with the home of its application.

It has one broker and no other: what was staged is there, and so is the record of what was committed. So it dials that
one until it answers, and after every break says again what it has no answer for; the broker knows what it had heard
[contracts.md §7]. What is said is answered when it is on disk, and so much is under way without an answer, no more.

Without an answer for ``PATIENCE_NS`` it gives up and says so. That is certain only of what was staged: a commit that
had no answer may have been carried out, and is to be asked for again, by whoever the application's next driver is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from holdfast.client.backoff import Backoff
from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.messages.message import Message
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.staging import Commit, Committed, Discard, Discarded, Epoch, Share, Stage, Staged
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    ConnectFailed,
    Disconnected,
    Received,
    Send,
    Wake,
)

__all__ = ["EpochWriter"]

#: What is sent and not answered.
WINDOW_BYTES: Final = 8 << 20

#: One message carries so much, and one event if that is larger.
MESSAGE_BYTES: Final = 512 << 10
MESSAGE_EVENTS: Final = 5_000

HEARTBEAT_NS: Final = 20 * SECOND  #: a task may be busy for long between two things it says
SILENT_NS: Final = 5 * SECOND  #: who is asked and is not heard of for so long is dialled again
PATIENCE_NS: Final = 60 * SECOND
PAUSE_LEAST_NS: Final = 50 * MILLISECOND
PAUSE_MOST_NS: Final = 1 * SECOND

#: Farewells of brokers that will say the same to who comes again.
_FINAL: Final = (
    Farewell.PROTOCOL,
    Farewell.UNKNOWN,
    Farewell.VERSION,
    Farewell.TAKEN_OVER,
    Farewell.MISMATCH,
)

_Wish = Stage | Commit | Discard


class EpochWriter:
    """Driven as every core (``overlay.transport``); what is wanted is said by its methods, and sent at the next step.

    ``problem`` says why nothing will come of it; ``committed`` is the answer to a commit.
    """

    def __init__(self, name: str, incarnation: int, broker: str, address: str) -> None:
        self.name = name
        self.problem: str | None = None
        self.committed: Committed | None = None
        self._incarnation = incarnation
        self._broker = broker
        self._address = address
        self._unanswered: deque[_Wish] = deque()
        self._sent = 0  #: so many of those were sent in this session
        self._sent_bytes = 0
        self._counts: dict[str, int] = {}  #: how many events were handed in, by attempt
        self._sessions = 0
        self._connection: int | None = None
        self._is_welcome = False
        self._is_over = False
        self._backoff = Backoff(name, PAUSE_LEAST_NS, PAUSE_MOST_NS)
        self._dial_at: Instant | None = 0
        self._beat_at: Instant = 0
        self._heard_at: Instant = 0
        self._progress_at: Instant | None = None  #: when there was last an answer, or nothing to be answered
        self._trouble = "no connection could be had"

    # What is wanted

    def stage(self, attempt: str, epoch: Epoch, events: Sequence[bytes]) -> None:
        """Have events staged, in order behind what was before."""
        start = size = 0
        for stop, event in enumerate(events):
            if stop > start and (size + len(event) > MESSAGE_BYTES or stop - start == MESSAGE_EVENTS):
                self._stage(attempt, epoch, tuple(events[start:stop]))
                start, size = stop, 0
            size += len(event)
        if start < len(events):
            self._stage(attempt, epoch, tuple(events[start:]))

    def _stage(self, attempt: str, epoch: Epoch, events: tuple[bytes, ...]) -> None:
        first = self._counts.get(attempt, 0)
        self._counts[attempt] = first + len(events)
        self._unanswered.append(Stage(attempt, epoch, first, events))

    def commit(self, epoch: Epoch, shares: Sequence[Share]) -> None:
        """Have an epoch committed."""
        self._unanswered.append(Commit(epoch, tuple(shares)))

    def discard(self, attempts: Sequence[str]) -> None:
        """Have attempts forgotten."""
        self._unanswered.append(Discard(tuple(attempts)))

    @property
    def is_answered(self) -> bool:
        """Whether there is nothing to wait for."""
        return not self._unanswered or self.problem is not None

    @property
    def has_room(self) -> bool:
        """Whether more may be handed in: else what was sent is to be answered first."""
        return self.problem is not None or (
            self._sent == len(self._unanswered) and self._sent_bytes < WINDOW_BYTES
        )

    # Driving

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        """Take one input, and say what is to be done about it."""
        if self._is_over:
            return []
        if self._progress_at is None or not self._unanswered:
            self._progress_at = now
        effects: list[Any] = []
        match stimulus:
            case Connected(connection):
                effects += self._introduce(connection, now)
            case ConnectFailed(_, reason) | Disconnected(_, reason):
                self._lose(reason, now)
            case Received(connection, messages) if connection == self._connection:
                self._heard_at = now
                for message in messages:
                    effects += self._on_message(message, now)
            case Wake():
                effects += self._on_wake(now)
        return effects + self._send(now)

    def next_deadline(self) -> Instant | None:
        """When to be woken."""
        if self._is_over or self.problem is not None:
            return None
        times = [self._dial_at]
        if self._connection is not None:
            times.append(self._beat_at)
        if self._unanswered and self._progress_at is not None:
            times.append(self._progress_at + PATIENCE_NS)
            times.append(None if self._connection is None else self._heard_at + SILENT_NS)
        return min((at for at in times if at is not None), default=None)

    def leave(self) -> list[Any]:
        """Say goodbye."""
        self._is_over = True
        if self._connection is None:
            return []
        return [
            Send(self._connection, [Goodbye(Farewell.LEAVING, "done")]),
            Close(self._connection, "done"),
        ]

    def _introduce(self, connection: int, now: Instant) -> list[Any]:
        self._sessions += 1
        self._connection = connection
        self._heard_at = now
        self._beat_at = now + HEARTBEAT_NS
        hello = Hello(self.name, Kind.CLIENT, self._incarnation, self._sessions, "anonymous", HEARTBEAT_NS)
        return [Send(connection, [hello])]

    def _on_wake(self, now: Instant) -> list[Any]:
        effects: list[Any] = []
        if self._unanswered and self._progress_at is not None and now >= self._progress_at + PATIENCE_NS:
            where = f"broker {self._broker} at {self._address}"
            self.problem = f"{where} has not answered for {PATIENCE_NS // SECOND} s: {self._trouble}"
        elif self._connection is not None and self._unanswered and now >= self._heard_at + SILENT_NS:
            effects.append(Close(self._connection, "silent"))
            self._lose("it is silent", now)
        elif self._connection is not None and now >= self._beat_at:
            self._beat_at = now + HEARTBEAT_NS
            effects.append(Send(self._connection, [Heartbeat()]))
        if self._dial_at is not None and now >= self._dial_at:
            self._dial_at = None
            effects.append(Connect(self._broker, self._address))
        return effects

    def _lose(self, reason: str, now: Instant) -> None:
        """No session; everything without an answer is to be said again in the next one."""
        self._trouble = reason
        self._connection = None
        self._is_welcome = False
        self._sent = self._sent_bytes = 0
        self._dial_at = now + self._backoff.next_pause()

    def _send(self, now: Instant) -> list[Any]:
        if not self._is_welcome or self._connection is None or self.problem is not None:
            return []
        messages: list[Message] = []
        while self._sent < len(self._unanswered) and self._sent_bytes < WINDOW_BYTES:
            message = self._unanswered[self._sent]
            messages.append(message)
            self._sent += 1
            self._sent_bytes += _bytes_of(message)
        if not messages:
            return []
        self._beat_at = now + HEARTBEAT_NS
        return [Send(self._connection, messages)]

    # Answers

    def _on_message(self, message: Message, now: Instant) -> list[Any]:
        match message:
            case Welcome():
                self._is_welcome = True
                self._backoff.reset()
            case Staged(attempt, _, problem) if problem:
                self._fail(f"broker {self._broker} has not staged attempt {attempt}: {problem}")
            case Staged(attempt, count):
                self._answer(lambda each: _is_staged(each, attempt, count), now)
            case Committed(epoch, _, _, problem):
                if problem:
                    version = f"version {epoch.version} of {epoch.app}"
                    self._fail(f"broker {self._broker} has not committed {version}: {problem}")
                self.committed = message
                self._answer(lambda each: isinstance(each, Commit) and each.epoch == epoch, now)
            case Discarded():
                self._answer(lambda each: isinstance(each, Discard), now)
            case Goodbye(farewell, reason):
                if farewell in _FINAL:
                    self._fail(f"broker {self._broker} has ended the session: {reason}")
                assert self._connection is not None
                closing = Close(self._connection, "the broker has said goodbye")
                self._lose(reason, now)
                return [closing]
        return []

    def _answer(self, is_answered: Callable[[_Wish], bool], now: Instant) -> None:
        """Answers come in the order of what was said."""
        while self._sent and is_answered(self._unanswered[0]):
            self._sent_bytes -= _bytes_of(self._unanswered.popleft())
            self._sent -= 1
            self._progress_at = now

    def _fail(self, problem: str) -> None:
        self.problem = self.problem or problem


def _is_staged(message: _Wish, attempt: str, count: int) -> bool:
    return isinstance(message, Stage) and (
        message.attempt == attempt and message.first + len(message.events) <= count
    )


def _bytes_of(message: _Wish) -> int:
    return sum(map(len, message.events)) if isinstance(message, Stage) else 0
