"""Numbers on the command line, with what was expected where they are none."""

from __future__ import annotations

import argparse
from math import isfinite

__all__ = ["count", "index", "seconds"]


def count(text: str) -> int:
    """A whole number from 1."""
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1")
    return int(text)


def index(text: str) -> int:
    """A whole number from 0."""
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 0")
    return int(text)


def seconds(text: str) -> float:
    """A time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0 or not isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r}: expected seconds, above 0")
    return value
