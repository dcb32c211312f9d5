"""Where durable subscriptions stand in pubends, on disk: saved when it has changed, taken up again after a start."""

from __future__ import annotations

from collections.abc import Container, Iterable

from holdfast.broker.durable.course import Course
from holdfast.broker.durable.network import Network
from holdfast.broker.durable.reader import Reader
from holdfast.broker.durable.records import PLACES, READERS, PlaceRow, ReaderRow, change, joined
from holdfast.broker.durable.saving import Saving
from holdfast.messages.durable import Stand

__all__ = ["Places"]


class Places:
    """Of all readers of a broker."""

    def __init__(self, network: Network, saving: Saving) -> None:
        self._network = network
        self._saving = saving
        self._dirty: dict[Reader, dict[str, None]] = {}  #: places that are not on disk as they are, by pubend
        #: By pubend and reader, of those who are not confirmed yet since we started.
        self._kept: dict[str, dict[int, PlaceRow]] = {}

    # After a start

    def keep(self, rows: Iterable[tuple[int, str, PlaceRow]], readers: Container[int]) -> None:
        """What was found on disk is kept until the network knows its readers; of those that are none it goes."""
        for number, pubend, row in rows:
            if number in readers:
                self._kept.setdefault(pubend, {})[number] = row
            else:
                self._saving.add(change(PLACES, joined(number, pubend), None))

    def take(self, reader: Reader, course: Course) -> PlaceRow | None:
        """Where a reader stood before we were started again; it stands there again."""
        return self._kept.get(course.pubend, {}).pop(reader.number, None)

    def is_complete(self, course: Course) -> bool:
        """Whether everybody who read a pubend before we were started again is known to the network.

        Until then nothing of it is handed out: it might be for them.
        """
        return not self._kept.get(course.pubend)

    # Saving

    def touch(self, reader: Reader, course: Course) -> None:
        """A place has changed."""
        if reader.durable is not None:
            self._dirty.setdefault(reader, {})[course.pubend] = None

    def save_all(self) -> None:
        """All that have changed (R1.30)."""
        for reader in list(self._dirty):
            self.save(reader)

    def save(self, reader: Reader) -> None:
        """Those of one reader that have changed."""
        pubends = self._dirty.pop(reader, {})
        for course in self._network.courses_for(reader.filter) if pubends else ():
            constream = course.hosted.constream
            if course.pubend in pubends and constream is not None and reader.number in constream:
                stand = constream.stand(reader.number)
                row = PlaceRow(stand.start, stand.released, stand.acknowledged)
                self._saving.add(change(PLACES, joined(reader.number, course.pubend), row))

    def save_reader(self, reader: Reader) -> None:
        """A durable subscription as it is, and its places."""
        if reader.durable is None:
            return
        row = ReaderRow(
            reader.number,
            str(reader.filter),
            reader.durable.epoch,
            dict(reader.moved_from),
            reader.away_since,
            reader.stood,
            reader.is_held,
            reader.born,
            list(reader.unmerged),
            reader.seat,
            reader.is_new,
            reader.start,
            dict(reader.unheard),
        )
        self._saving.add(change(READERS, reader.durable.name, row))
        self.save(reader)

    def hold(self, reader: Reader, *, is_held: bool) -> None:
        """Another broker goes on from where a subscription stands: that is kept for it, or not any more (B1.9)."""
        reader.is_held = is_held
        reader.is_new = False
        for course in self._network.courses_for(reader.filter):
            constream = course.hosted.constream
            if constream is not None and reader.number in constream:
                constream.hold(reader.number, is_held=is_held)
                self.touch(reader, course)
        self.save_reader(reader)

    def forget(self, reader: Reader) -> None:
        """A reader is gone for good."""
        self._dirty.pop(reader, None)
        for course in self._network.courses_for(reader.filter):
            self.take(reader, course)
            if reader.durable is not None:
                self._saving.add(change(PLACES, joined(reader.number, course.pubend), None))
        if reader.durable is not None:
            self._saving.add(change(READERS, reader.durable.name, None))

    def stand(self, reader: Reader, course: Course) -> Stand | None:
        """Where a durable subscription stands in a pubend; None: nowhere yet."""
        row = self._kept.get(course.pubend, {}).get(reader.number)
        if row is not None:
            released, _ = course.hosted.reported  # nobody here needed what we had reported
            return Stand(row.start, row.acknowledged, max(row.released, released))
        constream = course.hosted.constream
        if constream is None or reader.number not in constream:
            return None
        return constream.stand(reader.number)
