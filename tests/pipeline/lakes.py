"""A stream with one log, written by hand, and its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from hand_written import PUBEND, STREAM

from holdfast.pipeline.columns import COLUMNS, REST
from holdfast.pipeline.lake.run import Round, take_round
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.origin import Origin
from holdfast.pipeline.origins import Origins
from holdfast.pipeline.requests import ReadRequest

DECLARED = {"i": "BIGINT", "price": "DOUBLE", "sym": "STRING"}


def table_in(folder: Path, attributes: dict[str, str] | None = None) -> LakeTable:
    return LakeTable.made(folder / "lake" / STREAM, STREAM, DECLARED if attributes is None else attributes)


def origins_in(folder: Path) -> Origins:
    return Origins(STREAM, {"lisbon": folder / "streams"})


def take_all(folder: Path, rows_max: int = 1_000_000) -> list[Round]:
    """Rounds, until there is nothing new."""
    table, rounds = table_in(folder), []
    while (taken := take_round(table, origins_in(folder), rows_max)) is not None:
        rounds.append(taken)
    return rounds


def rows_of(origin: Origin, upto: int, **options: Any) -> list[dict[str, Any]]:
    """All rows of (after, upto], page by page; those of gaps too, and all columns, unless other options are given."""
    found: list[dict[str, Any]] = []
    wanted = {
        "columns": (*COLUMNS, REST),
        "attributes": DECLARED,
        "after": 0,
        "gaps": "row",
        "silence": True,
        **options,
    }
    while wanted["after"] < upto:
        page = origin.page(ReadRequest(STREAM, PUBEND, upto=upto, **wanted))
        assert page.covered > wanted["after"], "a page that goes nowhere"
        found += [row for batch in page.batches for row in batch.to_pylist()]
        wanted |= {"after": page.covered, "told": page.told}
    return found


def logged(folder: Path, upto: int, **options: Any) -> list[dict[str, Any]]:
    """The rows as the log has them."""
    return rows_of(origins_in(folder).of(PUBEND), upto, **options)


def stored(folder: Path, version: int | None = None) -> list[dict[str, Any]]:
    """The rows as anybody finds them who reads Delta, in order."""
    delta = DeltaTable(folder / "lake" / STREAM, version=version)
    rows: list[dict[str, Any]] = pa.table(delta.to_pyarrow_dataset().to_table()).to_pylist()
    return sorted(rows, key=lambda row: (row["pubend"], row["tick"]))
