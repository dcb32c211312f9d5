"""What a broker finds on its disk when it starts: its pubends, who read here, and how far everything had come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.durable.names import pubend_name, stream_in
from holdfast.broker.durable.own import GONE, OwnPubend
from holdfast.broker.durable.records import (
    BROKER,
    ENDED,
    HOSTED,
    LEASES,
    NAME,
    PLACES,
    PUBENDS,
    READERS,
    REPORTS,
    DamagedRow,
    EndedRow,
    HostedRow,
    PlaceRow,
    ReaderRow,
    ReportRow,
    parted,
    read,
)
from holdfast.broker.settings import Settings, Stream
from holdfast.errors import EnvironmentsFault, FilterError
from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.intervals import Intervals
from holdfast.messages.streams import Order
from holdfast.messages.ticks import Lost, Tick
from holdfast.overlay.transport import Log
from holdfast.storage.tables import Change
from holdfast.streams.ends import Leased
from holdfast.streams.pubend import Kept
from holdfast.streams.release import Report
from holdfast.streams.storing import LogState, Recovered

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["ChangedStream", "WrongFolder", "check", "recover"]


class WrongFolder(EnvironmentsFault):
    """What is on the disk is another broker's."""


class ChangedStream(EnvironmentsFault):
    """A stream is configured otherwise than its logs were made."""


def check(recovered: Recovered, settings: Settings) -> None:
    """See that what is on disk is a broker's own, can be read, and is of the streams that it is told of.

    :raises WrongFolder: if it is another's.
    :raises ChangedStream: if a stream has another number of pubends than its logs were made with: in which of them a
        publisher's events are goes by that, and they would come out of order, and twice.
    :raises DamagedRow: if a row cannot be read.
    """
    facts = recovered.tables.get(BROKER, {})
    owner = facts.get(NAME, settings.name.encode()).decode(errors="replace")
    if owner != settings.name:
        raise WrongFolder(f"the data of {owner}, not of {settings.name}")
    with_logs = {stream_in(pubend) for pubend in recovered.tables.get(PUBENDS, {})}
    for stream in settings.streams:
        was, now = facts.get(_pubends_of(stream)), str(stream.pubends)
        if was is not None and was.decode() != now and stream.name in with_logs:
            raise ChangedStream(
                f"the logs of the stream {stream.name} were made with pubends = {was.decode()}, and now it is {now}:"
                " a stream that has logs keeps the number it has; give the stream another name, or change it back"
            )
    kinds = {
        PUBENDS: Kept,
        LEASES: Leased,
        REPORTS: ReportRow,
        HOSTED: HostedRow,
        READERS: ReaderRow,
        PLACES: PlaceRow,
        ENDED: EndedRow,
    }
    for table, kind in kinds.items():
        for key, row in recovered.tables.get(table, {}).items():
            read(table, key, row, kind)


def recover(plane: DurablePlane, recovered: Recovered) -> None:
    """Take it all up.

    :raises DamagedRow: if a row cannot be read.
    """
    plane.saving.add(Change(BROKER, NAME, plane.name.encode()))
    for stream in plane.streams.values():
        if stream.order is not Order.TOTAL:
            plane.saving.add(Change(BROKER, _pubends_of(stream), str(stream.pubends).encode()))
    plane.written = {pubend: found.last_timestamp for pubend, found in recovered.matches.items()}
    plane.epochs.staging.recover(recovered.staged)
    _recover_own(plane, recovered)
    _recover_hosted(plane, recovered)
    _recover_readers(plane, recovered)
    for stream in plane.streams.values():  # others send their events there, wherever the first one comes from
        pubend = pubend_name(stream.name, plane.name, 0)
        is_here = stream.order is Order.TOTAL and stream.sequencer in (None, plane.name)
        if is_here and pubend not in plane.own:
            plane.pubends.create(pubend, stream)


def _pubends_of(stream: Stream) -> str:
    return f"pubends of {stream.name}"


def _recover_own(plane: DurablePlane, recovered: Recovered) -> None:
    rows = recovered.tables.get(LEASES, {})
    leases = {key: read(LEASES, key, row, Leased).lease for key, row in rows.items()}
    reports: dict[str, list[Report]] = {}
    for key, row in recovered.tables.get(REPORTS, {}).items():
        pubend, shb = parted(key)
        kept_report = read(REPORTS, key, row, ReportRow)
        reports.setdefault(pubend, []).append(
            Report(shb, kept_report.number, kept_report.released, kept_report.delivered)
        )
    for pubend, row in recovered.tables.get(PUBENDS, {}).items():
        stream = plane.streams.get(stream_in(pubend))
        if stream is None:
            continue  # the stream is not durable any more: its log is left as it is
        kept = read(PUBENDS, pubend, row, Kept)
        kept.lease = max(kept.lease, leases.get(pubend, 0))
        log = recovered.logs.get(pubend)
        known = max([kept.upto, kept.lease, *(report.delivered for report in reports.get(pubend, ()))])
        losses = _losses(kept, log, known)
        for after, upto, reason in losses:
            fields = {"pubend": pubend, "after": after, "upto": upto, "reason": reason}
            plane.emit(Log("error", "a log is damaged", fields))
        news = _unknown(kept, losses)
        kept.lost += news
        course = plane.course(pubend)
        course.is_own = True
        own = OwnPubend(course, stream, kept, log, reports.get(pubend, ()))
        own.unheard = {report.shb: None for report in own.minima.reports if report.shb != plane.name}
        plane.own[pubend] = own
        if news:  # the next start would take for silence what new events stand behind
            plane.saving.add(own.row())
        plane.pubends.make_known(own)


def _losses(kept: Kept, log: LogState | None, known: Tick) -> list[Lost]:
    """What is not in a log any more, and nobody gave up."""
    forgotten = kept.released[-1].upto if kept.released else kept.created
    had_events = kept.upto > forgotten
    gone = [Lost(forgotten, known, GONE)] if had_events and (log is None or not log.segments) else []
    return gone if log is None else [*gone, *log.lost]


def _unknown(kept: Kept, losses: list[Lost]) -> list[Lost]:
    """Those that no earlier life has found."""
    found = Intervals()
    for each in (*kept.lost, *kept.released):
        found.add(each.after, each.upto)
    return [each for each in losses if found.gaps(each.after, each.upto)]


def _recover_hosted(plane: DurablePlane, recovered: Recovered) -> None:
    for pubend, row in recovered.tables.get(HOSTED, {}).items():
        if stream_in(pubend) in plane.streams:
            kept = read(HOSTED, pubend, row, HostedRow)
            found = recovered.matches.get(pubend)
            if found is None or found.unsure_through:
                fields = {"pubend": pubend, "upto": kept.delivered}
                plane.emit(Log("error", "a filtering log is damaged, and all is filtered again", fields))
            hosted = plane.course(pubend).hosted
            hosted.begin(kept.delivered, kept.incarnation, kept.number, kept.created)
            hosted.reported = (kept.released, kept.delivered)
            if found is not None:
                hosted.matched = dict(found.matched)
                hosted.unsure = min(found.unsure_through, kept.delivered)


def _recover_readers(plane: DurablePlane, recovered: Recovered) -> None:
    rows = []
    for name, value in recovered.tables.get(READERS, {}).items():
        row = read(READERS, name, value, ReaderRow)
        rows.append((name, row, _filter(name, row.filter)))
    places = []
    for key, value in recovered.tables.get(PLACES, {}).items():
        number, pubend = parted(key)
        hosted = recovered.tables.get(HOSTED, {}).get(pubend)
        if pubend not in plane.courses or hosted is None:
            continue
        place = read(PLACES, key, value, PlaceRow)
        if pubend not in recovered.matches:  # nothing is left of it: everything is filtered again
            start = read(HOSTED, pubend, hosted, HostedRow).delivered
            place = PlaceRow(start, place.acknowledged, place.acknowledged)
        places.append((int(number), pubend, place))
    plane.readers.restore(rows, places)
    ended = recovered.tables.get(ENDED, {}).items()
    plane.readers.endings.restore((*parted(key), read(ENDED, key, row, EndedRow)) for key, row in ended)
    for reader in plane.readers.audience.readers.values():
        plane.spread(reader)


def _filter(name: str, text: str) -> Filter:
    try:
        return parse_filter(text)
    except FilterError as error:
        raise DamagedRow(READERS, name, str(error)) from error
