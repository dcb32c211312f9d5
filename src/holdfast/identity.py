"""Who is who: events, subscriptions, and the numbers a node gives to what passes it.

A number of a node's own always carries the node's incarnation, which counts the lives of the node and is compared
first: a broker that lost its memory is never mistaken for its older self [KJ, B0.17].
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["Element", "EventId", "SubscriptionId", "first_life", "is_first_life"]

LIVES_MAX: Final = 1 << 20  #: of a node with one folder


class EventId(NamedTuple):
    """The identity of an event, unique for ever; ids of one publisher sort in the order of publication.

    ``n`` is the catenation number [NB §4.3], from 1. Holes are allowed: a publisher reserves numbers in blocks.
    """

    publisher: str
    n: int

    def __str__(self) -> str:
        return f"{self.publisher}#{self.n}"


class SubscriptionId(NamedTuple):
    """The identity of a subscription, never used twice: a subscriber that lost its memory is a new incarnation."""

    subscriber: str
    incarnation: int
    number: int  #: the subscriber's own, from 1

    def __str__(self) -> str:
        return f"{self.subscriber}.{self.incarnation}#{self.number}"


class Element(NamedTuple):
    """One element of a sequence vector [KJ §3.1]: a node, and the number it gave to the message.

    ``counter`` is None for a node that was bypassed (⊥ in the paper).
    """

    node: str
    incarnation: int
    counter: int | None


def first_life(seconds: int) -> int:
    """The incarnation of a node whose folder is made at a time: above all lives that it had in another one."""
    return seconds * LIVES_MAX + 1


def is_first_life(incarnation: int) -> bool:
    """Whether a node has had no life before, as far as its folder knows."""
    return incarnation % LIVES_MAX == 1
