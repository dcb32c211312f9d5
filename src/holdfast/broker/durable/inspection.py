"""Durable streams as an operator sees them: plain data. Times are ticks, microseconds since 1970 on a real clock.

A log keeps what somebody still needs. So of every log here it is said for which brokers it waits, and who of them
holds it back; and of every log that is read here, which subscriptions do. Together that is who pins a log, and since
when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.broker.durable.course import Course
from holdfast.broker.durable.own import OwnPubend
from holdfast.broker.durable.reader import Reader
from holdfast.messages.ticks import ORIGIN

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["COPIES", "durable_status", "subscriptions_of"]

#: Of every event on disk, in the whole network.
COPIES: Final = 1

#: Of those who hold a log back so many are named.
PINNING_MAX: Final = 8


def durable_status(plane: DurablePlane) -> dict[str, Any]:
    """The logs here, those that are read here, how many subscriptions there are; and what waits for logs elsewhere."""
    readers = plane.readers.durable.values()
    away = [reader.away_since for reader in readers if reader.port is None]
    behind = {number for course in plane.courses.values() for number in course.hosted.catchups}
    return {
        "clock": plane.clock,
        "copies": COPIES,
        "problem": plane.saving.problem,
        "pubends": [_pubend(plane, own) for own in plane.own.values()],
        "hosted": [_hosted(plane, course) for course in plane.courses.values() if _is_read(course)],
        "subscriptions": {
            "here": len(readers) - len(away),
            "away": len(away),
            "catching_up": sum(reader.number in behind for reader in readers),
            "away_longest_since": min(away, default=None),
            "ending": len(plane.readers.endings),
        },
        "elsewhere": [
            {"broker": broker, "events": count, "reached": _is_reached(plane, broker)}
            for broker, count in plane.pubends.unanswered_by_owner().items()
        ],
        "gaps": dict(plane.readers.audience.gaps),
        "logging": {"bytes": plane.throttle.waiting, "held_up": len(plane.throttle.paused)},
        "staged": plane.epochs.status(),
    }


def _pubend(plane: DurablePlane, own: OwnPubend) -> dict[str, Any]:
    """A log of ours. ``released`` is T_r, ``delivered`` T_d [BZA §3]."""
    core, minima = own.core, own.minima
    pinning = {report.shb for report in minima.pinning() if report.released < core.stable}
    return {
        "pubend": core.name,
        "stream": own.stream.name,
        "incarnation": core.incarnation,
        "copies": COPIES,
        "state": "failed" if own.failure else "refusing" if own.problem else "ok",
        "problem": own.problem,
        "last": core.stable,
        "unstable": core.unstable,
        "unstable_since": core.unstable_since,
        "bytes": own.size,
        "segments": len(own.segments),
        "given_up": core.forgotten if core.released else ORIGIN,
        "released": minima.released,
        "delivered": minima.delivered,
        "retain_ns": own.stream.retain_ns,
        "retain_bytes": own.stream.retain_bytes,
        "expires": own.stream.expires,
        "lake": own.stream.lake,
        "lake_problem": own.course.lake_problem or None,
        "waits_for": [
            {
                "broker": report.shb,
                "released": report.released,
                "delivered": report.delivered,
                "reached": _is_reached(plane, report.shb),
                "pins": report.shb in pinning,
            }
            for report in minima.reports
        ],
    }


def _is_reached(plane: DurablePlane, broker: str) -> bool:
    return broker == plane.name or plane.toward(plane.brokers.get(broker)) is not None


def _is_read(course: Course) -> bool:
    return course.hosted.constream is not None


def _hosted(plane: DurablePlane, course: Course) -> dict[str, Any]:
    """A log that is read here, wherever it is."""
    hosted, constream = course.hosted, course.hosted.constream
    assert constream is not None
    numbers = set(constream.pinning())
    pinning = [reader for reader in plane.readers.durable.values() if reader.number in numbers]
    return {
        "pubend": course.pubend,
        "stream": course.stream,
        "reached": course.is_own or course.upstream is not None,
        "problem": hosted.notes.problem,
        "known": course.edge_told(),
        "delivered": constream.latest_delivered,
        "released": constream.released,
        "readers": len(constream),
        "catching_up": len(hosted.catchups),
        "pinned_by": [
            {"name": reader.name, "away_since": reader.away_since or None}
            for reader in sorted(pinning, key=lambda reader: reader.away_since)[:PINNING_MAX]
        ],
        "pinning": len(pinning),
    }


def subscriptions_of(plane: DurablePlane) -> dict[str, Any]:
    """The durable subscriptions: those that are kept here, and what is known of those at other brokers."""
    elsewhere = [
        {"name": name, "broker": interest.subscription.subscriber, "filter": str(interest.filter)}
        for name, interest in plane.readers.elsewhere
        if name not in plane.readers.durable
    ]
    kept = [_subscription(plane, reader) for reader in plane.readers.durable.values()]
    return {"clock": plane.clock, "subscriptions": kept, "elsewhere": elsewhere}


def _subscription(plane: DurablePlane, reader: Reader) -> dict[str, Any]:
    assert reader.durable is not None
    return {
        "name": reader.name,
        "broker": plane.name,
        "filter": str(reader.filter),
        "epoch": reader.durable.epoch,
        "client": None if reader.port is None else reader.port.name,
        "away_since": reader.away_since or None,
        "waits_for": list(reader.awaited),
        "moved_from": list(reader.moved_from),
        "gaps": dict(reader.gaps),
        "places": [_place(reader, course) for course in plane.courses_for(reader.filter)],
    }


def _place(reader: Reader, course: Course) -> dict[str, Any]:
    """Where a subscription stands in one log; what it has been told of and not acknowledged counts as unread."""
    constream = course.hosted.constream
    known = course.edge_told()
    place = {"pubend": course.pubend, "incarnation": course.hosted.incarnation, "known": known}
    if constream is None or reader.number not in constream:
        return {**place, "state": "waiting", "acknowledged": ORIGIN, "told": ORIGIN}
    acknowledged = max(constream.released_by(reader.number), course.hosted.created)
    told = reader.told.get(course.pubend, acknowledged)
    state = "catching up" if reader.number in course.hosted.catchups else "current"
    if reader.port is None:
        state = "away"
    return {**place, "state": state, "acknowledged": acknowledged, "told": told}
