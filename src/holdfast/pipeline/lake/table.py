"""A stream as a table of Delta Lake: what it holds, how far it goes, and one commit for both.

The table says of itself up to where each pubend is in it, by a *transaction* of Delta: a number under a name, written
in the commit that adds the rows. So rows and place come together or not at all. Whoever goes on reads the place from
the table, and a commit that starts from an older place is refused; that is all there is to writing every event once.
The rows of a pubend follow each other without hole or overlap: each covers (after, tick], and the first begins where
the table does.

Files of data have names of their own and are never changed; who reads an older version of the table finds its files
until they are vacuumed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import RemoveAction

from holdfast.messages.ticks import Tick
from holdfast.pipeline.columns import COLUMNS, Shape, arrow_schema, table_shape
from holdfast.pipeline.lake.errors import ForeignTable, LakeBusy, LakeFailed, NoTable, OtherType
from holdfast.pipeline.lake.files import DataFile, file_of, sync

__all__ = ["LakeTable"]

FORMAT: Final = "1"
_STREAM: Final = "holdfast.stream"
_FORMAT: Final = "holdfast.format"
_PLACE: Final = "holdfast.place/"  #: and the name of a pubend: up to where the table has it
_COMPACTION: Final = "holdfast.compaction"  #: counts them, so that of two at a time one is refused
_LOG_KEPT: Final = "interval 7 days"
_CHECKPOINT_EVERY: Final = "50"

_KIND_OF: Final = {
    "boolean": "BOOLEAN",
    "long": "BIGINT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
}


class LakeTable:
    """The table of one stream, as of the last ``refresh``."""

    def __init__(self, folder: Path, stream: str) -> None:
        """Open it.

        :raises NoTable, ForeignTable: if there is none, or another.
        :raises LakeFailed: if it cannot be read.
        """
        self.folder = folder
        self.stream = stream
        try:
            self._delta = DeltaTable(folder)
        except TableNotFoundError:
            raise NoTable(f"{folder}: there is no table here; 'holdfast lake run' makes it") from None
        except (DeltaError, OSError) as error:
            raise LakeFailed(f"{folder}: {_said(error)}") from error
        found = self._delta.metadata().configuration
        if found.get(_STREAM) != stream or found.get(_FORMAT) != FORMAT:
            of = f"of the stream {found[_STREAM]}" if _STREAM in found else "that holdfast did not make"
            raise ForeignTable(f"{folder}: there is a table here {of}; expected that of {stream}")
        self._files: list[DataFile] | None = None

    @classmethod
    def made(cls, folder: Path, stream: str, attributes: Mapping[str, str]) -> LakeTable:
        """The table at a path, made if there is none, with columns for attributes.

        :raises ForeignTable, OtherType: if what is there will not do.
        :raises LakeFailed: if it cannot be read or written.
        """
        try:
            table = cls(folder, stream)
        except NoTable:
            if folder.exists() and any(folder.iterdir()):
                problem = (
                    f"{folder}: there is something here that is no table; expected an empty folder, or none"
                )
                raise ForeignTable(problem) from None
            table = cls._created(folder, stream, attributes)
        table.declare(attributes)
        return table

    @classmethod
    def _created(cls, folder: Path, stream: str, attributes: Mapping[str, str]) -> LakeTable:
        settings = {
            _STREAM: stream,
            _FORMAT: FORMAT,
            "delta.logRetentionDuration": _LOG_KEPT,
            "delta.checkpointInterval": _CHECKPOINT_EVERY,
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                folder,
                _schema(table_shape(attributes)),
                mode="ignore",  # somebody else may have made it meanwhile
                name=stream,
                configuration=settings,
                raise_if_key_not_exists=False,
            )
        except (DeltaError, OSError) as error:
            raise LakeFailed(f"{folder}: {_said(error)}") from error
        return cls(folder, stream)

    @property
    def version(self) -> int:
        """Of the table; every commit is one more."""
        return int(self._delta.version())

    @property
    def attributes(self) -> dict[str, str]:
        """Those that have a column in ``a``, with their types."""
        fields = json.loads(self._delta.schema().to_json())["fields"]
        struct: list[dict[str, str]] = next(
            (each["type"]["fields"] for each in fields if each["name"] == "a"), []
        )
        return {each["name"]: _KIND_OF[each["type"]] for each in struct}

    @property
    def shape(self) -> Shape:
        """Of its rows."""
        return table_shape(self.attributes)

    def place(self, pubend: str) -> Tick | None:
        """Up to where a pubend is in the table; None if it is not."""
        version: int | None = self._delta.transaction_version(_PLACE + pubend)
        return version

    def files(self) -> list[DataFile]:
        """All of them, in the order of pubends and ticks."""
        if self._files is None:
            actions = pa.table(self._delta.get_add_actions()).to_pylist()
            self._files = sorted(map(file_of, actions), key=lambda each: (each.pubend, each.tick))
        return self._files

    def refresh(self) -> None:
        """See what others have committed."""
        try:
            self._delta.update_incremental()
        except (DeltaError, OSError) as error:
            raise LakeFailed(f"{self.folder}: {_said(error)}") from error
        self._files = None

    def declare(self, attributes: Mapping[str, str]) -> None:
        """Have columns for attributes; those that are there already stay, whether or not they are named.

        :raises OtherType: if one is there with another type, or in other letters.
        """
        own = self.attributes
        called = {name.lower(): name for name in own}
        for name, kind in attributes.items():
            if called.get(name.lower(), name) != name:
                problem = f"{self.folder}: the attribute {name} is declared, and the table has {called[name.lower()]}"
                raise OtherType(f"{problem}, which is the same to Spark; expected {called[name.lower()]}")
            if own.get(name, kind) != kind:
                problem = (
                    f"{self.folder}: the attribute {name} is {own[name]} in the table, and declared {kind}"
                )
                raise OtherType(f"{problem}; expected {own[name]}")
        if set(attributes) <= set(own):
            return
        wanted = Schema.from_arrow(_schema(table_shape({**own, **attributes})))
        self._do(lambda: self._delta.alter.add_columns([each for each in wanted.fields if each.name == "a"]))

    def append(
        self, files: Sequence[DataFile], places: Mapping[str, Tick], note: Mapping[str, object]
    ) -> None:
        """One commit: these files are in the table, which goes up to these places.

        :raises LakeBusy: if somebody else has taken one of the pubends further meanwhile.
        :raises LakeFailed: if it cannot be written.
        """
        transactions = [Transaction(_PLACE + pubend, tick) for pubend, tick in sorted(places.items())]
        self._commit([each.add(is_new=True) for each in files], transactions, note)

    def replace(self, old: Sequence[DataFile], new: Sequence[DataFile], note: Mapping[str, object]) -> None:
        """One commit: the same rows in other files.

        :raises LakeBusy, LakeFailed: as ``append``; of two that replace at a time one is refused.
        """
        count = self._delta.transaction_version(_COMPACTION) or 0
        now = int(time.time() * 1_000)
        removed = [RemoveAction(each.path, False, now, each.size) for each in old]
        added = [each.add(is_new=False) for each in new]
        self._commit([*added, *removed], [Transaction(_COMPACTION, count + 1)], note)

    def vacuum(self, grace_hours: int) -> list[str]:
        """Delete files that no version needs that is younger than so many hours; those of writers that died too."""
        found: list[str] = []

        def work() -> None:
            found.extend(
                self._delta.vacuum(grace_hours, dry_run=False, enforce_retention_duration=False, full=True)
            )

        self._do(work)
        return sorted(set(found))

    def checkpoint(self) -> None:
        """Sum up the commits in one file, and forget those that are old."""
        self._do(self._delta.create_checkpoint)
        self._do(self._delta.cleanup_metadata)

    def _commit(
        self, actions: Sequence[Any], transactions: Sequence[Any], note: Mapping[str, object]
    ) -> None:
        properties = CommitProperties(
            {"holdfast": json.dumps(note, sort_keys=True)}, app_transactions=list(transactions)
        )
        schema = Schema.from_arrow(_schema(self.shape))

        def work() -> None:
            self._delta.create_write_transaction(
                list(actions), "append", schema, [], commit_properties=properties
            )

        self._do(work)
        sync(self.folder / "_delta_log" / f"{self.version:020}.json")

    def _do(self, work: Any) -> None:
        """Something that changes the table; then what it is now is known."""
        try:
            work()
        except CommitFailedError as error:
            if "oncurrent" in str(error):
                raise LakeBusy(
                    f"{self.folder}: somebody else writes this table too, and was first"
                ) from error
            raise LakeFailed(f"{self.folder}: {_said(error)}") from error
        except (DeltaError, OSError) as error:
            raise LakeFailed(f"{self.folder}: {_said(error)}") from error
        self.refresh()


def _schema(shape: Shape) -> Any:
    """As Delta has it: Arrow's without Spark's mark on Variants, which are two columns of bytes here."""
    fields = []
    for each in arrow_schema(shape):
        kind = each.type
        if COLUMNS.get(each.name) == "VARIANT":
            kind = pa.struct([pa.field(part.name, part.type, nullable=False) for part in kind])
        fields.append(pa.field(each.name, kind))
    return pa.schema(fields)


def _said(error: Exception) -> str:
    """The first line, which is the one for people."""
    return str(error).strip().partition("\n")[0]
