"""Spark's daemon, from which its processes of Python come, without a traceback where Spark has read enough.

A query that ends early, such as ``show`` or ``limit``, closes the socket of a process that still has rows to write.
Nothing is wrong then, but the daemon of PySpark 4.3 prints it on the user's terminal as an error. Sessions inside this
process start this one instead for tasks (``spark_session``); it is PySpark's in all else. Those that plan for Spark are
started as PySpark has it, which cannot be set: after a minute without work they may still complain of their end.
"""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace

from pyspark import daemon

__all__ = ["print_exc"]


def print_exc() -> None:
    """Print the exception that is being handled, unless it is that nobody reads any more."""
    if not isinstance(sys.exception(), BrokenPipeError):
        traceback.print_exc()


if __name__ == "__main__":
    daemon.traceback = SimpleNamespace(print_exc=print_exc, format_exc=traceback.format_exc)
    daemon.manager()
