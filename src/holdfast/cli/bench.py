"""`holdfast bench`: what things cost here, beside the plain way of doing them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from holdfast.bench.figure import figure_rows, put_section
from holdfast.bench.matching import Job, Measurement, jobs, measure_all
from holdfast.bench.report import COLUMNS, FIGURE_COLUMNS, figures, markdown, rows
from holdfast.bench.router import router_finding
from holdfast.cli.bench_durable import add_durable
from holdfast.cli.bench_finding import add_results, check_results, put_result
from holdfast.cli.bench_overlay import add_overlay
from holdfast.cli.bench_peers import add_peers
from holdfast.cli.bench_pipeline import add_pipeline
from holdfast.cli.bench_sesdad import add_sesdad
from holdfast.cli.failure import Failure
from holdfast.cli.progress import progress

__all__ = ["add_arguments"]


def add_arguments(commands: Any) -> None:
    """`holdfast bench matching|network|overlay|sesdad|durable|peers|pipeline …`."""
    group = commands.add_parser("bench", help="measure")
    benchmarks = group.add_subparsers(title="benchmarks", required=True)
    matching = benchmarks.add_parser(
        "matching", help="predicates, topics and XPath: the index, the naive twin, lxml"
    )
    matching.add_argument(
        "--largest", type=int, default=1_000_000, metavar="N", help="leave out larger sizes"
    )
    add_results(matching)
    matching.set_defaults(run=run_matching)
    network = benchmarks.add_parser(
        "network", help="brokers as real processes, a bare loop and a bare echo; the simulator"
    )
    network.add_argument(
        "--only", action="append", metavar="JOB", help="one job, by its name; may be given several times"
    )
    network.add_argument(
        "--seconds", type=float, default=2.0, metavar="S", help="how long one run takes, about [2]"
    )
    network.set_defaults(run=run_network)
    add_overlay(benchmarks)
    add_sesdad(benchmarks)
    add_durable(benchmarks)
    add_peers(benchmarks)
    add_pipeline(benchmarks)
    for benchmark in (matching, network):
        benchmark.add_argument("--json", action="store_true", help="one JSON object per measurement")
        benchmark.add_argument(
            "--markdown", type=Path, metavar="FILE", help="write the figures into this page too"
        )


def run_matching(options: argparse.Namespace) -> int:
    """Measure, and show what came out."""
    programme = jobs(largest=options.largest)
    if not programme:
        raise Failure(f"--largest {options.largest}: nothing is that small; expected 1000 or more")
    _check_page(options.markdown)
    check_results(options)
    measured: list[Measurement] = []
    with progress(beside_output=not options.json) as shown:
        task = shown.add_task("", total=len(programme))
        _announce(shown, task, programme, 0)
        for measurement in measure_all(programme):
            measured.append(measurement)
            _announce(shown, task, programme, len(measured))
            if options.json:
                _write_json(measurement.as_json())
    if not options.json:
        _show("Matching", COLUMNS, rows(measured), figure_rows(figures(measured)))
    if options.markdown is not None:
        put_section(options.markdown, "Matching", markdown(measured, "holdfast bench matching"))
    put_result(options, router_finding(measured), "E2.3", "holdfast bench matching")
    return 0


def _announce(shown: Progress, task: Any, programme: list[Job], done: int) -> None:
    job = programme[done] if done < len(programme) else None
    text = "done" if job is None else f"{job.kind}, {job.engine}, {job.size:,}"
    shown.update(task, completed=done, description=text)


def run_network(options: argparse.Namespace) -> int:
    """Measure, and show what came out; exit status 1 if a run lost, repeated or reordered something."""
    # Loaded here: the other commands need neither brokers nor the simulator.
    from holdfast.bench.network import JOBS
    from holdfast.bench.network_outcome import Outcome, Scale
    from holdfast.bench.network_report import (
        NETWORK_COLUMNS,
        network_figures,
        network_markdown,
        network_rows,
    )
    from holdfast.bench.network_wire import BenchFailed

    names = options.only or list(JOBS)
    for name in names:
        if name not in JOBS:
            raise Failure(f"--only {name}: there is no such job; expected one of {', '.join(JOBS)}")
    if not 0.01 <= options.seconds <= 60:
        raise Failure(f"--seconds {options.seconds:g}: expected from 0.01 to 60")
    _check_page(options.markdown)
    scale = Scale(seconds=options.seconds)
    outcomes: list[Outcome] = []
    try:
        with progress(beside_output=not options.json) as shown:
            task = shown.add_task("", total=len(names))
            for done, name in enumerate(names):
                shown.update(task, completed=done, description=name)
                for outcome in JOBS[name](scale):
                    outcomes.append(outcome)
                    if options.json:
                        _write_json(outcome.as_json())
    except BenchFailed as failed:
        sys.stderr.write(f"holdfast: the benchmark failed, its figures mean nothing: {failed}\n")
        return 1
    if not options.json:
        _show("Network", NETWORK_COLUMNS, network_rows(outcomes), figure_rows(network_figures(outcomes)))
    if options.markdown is not None:
        put_section(options.markdown, "Network", network_markdown(outcomes, "holdfast bench network"))
    return 0


def _check_page(page: Path | None) -> None:
    if page is not None and not page.parent.is_dir():
        raise Failure(f"--markdown {page}: there is no folder {page.parent}")


def _write_json(fields: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _show(
    title: str, columns: Sequence[str], measured: Sequence[Sequence[str]], promised: Sequence[Sequence[str]]
) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    for heading, names, cells in (
        (title, columns, measured),
        ("What is promised", FIGURE_COLUMNS, promised),
    ):
        table = Table(*names, title=heading, title_justify="left")
        for row in cells:
            table.add_row(*row)
        console.print(table)
