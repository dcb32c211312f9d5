"""What the demo knows of its network while it runs: the reports of its clients and the pages of its brokers."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from holdfast.cli.demo_plan import PUBLISHERS, SUBSCRIBERS
from holdfast.cli.latencies import Latencies
from holdfast.cli.status import Answer, Rates, rates_between

__all__ = ["BrokerFigures", "Figures", "Progress", "SubscriberFigures"]

#: Lines of what went wrong that are kept, to be shown if the demo fails.
WORDS_MAX: Final = 20
#: How many reports one process of clients may be ahead of the other.
AHEAD_MAX: Final = 8


@dataclass(slots=True)
class SubscriberFigures:
    """One subscriber: what it is owed, what it got, how fast and how late."""

    expected: int = 0
    delivered: int = 0
    duplicated: int = 0
    disordered: int = 0
    gaps: int = 0
    rate: float = 0.0
    latest: Latencies = field(default_factory=Latencies)  #: of the last report that had any
    latencies: Latencies = field(default_factory=Latencies)
    reported_at: float | None = None

    def on_report(self, report: Mapping[str, Any], now: float, *, is_steady: bool) -> None:
        """Take over a subscriber's report; the rate too, while events are being published."""
        arrived = report["delivered"] - self.delivered
        if is_steady and self.reported_at is not None and now > self.reported_at:
            self.rate = arrived / (now - self.reported_at)
        self.reported_at = now
        for name in ("delivered", "duplicated", "disordered", "gaps"):
            setattr(self, name, report[name])
        if arrived:
            self.latest = Latencies(report["latencies"])
            self.latencies.merge(self.latest)


@dataclass(slots=True)
class BrokerFigures:
    """One broker: the last page it showed, and its rates since the one before; None until then."""

    page: Mapping[str, Any] | None = None
    rates: Rates | None = None


class Progress(NamedTuple):
    """How far everything was at one instant."""

    published: int = 0
    delivered: int = 0
    owed: int = 0


class Figures:
    """Everything, by the names of brokers, publishers and subscribers."""

    def __init__(self) -> None:
        self.brokers: dict[str, BrokerFigures] = {}
        self.published = {one.name: 0 for one in PUBLISHERS}
        self.subscribers = {one.name: SubscriberFigures() for one in SUBSCRIBERS}
        self.is_subscribed = False
        self.finished: set[str] = set()  #: processes of clients that have made their last report
        self.killed: dict[str, float] = {}  #: brokers, and when, in seconds
        self.gone: set[str] = set()  #: of these, who has not been started again
        self.words: deque[str] = deque(maxlen=WORDS_MAX)  #: what children said beside their reports
        self._pages_at = 0.0
        self._progress = Progress()
        self._halves: dict[int, dict[str, Any]] = {}  #: reports that the other process has not made yet

    def on_line(self, name: str, line: str, now: float) -> None:
        """A child said something: a report, or words."""
        report = _report(line)
        if report is None:
            self.words.append(f"{name}: {line}")
            return
        self.is_subscribed |= "subscribed" in report
        self.published.update(report.get("published", {}))
        for subscriber, count in report.get("expected", {}).items():
            self.subscribers[subscriber].expected = count
        for subscriber, figures in report.get("subscribers", {}).items():
            self.subscribers[subscriber].on_report(figures, now, is_steady=not self.finished)
        if "tick" in report:
            self._on_half(report["tick"], report)
        if report.get("final"):
            self.finished.add(name)

    def _on_half(self, tick: int, report: dict[str, Any]) -> None:
        """Publishers and subscribers count on their own; what they counted at one instant can be compared."""
        half = self._halves.pop(tick, None)
        if half is None:
            self._halves = {each: kept for each, kept in self._halves.items() if each > tick - AHEAD_MAX}
            self._halves[tick] = report
            return
        both = {**half, **report}
        delivered = {name: figures["delivered"] for name, figures in both["subscribers"].items()}
        self._progress = _progress(both["published"], both["expected"], delivered)

    @property
    def progress(self) -> Progress:
        """While it runs, of the last instant of which both have reported; in the end, all of it."""
        if "publishers" not in self.finished:
            return self._progress
        expected = {name: one.expected for name, one in self.subscribers.items()}
        return _progress(
            self.published, expected, {name: one.delivered for name, one in self.subscribers.items()}
        )

    def on_killed(self, broker: str, elapsed: float) -> None:
        """A broker was killed."""
        self.killed[broker] = elapsed
        self.gone.add(broker)

    def on_started_again(self, broker: str) -> None:
        """A broker that was killed has a new life."""
        self.gone.discard(broker)

    def on_pages(self, answers: list[Answer], now: float) -> None:
        """The brokers were asked."""
        elapsed, self._pages_at = now - self._pages_at, now
        for answer in answers:
            before = self.brokers.get(answer.broker.name, BrokerFigures())
            rates = rates_between(before.page, answer.page, elapsed)
            self.brokers[answer.broker.name] = BrokerFigures(answer.page, rates)

    def total(self, name: str) -> int:
        """A figure of all subscribers together."""
        return sum(getattr(one, name) for one in self.subscribers.values())

    @property
    def lost(self) -> int:
        """What is owed and did not come; while it runs, what is on its way too."""
        return sum(max(0, one.expected - one.delivered) for one in self.subscribers.values())

    @property
    def unexpected(self) -> int:
        """What came and was not owed."""
        return sum(max(0, one.delivered - one.expected) for one in self.subscribers.values())

    @property
    def is_right(self) -> bool:
        """Whether everybody got all that matches, once and in order, and nothing else."""
        wrong = self.lost + self.unexpected + self.total("duplicated") + self.total("disordered")
        return wrong + self.total("gaps") == 0 and sum(self.published.values()) > 0

    def latencies(self) -> Latencies:
        """Of all deliveries."""
        together = Latencies()
        for one in self.subscribers.values():
            together.merge(one.latencies)
        return together


def _progress(
    published: Mapping[str, int], expected: Mapping[str, int], delivered: Mapping[str, int]
) -> Progress:
    # An event may arrive before its publisher has counted who is owed it.
    owed = sum(max(count, expected.get(name, 0)) for name, count in delivered.items())
    return Progress(sum(published.values()), sum(delivered.values()), owed)


def _report(line: str) -> dict[str, Any] | None:
    try:
        report = json.loads(line)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None
