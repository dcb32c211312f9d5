"""`holdfast demo`: filters matching a stream of events, live.

There are no brokers yet; this shows the part that exists. Ten filters are shown, twenty thousand more sit in the same
index, and the figures at the foot are measured while you watch.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.cli import sample
from holdfast.events.event import Event
from holdfast.filters.parse import parse_filter
from holdfast.matching.engine import new_index

__all__ = ["add_arguments"]

CROWD = 20_000
BATCH = 64
FRAMES_PER_SECOND = 8


def add_arguments(commands: Any) -> None:
    """`holdfast demo [--seconds S] [--seed N]`."""
    command = commands.add_parser("demo", help="a live view of filters matching a stream of sample events")
    command.add_argument("--seconds", type=float, default=10.0, help="how long to run")
    command.add_argument("--seed", type=int, default=1, help="of the sample events")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the demo and leave its last picture on the screen."""
    console = Console()
    demo = Demo(random.Random(options.seed))
    console.print(
        f"Holdfast: {len(sample.FILTERS)} filters of ours, {CROWD:,} of others, one index. Seed {options.seed}."
    )
    demo.subscribe()
    end = time.monotonic() + options.seconds
    if not sys.stdout.isatty():
        while time.monotonic() < end:
            demo.turn()
        console.print(demo.picture())
        return 0
    with Live(demo.picture(), console=console, auto_refresh=False) as live:
        shown = 0.0
        while (now := time.monotonic()) < end:
            demo.turn()
            if now - shown > 1 / FRAMES_PER_SECOND:
                live.update(demo.picture(), refresh=True)
                shown = now
        live.update(demo.picture(), refresh=True)
    return 0


class Demo:
    """The index, the traffic, and what has been counted."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.index = new_index()
        self.events = 0
        self.matches = 0
        self.spent_ns = 0
        self.counts = [0] * len(sample.FILTERS)
        self.latest: list[Event | None] = [None] * len(sample.FILTERS)

    def subscribe(self) -> None:
        """Ours first, so that their ids are their places in the table."""
        for text in sample.FILTERS:
            self.index.add(parse_filter(text))
        for _ in range(CROWD):
            self.index.add(parse_filter(sample.crowd(self.rng)))

    def turn(self) -> None:
        """One batch of events."""
        events = [sample.event(self.rng) for _ in range(BATCH)]
        start = time.perf_counter_ns()
        matched = self.index.match(events)
        self.spent_ns += time.perf_counter_ns() - start
        self.events += len(events)
        for event, subscriptions in zip(events, matched, strict=True):
            self.matches += len(subscriptions)
            for subscription in subscriptions:
                if subscription >= len(self.counts):
                    break  # ascending: the rest are the crowd's
                self.counts[subscription] += 1
                self.latest[subscription] = event

    def picture(self) -> Group:
        """The table and the figures."""
        table = Table(expand=True)
        table.add_column("filter", ratio=3)
        table.add_column("matches", justify="right", min_width=7)
        table.add_column("latest", ratio=2, no_wrap=True, overflow="ellipsis")
        for text, count, event in zip(sample.FILTERS, self.counts, self.latest, strict=True):
            table.add_row(Text(text), f"{count:,}", Text("" if event is None else brief(event)))
        each = self.spent_ns / max(self.events, 1) / 1_000
        foot = (
            f"{len(self.index):,} subscriptions · {self.events:,} events · {self.matches:,} matches · "
            f"{each:.1f} µs per event to find them"
        )
        return Group(table, Text(foot))


def brief(event: Event) -> str:
    """An event in one line."""
    attributes = " ".join(f"{name}={value!r}" for name, value in event.attributes.items())
    return f"{event.topic}  {attributes}  {event.payload.decode(errors='replace')}".rstrip()
