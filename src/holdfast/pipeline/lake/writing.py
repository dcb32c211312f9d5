"""Files of rows: Parquet, written from record batches, with what a reader wants to know before it opens them.

The zones of a file (the least and greatest value of a column) are put together from those of its row groups, which
Parquet has worked out on the way. Of an attribute with a value of another type there is none: that value is NULL in its
column, and may be what somebody looks for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.pipeline.columns import Shape, arrow_schema
from holdfast.pipeline.lake.errors import LakeFailed
from holdfast.pipeline.lake.files import FIXED_ZONES, DataFile, Zone, sync
from holdfast.pipeline.variant_reading import VariantReader
from holdfast.runtime.addresses import words_of

__all__ = ["MISTYPED", "FileWriter", "row_group_zones"]

ROW_GROUP_ROWS: Final = 65_536  #: of smaller ones Spark reads fewer rows a second
ROW_GROUP_BYTES: Final = 32 << 20  #: and larger ones are a lot to keep in memory, or to lose
#: Columns whose values hardly come twice, and lie close to the one before: differences are written.
ASCENDING: Final = ("after", "tick", "n", "time", "accepted")
#: Columns in which a few values come again and again; declared attributes may be such, too. No dictionary is tried for
#: the others, and none is kept that has grown beyond its limit: one with all values of a row group is read twice.
REPEATING: Final = (
    *("kind", "stream", "pubend", "incarnation", "topic", "publisher", "content_type"),
    *("attributes.metadata", "tags.list.element", "reason"),
)
DICTIONARY_BYTES: Final = 128 << 10
MISTYPED: Final = (
    b"holdfast.mistyped"  #: in the footer: how many values of which attributes have another type
)
ZONED: Final = ("BIGINT", "DOUBLE", "STRING")  #: attributes of these types have zones
TEXT_MAX: Final = 64  #: longer texts bound nothing in Delta's log


class FileWriter:
    """One file of rows of one pubend; they are added in the order of their ticks."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        """Begin it.

        :raises LakeFailed: if it cannot be written, here and wherever something is added.
        """
        self._shape = shape
        self._path = folder / f"{uuid4()}.parquet"
        self._batches: list[Any] = []
        self._gathered_rows = self._gathered_bytes = 0
        self.rows = 0
        self.gaps = 0
        self.mistyped: Counter[str] = Counter()
        self._variants = VariantReader()
        try:
            self._writer = pq.ParquetWriter(
                self._path,
                arrow_schema(shape),
                compression="zstd",
                use_dictionary=[*REPEATING, *(f"a.{name}" for name in shape.attributes)],
                dictionary_pagesize_limit=DICTIONARY_BYTES,
                column_encoding=dict.fromkeys(ASCENDING, "DELTA_BINARY_PACKED"),
                write_page_checksum=True,
            )
        except OSError as error:
            raise self._failed(error) from error

    def add(self, batch: Any) -> None:
        """Rows of the table's shape."""
        self.rows += batch.num_rows
        self.gaps += pc.sum(pc.equal(batch.column("kind"), "gap")).as_py() or 0
        self.mistyped.update(mistyped_in(batch, self._shape.attributes, self._variants))
        while batch.num_rows:
            part = batch.slice(0, ROW_GROUP_ROWS - self._gathered_rows)
            batch = batch.slice(part.num_rows)
            self._batches.append(part)
            self._gathered_rows += part.num_rows
            self._gathered_bytes += part.nbytes
            if self._gathered_rows >= ROW_GROUP_ROWS or self._gathered_bytes >= ROW_GROUP_BYTES:
                self._write()

    def close(self) -> DataFile:
        """The file, on disk for good; rows were added to it."""
        assert self.rows
        self._write()
        try:
            self._writer.add_key_value_metadata({MISTYPED: json.dumps(self.mistyped)})
            self._writer.close()
            sync(self._path)
            metadata = pq.read_metadata(self._path)
            size = self._path.stat().st_size
        except OSError as error:
            raise self._failed(error) from error
        zones = _file_zones(metadata, self._shape, self.mistyped)
        pubend, incarnation = zones["pubend"].least, zones["incarnation"].greatest
        after, tick = zones["after"].least, zones["tick"].greatest
        return DataFile(self._path.name, size, self.rows, pubend, incarnation, after, tick, zones)

    def abandon(self) -> None:
        """There is nothing of it any more."""
        with suppress(OSError):  # what is on disk of it is no file of the table, and vacuumed one day
            self._writer.close()
        self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        if not self._batches:
            return
        table = pa.Table.from_batches(self._batches).cast(arrow_schema(self._shape))
        self._batches = []
        self._gathered_rows = self._gathered_bytes = 0
        try:
            self._writer.write_table(table)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> LakeFailed:
        return LakeFailed(f"{self._path.parent}: cannot be written: {words_of(error)}")


def mistyped_in(batch: Any, attributes: Mapping[str, str], variants: VariantReader) -> dict[str, int]:
    """How many events have a value of another type in which attribute: it is there, and NULL in its column.

    Which names an event has is in its Variant's metadata, and there are few different ones.
    """
    if not attributes:
        return {}
    metadata = pc.struct_field(batch.column("attributes"), "metadata").dictionary_encode()
    found: Counter[str] = Counter()
    for i, text in enumerate(metadata.dictionary.to_pylist()):
        for name in set(variants.names(text)) & set(attributes) if text else ():
            column = pc.struct_field(batch.column("a"), [name])
            is_wrong = pc.and_(pc.equal(metadata.indices, i), pc.is_null(column))
            found[name] += pc.sum(is_wrong).as_py() or 0
    return {name: count for name, count in found.items() if count}


def row_group_zones(
    metadata: Any, group: int, attributes: Iterable[str], mistyped: Mapping[str, int]
) -> dict[str, Zone]:
    """By column the zone in one row group; columns that have none are missing."""
    wanted = {name: name for name in FIXED_ZONES}
    wanted |= {f"a.{name}": f"a.{name}" for name in attributes if not mistyped.get(name)}
    zones: dict[str, Zone] = {}
    row_group = metadata.row_group(group)
    for i in range(row_group.num_columns):
        column = row_group.column(i)
        name = wanted.get(column.path_in_schema)
        statistics = column.statistics
        if name is None or statistics is None or not statistics.has_null_count:
            continue
        if statistics.has_min_max:
            zones[name] = Zone(statistics.min, statistics.max, statistics.null_count)
        elif statistics.null_count == row_group.num_rows:
            zones[name] = Zone(None, None, statistics.null_count)
    return zones


def _file_zones(metadata: Any, shape: Shape, mistyped: Mapping[str, int]) -> dict[str, Zone]:
    attributes = [name for name, kind in shape.attributes.items() if kind in ZONED]
    zones: dict[str, Zone] | None = None
    for group in range(metadata.num_row_groups):
        found = row_group_zones(metadata, group, attributes, mistyped)
        zones = found if zones is None else {n: _joined(zones[n], found[n]) for n in zones if n in found}
    assert zones is not None
    return {name: zone for name, zone in zones.items() if name in ("pubend", "kind") or not _is_long(zone)}


def _joined(one: Zone, other: Zone) -> Zone:
    least = [each.least for each in (one, other) if each.least is not None]
    greatest = [each.greatest for each in (one, other) if each.greatest is not None]
    return Zone(min(least, default=None), max(greatest, default=None), one.nulls + other.nulls)


def _is_long(zone: Zone) -> bool:
    return any(isinstance(value, str) and len(value) > TEXT_MAX for value in (zone.least, zone.greatest))
