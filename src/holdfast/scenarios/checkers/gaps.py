"""A gap is told only where something may be gone [I16, I17, R1.14].

To a durable subscription: what a policy released early, to somebody who had been away, or is slow (who is current
never has a gap); what an unreachable pubend had before the subscription came to know it (B1.11); and what is older
than the subscription, if its broker was behind, or had not been heard of when everybody else had it. A subscriber's
record is never older than what it acknowledged, so that another gap of what everybody had acknowledged means that
release has passed somebody. A subscription that is not kept may have a gap whenever its session was lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import inf
from typing import Final

from holdfast.events.value import INT_MAX
from holdfast.scenarios.checkers.history import History, Trace, precedes
from holdfast.scenarios.checkers.reading import Stream, streams_of
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["gaps"]

#: Why a pubend gives something up that somebody may still want [R1.15, R1.33].
EARLY: Final = ("max_retain", "max_bytes", "expired")


def gaps(
    trace: Trace,
    *,
    retain_seconds: float | None = None,
    clock_seconds: float = 0.0,
    slow: Collection[str] = (),
) -> list[Violation]:
    """Gaps of a durable run that nobody may be told.

    ``retain_seconds``: how long events are kept at least (infinity: for ever), where the caller knows it; give or take
    ``clock_seconds``, by which clocks were wrong. ``slow``: subscribers that may fall behind, of which no trace tells.
    """
    history = History.of(trace)
    if not history.is_durable:
        return []
    patience = None if retain_seconds is None else retain_seconds - clock_seconds
    return [
        violation
        for stream in streams_of(history)
        for line in stream.items
        if line["kind"] == "gap"
        for violation in _problems(history, stream, line, patience, slow)
    ]


def _problems(
    history: History, stream: Stream, gap: TraceLine, patience: float | None, slow: Collection[str]
) -> Iterator[Violation]:
    told = f"{stream}: a gap ({gap['after']}, {gap['upto']}], {gap['reason'] or 'for no reason'},"
    if _is_new_pubend(history, stream, gap) or _is_from_before(history, stream, gap):
        return
    if stream.key[0] not in slow and not _was_away(history, stream, gap):
        yield Violation("lost", f"{told} although it was there all the time", (gap,))
    elif stream.subscribe["durable"]:
        if gap["reason"] not in EARLY or patience == inf:
            yield Violation("lost", f"{told} which nobody may give up", (gap,))
        elif patience is not None:
            yield from _too_early(history, stream, gap, patience, told)


def _is_new_pubend(history: History, stream: Stream, gap: TraceLine) -> bool:
    """Whether the subscription was confirmed before everybody knew it, and has had nothing of this pubend but gaps.

    If everybody did by the time its client was told, that one heard so first.
    """
    asking, before = history.asking[stream.key], (line for line in stream.items if line["i"] < gap["i"])
    confirmed = min((line["i"] for line in asking if line["kind"] == "subscribed"), default=gap["i"])
    was_partial = any(line.get("partial") for line in asking)
    was_partial |= any(line["i"] < confirmed for line in history.upgraded[stream.key])
    return was_partial and all(line["kind"] == "gap" for line in before)


def _is_from_before(history: History, stream: Stream, gap: TraceLine) -> bool:
    """Whether it was all released before there was the subscription, whose broker was behind, or had not been heard of.

    So it is if a later event of the pubend is older than the subscription, too, and all that are in it are.
    """
    confirmed = min(line["t"] for line in history.asking[stream.key] if line["kind"] == "subscribed")
    covered = history.log.within(stream.pubend, gap["after"], gap["upto"])
    later = history.log.within(stream.pubend, gap["upto"], INT_MAX)
    return (
        gap["reason"] in (*EARLY, "acknowledged")
        and all(published["t"] < confirmed for _, published in covered)
        and any(published["t"] < confirmed for _, published in later)
    )


def _was_away(history: History, stream: Stream, gap: TraceLine) -> bool:
    absences = history.faults_of(stream.key[0], "disconnect", "crash", "freeze")
    return any(precedes(stream.subscribe, line) and precedes(line, gap) for line in absences)


def _too_early(
    history: History, stream: Stream, gap: TraceLine, patience: float, told: str
) -> Iterator[Violation]:
    for _, published in history.log.within(stream.pubend, gap["after"], gap["upto"]):
        if gap["t"] - published["t"] < patience:
            event = f"{published['publisher']}#{published['n']}"
            yield Violation("lost", f"{told} covers {event}, which was younger", (published, gap))
