"""`holdfast cost FILTERS HISTORY...`: what subscriptions cost, told from what was published; see `docs/cost.md`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from holdfast.cli.arguments import seconds
from holdfast.cli.console import OutputConsole, foreign
from holdfast.cli.failure import Failure, Trouble
from holdfast.cli.filter import indented
from holdfast.cli.match import read_filters
from holdfast.cli.progress import progress
from holdfast.cli.words import counted, duration, plain, sized
from holdfast.errors import CallersFault, EnvironmentsFault, FilterError
from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.text import filter_text
from holdfast.pipeline.cost.costs import Costs, FilterCost, costs_of
from holdfast.pipeline.cost.coverings import FILTERS_MAX, coverings
from holdfast.pipeline.cost.engine import choose, tally_history
from holdfast.pipeline.cost.history import stretches_of

__all__ = ["add_arguments"]

#: So many filters are shown to people, those that match most first.
SHOWN_MAX: Final = 50


def add_arguments(commands: Any) -> None:
    """`holdfast cost FILTERS HISTORY... [--stream NAME] [--new FILTER] [--engine local|spark] [--output json]`."""
    command = commands.add_parser(
        "cost",
        help="what subscriptions cost, and what a new one would, told from history",
        description="Matches a file of filters against what was published: how often each matched, what covers what,"
        " and what one more subscription would add at the broker that holds them.",
    )
    command.add_argument(
        "filters", type=Path, metavar="FILTERS", help="one filter per line; blank and -- lines skipped"
    )
    command.add_argument(
        "history",
        type=Path,
        nargs="+",
        metavar="HISTORY",
        help="events as JSON Lines, the data folder of a broker, or a network file",
    )
    command.add_argument(
        "--stream", metavar="NAME", help="which stream of the broker or the network is meant"
    )
    command.add_argument(
        "--new", action="append", default=[], metavar="FILTER", help="a subscription that is not there yet"
    )
    command.add_argument(
        "--seconds", type=seconds, metavar="S", help="how long the history took, where events have no time"
    )
    command.add_argument(
        "--local-segments", action="store_true", help="read the brokers' folders, and ask no log reader"
    )
    command.add_argument(
        "--engine", choices=("local", "spark"), help="who counts; by the size of the history unless given"
    )
    command.add_argument(
        "--master", metavar="URL", help="the Spark to use (default: one inside this process)"
    )
    command.add_argument("--output", choices=["text", "json"], default="text")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Count, and say what it comes to."""
    held = read_filters(options.filters)
    offered = [_offered(text) for text in options.new]
    if not held and not offered:
        raise Failure(f"{options.filters}: no filters; expected one per line, or --new")
    try:
        engine = options.engine or choose(options.history)
        costs = _counted(options, held, offered, engine)
    except CallersFault as error:
        raise Failure(plain(str(error))) from error
    except EnvironmentsFault as error:
        raise Trouble(str(error)) from error
    if options.output == "json":
        sys.stdout.write(json.dumps({"engine": engine, **asdict(costs)}, indent=1) + "\n")
    else:
        _show(costs, engine)
    return 0


def _offered(text: str) -> Filter:
    try:
        return parse_filter(text)
    except FilterError as error:
        raise Failure(
            f"--new, column {error.column}: {error.summary}\n\n{indented(error.pointed())}"
        ) from error


def _counted(
    options: argparse.Namespace, held: list[tuple[int, Filter]], offered: list[Filter], engine: Any
) -> Costs:
    filters = [*(filter for _, filter in held), *offered]
    stretches = stretches_of(options.history, options.stream, local_segments=options.local_segments)
    with progress(beside_output=True) as shown:
        task = shown.add_task("history", total=None if engine == "spark" else len(stretches))
        tally = tally_history(
            stretches,
            [filter_text(each) for each in filters],
            len(held),
            engine,
            master=options.master,
            watch=lambda done: shown.update(task, completed=done),
        )
        shown.reset(task, description="covering", total=len(filters))
        covering = coverings(
            filters, tally.counts, len(held), lambda done: shown.update(task, completed=done)
        )
    return costs_of(held, offered, tally, covering, options.seconds)


# For people


def _show(costs: Costs, engine: str) -> None:
    console = OutputConsole()
    over = "" if costs.seconds is None else f" in {duration(costs.seconds)}"
    console.print(
        f"{counted(costs.events, 'event')}, {sized(costs.event_bytes)}{over} ({engine} engine); "
        f"{counted(costs.flowing, 'comes', 'come')} to the broker for what it holds, {sized(costs.flowing_bytes)}"
    )
    if costs.gaps:
        missing = counted(costs.gaps, "gap")
        console.print(f"the history has {missing}: what was there is not counted", style="yellow")
    if costs.held:
        console.print(_table(costs))
        if len(costs.held) > SHOWN_MAX:
            console.print(f"… and {len(costs.held) - SHOWN_MAX:,} more; --output json has all")
    if any(each.covered_by is None for each in (*costs.held, *costs.offered)):
        console.print(f"what covers what is not worked out for more than {FILTERS_MAX:,} filters")
    for each in costs.offered:
        _show_offered(console, each)


def _table(costs: Costs) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("line", "matched", "share", "events/s", "bytes/s", "alone"):
        table.add_column(name, justify="right")
    table.add_column("covered by")
    table.add_column("filter", overflow="fold")
    order = {each.line: each for each in costs.held}
    for each in sorted(costs.held, key=lambda each: (-each.matches, each.line))[:SHOWN_MAX]:
        table.add_row(
            str(each.line),
            f"{each.matches:,}",
            f"{each.share:.1%}",
            _rate(each.events_per_second),
            _rate(each.bytes_per_second),
            f"{each.added:,}",
            _narrowest(each, order),
            foreign(each.filter),
        )
    return table


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _narrowest(each: FilterCost, held: dict[int | None, FilterCost]) -> str:
    """The filter that covers it and matches least, and how many others do."""
    if not each.covered_by:
        return ""
    least = min(each.covered_by, key=lambda line: (held[line].matches, line))
    others = len(each.covered_by) - 1
    return f"line {least}" + (f" and {others} more" if others else "")


def _show_offered(console: OutputConsole, each: FilterCost) -> None:
    """One more subscription, in words."""
    already, already_bytes = each.matches - each.added, each.match_bytes - each.added_bytes
    console.print()
    console.print(foreign(f"new: {each.filter}"), style="bold")
    console.print(
        f"  matched    {_flow(each.matches, each.match_bytes, each.events_per_second, each.bytes_per_second)}"
    )
    console.print(f"  is there   {already:,} of these come to the broker already ({sized(already_bytes)})")
    console.print(
        "  adds       "
        + _flow(each.added, each.added_bytes, each.added_events_per_second, each.added_bytes_per_second)
    )
    if each.covered_by:
        lines = ", ".join(f"line {line}" for line in each.covered_by[:8])
        console.print(f"  covered    by {lines}: it can never add anything between brokers")
    console.print(f"  work       {each.work:,} of about one comparison each, where it is evaluated by itself")


def _flow(events: int, size: int, events_rate: float | None, bytes_rate: float | None) -> str:
    rates = "" if events_rate is None else f": {_rate(events_rate)} events/s, {_rate(bytes_rate)} bytes/s"
    return f"{counted(events, 'event')}, {sized(size)}{rates}"
