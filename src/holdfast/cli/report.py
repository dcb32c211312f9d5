"""`holdfast report [RESULTS] --output FILE`: the papers' figures, ours beside theirs; see `docs/report.md`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from holdfast.cli.failure import Failure
from holdfast.cli.progress import progress
from holdfast.cli.words import counted

__all__ = ["add_arguments"]


def add_arguments(commands: Any) -> None:
    """`holdfast report [RESULTS] [--simulate quick|full] [--output FILE]`."""
    command = commands.add_parser(
        "report",
        help="every figure and table of the papers that is reproduced, ours beside theirs, in one HTML file",
        description="Reads results that `holdfast bench … --results FOLDER` has written, and makes one HTML file that"
        " needs nothing else. What is not there is shown as not measured, with the command that measures it.",
    )
    command.add_argument(
        "results", type=Path, nargs="?", metavar="RESULTS", help="the folder with the results"
    )
    command.add_argument(
        "--simulate",
        choices=("quick", "full"),
        help="run what needs only the simulator and is not there yet: in seconds, or at its full size in minutes",
    )
    command.add_argument(
        "--output", type=Path, default=Path("report.html"), metavar="FILE", help="the page [report.html]"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, run what is wanted, and write the page."""
    # Loaded here: the other commands need neither brokers nor the simulator.
    from holdfast.bench.result import BadResult, read_results
    from holdfast.report.page import page

    if options.results is None and options.simulate is None:
        raise Failure(
            "no results; expected the folder that `holdfast bench … --results FOLDER` wrote to, or --simulate"
        )
    if not options.output.parent.is_dir():
        raise Failure(f"--output {options.output}: there is no folder {options.output.parent}")
    try:
        results = {} if options.results is None else read_results(options.results)
        if options.simulate is not None:
            results |= _run_missing(options, results)
        text = page(dict(sorted(results.items())))
    except BadResult as error:
        raise Failure(str(error)) from error
    options.output.write_text(text, encoding="utf-8")
    measured = counted(len(results), "experiment")
    sys.stdout.write(
        f"{options.output}: {measured} of the papers measured, {len(text.encode()) // 1024:,} KiB\n"
    )
    return 0


def _run_missing(options: argparse.Namespace, results: dict[str, Any]) -> dict[str, Any]:
    """What the simulator can tell and nobody has asked it yet; kept in the folder, if there is one."""
    from holdfast.bench.result import write_result
    from holdfast.bench.simulated import SIMULATED, simulated_result

    missing = [name for name in SIMULATED if name not in results]
    found: dict[str, Any] = {}
    with progress(beside_output=True) as shown:
        task = shown.add_task("", total=len(missing))
        for done, name in enumerate(missing):
            shown.update(task, completed=done, description=f"{name}, {options.simulate}")
            found[name] = simulated_result(name, options.simulate)
            if options.results is not None:
                write_result(options.results, found[name])
    return found
