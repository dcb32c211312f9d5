"""Which error a refused subscription is, or a refused event."""

from __future__ import annotations

import re

from holdfast.client.effect import NotAccepted, SubscriptionRefused
from holdfast.client.errors import BadEvent, OtherFilter, Refused, TokenAhead
from holdfast.errors import FilterError, HoldfastError
from holdfast.identity import EventId

__all__ = ["event_refusal", "refusal"]


def refusal(refused: SubscriptionRefused, filter: str) -> HoldfastError:
    """By its code, as in ``messages.subscriptions.Refused``; a code nobody knows is a refusal like any other."""
    match refused.code:
        case "filter":
            return _filter_error(refused.problem, filter)
        case "durable":
            return OtherFilter(refused.problem)
        case "token-ahead":
            return TokenAhead(refused.problem)
        case _:
            return Refused(refused.problem)


def event_refusal(refused: NotAccepted, event: EventId) -> Refused:
    """By its code, as in ``messages.publications.Rejected``."""
    return (BadEvent if refused.code == "event" else Refused)(refused.problem, event=event)


def _filter_error(problem: str, filter: str) -> FilterError:
    """A filter's error as the broker wrote it: its text begins with the place."""
    placed = re.fullmatch(r"line (\d+), column (\d+): (.*)", problem, re.DOTALL)
    if placed is None:
        return FilterError(problem, text=filter, offset=0)
    line, column, what = int(placed[1]), int(placed[2]), placed[3]
    before = filter.split("\n")[: line - 1]
    return FilterError(what, text=filter, offset=sum(len(each) + 1 for each in before) + column - 1)
