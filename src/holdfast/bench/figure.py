"""Figures that are promised, how they stand, and the page they are written to."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Figure", "figure_rows", "judged", "machine", "put_section", "shown", "table_lines"]

HEAD = """# Benchmarks

Written by `holdfast bench matching`, `network`, `durable`, `peers` and `pipeline`, each its own part. What is measured,
and how the workloads are made, stands at the heads of the files in `src/holdfast/bench/`.
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One promised figure: what was measured, what it must be, the goal beyond, and how it stands."""

    name: str
    value: float
    unit: str
    bound: str
    goal: str
    verdict: str


def judged(
    name: str, value: float, unit: str, bound: float | None, goal: float | None, at_most: bool
) -> Figure:
    """A figure held against its bound and its goal."""

    def reached(limit: float) -> bool:
        return value <= limit if at_most else value >= limit

    def text(limit: float | None) -> str:
        return "" if limit is None else f"{'≤' if at_most else '≥'} {_plain(limit)}"

    if bound is not None and not reached(bound):
        verdict = "missed"
    elif goal is not None:
        verdict = "goal reached" if reached(goal) else "short of the goal"
    else:
        verdict = "holds"
    return Figure(name, value, unit, text(bound), text(goal), verdict)


def _plain(limit: float) -> str:
    return f"{limit:,.0f}" if limit >= 1_000 else f"{limit:g}"


def figure_rows(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    """A row per figure."""
    return [(f.name, f"{shown(f.value)} {f.unit}", f.bound, f.goal, f.verdict) for f in figures]


def shown(value: float) -> str:
    """With as many decimals as mean something."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def machine() -> str:
    """Where it was measured."""
    return f"{os.cpu_count()} cores, {platform.machine()}, CPython {platform.python_version()}"


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [_row(columns), _row(["---"] * len(columns)), *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def put_section(page: Path, title: str, section: str) -> None:
    """Write a part of the page, in the place of the one with the same title; the others stay as they are."""
    text = page.read_text() if page.exists() else HEAD
    part = f"## {title}\n\n{section.strip()}\n"
    old = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    replaced, count = old.subn(lambda _: f"{part}\n", text)
    page.write_text(f"{replaced.rstrip()}\n" if count else f"{text.rstrip()}\n\n{part}")
