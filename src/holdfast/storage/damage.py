"""What a log says about bytes that are not as they were written."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import EnvironmentsFault

__all__ = ["Cut", "Damage", "DamagedRecord"]


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that were whole once. Records from ``first`` to ``last`` may be lost and are not served; 0 and 0: none."""

    file: str
    offset: int
    length: int
    first: int
    last: int
    problem: str

    @property
    def loses_records(self) -> bool:
        """Whether a record may have stood there."""
        return self.first > 0

    def __str__(self) -> str:
        if not self.loses_records:
            lost = "no record is lost"
        elif self.first == self.last:
            lost = f"record {self.first} is lost"
        else:
            lost = f"records from {self.first} to {self.last} may be lost"
        return f"{self.file}, offset {self.offset}, {self.length} bytes: {self.problem}; {lost}"


@dataclass(frozen=True, slots=True)
class Cut:
    """The torn tail of the last segment: nothing shows that it was ever stable; it is cut off at start.

    ``first`` and ``last`` are the indexes that its whole headers name, 0 and 0 if there are none.
    """

    file: str
    offset: int
    length: int
    first: int = 0
    last: int = 0

    def __str__(self) -> str:
        held = f"it names records from {self.first} to {self.last}" if self.first else "it names no record"
        return f"{self.file}, offset {self.offset}: a torn tail of {self.length} bytes; {held}"


class DamagedRecord(EnvironmentsFault):
    """A record that was asked for by its index and cannot be served."""

    def __init__(self, index: int, damage: Damage) -> None:
        super().__init__(f"record {index}: {damage}")
        self.index = index
        self.damage = damage
