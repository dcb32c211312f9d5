"""What an experiment has found, as a file that programs read: one JSON document for each experiment of the papers.

`holdfast bench … --results FOLDER` writes them and `holdfast report` reads them, so that no figure is ever copied by
hand. A file says by which command it was made, when, where and how large; a file that says less is refused.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

import holdfast
from holdfast.bench.figure import machine
from holdfast.bench.overlay_finding import Finding
from holdfast.errors import CallersFault

__all__ = ["BadResult", "Cell", "Claim", "Result", "Size", "read_results", "result_of", "write_result"]

VERSION: Final = 1
SUFFIX: Final = ".json"

Cell: TypeAlias = str | int | float
Size: TypeAlias = Literal["full", "quick"]


class BadResult(CallersFault):
    """A file of results that is none; the text names it, and what is wrong."""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was claimed, what was found, and whether that is it."""

    claim: str
    found: str
    holds: bool


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One experiment; ``data`` is what its figure is drawn from, ``summary`` its table."""

    experiment: str
    title: str
    command: str
    machine: str
    measured: str
    holdfast: str
    size: Size
    remark: str
    data_columns: list[str]
    data: list[list[Cell]]
    columns: list[str]
    summary: list[list[Cell]]
    checks: list[Claim]
    version: int = VERSION

    def column(self, name: str) -> list[Cell]:
        """A column of the data, from top to bottom.

        :raises BadResult: if there is none of this name.
        """
        if name not in self.data_columns:
            problem = f"has no column {name!r}; expected one of {', '.join(self.data_columns)}"
            raise BadResult(f"{self.experiment}: the data {problem}")
        at = self.data_columns.index(name)
        return [row[at] for row in self.data]

    def numbers(self, name: str) -> list[float]:
        """A column that holds numbers.

        :raises BadResult: if one of them is none.
        """
        return [self._number(name, cell) for cell in self.column(name)]

    def data_rows(self) -> list[dict[str, Cell]]:
        """The data, each row by the names of its columns."""
        return [dict(zip(self.data_columns, row, strict=True)) for row in self.data]

    def summary_rows(self) -> list[dict[str, Cell]]:
        """The table, likewise."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.summary]

    def found(self, column: str, where: dict[str, Cell]) -> float:
        """A number of the table, in the row whose cells are these.

        :raises BadResult: if there is no such row, column or number.
        """
        for name in (column, *where):
            if name not in self.columns:
                raise BadResult(f"{self.experiment}: the table has no column {name!r}")
        for cells in self.summary_rows():
            if all(cells[name] == cell for name, cell in where.items()):
                return self._number(column, cells[column])
        raise BadResult(f"{self.experiment}: the table has no row with {where}")

    def _number(self, name: str, cell: Cell) -> float:
        if isinstance(cell, str):
            raise BadResult(f"{self.experiment}: {name} is {cell!r}; expected a number")
        return float(cell)


def result_of(finding: Finding, experiment: str, command: str, size: Size = "full") -> Result:
    """What was found just now, here."""
    return Result(
        experiment=experiment,
        title=finding.title.removesuffix(f" ({experiment})"),
        command=command,
        machine=machine(),
        measured=datetime.now(UTC).strftime("%Y-%m-%d"),
        holdfast=holdfast.__version__,
        size=size,
        remark=finding.remark,
        data_columns=list(finding.data_columns),
        data=[list(row) for row in finding.data],
        columns=list(finding.columns),
        summary=[list(row) for row in finding.summary],
        checks=[Claim(each.claim, each.found, each.holds) for each in finding.checks],
    )


def write_result(folder: Path, result: Result) -> Path:
    """Write it under the name of its experiment, in the place of an older one; where."""
    path = folder / f"{result.experiment}{SUFFIX}"
    path.write_bytes(_by_rows(result))
    return path


def _by_rows(result: Result) -> bytes:
    """One row in a line: readable, and what changed between two runs can be seen."""
    lines: list[bytes] = []
    for name, value in msgspec.to_builtins(result).items():
        text = msgspec.json.encode(value)
        if isinstance(value, list) and value and not isinstance(value[0], str):
            text = b"[\n  " + b",\n  ".join(map(msgspec.json.encode, value)) + b"\n ]"
        lines.append(b" " + msgspec.json.encode(name) + b": " + text)
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def read_results(folder: Path) -> dict[str, Result]:
    """All results in a folder, by experiment.

    :raises BadResult: naming the first file that is none.
    """
    found: dict[str, Result] = {}
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        raise BadResult(f"{folder}: {error.strerror}") from error
    for path in paths:
        result = _read(path)
        if path.stem != result.experiment:
            raise BadResult(f"{path}: holds {result.experiment}; expected {path.stem}")
        found[result.experiment] = result
    return found


def _read(path: Path) -> Result:
    try:
        result = msgspec.json.decode(path.read_bytes(), type=Result)
    except OSError as error:
        raise BadResult(f"{path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise BadResult(f"{path}: no result of an experiment: {error}") from error
    if result.version != VERSION:
        raise BadResult(f"{path}: version {result.version}; expected {VERSION}")
    for columns, rows in ((result.data_columns, result.data), (result.columns, result.summary)):
        if not rows:
            raise BadResult(f"{path}: without rows of {', '.join(columns)}")
        for row in rows:
            if len(row) != len(columns):
                raise BadResult(f"{path}: a row of {len(row)} cells for {len(columns)} columns: {row}")
    return result
