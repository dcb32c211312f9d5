"""A client is a leaf of the tree: it speaks for itself, and what it says for others ends its session."""

from __future__ import annotations

import pytest
from harness import Net

from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.identity import SubscriptionId
from holdfast.messages.marks import Mark, new_mark
from holdfast.messages.message import Message
from holdfast.messages.overlay import Lapse, Relay, Step, Trail
from holdfast.messages.publications import Batch, Publication
from holdfast.messages.subscriptions import Known, Lore
from holdfast.overlay.transport import Send

EVENT = pack(make_event("a"))


def relay(publisher: str) -> Relay:
    trail = Trail((Step("P", 1),), [[1]])
    return Relay("events", Batch([Publication(publisher, 1, EVENT)]), [0], trail)


def sent_by_p(message: Message) -> Net:
    """P, in session with A, says something; S subscribes to everything."""
    net = Net("P-A-B-S", 1)
    net.run(1000)
    net.subscribe("S")
    net.run(1000)
    connection = net.node("P").reach["A"].connection
    assert connection is not None
    net.do("P", lambda bare: [Send(connection, [message])])
    net.run(500)
    return net


@pytest.mark.parametrize("message", [relay("Q"), Lapse("A", 1, 1)])
def test_a_client_that_speaks_for_somebody_else_is_put_out(message: Message) -> None:
    net = sent_by_p(message)
    assert net.node("A").refusals == 1
    assert not net.got("S")
    assert not net.node("B").lapses.all()


def test_what_it_says_for_itself_passes() -> None:
    net = sent_by_p(relay("P"))
    assert net.node("A").refusals == 0
    assert net.got("S") == ["P#1"]


@pytest.mark.parametrize("marks", [(0, 1), (1, 0)])
def test_marks_among_events_are_refused(marks: tuple[int, int]) -> None:
    event, mark = Publication("P", 1, EVENT), new_mark("P", 1, Mark(1, {}))
    publications = [mark if is_mark else event for is_mark in marks]
    net = sent_by_p(Relay("events", Batch(publications), [0, 1], Trail((Step("P", 1),), [[1, 2]])))
    assert net.node("A").refusals == 1
    assert not net.got("S")


@pytest.mark.parametrize(
    "route", [("Q", "A", "R"), ("Q", "R", "Q")], ids=["through who hears it", "twice past one"]
)
def test_a_way_in_a_circle_is_refused_and_nothing_of_it_is_taken_up(route: tuple[str, ...]) -> None:
    """The port campaign stopped a broker with one (seed 5)."""
    good = Known(SubscriptionId("P", 1, 7), "a", ())
    circle = Known(SubscriptionId(route[-1], 1, 1), "a", route)
    net = sent_by_p(Lore((good, circle)))
    assert net.node("A").refusals == 1
    assert good.subscription not in net.node("A").spread.interests
    assert circle.subscription not in net.node("A").spread.interests
