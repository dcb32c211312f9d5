"""The benchmark of the pipeline as tables, and the figures that are promised of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.bench.figure import Figure, figure_rows, judged, machine, table_lines
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_report import NETWORK_COLUMNS, network_rows
from holdfast.bench.pipeline_lake import BARE_WRITE, HISTORY_JOB, LAKE_JOB, LAKE_RUN, READ
from holdfast.bench.pipeline_live import ALONE, BESIDE, LIVE_JOB
from holdfast.bench.pipeline_source import (
    ALL_JOB,
    FILTER_JOB,
    LAKE,
    LOCAL,
    NETWORK,
    PARQUET,
    PROCESSOR,
    READY,
    TABLE,
)
from holdfast.bench.pipeline_streaming import FLOOR_JOB
from holdfast.bench.report import FIGURE_COLUMNS

__all__ = ["pipeline_figures", "pipeline_markdown"]

Wanted = tuple[str, float | None, str, float | None, float | None, bool]


def pipeline_figures(outcomes: Sequence[Outcome]) -> list[Figure]:
    """The figures that are promised, as far as they were measured."""
    by_name = {(o.job, o.variant): o for o in outcomes}

    def value(job: str, variant: str) -> float | None:
        found = by_name.get((job, variant))
        return None if found is None else found.value

    def ratio(job: str, over: str, under: str) -> float | None:
        a, b = by_name.get((job, over)), by_name.get((job, under))
        return None if a is None or b is None else a.over(b)

    def wanted() -> Iterator[Wanted]:
        for way in (TABLE, NETWORK, LOCAL, LAKE):
            yield f"{ALL_JOB}: {way} over {PARQUET}", ratio(ALL_JOB, way, PARQUET), "×", 0.7, 1, False
        yield f"{ALL_JOB}: {READY} over {PARQUET}", ratio(ALL_JOB, READY, PARQUET), "×", None, None, False
        for way in (TABLE, NETWORK, LOCAL):
            yield (
                f"{FILTER_JOB}: {way} over {PARQUET}",
                ratio(FILTER_JOB, way, PARQUET),
                "×",
                None,
                None,
                False,
            )
        for way in (TABLE, NETWORK, LOCAL, LAKE):
            less = ratio(f"{ALL_JOB}{PROCESSOR}", way, PARQUET)
            yield f"{ALL_JOB}: processor time of {way} over {PARQUET}", less, "×", None, None, True
        yield FLOOR_JOB, value(FLOOR_JOB, "noop"), "ms", None, None, True
        yield LAKE_JOB, value(LAKE_JOB, LAKE_RUN), "events/s", 100_000, 200_000, False
        yield f"{LAKE_JOB} over {BARE_WRITE}", ratio(LAKE_JOB, LAKE_RUN, BARE_WRITE), "×", None, None, False
        yield f"{HISTORY_JOB}: {READ}", value(HISTORY_JOB, READ), "%", None, None, True
        beside = ratio(f"{LIVE_JOB}, p99", BESIDE, ALONE)
        yield f"{LIVE_JOB}, p99 beside a backfill over alone", beside, "×", 1.5, None, True

    return [judged(*each) for each in wanted() if each[1] is not None]  # type: ignore[arg-type]


def pipeline_markdown(outcomes: Sequence[Outcome], rows: int, command: str) -> str:
    """A part of `docs/benchmarks.md`."""
    head = (
        f"`{command}` on {machine()}, Spark embedded on two of them. {rows:,} events of 418 bytes in the logs of two "
        "brokers. Medians; all runs beside them. A run that reads other events than were written fails."
    )
    lines = [
        head,
        "",
        *table_lines(FIGURE_COLUMNS, figure_rows(pipeline_figures(outcomes))),
        "",
        *table_lines(NETWORK_COLUMNS, network_rows(outcomes)),
    ]
    return "\n".join(lines)
