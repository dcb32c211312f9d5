"""Which engine judges a trace: the local one what fits into memory, Spark the rest. Their answers are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, TypeAlias

from holdfast.errors import CallersFault
from holdfast.pipeline.audit.line import Line
from holdfast.pipeline.audit.local import audit_lines
from holdfast.pipeline.audit.traces import is_parquet, parquet_columns, read_traces
from holdfast.pipeline.audit.verdict import Verdict

__all__ = ["Engine", "audit", "choose"]

Engine: TypeAlias = Literal["local", "spark"]

#: What the local engine judges within a minute or so, in a gigabyte or so; a session of Spark takes a while to start.
LINES_MAX: Final = 2_000_000
#: A line of JSON has about so many bytes.
_LINE_BYTES: Final = 180


def choose(paths: Sequence[Path]) -> Engine:
    """The engine for traces of this size; the local one, too, where Spark is not installed."""
    is_large = sum(map(_count, paths)) > LINES_MAX
    return "spark" if is_large and find_spec("pyspark") is not None else "local"


def _count(path: Path) -> int:
    """How many lines a trace has, roughly."""
    if is_parquet(path):
        count: int = parquet_columns().count_rows(path)
        return count
    return path.stat().st_size // _LINE_BYTES


def audit(
    paths: Sequence[Path],
    engine: Engine,
    *,
    unfinished: bool = False,
    master: str | None = None,
    archive: Path | None = None,
    watch: Callable[[Iterable[tuple[str, Line]]], Iterator[tuple[str, Line]]] = iter,
    step: Callable[[str, int, int | None], None] = lambda what, part, parts: None,
) -> Verdict:
    """Judge traces together.

    ``unfinished``: a run may have no end. ``master``: which Spark to use, the embedded one unless told; ``archive`` is
    for its executors (`holdfast pack-spark`). ``watch`` is handed the lines as they are read, and hands them on.
    ``step`` is told what Spark does: which part it is of how many, once that is known.

    :raises CallersFault: if a trace cannot be read, or something that reading it needs is not installed.
    """
    if engine == "local":
        return audit_lines(watch(read_traces(paths)), unfinished=unfinished)
    if find_spec("pyspark") is None:
        raise CallersFault("the engine spark needs pyspark; install it with: pip install 'holdfast[spark]'")
    from holdfast.pipeline.audit.spark import audit_with_spark

    return audit_with_spark(
        paths, unfinished=unfinished, master=master, archive=archive, watch=watch, step=step
    )
