"""What the commands that run an experiment share: its tables on the screen, its files, and what they are called."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from holdfast.bench.overlay_finding import CHECK_COLUMNS, Finding
from holdfast.bench.result import Size, result_of, write_result
from holdfast.cli.failure import Failure

__all__ = ["add_results", "check_results", "put_result", "show_finding"]


def add_results(parser: Any) -> None:
    """`--results FOLDER`."""
    parser.add_argument(
        "--results", type=Path, metavar="FOLDER", help="write what was found for `holdfast report`, too"
    )


def check_results(options: argparse.Namespace) -> None:
    """Whether there is such a folder, before hours are spent.

    :raises Failure: if there is none.
    """
    if options.results is not None and not options.results.is_dir():
        raise Failure(f"--results {options.results}: there is no such folder")


def put_result(
    options: argparse.Namespace, finding: Finding, experiment: str, command: str, size: Size = "full"
) -> None:
    """Write the file, if one is wanted."""
    if options.results is not None:
        write_result(options.results, result_of(finding, experiment, command, size))


def show_finding(finding: Finding) -> None:
    """Its table and its claims."""
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
