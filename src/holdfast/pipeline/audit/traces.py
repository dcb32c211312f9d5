"""Traces as files: JSON Lines, or Parquet; one run in each, or several that a field ``run`` tells apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from holdfast.errors import CallersFault, FilterError
from holdfast.filters.parse import parse_filter
from holdfast.pipeline.audit.line import BadLine, Line, decode

__all__ = ["TraceError", "is_parquet", "parquet_columns", "read_traces"]

_MAGIC: Final = b"PAR1"


class TraceError(CallersFault):
    """A trace that cannot be read: the file, its line from 1 where there is one, and why."""

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        super().__init__(f"{file}: {problem}" if line is None else f"{file}, line {line}: {problem}")
        self.file = file
        self.line = line
        self.problem = problem


def is_parquet(path: Path) -> bool:
    """Whether a file is one of Parquet, or a folder one of such files; anything else is taken for JSON Lines.

    :raises TraceError: if it cannot be opened.
    """
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise TraceError(str(path), None, error.strerror or str(error)) from error


def read_traces(paths: Iterable[Path]) -> Iterator[tuple[str, Line]]:
    """All lines, each with the name of its run: what its field ``run`` says, or else its file.

    :raises TraceError: at the first line that is not one.
    """
    filters = _Filters()
    for path in paths:
        number = 0
        for number, line in _numbered(path):
            try:
                filters.check(line)
            except BadLine as problem:
                raise TraceError(str(path), number, str(problem)) from None
            yield str(path) if line.run is None else str(line.run), line
        if not number:
            raise TraceError(str(path), None, "there is no line in it; expected a 'run' line first")


def _numbered(path: Path) -> Iterator[tuple[int, Line]]:
    if is_parquet(path):
        yield from parquet_columns().read_rows(path)
        return
    number = 0
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, start=1):
                if not text.isspace():
                    yield number, decode(text)
    except BadLine as problem:
        raise TraceError(str(path), number, str(problem)) from None
    except OSError as error:
        raise TraceError(str(path), None, error.strerror or str(error)) from error


def parquet_columns() -> Any:
    """The module that reads Parquet, if what it needs is installed."""
    try:
        from holdfast.pipeline.audit import columns
    except ImportError as error:
        problem = f"reading Parquet needs {error.name}; install it with: pip install 'holdfast[spark]'"
        raise CallersFault(problem) from None
    return columns


class _Filters:
    """Every filter of a trace is one; each is looked at once."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def check(self, line: Line) -> None:
        text = line.filter
        if text is None or text in self._known:
            return
        try:
            parse_filter(text)
        except FilterError as error:
            raise BadLine(f"the filter of {line.kind} is none: {error}") from None
        self._known.add(text)
