"""I9, its second half: on every connection a subscription is told before what was accepted after its installation.

The fault shows only where two nodes are in session and neither asks the other about the subscription: a link is cut, so
that a broker is in session with one beyond its neighbour, which is asked by that neighbour.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from judging import chain, found_in, kinds_of

from holdfast.node.interest import Interest
from holdfast.node.spread import Spread

#: b2 and b3 cannot speak with each other, so b2 does with b4. w, on b3, subscribes; b4 is asked by b3, and tells b2.
#: Then b4 has publications for b2, on whose other side is v.
CUT = (
    chain(
        6,
        ("v", "subscriber", 1),
        ("q", "publisher", 2),
        ("w", "subscriber", 3),
        ("r", "publisher", 5),
        settings="DackEvery 200",
    ),
    (
        "Subscriber v Subscribe # As all\nWait 300\nCut b2 b3\nWait 1500\nSubscriber w Subscribe # As mine\nWait 300\n"
        "Publisher r Publish 5 Ontopic t Interval 20\nPublisher q Publish 5 Ontopic t Interval 20\n"
        "Wait 1000\nHeal b2 b3\nWait 3000\nDrain 10000\nWait 1500\n"
    ),
)


def test_a_sound_network_is_not_accused() -> None:
    assert kinds_of(found_in(*CUT)) == set()


def test_who_installs_and_does_not_tell_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """STEP-III is left out [R0.25]. Nothing is lost by it here, for w itself has asked b2: no other law sees it."""

    def silently(spread: Spread, interest: Interest, known: Iterable[str]) -> list[object]:
        if not interest.is_installed:
            interest.is_installed = True
            spread.interests.enter(interest)
        return []

    monkeypatch.setattr(Spread, "_install", silently)
    found = found_in(*CUT)
    assert kinds_of(found) == {"I9"}
    assert "I9: b4 sent b2 its " in str(found[0])
