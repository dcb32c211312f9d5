"""Rounds: something that everybody outward must know, and confirm, before it counts [KJ §3.5].

A subscription, a withdrawal and the end of a partition spread alike. A round asks whoever is next on each way; who is
lost is not waited for, and whoever is next in its place is asked instead; a way on which nobody can be reached is a
large fragment. A round ends when all who were asked have confirmed and no way is still being tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.identity import Element, SubscriptionId
from holdfast.messages.subscriptions import Known, Partition

__all__ = ["HealRound", "Round", "SubscribeRound", "UnsubscribeRound"]


@dataclass(slots=True, eq=False)
class Round:
    """Invariant: ``asked`` and ``senders`` name stations in the session in which they were asked, or asked us."""

    away: str | None  #: the neighbour in whose direction it is not spread: it came from there
    asked: dict[str, None] = field(default_factory=dict)
    confirmed: dict[str, None] = field(default_factory=dict)
    senders: dict[str, None] = field(default_factory=dict)  #: who waits for our own confirmation
    partial: dict[Partition, None] = field(default_factory=dict)  #: what those asked could not reach
    cleared: dict[Partition, None] = field(default_factory=dict)  #: what they could meanwhile
    stalled_at: str | None = None  #: a station it cannot be sent to legitimately
    is_renewal: bool = False  #: of a subscription of our own that was confirmed before

    def lose(self, name: str) -> None:
        """A session is over."""
        for names in (self.asked, self.confirmed, self.senders):
            names.pop(name, None)


@dataclass(slots=True, eq=False)
class SubscribeRound(Round):
    """SUB."""

    subscription: SubscriptionId = field(kw_only=True)
    vector: tuple[Element, ...] = field(kw_only=True)
    is_outdated: bool = False  #: there was a lapse since it began: who confirmed it may have forgotten it


@dataclass(slots=True, eq=False)
class UnsubscribeRound(Round):
    """UNSUB."""

    subscription: SubscriptionId = field(kw_only=True)


@dataclass(slots=True, eq=False)
class HealRound(Round):
    """The subscriptions a partition had stopped. ``is_lead``: it began here."""

    partition: Partition = field(kw_only=True)
    rows: Sequence[Known] = field(kw_only=True)
    is_lead: bool = field(kw_only=True)
    cleared_by: str | None = None  #: who has told us meanwhile that it is over
