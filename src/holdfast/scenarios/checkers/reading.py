"""What one subscription was told of one pubend, in the order of telling: the stream that it reads [BZA §2, R1.7].

A durable subscription reads one stream for as long as it stands, through all disconnections and all lives of its
subscriber, whose record says where it was. Any other is forgotten with the life of its subscriber.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.scenarios.checkers.history import History, SubscriptionKey
from holdfast.scenarios.trace import TraceLine

__all__ = ["Stream", "streams_of"]


class Stream(NamedTuple):
    """One subscription's items of one pubend: ``deliver``, ``silence`` and ``gap`` lines."""

    key: SubscriptionKey
    subscribe: TraceLine  #: as it was first asked for
    pubend: str
    items: Sequence[TraceLine]

    def __str__(self) -> str:
        return f"{self.key[0]} for {self.key[1]} of {self.pubend}"

    @property
    def place(self) -> int:
        """Where it stood at last."""
        last = self.items[-1]
        return int(last["tick"] if last["kind"] == "deliver" else last["upto"])


def streams_of(history: History) -> Iterator[Stream]:
    """All streams that anything was told of."""
    for key, asking in history.asking.items():
        told = [*history.delivered.get(key, ()), *history.silences.get(key, ()), *history.gaps.get(key, ())]
        told.sort(key=lambda line: line["i"])
        begins = [line for i, line in enumerate(asking) if _begins(history, asking, i)]
        ends = [line["i"] for line in begins[1:]]
        for begin, end in zip(begins, [*ends, None], strict=True):
            items: dict[str, list[TraceLine]] = {}
            for line in told:
                if line["i"] > begin["i"] and (end is None or line["i"] < end):
                    items.setdefault(line["pubend"], []).append(line)
            for pubend in sorted(items):
                yield Stream(key, begin, pubend, items[pubend])


def _begins(history: History, asking: Sequence[TraceLine], i: int) -> bool:
    """Whether a line of asking begins a stream: the first, and what is not only made again."""
    line = asking[i]
    if line["kind"] != "subscribe":
        return False
    if i == 0 or asking[i - 1]["kind"] in ("unsubscribe", "unsubscribed"):
        return True
    crashes = history.faults_of(line["subscriber"], "crash")
    return not line["durable"] and any(asking[i - 1]["t"] <= crash["t"] <= line["t"] for crash in crashes)
