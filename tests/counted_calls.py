"""Work counted instead of timed: how many functions are called, and how deep.

A count does not change with the load on the machine. It sees every turn of a Python loop that calls anything, and
nothing of a loop inside a C function; where those matter, a test times them too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """What an action took."""

    calls: int  #: of Python and of C functions
    frames: int  #: Python frames on the stack at once


def work_of(action: Callable[[], object]) -> Work:
    """Carry out the action and count."""
    calls = depth = frames = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls, depth, frames
        calls += event in ("call", "c_call")
        depth += (event == "call") - (event == "return")
        frames = max(frames, depth)

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return Work(calls, frames)
