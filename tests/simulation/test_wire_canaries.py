"""I5, beside publications: subscriptions keep to legitimate ways too, and no session spans more than δ+1 hops."""

from __future__ import annotations

from typing import Any

import pytest
from judging import chain, found_in, kinds_of

from holdfast.messages.subscriptions import Subscribe
from holdfast.node.rounds import Round, SubscribeRound
from holdfast.node.spread import Spread
from holdfast.node.station import Station
from holdfast.node.topology import Topology

#: Two of three in a row are down, more than δ = 1: v's subscription passes the first, and waits before the second.
TWO_DOWN = (
    chain(6, ("v", "subscriber", 0), ("r", "publisher", 5), settings="DackEvery 200"),
    (
        "Crash b1\nCrash b3\nWait 1500\nSubscriber v Subscribe # As all\nWait 500\nRestart b3\nWait 1500\nRestart b1\n"
        "Wait 3000\nPublisher r Publish 3 Ontopic t Interval 10\nDrain 10000\nWait 1500\n"
    ),
)

#: Both between v and b2 are down: v is three hops from b2, and nobody speaks with it until one is back.
ALONE = (
    chain(6, ("v", "subscriber", 0), ("r", "publisher", 5), settings="DackEvery 200"),
    (
        "Subscriber v Subscribe # As all\nCrash b0\nCrash b1\nWait 1500\nRestart b0\nRestart b1\nWait 3000\n"
        "Publisher r Publish 3 Ontopic t Interval 10\nDrain 10000\nWait 1500\n"
    ),
)


@pytest.mark.parametrize("run", [TWO_DOWN, ALONE])
def test_a_sound_network_is_not_accused(run: tuple[str, str]) -> None:
    assert kinds_of(found_in(*run)) == set()


def test_a_session_that_spans_too_much_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Topology.__init__
    monkeypatch.setattr(Topology, "__init__", lambda topology, me, reach: begin(topology, me, reach + 1))
    found = "\n".join(map(str, found_in(*ALONE)))
    assert "I5: b2 speaks with v, 3 hops away" in found, found


def test_a_subscription_on_a_way_that_is_not_legitimate_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = Spread._asking

    def reckless(spread: Spread, under_way: Round, endpoint: Station) -> Any:
        if not isinstance(under_way, SubscribeRound):
            return asking(spread, under_way, endpoint)
        text = spread.interests[under_way.subscription].text
        return [Subscribe(under_way.subscription, text, spread._stamped(under_way.vector, endpoint))]

    monkeypatch.setattr(Spread, "_asking", reckless)
    found = "\n".join(map(str, found_in(*TWO_DOWN)))
    assert "I5: b2 sent b4 a subscription past 2 nodes" in found, found
