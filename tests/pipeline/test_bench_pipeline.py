"""`holdfast bench pipeline`, small: its stream is what it says, every job checks what it has read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import pyarrow.parquet as pq

from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.network_workload import EVENT_BYTES
from holdfast.bench.pipeline import PIPELINE_JOBS
from holdfast.bench.pipeline_lake import LAKE_JOB, LAKE_RUN, lake, plain_parquet
from holdfast.bench.pipeline_live import ALONE, BESIDE, LIVE_JOB
from holdfast.bench.pipeline_report import pipeline_figures, pipeline_markdown
from holdfast.bench.pipeline_scale import PipelineScale, Setting, setting
from holdfast.bench.pipeline_source import ALL_JOB, NETWORK, PARQUET
from holdfast.bench.pipeline_stream import ATTRIBUTES, STREAM, stored_stream
from holdfast.cli.main import main
from holdfast.pipeline.columns import declared, shape_of
from holdfast.pipeline.origins import origins_of
from holdfast.pipeline.planning import TickRange
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.reading import Task
from holdfast.storage.block import Batch
from tested_spark import spark

ROWS = 3_001


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    scale = PipelineScale(tmp_path_factory.mktemp("bench"), ROWS, 1, (1,), 2, 2_000, 1, 0.2)
    with setting(scale) as made:
        made.__dict__["spark"] = spark()  # that of all tests, which outlives it
        yield made


def rows_of(network: Path) -> list[object]:
    origins = origins_of(network, STREAM, local=True)
    shape = shape_of(None, declared(ATTRIBUTES))
    task = Task(origins, shape.columns, shape.attributes, None, "fail", False)
    wanted = [TickRange(pubend, end.first, end.last) for pubend, end in origins.ends().items()]
    return [row for each in wanted for batch in task.rows(each) for row in batch.to_pylist()]


@pytest.mark.long
def test_every_job_measures_and_plain_parquet_has_the_rows_of_the_stream(shared: Setting) -> None:
    outcomes = [outcome for job in PIPELINE_JOBS.values() for outcome in job(shared)]
    assert all(run > 0 for outcome in outcomes for run in outcome.runs)
    figures = {figure.name for figure in pipeline_figures(outcomes)}
    assert f"{ALL_JOB}: {NETWORK} over {PARQUET}" in figures
    assert f"{LIVE_JOB}, p99 beside a backfill over alone" in figures
    page = pipeline_markdown(outcomes, ROWS, "holdfast bench pipeline")
    assert f"| {LAKE_JOB} | {LAKE_RUN} |" in page
    plain = [
        row for path in sorted(plain_parquet(shared).iterdir()) for row in pq.read_table(path).to_pylist()
    ]
    assert plain == rows_of(shared.stored.network)


def test_its_stream_is_made_of_events_of_the_size_it_says_in_which_all_attributes_are_typed(
    tmp_path: Path,
) -> None:
    stored = stored_stream(tmp_path, ROWS)
    rows = rows_of(stored.network)
    assert len(rows) == ROWS
    assert all(None not in row["a"].values() for row in rows)  # type: ignore[index]
    ranges = Ranges(tmp_path / "b1" / "streams")
    [(pubend, end)] = ranges.ends(STREAM).items()
    sizes = {
        len(record)
        for piece in ranges.scan(pubend, end.first, end.last)
        if isinstance(piece, Batch)
        for record in piece.records
    }
    assert max(sizes) - min(sizes) < 10
    assert EVENT_BYTES in range(min(sizes), max(sizes) + 3)


def test_a_run_that_reads_other_rows_than_there_are_fails(shared: Setting) -> None:
    less = Setting(shared.scale, shared.folder, shared._stack)
    less.__dict__["stored"] = type(shared.stored)(shared.folder, ROWS + 1)
    with pytest.raises(BenchFailed, match=r"holdfast lake run: 3,001 rows, and 3,002 were written"):
        list(lake(less))


def test_bounds_and_goals_are_judged() -> None:
    outcomes = [
        Outcome(ALL_JOB, PARQUET, "rows/s", (100.0, 200.0)),
        Outcome(ALL_JOB, NETWORK, "rows/s", (80.0, 120.0)),
        Outcome(LAKE_JOB, LAKE_RUN, "events/s", (99_999.0,)),
        Outcome(f"{LIVE_JOB}, p99", ALONE, "µs", (1_000.0,)),
        Outcome(f"{LIVE_JOB}, p99", BESIDE, "µs", (1_500.0,)),
    ]
    found = {figure.name: (figure.value, figure.verdict) for figure in pipeline_figures(outcomes)}
    value, verdict = found[f"{ALL_JOB}: {NETWORK} over {PARQUET}"]
    assert value == pytest.approx(0.7)
    assert verdict == "short of the goal"
    assert found[LAKE_JOB] == (99_999.0, "missed")
    assert found[f"{LIVE_JOB}, p99 beside a backfill over alone"] == (1.5, "holds")
    assert len(found) == 3, "what was not measured is not promised"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--rows", "7"], "--rows 7: expected 10000 or more"),
        (["--only", "all"], "there is no such job; expected one of lake, source, streaming, live"),
        (["--only", "source"], "expected --only lake, too"),
        (["--data", "/nowhere"], "there is no such folder"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "pipeline", *arguments]) == 2
    assert problem in capsys.readouterr().err
