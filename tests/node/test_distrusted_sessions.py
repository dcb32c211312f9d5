"""Our own directed schedules: sessions that begin and end at bad moments, and the copies of what passes them.

Many are swept over the instant something breaks. Within δ everything comes once and in order (I1-I3, I30), tables agree
(I31), nothing is left, and the laws of the wire hold.
"""

from __future__ import annotations

import pytest
from schedules import checked, complete, network, stream

from holdfast.clock import MILLISECOND
from holdfast.messages.overlay import Join, Role
from holdfast.messages.session import Kind, Overlay, Welcome
from holdfast.node.settings import Acknowledge
from holdfast.overlay.transport import Close, Connected, Send

MODES = [Acknowledge.DACK, Acknowledge.CONF]


# Sessions


@pytest.mark.parametrize("delay", [1, 10, 40])
def test_both_ends_of_a_bypass_call_at_the_same_instant(delay: int) -> None:
    """B dies: A and C miss it at the same tick and dial each other; one session comes of it, whatever the delays."""
    net, tap = network("P-A-B-C-S", 1, "S")
    net.slow("A", "C", delay)
    net.crash("B")
    stream(net, "P", 1500)
    there, back = net.node("A").reach["C"], net.node("C").reach["A"]
    assert there.is_open
    assert back.is_open
    assert there.is_dialler != back.is_dialler
    net.restart("B")
    stream(net, "P", 1000)
    net.run(4000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


def test_a_node_that_was_dialled_twice_is_called_once() -> None:
    """A client leaves and comes back while it is being dialled, and so it is again (seed 2558 beyond delta)."""
    net, _ = network("P-A-S", 1, "S")
    net.crash("S")
    net.run(700)
    node, now = net.node("A"), net.world.now
    assert not node.reach["S"].is_open
    (hello,) = node.step(Connected(901, "S"), now)
    assert isinstance(hello, Send)
    assert node.step(Connected(902, "S"), now) == [Close(902, "a call is under way")]
    overlay = Overlay(Role.SUBSCRIBER, 1, False, "A", "S:1")
    node.receive(901, [Welcome("S", Kind.CLIENT, 2, 1, 100 * MILLISECOND, overlay=overlay)], now)
    assert node.reach["S"].connection == 901


def test_a_call_to_an_earlier_life_gives_way_to_the_next() -> None:
    """Who was called has left, and has come back: the call is not for the one we know now."""
    net, _ = network("P-A-S", 1, "S")
    net.crash("S")
    net.run(700)
    node, now = net.node("A"), net.world.now
    node.step(Connected(901, "S"), now)
    node.visitors.expel("S", "it left", now)
    overlay = Overlay(Role.SUBSCRIBER, 1, False, "A", "S:1")
    place = node.visitors.enter(Join("S", Role.SUBSCRIBER, "A", "S:1", 2))
    assert place is not None
    node.reach.enter(place)
    closed, hello = node.step(Connected(902, "S"), now)
    assert closed == Close(901, "they are called anew")
    assert isinstance(hello, Send)
    node.receive(902, [Welcome("S", Kind.CLIENT, 2, 2, 100 * MILLISECOND, overlay=overlay)], now)
    assert node.reach["S"].connection == 902


@pytest.mark.parametrize("after", [5, 15, 25, 35, 45, 60, 90])
def test_a_node_that_dies_again_in_its_handshake(after: int) -> None:
    """A fast restart, and another in the middle of the first's handshakes (B0.18)."""
    net, tap = network("P-A-B-C-S", 1, "S")
    net.publish("P", 3)
    net.run(15)
    net.crash("B")
    net.run(100)
    net.restart("B")
    stream(net, "P", after, 5)
    net.crash("B")
    stream(net, "P", 50, 5)
    net.restart("B")
    stream(net, "P", 500)
    net.run(4000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


@pytest.mark.parametrize("after", [5, 15, 25, 40, 60])
def test_a_recovering_node_that_freezes_in_its_handshake(after: int) -> None:
    """It is neither up nor down: it is bypassed meanwhile, and goes on with old news when it thaws."""
    net, tap = network("P-A-B-C-S", 1, "S")
    net.crash("B")
    stream(net, "P", 800)
    net.restart("B")
    stream(net, "P", after, 5)
    net.freeze("B")
    stream(net, "P", 1500)
    net.unfreeze("B")
    stream(net, "P", 500)
    net.run(4000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


@pytest.mark.parametrize("outage", [20, 300, 700, 1500])
def test_the_need_for_a_bypass_ends_while_data_is_under_way(outage: int) -> None:
    """S loses M, is served by A, and finds M again, under load (B0.20): nothing is lost or overtaken in the change."""
    net, tap = network("P-A-M-S", 1, "S")
    net.cut("M", "S")
    stream(net, "P", outage)
    net.heal("M", "S")
    stream(net, "P", 1500)
    net.run(4000)
    assert complete(net, "S", "P")
    assert net.node("A").reach["S"].connection is None
    assert not checked(net, tap)


def test_links_flap_while_both_ends_live() -> None:
    """A link that is up and down faster than anybody notices: holes end sessions, again and again."""
    net, tap = network("P-A-B-C-S", 1, "S")
    for _ in range(12):
        net.cut("A", "B")
        stream(net, "P", 40)
        net.heal("A", "B")
        stream(net, "P", 130)
    net.run(5000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


def test_a_slow_link_is_no_dead_link() -> None:
    """Heartbeats pass, data crawls: nobody is bypassed, and nothing overtakes."""
    net, tap = network("P-A-B-C-S", 1, "S")
    net.slow("A", "B", 2000)
    stream(net, "P", 1000, 50)
    net.slow("A", "B", 10)
    stream(net, "P", 500, 50)
    assert net.got("S") == []
    net.run(5000)
    assert complete(net, "S", "P")
    assert ("A", "C") not in tap.copies_of("P#1")
    assert not checked(net, tap)


# Copies


@pytest.mark.parametrize("acknowledge", MODES)
@pytest.mark.parametrize("at", [5, 15, 25, 35, 45, 55])
def test_a_link_breaks_under_an_acknowledgement(acknowledge: Acknowledge, at: int) -> None:
    """B0.29: wherever the confirmation or the report was lost, nobody holds a copy for ever."""
    net, tap = network("P-A-B-S", 1, "S", acknowledge=acknowledge)
    net.publish("P", 2)
    net.run(at)
    net.cut("A", "B")
    net.run(at)
    net.heal("A", "B")
    net.run(5000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


@pytest.mark.parametrize("gap", [0, 10, 50, 200, 600])
def test_two_neighbours_recover_one_after_the_other_with_what_the_others_hold(gap: int) -> None:
    """δ = 2: B2 and B3 were lost together, S is slow: what they held is given back or sent again, in order."""
    net, tap = network("P-B1-B2-B3-B4-S", 2, "S")
    net.slow("B4", "S", 4000)
    stream(net, "P", 300, 20)
    net.crash("B2", "B3")
    stream(net, "P", 800, 20)
    net.restart("B3")
    stream(net, "P", gap, 10)
    net.restart("B2")
    stream(net, "P", 500, 20)
    net.slow("B4", "S", 10)
    net.run(9000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


@pytest.mark.parametrize("acknowledge", MODES)
def test_every_broker_restarts_in_turn_faster_than_anybody_notices(acknowledge: Acknowledge) -> None:
    net, tap = network("P-A-B-C-D-S B-T", 1, "S", "T", acknowledge=acknowledge)
    for name in ("A", "B", "C", "D") * 2:
        net.crash(name)
        stream(net, "P", 60)
        net.restart(name)
        stream(net, "P", 300)
        net.run(2500)
    net.run(3000)
    assert complete(net, "S", "P")
    assert complete(net, "T", "P")
    assert not checked(net, tap)


def test_failures_walk_ahead_of_a_publication() -> None:
    """One node down at a time, always the next: the vector fills with ⊥ until it must wait (B0.7), and is not lost."""
    net, tap = network("P-A-B-C-D-E-F-S", 1, "S")
    for dead in ("B", "D", "F"):
        net.crash(dead)
        net.run(700)
        net.publish("P", 3)
        net.run(100)
        net.restart(dead)
        net.run(60)
    net.run(6000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


def test_beyond_delta_everything_stops_and_goes_on_in_order() -> None:
    """R0.59: all brokers of a long chain are cut off from each other, and healed in a bad order."""
    net, tap = network("P-A-B-C-D-S", 1, "S")
    for name in ("A", "B", "C", "D"):
        net.world.isolate(name)
    stream(net, "P", 1500, 50)
    for name in ("C", "A", "D", "B"):
        net.world.network.heal(name)
        stream(net, "P", 300, 50)
    net.run(6000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)
