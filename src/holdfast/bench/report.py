"""The matching benchmark as tables: for the terminal, for `docs/benchmarks.md`, and the figures that are promised."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.bench.figure import Figure, figure_rows, judged, machine, table_lines
from holdfast.bench.matching import Measurement

__all__ = ["COLUMNS", "FIGURE_COLUMNS", "figures", "markdown", "rows"]

COLUMNS = ("kind", "engine", "subscriptions", "matches", "µs/event", "add µs", "remove µs", "bytes each")
FIGURE_COLUMNS = ("figure", "measured", "must be", "goal", "")


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
        judged(name, value, unit, bound, goal, at_most)
        for name, value, unit, bound, goal, at_most in wanted
        if value is not None
    ]


def _either(pure: bool, bound: float, goal: float) -> tuple[float | None, float | None]:
    return (bound, None) if pure else (None, goal)


def markdown(measurements: Sequence[Measurement], command: str) -> str:
    """The part of `docs/benchmarks.md`."""
    lines = [
        f"`{command}` on {machine()}. Times per event are medians of three runs, each measurement in a",
        "process of its own.",
        "",
        *table_lines(COLUMNS, rows(measurements)),
        "",
        "### What is promised of matching",
        "",
        *table_lines(FIGURE_COLUMNS, figure_rows(figures(measurements))),
    ]
    return "\n".join(lines)
