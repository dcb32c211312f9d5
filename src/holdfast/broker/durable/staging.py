"""What tasks have staged at a broker, until an epoch is made of it or nobody wants it any more [contracts.md §7].

Staged events are on disk before that is said, in a log of their own; in memory is only where they stand. A message may
come again, after a session broke or the broker was started again: what is known of an attempt is passed over, the rest
appended. An attempt of which something was refused is no attempt any more: nobody may commit half of it.

Attempts go when their epoch is committed, or a later one of the same application is; when whoever staged them says so;
and, for those whose driver died, after ``keep``. What is left behind by a crash is known again, and goes the same ways.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.intervals import Span
from holdfast.messages.publications import Publication
from holdfast.messages.staging import Epoch, Stage, Staged
from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.overlay.transport import Log, Send
from holdfast.routing.port import ClientPort
from holdfast.streams.staged import Whose, read_whose, weight, whose_record
from holdfast.streams.storing import STAGED, AppendEvents, ChopEvents, StagedState

__all__ = ["Attempt", "Staging"]


@dataclass(slots=True)
class Attempt:
    """What one task has staged."""

    epoch: Epoch
    at: Tick  #: when something was last staged
    port: ClientPort | None = None  #: who hears of it
    taken: int = 0  #: events that were given to the disk
    stable: int = 0  #: and those that are there
    size: int = 0  #: in bytes
    spans: list[Span] = field(default_factory=list)  #: where they stand, ascending


class Staging:
    """All attempts at a broker. ``bytes_max``: so much is staged at once; ``keep``: how long without news, in ticks."""

    def __init__(self, emit: Callable[[Any], None], bytes_max: int, keep: int | None) -> None:
        self._emit = emit
        self._bytes_max = bytes_max
        self._keep = keep
        self.attempts: dict[str, Attempt] = {}
        self.size = 0
        self.swept = 0  #: how many attempts nobody came for
        self.failure: str | None = None  #: nothing can be staged any more, and why
        self._last = ORIGIN  #: the last index that was used
        self._stable = ORIGIN
        self._chopped = ORIGIN
        self._refusals = 0
        #: Appends on their way to the disk: their last index, whose they are, and how many events it has with them.
        self._under_way: deque[tuple[int, str, Attempt, int]] = deque()

    def recover(self, found: StagedState) -> None:
        """What earlier lives have left on disk."""
        self._last = self._stable = found.last
        for name, data, first, events, span, size in found.runs:
            whose = read_whose(data)
            if whose is None:
                continue
            attempt = self.attempts.setdefault(name, Attempt(whose.epoch, whose.at))
            if first == attempt.taken:
                attempt.taken = attempt.stable = first + events
                attempt.at = whose.at
                attempt.spans.append(span)
                self._grow(attempt, weight(whose.epoch.app, events, size))
        self._chop()

    # Staging

    def stage(self, port: ClientPort, message: Stage, problem: str | None, now: Tick) -> None:
        """Take events of an attempt, unless there is a problem with them."""
        name, epoch, first, events = message.attempt, message.epoch, message.first, message.events
        attempt = self.attempts.get(name)
        problem = problem or self.failure or self._problem(attempt, message)
        if problem is not None:
            self.drop((name,))
            self._say(port, Staged(name, 0, problem))
            return
        if attempt is None:
            attempt = self.attempts[name] = Attempt(epoch, now)
        attempt.port, attempt.at = port, now
        news = events[attempt.taken - first :]
        if not news:  # it came before: what is on disk is said, what is not will be
            self._say(port, Staged(name, attempt.stable))
            return
        records = [whose_record(name, Whose(epoch, now))]
        records += [Publication(name, n, event) for n, event in enumerate(news, attempt.taken + 1)]
        self._append(name, attempt, records, weight(epoch.app, len(news), sum(map(len, news))))

    def _problem(self, attempt: Attempt | None, message: Stage) -> str | None:
        if attempt is None and message.first:
            return f"attempt {message.attempt} is not known here, or not any more"
        if attempt is not None and message.epoch != attempt.epoch:
            return f"attempt {message.attempt} is of another epoch"
        if attempt is not None and message.first > attempt.taken:
            return f"attempt {message.attempt} has {attempt.taken} events here, and goes on after {message.first}"
        size = weight(message.epoch.app, len(message.events), sum(map(len, message.events)))
        if self.size + size > self._bytes_max:
            staged = f"{len(self.attempts)} attempts have staged {self.size} bytes here"
            return f"{staged}, and more than staged_bytes_max = {self._bytes_max} is not taken"
        return None

    def _append(self, name: str, attempt: Attempt, records: list[Publication], size: int) -> None:
        first = self._last + 1
        self._last += len(records)
        attempt.taken += len(records) - 1
        attempt.spans.append((first - 1, self._last))
        self._grow(attempt, size)
        self._under_way.append((self._last, name, attempt, attempt.taken))
        self._emit(AppendEvents(STAGED, range(first, self._last + 1), records, self._refusals))

    def _grow(self, attempt: Attempt, size: int) -> None:
        attempt.size += size
        self.size += size

    def on_stable(self, appends: int) -> None:
        """The oldest appends are on disk."""
        for _ in range(appends):
            self._stable, name, attempt, count = self._under_way.popleft()
            attempt.stable = count
            if self.attempts.get(name) is attempt and attempt.port is not None:
                self._say(attempt.port, Staged(name, count))
        self._chop()

    def on_refused(self, reason: str, *, is_final: bool) -> None:
        """Nothing of what is under way is on disk: those attempts are over."""
        self._refusals += 1
        if is_final:
            self.failure = reason
        self._emit(Log("error" if is_final else "warning", "events cannot be staged", {"reason": reason}))
        refused = {name: attempt for _, name, attempt, _ in self._under_way}
        self._under_way.clear()
        for name, attempt in refused.items():
            if self.attempts.get(name) is attempt:
                self.drop((name,))
                if attempt.port is not None:
                    self._say(attempt.port, Staged(name, 0, reason))

    # Going

    def drop(self, names: Iterable[str]) -> None:
        """These are of no use."""
        for name in names:
            attempt = self.attempts.pop(name, None)
            if attempt is not None:
                self.size -= attempt.size
        self._chop()

    def drop_upto(self, epoch: Epoch) -> None:
        """An epoch is done: whatever was staged for it, or for earlier ones."""
        self.drop(
            [
                name
                for name, each in self.attempts.items()
                if each.epoch[:2] == epoch[:2] and each.epoch.version <= epoch.version
            ]
        )

    def sweep(self, now: Tick) -> None:
        """Give up what nobody has come for."""
        if self._keep is None:
            return
        old = [name for name, each in self.attempts.items() if each.at + self._keep < now]
        for name in old:
            epoch = self.attempts[name].epoch._asdict()
            self._emit(Log("warning", "what was staged was never committed", {"attempt": name, **epoch}))
        self.swept += len(old)
        self.drop(old)

    def _chop(self) -> None:
        """Have the log forget what nobody needs: it goes from its beginning."""
        needed = min(
            (each.spans[0][0] for each in self.attempts.values() if each.spans), default=self._stable
        )
        through = min(needed, self._stable)
        if through > self._chopped:
            self._chopped = through
            self._emit(ChopEvents(STAGED, through))

    def _say(self, port: ClientPort, message: Staged) -> None:
        if port.connection is not None:
            self._emit(Send(port.connection, [message]))

    # Reading

    def spans_of(self, names: Sequence[str]) -> list[Span]:
        """Where attempts stand in the log."""
        return sorted(span for name in names for span in self.attempts[name].spans)

    @property
    def oldest(self) -> Tick | None:
        """When something was last staged of the attempt that has waited longest."""
        return min((each.at for each in self.attempts.values()), default=None)
