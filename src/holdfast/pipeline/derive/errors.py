"""What can be wrong with a query that is to be derived, each with the file and the place in it."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import CallersFault, EnvironmentsFault

__all__ = ["BadQuery", "Derailed", "OtherCheckpoint"]


class BadQuery(CallersFault):
    """A query that Spark, or a stream, cannot do anything with; ``line`` and ``column`` from 1, if they are known."""

    def __init__(self, file: Path, problem: str, line: int | None = None, column: int | None = None) -> None:
        place = "" if line is None else f", line {line}" + ("" if column is None else f", column {column}")
        super().__init__(f"{file}{place}: {problem}")
        self.line = line
        self.column = column


class OtherCheckpoint(CallersFault):
    """A checkpoint that is not this query's, or is somebody else's."""


class Derailed(EnvironmentsFault):
    """A query that has ended by itself; ``is_passing`` if it can go on as soon as others are back."""

    def __init__(self, problem: str, *, is_passing: bool) -> None:
        super().__init__(problem)
        self.is_passing = is_passing
