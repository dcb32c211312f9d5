"""`holdfast bench sesdad`: the paper's own scenario under every policy, in virtual time."""

from __future__ import annotations

import argparse
from typing import Any

from holdfast.cli.bench_finding import add_results, check_results, put_result, show_finding
from holdfast.cli.progress import progress

__all__ = ["add_sesdad"]

NAMES = ("E3.2", "E3.3")


def add_sesdad(benchmarks: Any) -> None:
    """`holdfast bench sesdad E3.2|E3.3 [--results FOLDER]`."""
    sesdad = benchmarks.add_parser(
        "sesdad", help="six sites in the simulator: flooding and filtering, in every order, ever faster"
    )
    sesdad.add_argument("experiment", choices=NAMES, metavar="EXPERIMENT", help=", ".join(NAMES))
    add_results(sesdad)
    sesdad.set_defaults(run=run_sesdad)


def run_sesdad(options: argparse.Namespace) -> int:
    """Run one, and say what holds; exit status 1 if something does not."""
    # Loaded here: the other commands need neither brokers nor the simulator.
    from holdfast.bench.sesdad import SESDAD_EXPERIMENTS, SesdadPlan

    check_results(options)
    with progress(beside_output=True) as shown:
        shown.add_task(options.experiment, total=None)
        finding = SESDAD_EXPERIMENTS[options.experiment](SesdadPlan())
    show_finding(finding)
    put_result(options, finding, options.experiment, f"holdfast bench sesdad {options.experiment}")
    return 0 if finding.holds else 1
