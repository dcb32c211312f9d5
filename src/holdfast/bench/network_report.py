"""The network benchmark as tables: for the terminal, for `docs/benchmarks.md`, and the figures that are promised."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.bench.figure import Figure, figure_rows, judged, machine, shown, table_lines
from holdfast.bench.network_latency import CHAIN, ECHO, ONE_HOP
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_reliable import (
    BEST_EFFORT,
    CHAIN_JOB,
    CONTROL_JOB,
    DACK,
    KILLED,
    RELIABLE,
    STALL_JOB,
    STALL_MS_MAX,
    STOPPED,
)
from holdfast.bench.network_slow import NOT_READING, READING
from holdfast.bench.network_throughput import BARE
from holdfast.bench.report import FIGURE_COLUMNS

__all__ = ["NETWORK_COLUMNS", "network_figures", "network_markdown", "network_rows"]

NETWORK_COLUMNS = ("job", "variant", "median", "unit", "runs", "")


def network_rows(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """A row per figure measured."""
    return [
        (o.job, o.variant, shown(o.value), o.unit, " ".join(shown(run) for run in o.runs), o.remark)
        for o in outcomes
    ]


class _Found:
    """The outcomes by job and variant."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._by_name = {(o.job, o.variant): o for o in outcomes}

    def broker(self, job: str) -> Outcome | None:
        """With the fastest engine that was measured."""
        return self._by_name.get((job, "compiled")) or self._by_name.get((job, "pure"))

    def value(self, job: str) -> float | None:
        found = self.broker(job)
        return None if found is None else found.value

    def variant(self, job: str, variant: str) -> float | None:
        found = self._by_name.get((job, variant))
        return None if found is None else found.value

    def over_bare(self, job: str) -> float | None:
        broker, bare = self.broker(job), self._by_name.get((job, BARE))
        return None if broker is None or bare is None else broker.over(bare)

    def ratio(self, job: str, over: str, under: str) -> float | None:
        a, b = self._by_name.get((job, over)), self._by_name.get((job, under))
        return None if a is None or b is None else a.over(b)

    def seconds(self, prefix: str) -> float | None:
        return next((o.value for (job, _), o in self._by_name.items() if job.startswith(prefix)), None)


def network_figures(outcomes: Sequence[Outcome]) -> list[Figure]:
    """The figures that are promised, as far as they were measured."""
    found = _Found(outcomes)
    small, large = (f"content, {size:,} subscriptions" for size in (10_000, 100_000))
    crowd = "1,000 clients, p99"
    wanted: list[tuple[str, float | None, str, float | None, float | None, bool]] = [
        ("fan-out", found.value("fan-out"), "deliveries/s", 1_000_000, None, False),
        ("fan-out over the bare loop", found.over_bare("fan-out"), "×", None, 0.8, False),
        ("one subscriber", found.value("one subscriber"), "events/s", 200_000, None, False),
        (small, found.value(small), "events/s", 40_000, None, False),
        (large, found.value(large), "events/s", 25_000, None, False),
        ("one hop over the bare echo, p50", found.ratio("latency, p50", ONE_HOP, ECHO), "×", 2, None, True),
        ("one hop over the bare echo, p99", found.ratio("latency, p99", ONE_HOP, ECHO), "×", 3, None, True),
        ("chain of 5 over one hop, p50", found.ratio("latency, p50", CHAIN, ONE_HOP), "×", 5, None, True),
        (
            "one of 1,000 not reading, p99 of the others",
            found.ratio(crowd, NOT_READING, READING),
            "×",
            2,
            None,
            True,
        ),
        (
            f"reliable over best-effort, {CHAIN_JOB}",
            found.ratio(CHAIN_JOB, RELIABLE, BEST_EFFORT),
            "×",
            0.5,
            None,
            False,
        ),
        (CONTROL_JOB, found.variant(CONTROL_JOB, DACK), "%", 10, None, True),
        (
            "reliable, stall when a broker is killed",
            found.variant(STALL_JOB, KILLED),
            "ms",
            STALL_MS_MAX,
            None,
            True,
        ),
        (
            "reliable, stall when a broker hangs",
            found.variant(STALL_JOB, STOPPED),
            "ms",
            STALL_MS_MAX,
            None,
            True,
        ),
        (
            "simulator, a minute of 20 brokers",
            found.seconds("simulator, 20 brokers, 60 "),
            "s",
            30,
            None,
            True,
        ),
    ]
    return [
        judged(name, value, unit, bound, goal, at_most)
        for name, value, unit, bound, goal, at_most in wanted
        if value is not None
    ]


def network_markdown(outcomes: Sequence[Outcome], command: str) -> str:
    """The part of `docs/benchmarks.md`."""
    lines = [
        f"`{command}` on {machine()}. Events of 418 bytes over loopback TCP. One process publishes",
        "and receives; it decodes every delivery and compares it with what matching says is due, so a run that loses,",
        "repeats or reorders one fails. Ratios are medians over repetitions in which both sides took turns. The bare",
        "loop and the bare echo move the same bytes under the same load and do nothing else; the receivers are Python,",
        "which bounds the bare loop too. For latency the load has one core and all servers the other: where the system",
        "places them it puts an echo and its client on one core, and the brokers on two; that stands beside it.",
        "",
        *table_lines(NETWORK_COLUMNS, network_rows(outcomes)),
        "",
        "### What is promised of the network",
        "",
        *table_lines(FIGURE_COLUMNS, figure_rows(network_figures(outcomes))),
    ]
    return "\n".join(lines)
