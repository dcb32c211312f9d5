"""`holdfast bench pipeline`: streams as tables, by Spark and in the lake."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from holdfast.bench.figure import figure_rows, put_section
from holdfast.bench.report import FIGURE_COLUMNS
from holdfast.cli.failure import Failure
from holdfast.cli.progress import progress
from holdfast.cli.termination import terminated_like_interrupted

__all__ = ["add_pipeline"]

ROWS: Final = 10_000_000
ROWS_MIN: Final = 10_000
REPEATED: Final = 3  #: readings, at least
REPEATED_ROWS: Final = 3_000_000  #: rows that are read, at least, in all readings of one way


def add_pipeline(benchmarks: Any) -> None:
    """`holdfast bench pipeline [--rows N] [--only JOB] [--data FOLDER] [--json] [--markdown FILE]`."""
    pipeline = benchmarks.add_parser(
        "pipeline", help="streams read by Spark and written to the lake, beside plain Parquet"
    )
    pipeline.add_argument("--rows", type=int, default=ROWS, metavar="N", help=f"events in the logs [{ROWS}]")
    pipeline.add_argument(
        "--only", action="append", metavar="JOB", help="one job, by its name; may be given several times"
    )
    pipeline.add_argument(
        "--data",
        type=Path,
        default=Path(tempfile.gettempdir()),
        metavar="FOLDER",
        help="on the disk that is to be measured [the system's folder for temporary files]; nothing stays there",
    )
    pipeline.add_argument("--json", action="store_true", help="one JSON object per measurement")
    pipeline.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables into this page too")
    pipeline.set_defaults(run=run_pipeline)


def run_pipeline(options: argparse.Namespace) -> int:
    """Measure, and show what came out; exit status 1 if a run read other events than were written."""
    if options.rows < ROWS_MIN:
        raise Failure(f"--rows {options.rows}: expected {ROWS_MIN} or more")
    if not options.data.is_dir():
        raise Failure(f"--data {options.data}: there is no such folder")
    if options.markdown is not None and not options.markdown.parent.is_dir():
        raise Failure(f"--markdown {options.markdown}: there is no folder {options.markdown.parent}")
    try:
        # Loaded here: the other commands need none of it, and it may not be installed.
        from holdfast.bench.network_wire import BenchFailed
        from holdfast.bench.pipeline import PIPELINE_JOBS
    except ImportError as error:
        raise Failure(f"this needs {error.name}; pip install 'holdfast[spark]'") from error
    names = [name for name in PIPELINE_JOBS if name in (options.only or PIPELINE_JOBS)]
    for name in options.only or ():
        if name not in PIPELINE_JOBS:
            raise Failure(f"--only {name}: there is no such job; expected one of {', '.join(PIPELINE_JOBS)}")
    if "source" in names and "lake" not in names:
        raise Failure(
            "--only source: its rows are compared with those of the lake; expected --only lake, too"
        )
    try:
        with terminated_like_interrupted():
            return _measure(options, names)
    except BenchFailed as failed:
        sys.stderr.write(f"holdfast: the benchmark failed, its figures mean nothing: {failed}\n")
        return 1


def _measure(options: argparse.Namespace, names: Sequence[str]) -> int:
    from holdfast.bench.network_outcome import Outcome
    from holdfast.bench.network_report import NETWORK_COLUMNS, network_rows
    from holdfast.bench.pipeline import PIPELINE_JOBS
    from holdfast.bench.pipeline_report import pipeline_figures, pipeline_markdown
    from holdfast.bench.pipeline_scale import PipelineScale, setting

    outcomes: list[Outcome] = []
    with (
        progress(beside_output=not options.json) as shown,
        setting(
            PipelineScale(options.data, options.rows, max(REPEATED, REPEATED_ROWS // options.rows))
        ) as shared,
    ):
        task = shown.add_task("", total=len(names) + 1)
        shown.update(task, description=f"writing {options.rows:,} events")
        _ = shared.stored
        for done, name in enumerate(names, start=1):
            shown.update(task, completed=done, description=name)
            for outcome in PIPELINE_JOBS[name](shared):
                outcomes.append(outcome)
                if options.json:
                    sys.stdout.write(json.dumps(outcome.as_json()) + "\n")
                    sys.stdout.flush()
    if not options.json:
        _show("Pipeline", NETWORK_COLUMNS, network_rows(outcomes))
        _show("What is promised", FIGURE_COLUMNS, figure_rows(pipeline_figures(outcomes)))
    if options.markdown is not None:
        command = "holdfast bench pipeline" + (f" --rows {options.rows}" if options.rows != ROWS else "")
        put_section(options.markdown, "Pipeline", pipeline_markdown(outcomes, options.rows, command))
    return 0


def _show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)
