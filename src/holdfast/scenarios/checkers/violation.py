"""A promise that was not kept, with the lines of the trace that show it."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.scenarios.trace import TraceLine

__all__ = ["Violation"]


@dataclass(frozen=True, slots=True)
class Violation:
    """``kind`` is a word of the audit (contracts.md §6), or ``malformed`` for a trace that contradicts itself."""

    kind: str
    message: str
    lines: tuple[TraceLine, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"
