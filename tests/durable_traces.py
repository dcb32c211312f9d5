"""Traces of durable runs written by hand: s1 has a durable subscription to a, s2 to what has x > 1."""

from __future__ import annotations

from typing import Any

from holdfast.scenarios.trace import TraceLine
from scenario_traces import Lines

PUBEND = "scenario@b0/0"


class Durable(Lines):
    """Events of p stand in its pubend, n at tick 10·n unless told otherwise."""

    def __init__(self, *, durable: bool = True, **run: Any) -> None:
        super().__init__(**{"guarantee": "durable", **run})
        self.subscribe(1, durable=durable)
        self.subscribe(1, "s2", "a WHERE x > 1", "dear", durable=durable)

    def log(self, t: float, n: int, tick: int | None = None, pubend: str = PUBEND, **attributes: Any) -> None:
        """An event is published and logged."""
        at = 10 * n if tick is None else tick
        self.publish(t, n, accepted=False, **attributes)
        self.add(t + 0.01, "p", "accepted", publisher="p", n=n, pubend=pubend, tick=at)

    def got(
        self, t: float, n: int, tick: int | None = None, subscriber: str = "s1", pubend: str = PUBEND
    ) -> TraceLine:
        """An event is delivered."""
        at = 10 * n if tick is None else tick
        event = {"publisher": "p", "n": n, "topic": "a", "pubend": pubend, "tick": at, "tags": []}
        return self.add(t, subscriber, "deliver", **self._named(subscriber), **event)

    def silence(self, t: float, after: int, upto: int, subscriber: str = "s1") -> None:
        told = {"pubend": PUBEND, "after": after, "upto": upto}
        self.add(t, subscriber, "silence", **self._named(subscriber), **told)

    def gap(
        self, t: float, after: int, upto: int, reason: str = "max_retain", subscriber: str = "s1"
    ) -> None:
        told = {"pubend": PUBEND, "after": after, "upto": upto, "reason": reason}
        self.add(t, subscriber, "gap", **self._named(subscriber), **told)

    def away(self, begin: float, end: float, subscriber: str = "s1") -> None:
        """It disconnects, and comes back."""
        self.fault(begin, "disconnect", subscriber)
        self.fault(end, "reconnect", subscriber)

    def restart(self, begin: float, end: float, subscriber: str = "s1") -> None:
        """It crashes, and starts again with its record."""
        self.fault(begin, "crash", subscriber)
        self.fault(end, "restart", subscriber)
        name = self._named(subscriber)["subscription"]
        self.subscribe(
            end + 0.1, subscriber, "a" if subscriber == "s1" else "a WHERE x > 1", name, durable=True
        )

    def _named(self, subscriber: str) -> dict[str, str]:
        return {"subscriber": subscriber, "subscription": "all" if subscriber == "s1" else "dear"}


def good_durable(**run: Any) -> Durable:
    """Four events; s1 has two, is away, crashes, and has the rest; s2 has those that match, and silence."""
    lines = Durable(**run)
    for n in (1, 2, 3, 4):
        lines.log(1 + n, n, x=n % 3)
    lines.silence(1.9, 0, 5)
    lines.got(2.1, 1)
    lines.got(3.1, 2)
    lines.got(3.1, 2, subscriber="s2")
    lines.away(3.5, 4.5)
    lines.got(4.6, 3)
    lines.restart(4.7, 5.5)
    lines.got(5.7, 4)
    lines.silence(6, 20, 50, subscriber="s2")
    lines.silence(6, 40, 50)
    return lines
