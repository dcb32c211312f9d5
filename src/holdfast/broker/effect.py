"""What a broker answers its operator. Its other effects are those of ``overlay.transport`` and ``streams.storing``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Operated"]


@dataclass(frozen=True, slots=True)
class Operated:
    """A wish of the operator's was carried out, and is on disk; or it was not, and why."""

    ticket: int
    problem: str | None = None
