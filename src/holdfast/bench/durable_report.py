"""The benchmark of durable streams as tables, and the figures that are promised of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.bench.durable_catch_up import ASKED_JOB, CATCH_UP_JOB, CURRENT_JOB, ONE, OUTAGE
from holdfast.bench.durable_fan_out import FAN_OUT_JOB, NETWORK, SUSTAINED, WRITTEN_JOB
from holdfast.bench.durable_filtering import (
    BARE_MANY,
    BARE_ONE,
    BYTES_JOB,
    CPU_JOB,
    FILTERING,
    GATHERED,
    MANY_LOGS,
    ONE_LOG,
)
from holdfast.bench.durable_latency import CHAIN, CHAIN_JOB, LATENCY_JOB, OFFERED_JOB, ONE_BROKER, PAIR, SYNC
from holdfast.bench.durable_publishing import ACKNOWLEDGED, BARE_FILE, RAW
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.figure import Figure, figure_rows, judged, machine, table_lines
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_report import NETWORK_COLUMNS, network_rows
from holdfast.bench.report import FIGURE_COLUMNS

__all__ = ["durable_figures", "durable_markdown"]

#: What NATS does without a sync in `measured.md`.
UNSYNCED_PEER = 161_326

Wanted = tuple[str, float | None, str, float | None, float | None, bool]


class _Found:
    """The outcomes by job and variant."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._by_name = {(o.job, o.variant): o for o in outcomes}

    def value(self, job: str, variant: str) -> float | None:
        found = self._by_name.get((job, variant))
        return None if found is None else found.value

    def ratio(self, job: str, over: str, under: str) -> float | None:
        a, b = self._by_name.get((job, over)), self._by_name.get((job, under))
        return None if a is None or b is None else a.over(b)

    def beyond_ms(self, job: str, variant: str) -> float | None:
        """How much longer than a sync, by medians, in ms."""
        found, sync = self.value(job, variant), self.value(job, SYNC)
        return None if found is None or sync is None else (found - sync) / 1e3

    def ms(self, job: str, variant: str) -> float | None:
        found = self.value(job, variant)
        return None if found is None else found / 1e3


def durable_figures(outcomes: Sequence[Outcome], scale: DurableScale) -> list[Figure]:
    """The figures that are promised, as far as they were measured."""
    wanted = _wanted(_Found(outcomes), scale)
    return [
        judged(name, value, unit, bound, goal, at_most)
        for name, value, unit, bound, goal, at_most in wanted
        if value is not None
    ]


def _wanted(found: _Found, scale: DurableScale) -> Iterator[Wanted]:
    yield ACKNOWLEDGED, found.value(ACKNOWLEDGED, RAW), "events/s", 100_000, UNSYNCED_PEER, False
    share = found.ratio(ACKNOWLEDGED, RAW, BARE_FILE)
    yield "publishing over the bare file", share, "×", None, None, False
    beyond = found.beyond_ms(f"{LATENCY_JOB}, p50", ONE_BROKER)
    yield f"{LATENCY_JOB}, p50 beyond a sync", beyond, "ms", 1, None, True
    sustained = found.value(FAN_OUT_JOB, SUSTAINED)
    yield (
        f"{FAN_OUT_JOB}, {scale.sustained_seconds:g} s",
        sustained,
        "deliveries/s",
        500_000,
        1_000_000,
        False,
    )
    yield "written in the whole network", found.value(WRITTEN_JOB, NETWORK), "bytes/event", 900, None, True
    yield f"{OFFERED_JOB}, p99", found.ms(f"{OFFERED_JOB}, p99", PAIR), "ms", 20, None, True
    beyond = found.beyond_ms(f"{CHAIN_JOB}, p50", CHAIN)
    yield f"{CHAIN_JOB}, p50 beyond a sync", beyond, "ms", 2, None, True
    yield "filtering log: data of event logs", found.ratio(BYTES_JOB, ONE_LOG, FILTERING), "×", 25, 100, False
    for way, bound in (
        (ONE_LOG, 2.5),
        (BARE_ONE, 2.5),
        (MANY_LOGS, 20.0),
        (BARE_MANY, 20.0),
        (GATHERED, 20.0),
    ):
        less = found.ratio(CPU_JOB, way, FILTERING)
        yield f"filtering log: processor time of {way}", less, "×", bound, None, False
    yield f"{CATCH_UP_JOB}, {ONE}", found.value(CATCH_UP_JOB, ONE), "events/s", 200_000, None, False
    many = f"{scale.together} together"
    yield f"{CATCH_UP_JOB}, {many}", found.value(CATCH_UP_JOB, many), "events/s", 400_000, None, False
    bound = 2 * scale.outage_seconds
    yield (
        f"{CURRENT_JOB} of {scale.outage_seconds:g} s",
        found.value(CURRENT_JOB, OUTAGE),
        "s",
        bound,
        None,
        True,
    )
    yield ASKED_JOB, found.value(ASKED_JOB, OUTAGE), "×", 1.2, None, True


def durable_markdown(outcomes: Sequence[Outcome], scale: DurableScale, command: str) -> str:
    """A part of `docs/benchmarks.md`."""
    head = (
        f"`{command}` on {machine()}. Medians; all runs beside them. Events are of 418 bytes, and an event is accepted "
        "when it is on disk."
    )
    lines = [
        head,
        "",
        *table_lines(FIGURE_COLUMNS, figure_rows(durable_figures(outcomes, scale))),
        "",
        *table_lines(NETWORK_COLUMNS, network_rows(outcomes)),
    ]
    return "\n".join(lines)
