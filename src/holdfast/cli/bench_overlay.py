"""`holdfast bench overlay`: the experiments of the overlay, each with a data file and the claims it checks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from holdfast.bench.figure import put_section
from holdfast.cli.bench_finding import add_results, check_results, put_result, show_finding
from holdfast.cli.failure import Failure
from holdfast.cli.progress import progress

__all__ = ["add_overlay"]

NAMES = ("load", "delay", "acks", "recovery", "locality", "vectors")


def add_overlay(benchmarks: Any) -> None:
    """`holdfast bench overlay EXPERIMENT [--out FOLDER] [--markdown FILE] [--results FOLDER]`."""
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
    add_results(overlay)
    overlay.set_defaults(run=run_overlay)


def run_overlay(options: argparse.Namespace) -> int:
    """Run one, write its data, and say what holds; exit status 1 if something does not."""
    # Loaded here: the other commands need neither brokers nor the simulator.
    from holdfast.bench.overlay import EXPERIMENTS

    if not options.out.is_dir():
        raise Failure(f"--out {options.out}: there is no such folder")
    if options.markdown is not None and not options.markdown.parent.is_dir():
        raise Failure(f"--markdown {options.markdown}: there is no folder {options.markdown.parent}")
    check_results(options)
    with progress(beside_output=True) as shown:
        shown.add_task(options.experiment, total=None)
        finding = EXPERIMENTS[options.experiment]()
    written = finding.write(options.out)
    show_finding(finding)
    sys.stdout.write(f"{len(finding.data):,} rows written to {written}\n")
    experiment = f"E0.{1 + NAMES.index(options.experiment)}"
    put_result(options, finding, experiment, f"holdfast bench overlay {options.experiment}")
    if options.markdown is not None:
        put_section(options.markdown, finding.title, finding.markdown())
    return 0 if finding.holds else 1
