"""Results of experiments for the tests of the report: those of the repository, and changed copies."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import msgspec

from holdfast.bench.result import Cell, Result, read_results

RESULTS = Path(__file__).resolve().parent.parent.parent / "docs" / "experiments" / "results"


def all_results() -> dict[str, Result]:
    return read_results(RESULTS)


def with_cell(result: Result, row: int, column: str, cell: Cell) -> Result:
    """The same with another cell in its table."""
    summary = [list(each) for each in result.summary]
    summary[row][result.columns.index(column)] = cell
    return msgspec.structs.replace(result, summary=summary)


def with_data(result: Result, row: int, column: str, cell: Cell) -> Result:
    """The same with another cell in its data."""
    data = [list(each) for each in result.data]
    data[row][result.data_columns.index(column)] = cell
    return msgspec.structs.replace(result, data=data)


def article_of(page: str, experiment: str) -> str:
    """The part of a page that is about an experiment."""
    found = re.search(rf'<article id="{re.escape(experiment)}">.*?</article>', page, re.DOTALL)
    assert found is not None, experiment
    return found[0]


def text_of(markup: str) -> str:
    """What is read of it."""
    return unescape(re.sub(r"<[^>]+>", " ", markup))
