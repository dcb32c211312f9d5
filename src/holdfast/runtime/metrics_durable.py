"""Durable streams for Prometheus: how large the logs are, how far behind the disk, who holds them back, what was lost.

Alarms are for ``holdfast_log_refusing`` (events are not accepted: the disk is full, or has failed), for a
``holdfast_log_pinned_seconds`` that only grows, and for ``holdfast_gaps_total``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

__all__ = ["durable_metrics"]

#: Ticks are microseconds.
SECOND: Final = 1_000_000

Figure = Callable[[Mapping[str, Any], int], float]

#: By name what each log's figure means, and how it is read from the log's status and the clock.
_OF_LOGS: Final[dict[str, tuple[str, Figure]]] = {
    "log_bytes": ("Size of a log", lambda log, _: log["bytes"]),
    "log_segments": ("Its files, as last counted", lambda log, _: log["segments"]),
    "log_copies": ("Copies of it in the network", lambda log, _: log["copies"]),
    "log_refusing": (
        "1: events are refused, the disk is full or has failed",
        lambda log, _: log["state"] != "ok",
    ),
    "log_unstable_appends": ("Appends that are not on disk yet", lambda log, _: log["unstable"]),
    "log_unstable_seconds": (
        "How long the oldest of them has waited",
        lambda log, now: _age(log["unstable_since"], now),
    ),
    "log_pinned_seconds": (
        "Age of the oldest event that somebody has not acknowledged; 0: all have everything",
        lambda log, now: _age(log["released"], now) if log["released"] < log["last"] else 0.0,
    ),
    "log_undelivered_seconds": (
        "Age of the oldest event that some broker has not delivered; 0: all have everything",
        lambda log, now: _age(log["delivered"], now) if log["delivered"] < log["last"] else 0.0,
    ),
    "log_brokers_away": (
        "Brokers it waits for that cannot be reached",
        lambda log, _: sum(not each["reached"] for each in log["waits_for"]),
    ),
}


def _age(tick: int | None, now: int) -> float:
    return 0.0 if not tick else max(0, now - tick) / SECOND


def durable_metrics(broker: str, status: Mapping[str, Any]) -> Iterator[Metric]:
    """Every figure, from what ``broker.durable.inspection`` says."""
    now = status["clock"]
    for name, (text, figure) in _OF_LOGS.items():
        family = GaugeMetricFamily(f"holdfast_{name}", text, labels=["broker", "stream", "pubend"])
        for log in status["pubends"]:
            family.add_metric([broker, log["stream"], log["pubend"]], figure(log, now))
        yield family
    subscriptions = status["subscriptions"]
    counted = GaugeMetricFamily(
        "holdfast_durable_subscriptions",
        "Durable subscriptions kept here; ending: that are over, and a broker out of reach has not heard of it",
        labels=["broker", "state"],
    )
    for state in ("here", "away", "catching_up", "ending"):
        counted.add_metric([broker, state.replace("_", " ")], subscriptions[state])
    yield counted
    longest = GaugeMetricFamily(
        "holdfast_subscription_away_seconds", "How long the longest has been away", labels=["broker"]
    )
    longest.add_metric([broker], _age(subscriptions["away_longest_since"], now))
    yield longest
    gaps = CounterMetricFamily(
        "holdfast_gaps", "Times a subscriber was told that something is gone", labels=["broker", "reason"]
    )
    for reason, count in status["gaps"].items():
        gaps.add_metric([broker, reason], count)
    yield gaps
    yield from _logging_metrics(broker, status["logging"])
    yield from _staged_metrics(broker, status["staged"], now)


def _logging_metrics(broker: str, logging: Mapping[str, Any]) -> Iterator[Metric]:
    """What is on its way to the disk, and who waits for that."""
    figures = {
        "logging_bytes": ("Events that are not on disk yet, in bytes", logging["bytes"]),
        "publishers_held_up": ("Clients that are not read from until they are", logging["held_up"]),
    }
    yield from _gauges(broker, figures)


def _staged_metrics(broker: str, staged: Mapping[str, Any], now: int) -> Iterator[Metric]:
    """What is staged for epochs and was not committed, and what became of the rest."""
    figures = {
        "staged_attempts": ("Attempts of tasks that are staged and not committed", staged["attempts"]),
        "staged_bytes": ("Their size", staged["bytes"]),
        "staged_seconds": ("How long the oldest of them has waited", _age(staged["oldest"], now)),
    }
    yield from _gauges(broker, figures)
    counts = {
        "staged_swept": ("Attempts that nobody came for", staged["swept"]),
        "epochs": ("Epochs that were committed", staged["committed"]),
    }
    for name, (text, count) in counts.items():
        counter = CounterMetricFamily(f"holdfast_{name}", text, labels=["broker"])
        counter.add_metric([broker], count)
        yield counter


def _gauges(broker: str, figures: Mapping[str, tuple[str, float]]) -> Iterator[Metric]:
    for name, (text, figure) in figures.items():
        family = GaugeMetricFamily(f"holdfast_{name}", text, labels=["broker"])
        family.add_metric([broker], figure)
        yield family
