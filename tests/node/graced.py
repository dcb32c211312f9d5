"""Networks whose members have a short grace, and what is said of those who are missed.

The grace is 2 s, so a dead member's broker begins to ask 2 s after it was lost, which is noticed in half a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness import Net
from schedules import network
from wiretap import Wiretap

from holdfast.messages.overlay import Leave, Role
from holdfast.messages.session import Farewell, Goodbye
from holdfast.node.settings import Acknowledge

__all__ = [
    "DETECT",
    "GRACE",
    "MODES",
    "SLACK",
    "answer_ms",
    "brokers",
    "expelled_at",
    "farewells",
    "graced",
    "knowing_of",
]

GRACE = 2000
DETECT = 500
SLACK = 400  #: ticks, and the links

MODES = [Acknowledge.DACK, Acknowledge.CONF]


def graced(tree: str, delta: int, *subscribers: str, **options: Any) -> tuple[Net, Wiretap]:
    return network(tree, delta, *subscribers, member_grace_ms=GRACE, **options)


def answer_ms(delta: int) -> int:
    """How long an answer is waited for; nobody is asked where nobody else could be in session with a member."""
    return (2 * (delta + 1) + 1) * DETECT if delta else 0


def brokers(net: Net) -> Iterator[str]:
    for name in net.edges:
        if net.world.nodes[name].is_up and net.node(name).settings.role is Role.BROKER:
            yield name


def knowing_of(net: Net, member: str) -> list[str]:
    """Who has a member in its map, or a subscription of it."""
    return [
        name
        for name in net.edges
        if net.world.nodes[name].is_up
        and name != member
        and (
            member in net.node(name).topology
            or any(each.subscriber == member for each in net.node(name).spread.interests)
        )
    ]


def expelled_at(net: Net, tap: Wiretap, member: str, home: str) -> list[int]:
    """When its home said that a member has left, in milliseconds."""
    times = {frame.at for frame in tap.sent(Leave, home) if _is_of(frame.message, member)}
    return [net.ms(at) for at in sorted(times)]


def _is_of(message: object, member: str) -> bool:
    return isinstance(message, Leave) and message.node == member


def farewells(tap: Wiretap, node: str, peer: str) -> list[Farewell]:
    """How a node has parted from another."""
    found = (frame.message for frame in tap.sent(Goodbye, node, peer))
    return [message.farewell for message in found if isinstance(message, Goodbye)]
