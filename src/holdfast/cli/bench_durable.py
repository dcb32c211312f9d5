"""`holdfast bench durable`: figures of durable streams, or one of their experiments."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from holdfast.bench.figure import figure_rows, put_section
from holdfast.bench.report import FIGURE_COLUMNS
from holdfast.cli.bench_finding import add_results, check_results, put_result, show_finding
from holdfast.cli.failure import Failure
from holdfast.cli.progress import progress
from holdfast.cli.termination import terminated_like_interrupted

__all__ = ["add_durable"]

EXPERIMENTS = ("E1.1", "E1.2", "E1.3", "E1.4", "E1.5", "E1.6")


def add_durable(benchmarks: Any) -> None:
    """`holdfast bench durable [--only JOB] [--quick] …` and `… --experiment E1.3 [--out FOLDER]`."""
    durable = benchmarks.add_parser(
        "durable", help="durable streams: brokers as real processes on a real disk, beside bare files"
    )
    durable.add_argument(
        "--only", action="append", metavar="JOB", help="one job, by its name; may be given several times"
    )
    durable.add_argument("--quick", action="store_true", help="short runs: a minute instead of ten")
    durable.add_argument(
        "--experiment",
        choices=EXPERIMENTS,
        metavar="EXPERIMENT",
        help=f"run an experiment instead: {', '.join(EXPERIMENTS)}",
    )
    durable.add_argument(
        "--data",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="on the disk that is to be measured [the current folder]; nothing stays there",
    )
    durable.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where the data file of an experiment goes [the current folder]",
    )
    durable.add_argument("--json", action="store_true", help="one JSON object per measurement")
    durable.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables into this page too")
    add_results(durable)
    durable.set_defaults(run=run_durable)


def run_durable(options: argparse.Namespace) -> int:
    """Measure, and show what came out; exit status 1 if a run failed, or a claim does not hold."""
    # Loaded here: the other commands need neither brokers nor the simulator.
    from holdfast.bench.durable_scale import DurableScale
    from holdfast.bench.network_wire import BenchFailed

    for name, folder in (("data", options.data), ("out", options.out)):
        if not folder.is_dir():
            raise Failure(f"--{name} {folder}: there is no such folder")
    if options.markdown is not None and not options.markdown.parent.is_dir():
        raise Failure(f"--markdown {options.markdown}: there is no folder {options.markdown.parent}")
    check_results(options)
    if options.results is not None and options.experiment is None:
        raise Failure("--results: the report has experiments; expected --experiment, too")
    scale = DurableScale(options.data)
    scale = scale.quick() if options.quick else scale
    try:
        with terminated_like_interrupted():
            return _measure(options, scale) if options.experiment is None else _explore(options, scale)
    except BenchFailed as failed:
        sys.stderr.write(f"holdfast: the benchmark failed, its figures mean nothing: {failed}\n")
        return 1


def _measure(options: argparse.Namespace, scale: Any) -> int:
    from holdfast.bench.durable import DURABLE_JOBS
    from holdfast.bench.durable_report import durable_figures, durable_markdown
    from holdfast.bench.network_outcome import Outcome
    from holdfast.bench.network_report import NETWORK_COLUMNS, network_rows

    names = options.only or list(DURABLE_JOBS)
    for name in names:
        if name not in DURABLE_JOBS:
            raise Failure(f"--only {name}: there is no such job; expected one of {', '.join(DURABLE_JOBS)}")
    outcomes: list[Outcome] = []
    with progress(beside_output=not options.json) as shown:
        task = shown.add_task("", total=len(names))
        for done, name in enumerate(names):
            shown.update(task, completed=done, description=name)
            for outcome in DURABLE_JOBS[name](scale):
                outcomes.append(outcome)
                if options.json:
                    sys.stdout.write(json.dumps(outcome.as_json()) + "\n")
                    sys.stdout.flush()
    if not options.json:
        _show("Durable streams", NETWORK_COLUMNS, network_rows(outcomes))
        _show("What is promised", FIGURE_COLUMNS, figure_rows(durable_figures(outcomes, scale)))
    if options.markdown is not None:
        section = durable_markdown(outcomes, scale, "holdfast bench durable")
        put_section(options.markdown, "Durable streams", section)
    return 0


def _explore(options: argparse.Namespace, scale: Any) -> int:
    from holdfast.bench.durable_experiments import DURABLE_EXPERIMENTS
    from holdfast.bench.durable_finding import experiment_markdown

    with progress(beside_output=True) as shown:
        shown.add_task(options.experiment, total=None)
        finding = DURABLE_EXPERIMENTS[options.experiment](scale)
    written = finding.write(options.out)
    show_finding(finding)
    sys.stdout.write(f"{len(finding.data):,} rows written to {written}\n")
    command = f"holdfast bench durable --experiment {options.experiment}{' --quick' if options.quick else ''}"
    put_result(options, finding, options.experiment, command, "quick" if options.quick else "full")
    if options.markdown is not None:
        put_section(options.markdown, finding.title, experiment_markdown(finding, options.experiment))
    return 0 if finding.holds else 1


def _show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)
