"""Once everything is healed, the network must do its work again: the second phase of a simulation.

While more breaks than a guarantee allows, nothing is owed but safety. After the last repair and a time to settle a
network owes what one without faults owes: every question is answered, wholly [I34], and of what is published from then
on everything arrives.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.scenarios.checkers.acceptance import acceptance
from holdfast.scenarios.checkers.completeness import completeness
from holdfast.scenarios.checkers.history import History, SubscriptionKey, subscription_key
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.topology import MASTER
from holdfast.scenarios.trace import TraceLine
from holdfast.scenarios.trace_fields import FAULTS

__all__ = ["liveness", "settled_at", "stuck"]

_ANSWERS = {"subscribe": "subscribed", "unsubscribe": "unsubscribed"}
_ABOUT_EVENTS = ("publish", "accepted", "deliver")


def settled_at(trace: Sequence[TraceLine], settle_seconds: float) -> float:
    """When a run had settled: so long after the last that the script broke or repaired.

    Nodes write of lost sessions too, a moment later or much later: what they owe begins all the same.
    """
    script = [line["t"] for line in trace if line["kind"] in FAULTS and line["node"] == MASTER]
    return max(script, default=0.0) + settle_seconds


def liveness(trace: Sequence[TraceLine], since: float) -> list[Violation]:
    """What was owed from ``since`` on and did not come."""
    quiet = [line for line in trace if _is_judged(line, since)]
    return [*stuck(trace), *acceptance(quiet), *completeness(quiet)]


def stuck(trace: Sequence[TraceLine]) -> list[Violation]:
    """What did not come to an end: the run itself, or an answer to a question."""
    drained = [] if trace[-1]["drained"] else [Violation("stuck", "the run did not drain", (trace[-1],))]
    return [*drained, *_unanswered(trace), *_partial(trace)]


def _is_judged(line: TraceLine, since: float) -> bool:
    if line["kind"] in _ABOUT_EVENTS:
        return bool(line["t"] >= since)
    return line["kind"] not in FAULTS


def _unanswered(trace: Sequence[TraceLine]) -> list[Violation]:
    """Subscriptions and withdrawals nobody has confirmed, in the last life of their subscriber."""
    last: dict[SubscriptionKey, TraceLine] = {}
    for line in trace:
        if line["kind"] == "crash":
            last = {key: asked for key, asked in last.items() if key[0] not in line["nodes"]}
        elif line["kind"] in _ANSWERS or line["kind"] in _ANSWERS.values():
            last[subscription_key(line)] = line
    return [
        Violation(
            "stuck", f"{line['subscriber']} was never told '{_ANSWERS[line['kind']]}' for {name}", (line,)
        )
        for (_, name), line in last.items()
        if line["kind"] in _ANSWERS
    ]


def _partial(trace: Sequence[TraceLine]) -> list[Violation]:
    """Subscriptions that stand, and were confirmed partially, and have never been upgraded to the whole."""
    history = History(trace)
    return [
        Violation("stuck", f"{key[0]} was never told of the rest of {key[1]}", (asking[-1],))
        for key, asking in history.asking.items()
        if asking[-1]["kind"] == "subscribed"
        and asking[-1]["partial"]
        and history.partitions(key, asking[-1]).left
    ]
