"""What the disk of a broker has done, and what follows: events are accepted, matches count, rows are told to whom.

Nothing that must be on disk is told to anybody before it is heard of here [B1.3, R1.19]. A disk that is full is told
to operators once, and is asked again at the next report (``plane``); one that has failed is not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from holdfast.broker.durable.epochs import concerns_staged
from holdfast.clock import SECOND
from holdfast.intervals import Intervals, Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, Items, Lost, Tick
from holdfast.overlay.transport import Log
from holdfast.streams.storing import (
    DiskInput,
    EventsChopped,
    EventsRead,
    EventsRefused,
    EventsStable,
    EventsTried,
    LakeRead,
    MatchesFailed,
    MatchesRead,
    MatchesStable,
    Saved,
    SaveFailed,
)
from holdfast.streams.tick import laid_out

if TYPE_CHECKING:
    from holdfast.broker.durable.course import Course
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["on_disk"]

#: So long a lake that could not be read is left alone, at least.
LAKE_AGAIN_NS: Final = 1 * SECOND


def on_disk(plane: DurablePlane, done: DiskInput) -> None:
    """Something the disk was asked for is done."""
    if concerns_staged(done):
        plane.epochs.on_disk(done)
        return
    match done:
        case EventsStable(pubend, appends, size):
            own = plane.own[pubend]
            plane.throttle.on_stable(pubend, appends)
            plane.pubends.answer(own, own.on_stable(appends, size))
            plane.epochs.committing.on_stable(own)
            if not own.is_begun:  # from now on a log that is missing was lost
                own.is_begun = True
                plane.saving.add(own.row())
            plane.touch(own.course)
        case EventsRefused(pubend, reason, is_final):
            own = plane.own[pubend]
            fields = {"pubend": pubend, "reason": reason}
            plane.throttle.on_refused(pubend)
            plane.emit(Log(_level(is_final=is_final), "events cannot be logged", fields))
            plane.pubends.answer(own, own.on_refused(reason, plane.clock, plane.now, is_final=is_final))
            plane.epochs.committing.on_refused(own, reason)
        case EventsTried(pubend, problem):
            if plane.own[pubend].on_tried(problem):
                plane.emit(Log("info", "events can be logged again", {"pubend": pubend}))
        case EventsRead():
            _on_read(plane, done)
        case LakeRead():
            _on_lake(plane, done)
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
    """The log was read. What it has given up since then is the lake's to tell, if there is one."""
    course = plane.courses[done.pubend]
    course.is_reading = False
    if done.parts or done.lost:
        floor = plane.own[done.pubend].in_lake_through
        parts = Intervals(done.parts).within(floor, ABSOLUTE)
        lost = [
            Lost(max(each.after, floor), each.upto, each.reason) for each in done.lost if each.upto > floor
        ]
        first = bisect_right(done.ticks, floor)
        _learn(course, parts, done.ticks[first:], done.publications[first:], lost)
        course.curiosity.become_reopened()
    plane.touch(course)


def _on_lake(plane: DurablePlane, done: LakeRead) -> None:
    """The lake was read. What is known already stays what it is: the log's word counts."""
    course = plane.courses[done.pubend]
    course.is_reading_lake = False
    for damage in done.damages:
        plane.emit(Log("error", "the lake is damaged", {"pubend": done.pubend, "problem": damage}))
    if done.problem != course.lake_problem:
        fields = {"pubend": done.pubend} | ({"problem": done.problem} if done.problem else {})
        words = "the lake cannot be read" if done.problem else "the lake can be read again"
        plane.emit(Log("warning" if done.problem else "info", words, fields))
        course.lake_problem = done.problem
    if done.problem:
        course.lake_again_at = plane.now + LAKE_AGAIN_NS
    if done.parts:
        known = course.knowledge.known(ABSOLUTE)
        parts = known.gaps_all(list(done.parts))
        lost = [Lost(*piece, reason) for *span, reason in done.lost for piece in known.gaps(*span)]
        at = [i for i, tick in enumerate(done.ticks) if tick not in known]
        _learn(course, parts, [done.ticks[i] for i in at], [done.publications[i] for i in at], lost)
        course.curiosity.become_reopened()
    plane.touch(course)


def _learn(
    course: Course,
    parts: Sequence[Span],
    ticks: Sequence[Tick],
    publications: Sequence[Publication],
    lost: Sequence[Lost],
) -> None:
    """All of these parts is known: these events, what is lost, and nothing else."""
    for each in lost:
        course.knowledge.add_lost(*each)
    gone = course.knowledge.lost
    at = [i for i, tick in enumerate(ticks) if tick not in gone]
    columns = laid_out(gone.gaps_all(list(parts)), [ticks[i] for i in at], [publications[i] for i in at])
    course.learn(Items(course.pubend, ABSOLUTE, *columns, lost, answers=True))
