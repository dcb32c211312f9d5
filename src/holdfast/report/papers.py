"""What the papers asked and found, read from `papers.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from holdfast.bench.result import Cell, Result

__all__ = ["Beside", "Experiment", "Library", "Lookup", "Paper", "library"]


class Lookup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a number of ours stands: a cell of a result's table, or one over another."""

    column: str
    where: dict[str, Cell]
    over: Lookup | None = None

    def of(self, result: Result) -> float:
        """The number.

        :raises BadResult: if it is not there.
        """
        value = result.found(self.column, self.where)
        return value if self.over is None else value / self.over.of(result)


class Beside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that a paper states, and ours."""

    what: str
    unit: str
    theirs: float
    source: str
    ours: Lookup
    is_more: bool = False  #: the paper says "over" this


class Experiment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure or table of a paper."""

    id: str
    paper: str
    source: str
    question: str
    asked: str
    found: list[str]
    ours: str = ""
    command: str = ""
    to_come: str = ""  #: why it cannot be measured yet
    beside: list[Beside] = []
    stated_columns: list[str] = []
    stated: list[list[Cell]] = []
    stated_note: str = ""


class Paper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the five."""

    key: str
    title: str
    authors: str
    about: str
    machines: str


class Library(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    paper: list[Paper]
    experiment: list[Experiment]

    def of(self, paper: Paper) -> list[Experiment]:
        """The experiments of a paper, in their order."""
        return [each for each in self.experiment if each.paper == paper.key]


@cache
def library() -> Library:
    """The data file, checked."""
    text = (files("holdfast.report") / "papers.toml").read_text(encoding="utf-8")
    document: dict[str, Any] = tomllib.loads(text)
    return msgspec.convert(document, Library)
