"""The laws of the wire notice what breaks them: each is shown a planted frame (I5, I6, I7, I9, I13, B0.16)."""

from __future__ import annotations

import pytest
from harness import Net
from wiretap import Frame, Wiretap

from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Ready, Relay, Step, Told, Trail
from holdfast.messages.publications import Batch, Publication
from holdfast.messages.subscriptions import Subscribe


def relay(n: int, *steps: tuple[str, int | None], number: int = 1, refill: bool = False) -> Relay:
    trail = Trail(tuple(Step(*step) for step in steps), [[number] for _, life in steps if life is not None])
    return Relay("default", Batch([Publication("P", n, b"")]), [0], trail, refill=refill)


def said(tap: Wiretap, node: str, peer: str, *messages: Message) -> None:
    """On a connection whose ends have told all."""
    tap.frames += [Frame(0, node, peer, 1, True, Told()), Frame(0, node, peer, 1, False, Ready())]
    tap.frames += [Frame(0, node, peer, 1, True, message) for message in messages]


WAY = (("P", 1), ("A", 1))

PLANTED: dict[str, tuple[str, str, list[Message]]] = {
    "I5: A sent B": ("A", "B", [relay(1, ("P", None), ("Q", None), ("A", 1))]),
    "I5: A and D": ("A", "D", [relay(1, *WAY)]),
    "I5: B sent C": (
        "B",
        "C",
        [Subscribe(SubscriptionId("S", 1, 1), "#", tuple(Element(name, 0, None) for name in "PA"))],
    ),
    "I6": ("A", "B", [relay(2, *WAY, number=2), relay(1, *WAY, number=1)]),
    "I7: A told B of a way": ("A", "B", [relay(1, ("P", 1), ("C", 1), ("A", 1))]),
    "I7: A told B of 5": ("A", "B", [relay(1, ("A", 1), ("P", 1), ("A", 1), ("P", 1), ("A", 1))]),
    "I13": ("A", "B", [relay(1, *WAY), relay(2, *WAY)]),
    "B0.16": ("A", "B", [relay(1, *WAY, refill=True)]),
}


@pytest.mark.parametrize("law", PLANTED)
def test_a_planted_frame_is_noticed(law: str) -> None:
    tap = Wiretap()
    net = Net("P-A-B-C-D", 1)
    node, peer, messages = PLANTED[law]
    said(tap, node, peer, *messages)
    assert any(broken.startswith(law) for broken in tap.broken_laws(net)), tap.broken_laws(net)


def test_publications_before_the_tables_are_noticed() -> None:
    tap = Wiretap()
    tap.frames.append(Frame(0, "A", "B", 1, True, relay(1, *WAY)))
    assert list(tap.before_tables()) == ["I9: A sent publications to B too early"]


def test_what_is_lawful_is_not_complained_of() -> None:
    tap = Wiretap()
    net = Net("P-A-B-C-D", 1)
    said(tap, "A", "B", relay(1, *WAY, number=1), relay(2, *WAY, number=2))
    assert tap.broken_laws(net) == []
