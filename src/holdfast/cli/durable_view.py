"""The logs of a network, from what its brokers say: what they hold, and who keeps them from forgetting it.

A log knows for which brokers it waits, a broker which of its durable subscriptions are behind. Put together, that is
who pins a log, and since when; a broker that does not answer pins it by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from holdfast.cli.words import counted, duration, listed, moment, sized

__all__ = ["DurableView", "Log", "Pin", "date_of"]

#: Ticks are microseconds since 1970.
SECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: A log that was held back for less is none to tell of; and of so many it is told.
PINNED_LEAST_S: Final = 60.0
TOLD_MAX: Final = 5


def date_of(tick: int | None) -> datetime | None:
    """When a tick was; None for none."""
    return _EPOCH + timedelta(microseconds=tick) if tick else None


@dataclass(frozen=True, slots=True)
class Pin:
    """Somebody a log keeps events for: a broker, and there a durable subscription, if it is known."""

    broker: str
    subscription: str | None
    away_since: int | None  #: of the subscription
    answers: bool  #: whether the broker was there to be asked

    def __str__(self) -> str:
        if self.subscription is None:
            return self.broker if self.answers else f"{self.broker}, which does not answer"
        since = date_of(self.away_since)
        away = "" if since is None else f", away since {moment(since)}"
        return f"{self.subscription} at {self.broker}{away}"

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        since = date_of(self.away_since)
        return {
            "broker": self.broker,
            "subscription": self.subscription,
            "away_since": None if since is None else since.isoformat(),
            "answers": self.answers,
        }


@dataclass(frozen=True, slots=True)
class Log:
    """One log, at its broker; ``status`` is what that says of it."""

    broker: str
    status: Mapping[str, Any]
    clock: int
    pins: tuple[Pin, ...]

    @property
    def pinned_for(self) -> float:
        """The age in seconds of the oldest event that somebody has not acknowledged; 0: all have everything."""
        released, last = self.status["released"], self.status["last"]
        start = max(released, self.status["given_up"])
        return max(0, self.clock - start) / SECOND if released < last and start else 0.0

    @property
    def problem(self) -> str | None:
        """Why events are refused, if they are."""
        if self.status["state"] == "ok":
            return None
        return f"{self.broker} refuses events of {self.status['stream']}: {self.status['problem']}"

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        times = {
            name: self.status[name]
            for name in ("last", "given_up", "released", "delivered", "unstable_since")
        }
        dates = {
            f"{name}_at": None if (at := date_of(tick)) is None else at.isoformat()
            for name, tick in times.items()
        }
        pinned = {"pinned_seconds": self.pinned_for, "pinned_by": [pin.as_json() for pin in self.pins]}
        return {"broker": self.broker, **self.status, **dates, **pinned}


class DurableView:
    """``pages`` are the status pages of the brokers that answered, by name."""

    def __init__(self, pages: Mapping[str, Mapping[str, Any]]) -> None:
        self._pages = {name: page["durable"] for name, page in pages.items() if page.get("durable")}

    def logs(self, stream: str | None = None) -> list[Log]:
        """All, or those of one stream."""
        return [
            Log(name, each, page["clock"], tuple(self._pins(each)))
            for name, page in self._pages.items()
            for each in page["pubends"]
            if stream in (None, each["stream"])
        ]

    def _pins(self, log: Mapping[str, Any]) -> Iterator[Pin]:
        for each in log["waits_for"]:
            if not each["pins"]:
                continue
            broker = each["broker"]
            there = self._pages.get(broker)
            named = [
                Pin(broker, one["name"], one["away_since"], True)
                for hosted in (there["hosted"] if there else ())
                if hosted["pubend"] == log["pubend"]
                for one in hosted["pinned_by"]
            ]
            yield from named or [Pin(broker, None, None, there is not None)]

    # In words

    def lines(self) -> Iterator[str]:
        """What an operator should know of the logs."""
        logs = self.logs()
        if logs:
            size = sized(sum(log.status["bytes"] for log in logs))
            hold = "holds" if len(logs) == 1 else "hold"
            yield f"{counted(len(logs), 'log').capitalize()} {hold} {size}, one copy of every event."
        pinned = sorted(logs, key=lambda log: -log.pinned_for)
        for log in [log for log in pinned if log.pinned_for >= PINNED_LEAST_S][:TOLD_MAX]:
            yield (
                f"{log.status['pubend']} keeps what is up to {duration(log.pinned_for)} old, for"
                f" {listed([str(pin) for pin in log.pins]) or 'nobody that is known'}."
            )
        for name, page in self._pages.items():
            away = [each for each in page["hosted"] if each["readers"] and not each["reached"]]
            if away:
                yield f"{name} does not reach {listed([each['pubend'] for each in away])}: its subscribers wait."
            for each in page["elsewhere"]:
                if not each["reached"]:
                    events = counted(each["events"], "event")
                    yield f"{name} does not reach {each['broker']}, which is to log {events}: their publishers wait."
            logging = page["logging"]
            if logging["held_up"]:
                publishers = counted(logging["held_up"], "publisher")
                yield f"{name} has {sized(logging['bytes'])} on the way to its disk, and holds up {publishers} for it."
            if page["gaps"]:
                reasons = [f"{count:,} {reason}" for reason, count in page["gaps"].items()]
                yield f"{name} has had to tell subscribers that events are gone: {listed(reasons)}."
            staged = page["staged"]
            waits = (page["clock"] - staged["oldest"]) / SECOND if staged["attempts"] else 0.0
            if waits >= PINNED_LEAST_S:
                what = f"{counted(staged['attempts'], 'attempt')} of {sized(staged['bytes'])}"
                yield f"{name} keeps {what} staged that nobody has committed, the oldest for {duration(waits)}."

    def problems(self) -> Iterator[tuple[str, str]]:
        """Brokers whose disk will not take something, and what."""
        for log in self.logs():
            if log.problem is not None:
                yield log.broker, f"refuses events of {log.status['stream']}: {log.status['problem']}"
        for name, page in self._pages.items():
            if page["problem"] is not None:
                yield name, f"cannot save what its subscribers acknowledge: {page['problem']}"
            if page["staged"]["problem"] is not None:
                yield name, f"cannot stage what tasks write: {page['staged']['problem']}"
            for each in page["hosted"]:
                if each["problem"] is not None:
                    yield name, f"cannot note who wants what of {each['pubend']}: {each['problem']}"

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "copies": 1,
            "logs": [log.as_json() for log in self.logs()],
            "subscriptions": {name: page["subscriptions"] for name, page in self._pages.items()},
            "gaps": {name: page["gaps"] for name, page in self._pages.items()},
            "problems": [{"broker": name, "problem": problem} for name, problem in self.problems()],
            "words": list(self.lines()),
        }
