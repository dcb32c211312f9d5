"""I16: what a subscription is told of a pubend goes on where it stood, and between two ticks nothing is missing [R1.7].

Every item speaks for the ticks since the one before it: an event at t says that nothing else matched in between, a
silence that nothing did, a gap that something may have. So ticks rise, each item begins where the last one ended, and
of what matched and is logged nothing is left out but under a gap. Events once, in the order of their ticks, follows.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.scenarios.checkers.history import History, Trace
from holdfast.scenarios.checkers.reading import Stream, streams_of
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["exactness"]


def exactness(trace: Trace) -> list[Violation]:
    """Where the streams of a durable run go back, jump, or leave something out."""
    history = History.of(trace)
    if not history.is_durable:
        return []
    return [violation for stream in streams_of(history) for violation in _problems(history, stream)]


def _problems(history: History, stream: Stream) -> Iterator[Violation]:
    place: int | None = None
    before: TraceLine | None = None
    for line in stream.items:
        is_event = line["kind"] == "deliver"
        upto: int = line["tick"] if is_event else line["upto"]
        # where a stream began that begins with an event nobody says
        begin = upto - 1 if place is None else place
        after: int = begin if is_event else line["after"]
        lines = (line,) if before is None else (before, line)
        if place is not None and (upto <= place or after < place):
            yield _backwards(stream, line, place, lines)
            continue
        if upto <= after:
            yield Violation("malformed", f"{stream}: a {line['kind']} of ({after}, {upto}]", lines)
            continue
        if place is not None and after > place:
            yield Violation("unexplained", f"{stream}: nothing was said of ({place}, {after}]", lines)
        if line["kind"] != "gap":
            yield from _missing(history, stream, after, upto - is_event, lines)
        place, before = upto, line


def _backwards(stream: Stream, line: TraceLine, place: int, lines: tuple[TraceLine, ...]) -> Violation:
    if line["kind"] != "deliver":
        message = f"{stream}: a {line['kind']} of ({line['after']}, {line['upto']}] behind tick {place}"
        return Violation("misorder", message, lines)
    event = f"{line['publisher']}#{line['n']}"
    again = any(
        each["kind"] == "deliver" and each["tick"] == line["tick"] and each["i"] < line["i"]
        for each in stream.items
    )
    if again:
        return Violation("duplicate", f"{stream}: {event} at tick {line['tick']} again", lines)
    return Violation("misorder", f"{stream}: {event} at tick {line['tick']} behind tick {place}", lines)


def _missing(
    history: History, stream: Stream, after: int, upto: int, lines: tuple[TraceLine, ...]
) -> Iterator[Violation]:
    """What matched in (after, upto] although an item says that nothing did."""
    for tick, published in history.log.within(stream.pubend, after, upto):
        if history.rematch.matches(stream.subscribe["filter"], published):
            event = f"{published['publisher']}#{published['n']}"
            said = lines[-1]["kind"]
            message = f"{stream}: {event} at tick {tick} was passed over by a {said}"
            yield Violation("lost", message, (published, *lines))
