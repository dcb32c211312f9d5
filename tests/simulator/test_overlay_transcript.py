"""What nodes of the overlay say to each other, in a line that can be read."""

from __future__ import annotations

import pytest

from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import DepthAck, Holding, Join, Relay, Role, Step, Trail
from holdfast.messages.publications import Batch, Publication, Tag
from holdfast.messages.subscriptions import (
    Cleared,
    Grave,
    Heal,
    Healed,
    Known,
    Lore,
    Partition,
    Upgraded,
    UpgradeTaken,
)
from holdfast.overlay.transport import Send, Wake
from holdfast.simulator.connection import Host
from holdfast.simulator.transcript import Transcript

BATCH = Batch([Publication("P", n, b"") for n in range(1, 6)])
TRAIL = Trail((Step("P", 1), Step("B1", None), Step("B2", 3)), [[1, 2], [3, 5]])
PARTITION = Partition("B1", 1, 2, ("B2", "B3"))
SUBSCRIPTION = SubscriptionId("S", 1, 1)
KNOWN = Known(SUBSCRIPTION, "#", ("B3", "S"))

LINES: list[tuple[Message, str]] = [
    (Relay("s", BATCH, [0, 1], TRAIL), "Relay(P#1, P#2; P:1-2 B1:⊥ B2.3:3-5)"),
    (
        Relay("s", BATCH, [4], Trail((Step("P", 1),), [[7]]), again=True, returned=True),
        "Relay(P#5; P:7; again; returned)",
    ),
    (
        Relay("s", BATCH, [0, 1], TRAIL, (Tag("B1", 1, 2, bar=True),), [(1,), (4, 1)], refill=True),
        "Relay(P#1, P#2; P:1-2 B1:⊥ B2.3:3-5; to 1, 4; tagged B1.1#2|; refill)",
    ),
    (Relay("s", BATCH, range(5), Trail((), [])), "Relay(P#1, P#2, P#3 and 2 more; from here)"),
    (
        DepthAck(
            (Holding("B3", 1, "B2", 1, 4, 4), Holding("B3", 1, "P", 2, 2, 1), Holding("S", 1, "B2", 1, 0, 4))
        ),
        "DepthAck(B3 has B2:4, P.2:2/1; S has B2:0/4)",
    ),
    (Lore((KNOWN,)), "Lore(S.1#1 by B3 S)"),
    (Lore((), (Grave("S", 1, 1, 1), Grave("T", 2, 3, 9))), "Lore(over: S.1#1, T.2#3-9)"),
    (Lore((KNOWN,) * 5), "Lore(S.1#1 by B3 S, S.1#1 by B3 S, S.1#1 by B3 S and 2 more)"),
    (Heal(PARTITION, (KNOWN,), last=False), "Heal(B1.1#2 without B2 B3; S.1#1 by B3 S …)"),
    (Healed(PARTITION), "Healed(B1.1#2 without B2 B3)"),
    (Upgraded(SUBSCRIPTION, (PARTITION,), ()), "Upgraded(S.1#1, cleared: B1.1#2 without B2 B3)"),
    (
        Upgraded(SUBSCRIPTION, (), (PARTITION,)),
        "Upgraded(S.1#1, partial: B1.1#2 without B2 B3)",
    ),
    (UpgradeTaken(SUBSCRIPTION, (PARTITION,)), "UpgradeTaken(S.1#1, cleared: B1.1#2 without B2 B3)"),
    (Cleared(PARTITION), "Cleared(B1.1#2 without B2 B3)"),
    (Join("S", Role.SUBSCRIBER, "B3", None, 2), "Join(S, subscriber, incarnation 2, beside B3)"),
]


@pytest.mark.parametrize(("message", "line"), LINES, ids=[line for _, line in LINES])
def test_a_message_of_the_overlay_is_one_short_line(message: Message, line: str) -> None:
    transcript = Transcript()
    transcript.step(0, Host("B3", 1), Wake(), [Send(1, [message])])
    assert [each.split("connection 1: ")[1] for each in transcript.lines] == [line]
