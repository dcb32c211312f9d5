"""`holdfast bench overlay`: the experiments of the overlay, each with a data file and the claims it checks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from holdfast.bench.figure import put_section
from holdfast.cli.failure import Failure
from holdfast.cli.progress import progress

__all__ = ["add_overlay"]

NAMES = ("load", "delay", "acks", "recovery", "locality", "vectors")


def add_overlay(benchmarks: Any) -> None:
    """`holdfast bench overlay EXPERIMENT [--out FOLDER] [--markdown FILE]`."""
    overlay = benchmarks.add_parser(
        "overlay", help="the overlay's experiments in the simulator: 86 nodes that survive three failures"
    )
    overlay.add_argument("experiment", choices=NAMES, metavar="EXPERIMENT", help=", ".join(NAMES))
    overlay.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where the data file goes [the current folder]",
    )
    overlay.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables into this page too")
    overlay.set_defaults(run=run_overlay)


def run_overlay(options: argparse.Namespace) -> int:
    """Run one, write its data, and say what holds; exit status 1 if something does not."""
    # Loaded here: the other commands need neither brokers nor the simulator.
    from holdfast.bench.overlay import EXPERIMENTS
    from holdfast.bench.overlay_finding import CHECK_COLUMNS

    if not options.out.is_dir():
        raise Failure(f"--out {options.out}: there is no such folder")
    if options.markdown is not None and not options.markdown.parent.is_dir():
        raise Failure(f"--markdown {options.markdown}: there is no folder {options.markdown.parent}")
    with progress(beside_output=True) as shown:
        shown.add_task(options.experiment, total=None)
        finding = EXPERIMENTS[options.experiment]()
    written = finding.write(options.out)
    console = Console(width=None if sys.stdout.isatty() else 160)
    for title, columns, rows in (
        (finding.title, finding.columns, finding.summary_rows()),
        ("What is claimed", CHECK_COLUMNS, finding.check_rows()),
    ):
        table = Table(*columns, title=title, title_justify="left")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    console.print(finding.remark, highlight=False)
    console.print(f"{len(finding.data):,} rows written to {written}", highlight=False)
    if options.markdown is not None:
        put_section(options.markdown, finding.title, finding.markdown())
    return 0 if finding.holds else 1
