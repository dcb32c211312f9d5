"""SIGTERM as Ctrl-C, for commands that have folders and processes to clear away."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["terminated_like_interrupted"]


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Within, SIGTERM raises KeyboardInterrupt, so that every block is left in order; for the main thread only."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
