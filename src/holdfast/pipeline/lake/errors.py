"""What can go wrong with a table of the lake."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import CallersFault, EnvironmentsFault
from holdfast.messages.ticks import Tick
from holdfast.pipeline.errors import CannotRead

__all__ = ["DamagedFile", "ForeignTable", "LakeBusy", "LakeFailed", "NoTable", "OtherType"]


class NoTable(CallersFault):
    """There is no table at a path."""


class ForeignTable(CallersFault):
    """What is at a path is no table of ours, or that of another stream."""


class OtherType(CallersFault):
    """An attribute is declared with another type than its column has."""


class LakeBusy(EnvironmentsFault):
    """Somebody else did the same work at the same time, and was first; nothing of ours is in the table."""


class LakeFailed(EnvironmentsFault):
    """What a disk would not take or give."""


class DamagedFile(CannotRead):
    """A file that is not there, or not as it was written: nothing up to a tick can be had of it."""

    def __init__(self, path: Path, upto: Tick, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.upto = upto
