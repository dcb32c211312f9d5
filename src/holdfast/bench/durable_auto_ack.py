"""Consumers that commit every single event before they take the next, as JMS's automatic acknowledgement does (E1.5).

What is consumed is a row of its broker's table, and a row counts when its transaction is on disk. Whatever rows are
waiting go into one transaction: so the more consumers there are, the more of them share a sync, and the rate grows.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import ExitStack
from itertools import pairwise
from typing import Final

from holdfast.bench.durable_load import EVERYTHING, DurableLoad
from holdfast.bench.durable_process import start_chain
from holdfast.bench.durable_reception import FIRST
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_wire import SAVED, Publisher, Subscriber
from holdfast.bench.network_wire import PUBLISHER
from holdfast.bench.overlay_finding import Check, Finding
from holdfast.messages.durable import Acknowledge

__all__ = ["auto_acknowledge"]

CONSUMERS: Final = (1, 5, 25, 100, 200)
PAPER: Final = {25: 4_000, 200: 7_600}  #: commits a second in [BZA §5]
EVENTS: Final = 2_000  #: published beforehand: enough for the fastest


class Consumer(Subscriber):
    """Takes what has come one by one, each when the one before is saved."""

    def __init__(self, port: int, name: str, due: int) -> None:
        self.committed = 0
        self.is_committing = False  #: from when on it takes anything
        self._arrived: deque[tuple[str, int]] = deque()
        self._is_waiting = False
        super().__init__(port, name, due, 1)

    def on_ticks(self, pubend: str, ticks: list[int]) -> None:
        """Events to be consumed."""
        self._arrived += [(pubend, tick) for tick in ticks]
        self.take()

    def on_frame(self, kind: int, body: memoryview) -> int:
        """What was committed is saved: the next one."""
        if kind != SAVED:
            return super().on_frame(kind, body)
        self._is_waiting = False
        self.committed += 1
        self.take()
        return 0

    def take(self) -> None:
        """Consume and commit the next one, if there is one and nothing is on its way."""
        if self.is_committing and self._arrived and not self._is_waiting:
            pubend, tick = self._arrived.popleft()
            self._is_waiting = True
            self.send(Acknowledge(1, {pubend: tick}, self.committed + 1))


def auto_acknowledge(scale: DurableScale) -> Finding:
    """Commits a second, by consumers."""
    found: dict[int, list[float]] = {}
    for count in CONSUMERS:
        found[count] = [_commits_per_second(scale, count) for _ in range(scale.repetitions)]
    medians = {count: sorted(rates)[len(rates) // 2] for count, rates in found.items()}
    data = [(count, i, round(rate, 1)) for count, rates in found.items() for i, rate in enumerate(rates)]
    summary = [(count, rate, rate / count, f"{PAPER.get(count, '')}") for count, rate in medians.items()]
    rates = [medians[count] for count in CONSUMERS]
    return Finding(
        "durable-auto-acknowledge",
        "Committing every event (E1.5)",
        ("consumers", "run", "commits/s"),
        data,
        ("consumers", "commits/s", "commits/s each", "paper, commits/s"),
        summary,
        [
            Check(
                "the rate grows with the consumers, and never falls by a fifth: they share transactions",
                " ".join(f"{rate:,.0f}" for rate in rates),
                rates[-1] > 5 * rates[0] and all(b > 0.8 * a for a, b in pairwise(rates)),
            ),
            Check("25 consumers: 4,000 a second", f"{medians[25]:,.0f}", medians[25] >= PAPER[25]),
            Check("200 consumers: 7,600 a second", f"{medians[200]:,.0f}", medians[200] >= PAPER[200]),
        ],
        "Real processes: a publisher's broker, a subscribers' broker, its table in SQLite; each consumer commits every "
        "event and waits until that is on disk before it takes the next.",
    )


def _commits_per_second(scale: DurableScale, count: int) -> float:
    with ExitStack() as stack:
        folder = stack.enter_context(scale.data())
        phb, shb = start_chain(stack, folder, ("phb", "shb"))
        consumers = [Consumer(shb.port, f"consumer-{i}", FIRST) for i in range(count)]
        for consumer in consumers:
            consumer.subscribe(EVERYTHING)
        for consumer in consumers:
            consumer.wait_confirmed()
        load = stack.enter_context(DurableLoad(Publisher(phb.port, PUBLISHER), consumers, count))
        load.publish(EVENTS)
        for consumer in consumers:
            consumer.is_committing = True
            consumer.take()
        began = time.perf_counter()
        load.read_for(scale.seconds)
        took = time.perf_counter() - began
        return sum(consumer.committed for consumer in consumers) / took
