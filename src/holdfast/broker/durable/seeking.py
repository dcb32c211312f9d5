"""Durable subscriptions that go on elsewhere in their streams while nobody reads them.

One that is moved begins there anew, as if it came from another broker with a token: what the filtering log has
forgotten meanwhile is filtered once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.broker.durable.course import Course
from holdfast.broker.durable.reader import Reader
from holdfast.broker.durable.records import HOSTED, change
from holdfast.messages.durable import Stand
from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.streams.constream import Constream

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["Seeking"]


class Seeking:
    """Of one broker's."""

    def __init__(self, plane: DurablePlane) -> None:
        self._plane = plane

    def seek(self, reader: Reader, tick: Tick | None, places: Mapping[str, Tick] | None) -> None:
        """Let a reader go on behind a tick, behind places, or from now."""
        reader.presented = None  # what its client last said counts no more
        for course, constream in self._stands(reader):
            position = constream.handed if tick is None else tick
            if places is not None:
                position = places.get(course.pubend, ORIGIN)
            stand = constream.stand(reader.number)
            if not stand.acknowledged <= position <= stand.released:  # else nothing was for it in between
                self._move(reader, course, constream, position)
        self._save(reader)

    def put(self, reader: Reader, places: Mapping[str, Stand]) -> None:
        """Let a reader that has not begun go on behind places; its client, only if that does not say itself where."""
        for course, constream in self._stands(reader):
            if course.pubend in places:
                _, acknowledged, position = places[course.pubend]
                self._move(reader, course, constream, position, acknowledged)
        resume = reader.resume
        if resume is not None and resume.token is not None and not _says_where(reader):
            put = {
                pubend: (resume.token.get(pubend, (0, 0))[0], stand.released)
                for pubend, stand in places.items()
            }
            reader.resume = replace(resume, token={**resume.token, **put})

    def advance(self, reader: Reader, places: Mapping[str, Tick]) -> None:
        """Somebody who reads the logs themselves has had everything up to these places; nothing is moved back."""
        reader.presented = None
        for course, constream in self._stands(reader):
            position = places.get(course.pubend, ORIGIN)
            if position > constream.released_by(reader.number):
                self._move(reader, course, constream, position)
        self._save(reader)

    def _stands(self, reader: Reader) -> Iterator[tuple[Course, Constream]]:
        """Where a reader has a place."""
        for course in self._plane.courses_for(reader.filter):
            constream = course.hosted.constream
            if constream is not None and reader.number in constream:
                yield course, constream

    def _move(
        self,
        reader: Reader,
        course: Course,
        constream: Constream,
        position: Tick,
        acknowledged: Tick | None = None,
    ) -> None:
        if position < reader.unheard.get(course.pubend, ORIGIN):  # it is told what is there, and of no gap
            del reader.unheard[course.pubend]
        constream.remove(reader.number)
        course.hosted.install(reader, position, acknowledged)
        reader.pins[course.pubend] = course.hosted.next_number()
        self._plane.readers.places.touch(reader, course)
        if course.hosted.pin(position):
            self._plane.saving.add(change(HOSTED, course.pubend, course.hosted.row()))

    def _save(self, reader: Reader) -> None:
        """Somebody has a use for it."""
        reader.away_since = self._plane.clock
        self._plane.readers.places.save_reader(reader)


def _says_where(reader: Reader) -> bool:
    """Whether its client has a token."""
    return reader.presented is not None and reader.presented.token is not None
