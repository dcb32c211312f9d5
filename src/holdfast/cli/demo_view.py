"""The demo on a screen of 80 columns and 24 lines, or as plain lines, and what it comes to in the end."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.cli.demo_figures import BrokerFigures, Figures, SubscriberFigures
from holdfast.cli.demo_plan import BROKERS, DELTA, PUBLISHERS, SUBSCRIBERS, Subscriber
from holdfast.cli.latencies import latency_text
from holdfast.cli.status import client_count

__all__ = ["picture", "plain_line", "summary", "tree_labels"]


def picture(figures: Figures, elapsed: float) -> RenderableType:
    """Everything at one glance."""
    sizes = (
        f"{len(BROKERS)} brokers, delta {DELTA}, {len(PUBLISHERS)} publishers, {len(SUBSCRIBERS)} subscribers"
    )
    title = Text.assemble(("Holdfast", "bold"), f"  {sizes}  ·  {elapsed:.0f} s")
    publishers = " · ".join(f"{one.name} at {one.broker} {one.rate}/s" for one in PUBLISHERS)
    return Group(
        title,
        Text(publishers, style="dim", overflow="ellipsis", no_wrap=True),
        "",
        _brokers(figures),
        "",
        _subscribers(figures),
        _foot(figures),
    )


def _brokers(figures: Figures) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, expand=True, padding=0)
    table.add_column("broker", ratio=1, no_wrap=True)
    for heading in ("clients", "subscriptions", "events in/s", "events out/s"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=14)
    for name, label in tree_labels(BROKERS).items():
        of = figures.brokers.get(name, BrokerFigures())
        if of.page is None:
            table.add_row(label, Text(_absence(figures, name), style="bold red"))
            continue
        rates = of.rates
        table.add_row(
            label,
            f"{client_count(of.page):,}",
            f"{of.page['subscriptions']['installed']:,}",
            *([] if rates is None else [f"{rates.arriving:,.0f}", f"{rates.leaving:,.0f}"]),
        )
    return table


def _absence(figures: Figures, broker: str) -> str:
    """Why a broker shows no page."""
    if broker in figures.gone:
        return "killed with -9"
    return "starts again" if broker in figures.killed else "does not answer"


def _subscribers(figures: Figures) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, expand=True, padding=0)
    table.add_column("subscriber", no_wrap=True)
    table.add_column("filter", ratio=1, no_wrap=True, overflow="ellipsis")
    for heading, width in (("events", 6), ("/s", 5), ("p50", 7), ("p99", 7)):
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for one in SUBSCRIBERS:
        table.add_row(*_subscriber(one, figures.subscribers[one.name]))
    return table


def _subscriber(one: Subscriber, of: SubscriberFigures) -> list[Text]:
    cells = [
        f"{one.name} at {one.broker}",
        one.filter,
        f"{of.delivered:,}",
        f"{of.rate:,.0f}",
        latency_text(of.latest.percentile(0.5)),
        latency_text(of.latest.percentile(0.99)),
    ]
    return [Text(cell) for cell in cells]


def _foot(figures: Figures) -> Text:
    wrong = figures.total("duplicated") + figures.total("disordered") + figures.total("gaps")
    verdict = Text(f"repeated, misordered or missing: {wrong}", style="bold red" if wrong else "green")
    return Text.assemble(f"{_progress(figures)} · ", verdict)


def _progress(figures: Figures) -> str:
    published, delivered, owed = figures.progress
    return f"published {published:,} · delivered {delivered:,} of {owed:,}"


def plain_line(figures: Figures, elapsed: float) -> str:
    """The same where there is no terminal to draw on, one line at a time."""
    latencies = figures.latencies()
    p50, p99 = (latency_text(latencies.percentile(share)) for share in (0.5, 0.99))
    return f"{elapsed:5.1f} s · {_progress(figures)} · latency p50 {p50}, p99 {p99}"


def summary(figures: Figures) -> Table:
    """What it comes to."""
    latencies = figures.latencies()
    p50, p99, longest = (latency_text(latencies.percentile(share)) for share in (0.5, 0.99, 1.0))
    rows = {
        "killed": ", ".join(f"{name} after {at:.1f} s" for name, at in figures.killed.items()) or "nobody",
        "published": f"{sum(figures.published.values()):,} events",
        "expected": f"{figures.total('expected'):,} deliveries to {len(SUBSCRIBERS)} subscribers",
        "delivered": f"{figures.total('delivered'):,}",
        "lost": f"{figures.lost:,}",
        "duplicated": f"{figures.total('duplicated'):,}",
        "out of order": f"{figures.total('disordered'):,}",
        "latency": f"p50 {p50}, p99 {p99}, longest {longest}",
    }
    if figures.unexpected or figures.total("gaps"):
        rows["not owed"] = f"{figures.unexpected:,}"
        rows["gaps"] = f"{figures.total('gaps'):,}"
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), Text(value))
    return table


def tree_labels(parents: dict[str, str | None]) -> dict[str, str]:
    """Every name with the branches that lead to it drawn before it, below its parent."""
    labels: dict[str, str] = {}

    def draw(name: str, before: str, branch: str) -> None:
        labels[name] = before + branch + name
        children = [child for child, parent in parents.items() if parent == name]
        below = before + {"": "", "├ ": "│ ", "└ ": "  "}[branch]
        for child in children:
            draw(child, below, "└ " if child == children[-1] else "├ ")

    for root in (name for name, parent in parents.items() if parent is None):
        draw(root, "", "")
    return labels
