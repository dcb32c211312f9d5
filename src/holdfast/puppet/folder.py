"""The folder of a run: the scenario, and for each process what it keeps from one life to the next, and its log.

::

    configuration.txt, script.txt       the scenario, as canonical text
    trace                               the master's own lines
    processes/NAME/trace, stderr        what a process tells
    processes/NAME/incarnation, numbers-NAME
    processes/NAME/streams/             the store of a broker of a durable network
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["CONFIGURATION_FILE", "MASTERS_TRACE", "SCRIPT_FILE", "home_of", "store_of", "trace_of"]

CONFIGURATION_FILE: Final = "configuration.txt"
SCRIPT_FILE: Final = "script.txt"
MASTERS_TRACE: Final = "trace"


def home_of(folder: Path, name: str) -> Path:
    """The folder of a process, within that of the run."""
    return folder / "processes" / name


def store_of(folder: Path, name: str) -> Path:
    """Where a broker of a durable network has its logs and tables."""
    return home_of(folder, name) / "streams"


def trace_of(folder: Path, name: str) -> Path:
    """Where a process writes its trace."""
    return home_of(folder, name) / "trace"
