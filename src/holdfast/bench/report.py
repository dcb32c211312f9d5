"""Benchmarks as tables: for the terminal, for `docs/benchmarks.md`, and the figures that are promised."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.bench.matching import Measurement

__all__ = ["Figure", "figures", "markdown", "rows"]

COLUMNS = ("kind", "engine", "subscriptions", "matches", "µs/event", "add µs", "remove µs", "bytes each")


@dataclass(frozen=True, slots=True)
class Figure:
    """One promised figure: what was measured, what it must be, the goal beyond, and how it stands."""

    name: str
    value: float
    unit: str
    bound: str
    goal: str
    verdict: str


def rows(measurements: Sequence[Measurement]) -> list[tuple[str, ...]]:
    """A row per measurement."""
    return [
        (
            m.job.kind,
            m.job.engine,
            f"{m.job.size:,}",
            f"{m.matches:.1f}",
            f"{m.event_us:,.1f}",
            _number(m.add_us),
            _number(m.remove_us),
            "–" if m.bytes_each is None else f"{m.bytes_each:,.0f}",
        )
        for m in measurements
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


class _Found:
    """The measurements by job."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self._by_job = {(m.job.kind, m.job.engine, m.job.size): m for m in measurements}

    def us(self, kind: str, engine: str, size: int) -> float | None:
        found = self._by_job.get((kind, engine, size))
        return None if found is None else found.event_us

    def field(self, kind: str, engine: str, size: int, name: str) -> float | None:
        found = self._by_job.get((kind, engine, size))
        value: float | None = None if found is None else getattr(found, name)
        return value

    def ratio(self, over: tuple[str, str, int], under: tuple[str, str, int]) -> float | None:
        a, b = self.us(*over), self.us(*under)
        return None if a is None or b is None else a / b


def figures(measurements: Sequence[Measurement]) -> list[Figure]:
    """The figures that are promised, as far as they were measured."""
    found = _Found(measurements)
    million = 1_000_000
    wanted: list[tuple[str, float | None, str, float | None, float | None, bool]] = []
    for engine in ("pure", "compiled"):
        pure = engine == "pure"
        predicates = ("predicates", engine)
        growth = found.ratio((*predicates, million), (*predicates, 1_000))
        memory = found.field(*predicates, million, "bytes_each")
        faster = found.ratio(("xpath", "lxml", 10_000), ("xpath", engine, 10_000))
        wider = found.ratio(("xpath", engine, 50_000), ("xpath", engine, 10_000))
        over_naive = found.ratio(("predicates", "naive", 10_000), (*predicates, 10_000))
        # For the compiled engine there are goals where the pure one has bounds.
        wanted += [
            (
                f"{engine}: predicates, 100K",
                found.us(*predicates, 100_000),
                "µs",
                *_either(pure, 50, 8),
                True,
            ),
            (
                f"{engine}: predicates, 1M",
                found.us(*predicates, million),
                "µs",
                *_either(pure, 100, 15),
                True,
            ),
            (f"{engine}: predicates, 1M over 1K", growth, "×", 6, 4, True),
            (f"{engine}: memory at 1M", memory, "bytes", *_either(pure, 400, 200), True),
            (f"{engine}: adding at 1M", found.field(*predicates, million, "add_us"), "µs", 40, None, True),
            (
                f"{engine}: removing at 1M",
                found.field(*predicates, million, "remove_us"),
                "µs",
                15,
                None,
                True,
            ),
            (f"{engine}: topics, 1M", found.us("topics", engine, million), "µs", 15, None, True),
            (f"{engine}: XPath, lxml over ours at 10K", faster, "×", 30, 150, False),
            (f"{engine}: XPath, 50K over 10K", wider, "×", 4.5, None, True),
            (f"{engine}: naive over index at 10K", over_naive, "×", 100, None, False),
        ]
    return [
        _figure(name, value, unit, bound, goal, at_most)
        for name, value, unit, bound, goal, at_most in wanted
        if value is not None
    ]


def _either(pure: bool, bound: float, goal: float) -> tuple[float | None, float | None]:
    return (bound, None) if pure else (None, goal)


def _figure(
    name: str, value: float, unit: str, bound: float | None, goal: float | None, at_most: bool
) -> Figure:
    def reached(limit: float) -> bool:
        return value <= limit if at_most else value >= limit

    def text(limit: float | None) -> str:
        return "" if limit is None else f"{'≤' if at_most else '≥'} {limit:g}"

    if bound is not None and not reached(bound):
        verdict = "missed"
    elif goal is not None:
        verdict = "goal reached" if reached(goal) else "short of the goal"
    else:
        verdict = "holds"
    return Figure(name, value, unit, text(bound), text(goal), verdict)


def markdown(measurements: Sequence[Measurement], command: str) -> str:
    """The page for `docs/benchmarks.md`."""
    lines = [
        "# Benchmarks",
        "",
        f"`{command}` on {os.cpu_count()} cores, {platform.machine()}, CPython {platform.python_version()}.",
        "Written by that command; times per event are medians of three runs, each measurement in a process of its own.",
        "What is measured, and how the workloads are made, stands at the head of `src/holdfast/bench/`.",
        "",
        "## Matching",
        "",
        _row(COLUMNS),
        _row(["---"] * len(COLUMNS)),
        *(_row(row) for row in rows(measurements)),
        "",
        "### What is promised",
        "",
        _row(("figure", "measured", "must be", "goal", "")),
        _row(["---"] * 5),
        *(
            _row((f.name, f"{f.value:,.1f} {f.unit}", f.bound, f.goal, f.verdict))
            for f in figures(measurements)
        ),
        "",
    ]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
