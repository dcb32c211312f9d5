"""What an experiment has found: its data, a short table, and whether what is claimed of it holds."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.bench.figure import table_lines

__all__ = ["CHECK_COLUMNS", "Check", "Finding"]

CHECK_COLUMNS = ("claim", "found", "")

Row = Sequence[str | int | float]


@dataclass(frozen=True, slots=True)
class Check:
    """One claim, what was found, and whether it holds."""

    claim: str
    found: str
    holds: bool

    @property
    def verdict(self) -> str:
        """In a word."""
        return "holds" if self.holds else "missed"


@dataclass(frozen=True, slots=True)
class Finding:
    """Of one experiment. ``data`` is what a figure would be drawn from; ``summary`` is for reading."""

    name: str
    title: str
    data_columns: Sequence[str]
    data: Sequence[Row]
    columns: Sequence[str]
    summary: Sequence[Row]
    checks: Sequence[Check]
    remark: str

    @property
    def holds(self) -> bool:
        """Whether every claim does."""
        return all(check.holds for check in self.checks)

    def summary_rows(self) -> list[tuple[str, ...]]:
        """The table's cells."""
        return [tuple(map(_shown, row)) for row in self.summary]

    def check_rows(self) -> list[tuple[str, ...]]:
        """The claims' cells."""
        return [(check.claim, check.found, check.verdict) for check in self.checks]

    def write(self, folder: Path) -> Path:
        """Write the data as CSV; where."""
        path = folder / f"{self.name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.data_columns)
            writer.writerows(self.data)
        return path

    def markdown(self) -> str:
        """A part of a page."""
        lines = [
            f"`holdfast bench overlay {self.name}`, data in `{self.name}.csv`. {self.remark}",
            "",
            *table_lines(self.columns, self.summary_rows()),
            "",
            *table_lines(CHECK_COLUMNS, self.check_rows()),
        ]
        return "\n".join(lines)


def _shown(cell: str | int | float) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.2f}"
