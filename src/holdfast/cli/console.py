"""Rich output of commands: as wide as the terminal, or of a fixed width where there is none."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console
from rich.text import Text

from holdfast.cli.words import plain

__all__ = ["OutputConsole", "foreign"]

#: Where the output is no terminal; wide enough for every table.
WIDTH: Final = 100


def foreign(text: str) -> Text:
    """Text with names and filters that strangers chose: as it is, but for what would move the cursor, or worse."""
    return Text(plain(text))


class OutputConsole(Console):
    """Standard output. A reader that has left is for ``main`` to deal with, once everything is cleared away."""

    def __init__(self) -> None:
        super().__init__(width=None if sys.stdout.isatty() else WIDTH, highlight=False)

    def on_broken_pipe(self) -> None:
        """Rich would end the process here, in the midst of whatever is running."""
        raise BrokenPipeError
