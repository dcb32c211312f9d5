"""What happens to a broker: its connections, the time, and the wishes of its operator."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.overlay.transport import TransportInput

__all__ = ["Expel", "Input", "Stop"]


@dataclass(frozen=True, slots=True)
class Stop:
    """Say goodbye to everybody."""


@dataclass(frozen=True, slots=True)
class Expel:
    """A client that is a node of the overlay will not come back: nobody is to wait for it any more [B0.25]."""

    name: str


Input = TransportInput | Stop | Expel
