"""What the disk of a broker has done, and what follows: events are accepted, matches count, rows are told to whom.

Nothing that must be on disk is told to anybody before it is heard of here [B1.3, R1.19]. A disk that is full is told
to operators once, and is asked again at the next report (``plane``); one that has failed is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.durable.epochs import concerns_staged
from holdfast.messages.ticks import ABSOLUTE, Items
from holdfast.overlay.transport import Log
from holdfast.streams.storing import (
    DiskInput,
    EventsChopped,
    EventsRead,
    EventsRefused,
    EventsStable,
    EventsTried,
    MatchesFailed,
    MatchesRead,
    MatchesStable,
    Saved,
    SaveFailed,
)
from holdfast.streams.tick import laid_out

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["on_disk"]


def on_disk(plane: DurablePlane, done: DiskInput) -> None:
    """Something the disk was asked for is done."""
    if concerns_staged(done):
        plane.epochs.on_disk(done)
        return
    match done:
        case EventsStable(pubend, appends, size):
            own = plane.own[pubend]
            plane.pubends.answer(own, own.on_stable(appends, size))
            plane.epochs.committing.on_stable(own)
            if not own.is_begun:  # from now on a log that is missing was lost
                own.is_begun = True
                plane.saving.add(own.row())
            plane.touch(own.course)
        case EventsRefused(pubend, reason, is_final):
            own = plane.own[pubend]
            fields = {"pubend": pubend, "reason": reason}
            plane.emit(Log(_level(is_final=is_final), "events cannot be logged", fields))
            plane.pubends.answer(own, own.on_refused(reason, plane.clock, is_final=is_final))
            plane.epochs.committing.on_refused(own, reason)
        case EventsTried(pubend, problem):
            if plane.own[pubend].on_tried(problem):
                plane.emit(Log("info", "events can be logged again", {"pubend": pubend}))
        case EventsRead():
            _on_read(plane, done)
        case EventsChopped(pubend, _, segments):
            plane.own[pubend].segments = segments
            plane.own[pubend].size = sum(size for _, size in segments)
        case MatchesStable(pubend, upto):
            plane.courses[pubend].hosted.on_stable(upto)
            plane.touch(plane.courses[pubend])
        case MatchesFailed(pubend, _, reason):
            if plane.courses[pubend].hosted.notes.on_refused(reason):
                plane.emit(Log("warning", "matches cannot be noted", {"pubend": pubend, "reason": reason}))
        case MatchesRead(pubend, subscriber, reading):
            plane.courses[pubend].hosted.on_read(subscriber, reading)
            plane.touch(plane.courses[pubend])
        case Saved(number):
            plane.saving.on_saved(number)
        case SaveFailed(_, reason, is_final):
            if plane.saving.on_failed(reason, is_final=is_final):
                plane.emit(Log(_level(is_final=is_final), "tables cannot be saved", {"reason": reason}))


def _level(*, is_final: bool) -> str:
    return "error" if is_final else "warning"


def _on_read(plane: DurablePlane, done: EventsRead) -> None:
    course = plane.courses[done.pubend]
    course.is_reading = False
    if done.parts or done.lost:
        for lost in done.lost:
            course.knowledge.add_lost(*lost)
        parts = course.knowledge.lost.gaps_all(list(done.parts))
        kept = [i for i, tick in enumerate(done.ticks) if tick not in course.knowledge.lost]
        columns = laid_out(parts, [done.ticks[i] for i in kept], [done.publications[i] for i in kept])
        course.learn(Items(done.pubend, ABSOLUTE, *columns, done.lost, answers=True))
        course.curiosity.become_reopened()
    plane.touch(course)
