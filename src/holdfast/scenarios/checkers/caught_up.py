"""I35: catching up ends. Who is connected at the end of a drained run stands behind everything that was logged.

That is more than having all that matched: silence must have carried the subscription past what did not match, or its
place would lag and pin the log for ever [R1.20, B1.16].
"""

from __future__ import annotations

from holdfast.scenarios.checkers.history import History, Trace
from holdfast.scenarios.checkers.reading import streams_of
from holdfast.scenarios.checkers.violation import Violation

__all__ = ["caught_up"]


def caught_up(trace: Trace, *, within_seconds: float = 2.0) -> list[Violation]:
    """Subscriptions that stand, and lag behind an event that is ``within_seconds`` or more older than the end."""
    history = History.of(trace)
    if not history.is_durable or history.end is None or not history.owes_everything(history.end["t"]):
        return []
    known = history.end["t"] - within_seconds
    places = {(stream.key, stream.pubend): stream.place for stream in streams_of(history)}
    found = []
    for key, asking in history.asking.items():
        subscribed = asking[-1]
        if (
            subscribed["kind"] != "subscribed"
            or history.left_at(key[0]) is not None
            or subscribed["t"] > known
        ):
            continue
        for pubend in history.log.pubends:
            due = [
                tick
                for tick, published in history.log.within(pubend, 0, 2**63)
                if subscribed["t"] < published["t"] <= known
            ]
            place = places.get((key, pubend), 0)
            if due and place < max(due):
                message = f"{key[0]} for {key[1]} of {pubend} stands at {place}, and {max(due)} is known"
                found.append(Violation("unexplained", message, (subscribed,)))
    return found
