"""What happens to a broker: its connections, the time, and the wish of its operator that it stop."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.overlay.transport import TransportInput

__all__ = ["Input", "Stop"]


@dataclass(frozen=True, slots=True)
class Stop:
    """Say goodbye to everybody."""


Input = TransportInput | Stop
