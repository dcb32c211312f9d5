"""`holdfast bench`: what things cost here, beside the plain way of doing them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from holdfast.bench.matching import Job, Measurement, jobs, measure_all
from holdfast.bench.report import COLUMNS, figures, markdown, rows
from holdfast.cli.failure import Failure
from holdfast.cli.progress import progress

__all__ = ["add_arguments"]


def add_arguments(commands: Any) -> None:
    """`holdfast bench matching [--json] [--largest N] [--markdown FILE]`."""
    group = commands.add_parser("bench", help="measure")
    matching = group.add_subparsers(title="benchmarks", metavar="BENCHMARK", required=True).add_parser(
        "matching", help="predicates, topics and XPath: the index, the naive twin, lxml"
    )
    matching.add_argument("--json", action="store_true", help="one JSON object per measurement")
    matching.add_argument(
        "--largest", type=int, default=1_000_000, metavar="N", help="leave out larger sizes"
    )
    matching.add_argument("--markdown", type=Path, metavar="FILE", help="write the page of figures there too")
    matching.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, and show what came out."""
    programme = jobs(largest=options.largest)
    if not programme:
        raise Failure(f"--largest {options.largest}: nothing is that small; expected 1000 or more")
    if options.markdown is not None and not options.markdown.parent.is_dir():
        raise Failure(f"--markdown {options.markdown}: there is no folder {options.markdown.parent}")
    measured: list[Measurement] = []
    with progress(beside_output=not options.json) as shown:
        task = shown.add_task("", total=len(programme))
        _announce(shown, task, programme, 0)
        for measurement in measure_all(programme):
            measured.append(measurement)
            _announce(shown, task, programme, len(measured))
            if options.json:
                sys.stdout.write(json.dumps(measurement.as_json()) + "\n")
                sys.stdout.flush()
    if not options.json:
        _show(measured)
    if options.markdown is not None:
        options.markdown.write_text(markdown(measured, "holdfast bench matching"))
    return 0


def _announce(shown: Progress, task: Any, programme: list[Job], done: int) -> None:
    job = programme[done] if done < len(programme) else None
    text = "done" if job is None else f"{job.kind}, {job.engine}, {job.size:,}"
    shown.update(task, completed=done, description=text)


def _show(measured: list[Measurement]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(*COLUMNS, title="Matching", title_justify="left")
    for column in table.columns[2:]:
        column.justify = "right"
    for row in rows(measured):
        table.add_row(*row)
    console.print(table)
    promised = Table(
        "figure", "measured", "must be", "goal", "", title="What is promised", title_justify="left"
    )
    for figure in figures(measured):
        measured_text = f"{figure.value:,.1f} {figure.unit}"
        promised.add_row(figure.name, measured_text, figure.bound, figure.goal, figure.verdict)
    console.print(promised)
