"""Files of the table as they are read: row group by row group, only the columns that are wanted, and counted.

What is read is counted in bytes as they lie on disk: the column chunks of the row groups, and the footer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.messages.ticks import Tick
from holdfast.pipeline.columns import Shape, arrow_schema, arrow_type
from holdfast.pipeline.lake.files import Zone
from holdfast.pipeline.lake.writing import MISTYPED, row_group_zones
from holdfast.pipeline.rows import typed_value
from holdfast.pipeline.variant_reading import VariantReader

__all__ = ["DAMAGE", "ParquetRows"]

#: Whatever pyarrow makes of a file that is not as it was written, and who reads its footer.
DAMAGE: Final = (OSError, pa.ArrowException, ValueError, LookupError)

_DECLARED: Final = "a"
_NO_EVENT: Final = ""  #: stands among columns for where ``a`` is NULL as a whole


class ParquetRows:
    """One file, open."""

    def __init__(self, path: Path) -> None:
        """Open it.

        :raises OSError: if that cannot be done.
        """
        self._file = pq.ParquetFile(path, page_checksum_verification=True)
        metadata = self._file.metadata
        self.read_bytes = metadata.serialized_size
        self.attributes: dict[str, Any] = {}  #: those with a column, each with its type
        schema = self._file.schema_arrow
        if _DECLARED in schema.names:
            self.attributes = {each.name: each.type for each in schema.field(_DECLARED).type}
        self.mistyped: Mapping[str, int] = json.loads((metadata.metadata or {}).get(MISTYPED, b"{}"))
        self._zones: dict[int, Mapping[str, Zone]] = {}
        self._variants = VariantReader()
        self._group = -1  #: that was read last
        self._columns: dict[str, Any] = {}  #: of it

    def __len__(self) -> int:
        """How many row groups there are."""
        return int(self._file.metadata.num_row_groups)

    def zones(self, group: int) -> Mapping[str, Zone]:
        """Of a row group."""
        if group not in self._zones:
            self._zones[group] = row_group_zones(self._file.metadata, group, self.attributes, self.mistyped)
        return self._zones[group]

    def last_tick(self, group: int) -> Tick:
        """Of a row group."""
        tick: Tick = self.zones(group)["tick"].greatest
        return tick

    def read(self, group: int, shape: Shape) -> dict[str, Any]:
        """By name the columns of a shape, of all rows of a row group; what was read of it last is not read again."""
        if group != self._group:
            self._group, self._columns = group, {}
        self._fetch([name for name in self._needed(shape) if name not in self._columns])
        return {
            name: self._declared(shape)
            if name == _DECLARED
            else self._columns[name].cast(arrow_type(name, shape))
            for name in shape.columns
        }

    def _fetch(self, names: list[str]) -> None:
        """Read columns of the row group; those of attributes are called ``a.price``."""
        if not names:
            return
        metadata = self._file.metadata.row_group(self._group)
        for i in range(metadata.num_columns):
            column = metadata.column(i)
            if any(_is_part(column.path_in_schema, each) for each in names):
                self.read_bytes += column.total_compressed_size
        table = self._file.read_row_group(self._group, columns=names, use_threads=False)
        [batch] = table.combine_chunks().to_batches()
        for name in names:
            attribute = name.removeprefix("a.")
            if attribute == name:
                self._columns[name] = batch.column(name)
            else:
                struct = batch.column(_DECLARED)
                self._columns[name] = struct.field(attribute)
                self._columns[_NO_EVENT] = struct.is_null()

    def _has(self, name: str, shape: Shape) -> bool:
        """Whether an attribute has the column that a shape wants."""
        wanted = arrow_schema(Shape((_DECLARED,), shape.attributes)).field(_DECLARED).type
        return bool(self.attributes.get(name) == wanted.field(name).type)

    def _needed(self, shape: Shape) -> list[str]:
        needed: list[str] = []
        for name in shape.columns:
            if name != _DECLARED:
                needed.append(name)
        if _DECLARED in shape.columns:
            needed += [f"a.{name}" for name in shape.attributes if self._has(name, shape)]
            if not all(self._has(name, shape) for name in shape.attributes) and "attributes" not in needed:
                needed.append("attributes")
        return needed

    def _declared(self, shape: Shape) -> Any:
        """The struct of declared attributes: from their columns, or from all attributes where they have none."""
        kind = arrow_type(_DECLARED, shape)
        missing = [name for name in shape.attributes if not self._has(name, shape)]
        columns = self._columns
        rows = self._decoded(columns["attributes"]) if missing else []
        children = [
            pa.array([typed_value(row.get(name), spark) for row in rows], field.type)
            if name in missing
            else columns[f"a.{name}"]
            for (name, spark), field in zip(shape.attributes.items(), kind, strict=True)
        ]
        is_null = columns["attributes"].is_null() if missing else columns[_NO_EVENT]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=is_null)

    def _decoded(self, attributes: Any) -> Sequence[Mapping[str, Any]]:
        values, metadata = (attributes.field(part).to_pylist() for part in ("value", "metadata"))
        read = self._variants.attributes
        return [read(v, m) if v else {} for v, m in zip(values, metadata, strict=True)]


def _is_part(path: str, column: str) -> bool:
    return path == column or path.startswith(f"{column}.")
