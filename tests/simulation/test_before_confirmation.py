"""Before its confirmation a subscription is handed nothing, so whatever it is handed has its tags [B0.26, R0.31, I11].

A broker may know a subscription before everybody else does, and send events for it. Which partitions they come from
behind is not known to the subscriber until it is confirmed; an application that takes them later would see events
without tags beside others with them, though it knows of the partition. Found by wild seed 798 of the reliable swarm.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from judging import chain

from holdfast.client.inbox import Inbox
from holdfast.messages.streams import StreamOrder
from holdfast.scenarios.checkers.tags import tags
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.reliable_swarm import run_reliable
from simulations import numbers, of_kind, simulated

TREE = chain(6, ("p", "publisher", 1), ("q", "publisher", 1), ("u", "subscriber", 0))

#: b0 reaches q past b1, and nobody on the way to p: [b1, p] is a large fragment. u is in session with b1 as well, which
#: knows the subscription from q long before it is confirmed, and sends what p publishes. The application takes it late.
SCRIPT = """Slow u 100
Cut b0 b1
Cut b0 p
Wait 2000
Publisher p Publish 100 Ontopic a Interval 5
Wait 200
Subscriber u Subscribe # As all
Wait 2000
Heal b0 b1
Heal b0 p
Wait 3000
Drain 30000
"""


def _hand_over_at_once(patch: pytest.MonkeyPatch) -> None:
    """A client that takes no reliable stream for one hands over whatever comes."""
    learn = Inbox.learn

    def heedless(inbox: Inbox, streams: Sequence[StreamOrder], kept: frozenset[str] = frozenset()) -> None:
        learn(inbox, streams, kept)
        inbox._reliable = frozenset()

    patch.setattr(Inbox, "learn", heedless)


def _taken(trace: list[TraceLine]) -> tuple[float, list[TraceLine]]:
    """When the subscription was confirmed, and what was delivered before its first upgrade."""
    [subscribed] = of_kind(trace, "subscribed")
    upgraded = of_kind(trace, "upgraded")[0]
    assert subscribed["partial"]
    return subscribed["t"], [line for line in of_kind(trace, "deliver") if line["i"] < upgraded["i"]]


def test_what_comes_before_a_partial_confirmation_is_not_handed_over_after_it() -> None:
    trace = simulated(TREE, SCRIPT).trace
    confirmed_at, taken = _taken(trace)
    assert taken
    assert all(line["t"] >= confirmed_at and line["tags"] for line in taken)
    assert not tags(trace)


def test_what_is_published_after_the_confirmation_is_not_touched() -> None:
    trace = simulated(TREE, SCRIPT).trace
    [subscribed] = of_kind(trace, "subscribed")
    later = [line["n"] for line in of_kind(trace, "publish") if line["t"] > subscribed["t"]]
    assert len(later) > 30
    assert numbers(trace, "deliver")[-len(later) :] == later


def test_a_client_that_hands_over_at_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    _hand_over_at_once(monkeypatch)
    trace = simulated(TREE, SCRIPT).trace
    confirmed_at, taken = _taken(trace)
    assert any(line["t"] < confirmed_at for line in taken)
    assert {violation.kind for violation in tags(trace)} == {"untagged"}


def test_the_seed_that_found_it_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _hand_over_at_once(monkeypatch)
    assert {each.kind for each in run_reliable(798, wild=True).violations} == {"untagged"}
