"""Epochs: what was staged becomes visible, all of it in one append, once [contracts.md §7; decision 0018].

The events of an epoch get the numbers of its version (``streams.epochs``) and are taken by the application's pubend as
any others are: as one append, which a crash leaves whole or not at all. Their numbers are the record that the epoch is
done. So a commit that comes again, because its answer was lost, the broker died or the driver was started anew, is
answered from the pubend, whatever attempts it names.

    asked ─► the pubend is open ─► what is staged is read ─► appended ─► on disk: answered, attempts go

Of each application one epoch is under way; who asks for the same one meanwhile is answered with it. One is read at a
time, since an epoch is held in memory from then on until it is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.broker.durable.own import OwnPubend
from holdfast.broker.durable.staging import Staging
from holdfast.messages.publications import Publication
from holdfast.messages.staging import Commit, Committed, Epoch, Share
from holdfast.messages.ticks import Tick
from holdfast.overlay.transport import Log, Send
from holdfast.routing.port import ClientPort
from holdfast.streams.epochs import EPOCH_BYTES_MAX, EPOCH_EVENTS_MAX, first_number, is_done
from holdfast.streams.storing import STAGED, EventsRead, ReadEvents

__all__ = ["Committing"]

_WAY_OUT: Final = "make epochs smaller: maxEventsPerTrigger of a stream, or several versions of a batch"


@dataclass(slots=True)
class _Commit:
    """One that is under way."""

    epoch: Epoch
    shares: Sequence[Share]
    own: OwnPubend
    askers: dict[ClientPort, None] = field(default_factory=dict)
    last: int = 0  #: the number of its last event, once it is appended


class Committing:
    """All commits of a broker."""

    def __init__(self, staging: Staging, emit: Callable[[Any], None]) -> None:
        self._staging = staging
        self._emit = emit
        self._under_way: dict[tuple[str, str], _Commit] = {}  #: by stream and application
        self._reading: _Commit | None = None
        self.committed = 0  #: epochs

    @property
    def count(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    def commit(self, port: ClientPort, message: Commit, own: OwnPubend) -> None:
        """Whoever leads an application asks for an epoch, at its pubend."""
        epoch = message.epoch
        known = self._under_way.get(epoch[:2])
        if known is None:
            known = self._under_way[epoch[:2]] = _Commit(epoch, message.shares, own)
        elif known.epoch != epoch:
            problem = (
                f"version {known.epoch.version} of {epoch.app} is being committed: two drivers have this name"
            )
            self.refuse(port, epoch, problem)
            return
        known.askers[port] = None

    def refuse(self, port: ClientPort, epoch: Epoch, problem: str) -> None:
        """Say that a commit has changed nothing, and why."""
        self._say(port, Committed(epoch, 0, is_repeat=False, problem=problem))

    def advance(self) -> None:
        """Whatever has become possible."""
        for commit in list(self._under_way.values()):
            if commit.own.failure is not None:
                self._fail(commit, commit.own.failure)
            elif commit.own.is_open and not commit.last and self._reading is None:
                self._begin(commit)

    def _begin(self, commit: _Commit) -> None:
        epoch = commit.epoch
        if is_done(epoch.version, commit.own.core.last_number(epoch.app)):
            self._finish(commit, 0, is_repeat=True)
            return
        problem = commit.own.problem or self._problem(commit)
        shares = [share for share in commit.shares if share.events]
        if problem is not None:
            self._fail(commit, problem)
        elif not shares:
            self._finish(commit, 0, is_repeat=False)
        else:
            spans = self._staging.spans_of([share.attempt for share in shares])
            self._reading = commit
            self._emit(ReadEvents(STAGED, spans, sum(upto - after for after, upto in spans)))

    def _problem(self, commit: _Commit) -> str | None:
        size = events = 0
        for name, count in commit.shares:
            attempt = self._staging.attempts.get(name)
            staged = 0 if attempt is None or attempt.epoch != commit.epoch else attempt.stable
            if staged != count:
                return f"attempt {name} has {staged} events here, not {count}: it was given up, or is another epoch's"
            events += count
            size += 0 if attempt is None else attempt.size
        names = [share.attempt for share in commit.shares if share.events]
        if len(set(names)) < len(names):
            return "an attempt is named twice"
        if events > EPOCH_EVENTS_MAX:
            return f"an epoch of {events} events, more than {EPOCH_EVENTS_MAX}: {_WAY_OUT}"
        if size > EPOCH_BYTES_MAX:
            return f"an epoch of {size} bytes, more than {EPOCH_BYTES_MAX}: {_WAY_OUT}"
        return None

    # The disk

    def on_read(self, read: EventsRead, now: Tick) -> None:
        """What was staged for the epoch that is being read: its events, in the order of its attempts."""
        commit, self._reading = self._reading, None
        assert commit is not None
        if commit.own.problem is not None:
            self._fail(commit, commit.own.problem)
            return
        by_attempt: dict[str, list[bytes]] = {}
        for attempt, n, event in map(_fields, read.publications):
            if n:
                by_attempt.setdefault(attempt, []).append(event)
        found = [by_attempt.get(share.attempt, []) for share in commit.shares]
        if [len(each) for each in found] != [share.events for share in commit.shares]:
            self._fail(commit, "what was staged cannot be read from the disk any more")
            return
        first, app = first_number(commit.epoch.version), commit.epoch.app
        events = [event for part in found for event in part]
        taken = [Publication(app, first + i, event) for i, event in enumerate(events)]
        append, _ = commit.own.take_epoch(taken, now)
        assert append is not None, "no event of this version was taken before"
        commit.last = taken[-1].n
        self._emit(append)

    def on_stable(self, own: OwnPubend) -> None:
        """Appends of a pubend are on disk; epochs, perhaps, among them."""
        for commit in list(self._under_way.values()):
            if commit.own is own and 0 < commit.last <= own.core.stable_number(commit.epoch.app):
                self._finish(commit, commit.last + 1 - first_number(commit.epoch.version), is_repeat=False)

    def on_refused(self, own: OwnPubend, reason: str) -> None:
        """The disk would not take what a pubend has appended."""
        for commit in list(self._under_way.values()):
            if commit.own is own and commit.last:
                self._fail(commit, reason)

    # Answers

    def _finish(self, commit: _Commit, events: int, *, is_repeat: bool) -> None:
        epoch = commit.epoch
        del self._under_way[epoch[:2]]
        self._staging.drop_upto(epoch)
        self.committed += not is_repeat
        fields = {**epoch._asdict(), "events": events}
        self._emit(
            Log("info", "an epoch was there already" if is_repeat else "an epoch is committed", fields)
        )
        for port in commit.askers:
            self._say(port, Committed(epoch, events, is_repeat))

    def _fail(self, commit: _Commit, problem: str) -> None:
        if self._reading is commit:
            return  # what is read comes first
        del self._under_way[commit.epoch[:2]]
        for port in commit.askers:
            self.refuse(port, commit.epoch, problem)

    def _say(self, port: ClientPort, message: Committed) -> None:
        if port.connection is not None:
            self._emit(Send(port.connection, [message]))


def _fields(publication: Publication) -> tuple[str, int, bytes]:
    return publication.publisher, publication.n, publication.event
