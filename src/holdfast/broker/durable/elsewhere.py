"""Durable subscriptions as other brokers have made them known.

Under one name there may be several for a while: it has moved, and is not yet forgotten where it was, or two clients
have come at once to two brokers. The last claim counts, and everybody decides alike which one that is.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.identity import SubscriptionId
from holdfast.messages.subscriptions import Durable
from holdfast.node.interest import Interest

__all__ = ["Claim", "Elsewhere", "claim_of", "rank"]

#: Which broker has a name, and by which epoch.
Claim = tuple[int, str]


def rank(durable: Durable | None, broker: str) -> Claim:
    """How late a claim is; of two in one epoch that of the broker whose name comes last."""
    assert durable is not None
    return durable.epoch, broker


def claim_of(interest: Interest) -> Claim:
    """That of another broker."""
    return rank(interest.durable, interest.subscription.subscriber)


class Elsewhere:
    """All that is known of them, by name."""

    def __init__(self) -> None:
        self._known: dict[str, dict[SubscriptionId, Interest]] = {}

    def add(self, interest: Interest) -> None:
        """A broker has made one known."""
        assert interest.durable is not None
        self._known.setdefault(interest.durable.name, {})[interest.subscription] = interest

    def remove(self, interest: Interest) -> None:
        """One is over, at that broker."""
        if interest.durable is None:
            return
        known = self._known.get(interest.durable.name, {})
        if known.get(interest.subscription) is interest:
            del known[interest.subscription]
            if not known:
                del self._known[interest.durable.name]

    def of(self, name: str) -> list[Interest]:
        """All under a name, the last claim first."""
        return sorted(self._known.get(name, {}).values(), key=claim_of, reverse=True)

    def __iter__(self) -> Iterator[tuple[str, Interest]]:
        return ((name, self.of(name)[0]) for name in self._known)
