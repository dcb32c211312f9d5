"""Progress on standard error, where that is a terminal and the output goes elsewhere."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["progress"]


def progress(*, beside_output: bool = False) -> Progress:
    """A bar that is gone when it is done; ``beside_output`` if nothing is printed meanwhile.

    It must not touch standard output: rich would otherwise send what is written there to the terminal.
    """
    shown = sys.stderr.isatty() and (beside_output or not sys.stdout.isatty())
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not shown,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
