"""The kinds of frames of ``messages.session``; their bodies are maps, so that a later version may add fields."""

from __future__ import annotations

from typing import Final

from holdfast.messages.session import Goodbye, Heartbeat, Hello, Welcome

__all__ = ["HEARTBEAT", "KINDS"]

HEARTBEAT: Final = 3

KINDS: Final = {1: Hello, 2: Welcome, HEARTBEAT: Heartbeat, 4: Goodbye}
