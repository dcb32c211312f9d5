"""Which engine tallies a history: this process, or Spark where there is much of it. Their answers are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, TypeAlias

from holdfast.errors import CallersFault
from holdfast.filters.parse import parse_filter
from holdfast.matching.engine import new_index
from holdfast.matching.index import MatchingIndex
from holdfast.pipeline.cost.history import history_bytes
from holdfast.pipeline.cost.stretches import Stretch
from holdfast.pipeline.cost.tally import Tally, added, tally

__all__ = ["Engine", "choose", "index_of", "tally_history"]

Engine: TypeAlias = Literal["local", "spark"]

#: About five million events, which one process tallies in some minutes; a session of Spark takes a while to start.
LOCAL_BYTES_MAX: Final = 2 << 30


def choose(paths: list[Path]) -> Engine:
    """The engine for a history of this size; the local one, too, where Spark is not installed."""
    is_large = history_bytes(paths) > LOCAL_BYTES_MAX
    return "spark" if is_large and find_spec("pyspark") is not None else "local"


@lru_cache(maxsize=1)
def index_of(filters: tuple[str, ...]) -> MatchingIndex:
    """The filters in their order, ready to match; made once in each process that tallies."""
    index = new_index()
    for number, text in enumerate(filters):
        taken = index.add(parse_filter(text))
        assert taken == number
    return index


def tally_history(
    stretches: Sequence[Stretch],
    filters: Sequence[str],
    held: int,
    engine: Engine,
    *,
    master: str | None = None,
    watch: Callable[[int], None] = lambda done: None,
) -> Tally:
    """Count everything; the first ``held`` filters are held. ``watch`` hears how many stretches are done.

    :raises CallersFault: if something in the history is no event, or Spark is wanted and not installed.
    :raises EnvironmentsFault: if the history cannot be read, or Spark does not start.
    """
    texts = tuple(filters)
    if engine == "local":
        index = index_of(texts)
        parts: list[Tally] = []
        for done, stretch in enumerate(stretches):
            watch(done)
            parts.append(tally(index, held, stretch.batches()))
        return added(parts, len(texts))
    if find_spec("pyspark") is None:
        raise CallersFault("the engine spark needs pyspark; install it with: pip install 'holdfast[spark]'")
    from holdfast.pipeline.cost.spark import tally_with_spark

    return added(tally_with_spark(stretches, texts, held, master), len(texts))
