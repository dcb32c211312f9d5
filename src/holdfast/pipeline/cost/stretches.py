"""Stretches of history, and the events in them: stretches of files of JSON Lines, and ranges of ticks of logs.

A stretch says where it is and no more, so that it can be read by another process, or on another machine that sees the
same files or reaches the same log readers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.errors import CallersFault, InvalidEvent, MalformedEvent
from holdfast.events.event import Event
from holdfast.events.json_form import event_from_json
from holdfast.events.packed import pack, unpack
from holdfast.messages.ticks import Lost, Tick
from holdfast.pipeline.cost.tally import Sample
from holdfast.pipeline.ranges import Ranges
from holdfast.streams.records import read_record

if TYPE_CHECKING:
    from holdfast.pipeline.reading import Task

__all__ = ["BadLine", "Batches", "Lines", "LocalTicks", "RemoteTicks", "Stretch", "line_stretches"]

STRETCH_BYTES: Final = 16 << 20
BATCH: Final = 512
_MICROSECOND: Final = 1_000

#: None: something is missing there.
Batches = Iterator[list[Sample] | None]


class BadLine(CallersFault):
    """A line of a file that is no event; the text says where, and what is wrong."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines that begin at a byte in [start, end) of a file."""

    path: Path
    start: int
    end: int

    def batches(self) -> Batches:
        """Their events.

        :raises BadLine: where one is none.
        """
        with self.path.open("rb") as file:
            if self.start:
                file.seek(self.start - 1)
                file.readline()  # it began before, or is the end of one that did
            batch: list[Sample] = []
            while (at := file.tell()) < self.end and (line := file.readline()):
                if line.strip():
                    batch.append(self._sample(line, at))
                if len(batch) >= BATCH:
                    yield batch
                    batch = []
            yield batch

    def _sample(self, line: bytes, at: int) -> Sample:
        try:
            event = event_from_json(line.decode("utf-8-sig" if at == 0 else "utf-8"))
        except UnicodeDecodeError as error:
            raise BadLine(f"{self._place(at)}: not UTF-8; expected UTF-8 text") from error
        except InvalidEvent as error:
            raise BadLine(f"{self._place(at)}: {error}") from error
        return Sample(event, len(pack(event)), event.time)

    def _place(self, at: int) -> str:
        """The line that begins at a byte, as people count them."""
        with self.path.open("rb") as file:
            before = sum(block.count(b"\n") for block in _blocks(file.read, at))
        return f"{self.path}, line {before + 1}"


def _blocks(read: object, upto: int) -> Iterator[bytes]:
    assert callable(read)
    while upto > 0 and (block := read(min(upto, STRETCH_BYTES))):
        upto -= len(block)
        yield block


def line_stretches(path: Path, size: int = STRETCH_BYTES) -> list[Lines]:
    """A file in stretches of about so many bytes."""
    whole = path.stat().st_size
    return [Lines(path, start, min(start + size, whole)) for start in range(0, whole, size)]


@dataclass(frozen=True, slots=True)
class LocalTicks:
    """(after, upto] of a pubend, in the folder of its broker's store."""

    store: Path
    pubend: str
    after: Tick
    upto: Tick

    def batches(self) -> Batches:
        """Its events, and a gap for whatever is lost."""
        for piece in Ranges(self.store).scan(self.pubend, self.after, self.upto):
            if isinstance(piece, Lost):
                yield None
                continue
            batch: list[Sample] = []
            for tick, record in zip(piece.indexes, piece.records, strict=True):
                try:
                    data = read_record(record).event
                    batch.append(Sample(unpack(data), len(data), tick * _MICROSECOND))
                except (msgspec.MsgspecError, MalformedEvent):  # whole, and not what a pubend writes
                    yield None
            yield batch


@dataclass(frozen=True, slots=True)
class RemoteTicks:
    """(after, upto] of a pubend, as the log reader of its broker serves it; what is asked for is what filters ask."""

    task: Task
    pubend: str
    after: Tick
    upto: Tick

    def batches(self) -> Batches:
        """Its events, and a gap for whatever is lost."""
        # Both are there wherever log readers are asked.
        from pyspark.sql.variant_utils import VariantUtils

        from holdfast.pipeline.planning import TickRange

        for rows in self.task.rows(TickRange(self.pubend, self.after, self.upto)):
            batch: list[Sample] = []
            for row in rows.to_pylist():
                if row["kind"] != "event":
                    yield None
                    continue
                variant = row["attributes"]
                attributes = VariantUtils.to_python(variant["value"], variant["metadata"])
                time = None if row["time"] is None else int(row["time"].timestamp() * 1_000_000) * 1_000
                content_type = row["content_type"] or ""
                event = Event(row["topic"], attributes, row["payload"], content_type, time=time)
                batch.append(Sample(event, len(pack(event)), row["tick"] * _MICROSECOND))
            yield batch


Stretch = Lines | LocalTicks | RemoteTicks
