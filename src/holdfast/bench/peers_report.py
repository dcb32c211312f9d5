"""The benchmark of peers as tables: what was measured, what is on disk, and what Holdfast promises beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.bench.figure import Figure, figure_rows, judged, machine, table_lines
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_report import NETWORK_COLUMNS, network_rows
from holdfast.bench.peers import AWAITED, DISK, FAN_OUT, LATENCY, PUBLISHING, WRITTEN, Fact
from holdfast.bench.peers_bare import BARE, BARE_SYNCING
from holdfast.bench.peers_holdfast import Holdfast
from holdfast.bench.peers_holdfast_client import HoldfastClient
from holdfast.bench.report import FIGURE_COLUMNS

__all__ = ["FACT_COLUMNS", "fact_rows", "left_out", "peers_figures", "peers_markdown"]

FACT_COLUMNS = ("broker", "version", "at the acknowledgement, as configured", "synced", "copies", "seen")
NATS_UNSYNCED = "NATS JetStream, as it comes"
P50, P99 = f"{LATENCY}, p50", f"{LATENCY}, p99"


def fact_rows(facts: Sequence[Fact]) -> list[tuple[str, ...]]:
    """A row per broker."""
    return [
        (
            fact.peer,
            fact.version,
            fact.statement.said,
            "yes" if fact.really_syncs else "no",
            str(fact.statement.copies),
            fact.evidence.judged(fact.statement),
        )
        for fact in facts
    ]


def left_out(missing: Mapping[str, str]) -> list[str]:
    """Who was not measured, and why."""
    return [f"{name} is left out: {reason}." for name, reason in missing.items()]


class _Found:
    """The medians by job and broker, and who syncs."""

    def __init__(self, outcomes: Sequence[Outcome], facts: Sequence[Fact]) -> None:
        self._by_name = {(outcome.job, outcome.variant): outcome for outcome in outcomes}
        own = (Holdfast.name, HoldfastClient.name)
        self._others = {fact.peer: fact for fact in facts if fact.really_syncs and fact.peer not in own}

    def own(self, job: str) -> float | None:
        found = self._by_name.get((job, Holdfast.name))
        return None if found is None else found.value

    def over(self, job: str, other: str, whose: str = Holdfast.name) -> float | None:
        own, its = self._by_name.get((job, whose)), self._by_name.get((job, other))
        return None if own is None or its is None else own.over(its)

    def over_best(
        self, job: str, best: Callable[[Iterable[float]], float], whose: str = Holdfast.name
    ) -> float | None:
        """Against the best of those that sync, and for latency, that deliver only then."""
        peers = [
            name for name, fact in self._others.items() if job != P99 or not fact.statement.delivers_sooner
        ]
        values = {found.value: name for name in peers if (found := self._by_name.get((job, name)))}
        return self.over(job, values[best(values)], whose) if values else None

    def beyond_disk_ms(self) -> float | None:
        """How much longer than a sync a delivery takes, at the median."""
        own, disk = self._by_name.get((P50, Holdfast.name)), self._by_name.get((P50, DISK))
        return None if own is None or disk is None else (own.value - disk.value) / 1_000


def peers_figures(outcomes: Sequence[Outcome], facts: Sequence[Fact]) -> list[Figure]:
    """What Holdfast promises, as far as it was measured."""
    found = _Found(outcomes, facts)
    wanted: list[tuple[str, float | None, str, float | None, float | None, bool]] = [
        (PUBLISHING, found.own(PUBLISHING), "events/s", 100_000, None, False),
        (
            f"{PUBLISHING} over the best peer that syncs",
            found.over_best(PUBLISHING, max),
            "×",
            2,
            None,
            False,
        ),
        (f"{PUBLISHING} over {NATS_UNSYNCED}", found.over(PUBLISHING, NATS_UNSYNCED), "×", None, 1, False),
        (
            f"{AWAITED}: over the best peer that syncs",
            found.over_best(AWAITED, max),
            "×",
            None,
            2,
            False,
        ),
        (f"{P50} beyond a sync", found.beyond_disk_ms(), "ms", 1, None, True),
        (f"{P99} over the lowest of a peer that syncs", found.over_best(P99, min), "×", 1, None, True),
        (f"{P99} over {BARE}", found.over(P99, BARE), "×", None, None, True),
        *(
            (f"{P99} of {bare} over the lowest of a peer that syncs", value, "×", None, None, True)
            for bare in (BARE, BARE_SYNCING)
            if (value := found.over_best(P99, min, bare)) is not None and found.own(P99) is not None
        ),
        (FAN_OUT, found.own(FAN_OUT), "deliveries/s", 500_000, 1_000_000, False),
        (WRITTEN, found.own(WRITTEN), "bytes/event", 900, None, True),
    ]
    return [
        judged(name, value, unit, bound, goal, at_most)
        for name, value, unit, bound, goal, at_most in wanted
        if value is not None
    ]


def peers_markdown(
    outcomes: Sequence[Outcome], facts: Sequence[Fact], missing: Mapping[str, str], command: str
) -> str:
    """The part of `docs/benchmarks.md`."""
    lines = [
        f"`{command}` on {machine()}. Events of 418 bytes over loopback TCP; servers and load share the machine and",
        "took turns, medians over repetitions. Publishing: one publisher, 512 events unacknowledged; for nobody, where",
        "events are kept all the same, or for one durable subscriber who is away (RabbitMQ and Mosquitto keep nothing",
        "for nobody, so for them both are for one who is away). Latency: 800 events a second from the publisher's",
        "socket to a durable subscriber's. Fan-out: a hundred durable subscribers who acknowledge, 25 of whom get each",
        "event. A run that loses, repeats or reorders an event fails. All are spoken to with raw sockets, Holdfast by",
        "its own client too. Bytes written are `write_bytes` of /proc/PID/io of the servers. One server or, of",
        "Holdfast, one that logs and one for the subscribers of the fan-out. The bare loops read, append and sync, one",
        "in a thread and one by itself, hand on, and do nothing else: less than the latter no broker in Python takes.",
        "",
        *table_lines(NETWORK_COLUMNS, network_rows(outcomes)),
        "",
        *(f"{line}\n" for line in left_out(missing)),
        "### What is on disk when they acknowledge",
        "",
        "Said by configuration and documentation; seen in system calls while events were acknowledged one by one.",
        "",
        *table_lines(FACT_COLUMNS, fact_rows(facts)),
    ]
    if figures := peers_figures(outcomes, facts):
        lines += [
            "",
            "### What is promised beside peers",
            "",
            *table_lines(FIGURE_COLUMNS, figure_rows(figures)),
        ]
    return "\n".join(lines)
