"""What can go wrong with a table of the lake."""

from __future__ import annotations

from holdfast.errors import CallersFault, EnvironmentsFault

__all__ = ["ForeignTable", "LakeBusy", "LakeFailed", "NoTable", "OtherType"]


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
