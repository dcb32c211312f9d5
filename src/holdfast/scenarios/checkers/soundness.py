"""Nothing that was not asked for: what is delivered was published, matches, and comes while it is wanted [I4].

What comes after ``unsubscribed`` is *late*; whatever else should not have come is *wrong*.
"""

from __future__ import annotations

from holdfast.events.topic import canonical_topic
from holdfast.scenarios.checkers.history import History, Trace, event_key, precedes, subscription_key
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["soundness"]


def soundness(trace: Trace) -> list[Violation]:
    """Deliveries that should not have been."""
    history = History.of(trace)
    found = []
    for (subscriber, subscription), lines in history.delivered.items():
        for line in lines:
            kind = "wrong"
            problem = _published_problem(line, history) or _asking_problem(line, history)
            if problem is None and _is_late(line, history):
                problem = "the subscription had ended"
                kind = "late"
            if problem is not None:
                event = f"{line['publisher']}#{line['n']}"
                message = f"{event} was delivered to {subscriber} for {subscription}: {problem}"
                found.append(Violation(kind, message, (line,)))
    return found


def _published_problem(line: TraceLine, history: History) -> str | None:
    published = history.published.get(event_key(line))
    if not published:
        return "it was never published"
    if precedes(line, published[0]):
        return "it was published later"
    if canonical_topic(line["topic"]) != canonical_topic(published[0]["topic"]):
        return f"its topic is {published[0]['topic']}, not {line['topic']}"
    return None


def _asking_problem(line: TraceLine, history: History) -> str | None:
    before = _asked_before(line, history)
    if not before:
        return "nobody had subscribed"
    text = before[-1]["filter"]
    if history.rematch.matches(text, history.published[event_key(line)][0]) is False:
        return f"it does not match {text}"
    return None


def _is_late(line: TraceLine, history: History) -> bool:
    return bool(_asked_before(line, history)[-1]["kind"] == "unsubscribed")


def _asked_before(line: TraceLine, history: History) -> list[TraceLine]:
    asking = history.asking.get(subscription_key(line), [])
    return [asked for asked in asking if precedes(asked, line)]
