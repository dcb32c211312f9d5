from __future__ import annotations

from random import Random
from typing import Any

import pytest

from holdfast.clock import MILLISECOND
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted, Batch, Publication, Publish
from holdfast.messages.session import Farewell, Goodbye, Heartbeat
from holdfast.overlay.transport import Connected, ConnectFailed, Disconnected, Received
from holdfast.scenarios.topology import LinkQuality
from holdfast.simulator.clock import VirtualClock
from holdfast.simulator.connection import Host
from holdfast.simulator.network import Network


class Wires:
    """Two hosts whose programs only listen."""

    def __init__(self, *, seed: int = 0, wire: bool = False, buffer_bytes_max: int = 10_000) -> None:
        self.clock = VirtualClock()
        self.network = Network(self.clock, Random(seed), self.take, wire=wire)
        self.heard: list[tuple[float, str, Any]] = []
        self.a, self.b = (Host(name, buffer_bytes_max) for name in "ab")
        for host in (self.a, self.b):
            host.is_up = True
            self.network.add_host(host, f"{host.name}:1")

    def take(self, host: Host, stimulus: Any) -> None:
        self.heard.append((self.clock.now / MILLISECOND, host.name, stimulus))

    def connect(self) -> tuple[int, int]:
        """A connection dialled by a; the ids at both ends."""
        self.network.connect(self.a, "b", "b:1")
        self.run(20)
        (_, _, theirs), (_, _, ours) = self.heard[-2:]
        self.heard.clear()
        return ours.connection, theirs.connection

    def run(self, ms: float) -> None:
        self.clock.run_until(self.clock.now + int(ms * MILLISECOND))

    def messages(self, name: str) -> list[Message]:
        return [
            message
            for _, host, stimulus in self.heard
            if host == name and isinstance(stimulus, Received)
            for message in stimulus.messages
        ]

    def losses(self) -> list[tuple[str, str]]:
        return [(host, said.reason) for _, host, said in self.heard if isinstance(said, Disconnected)]


@pytest.fixture(params=[False, True], ids=["objects", "bytes"])
def wires(request: pytest.FixtureRequest) -> Wires:
    return Wires(wire=request.param)


def accepted(*numbers: int) -> list[Message]:
    return [Accepted(n) for n in numbers]


# Connecting


def test_a_connection_takes_one_round_trip() -> None:
    wires = Wires()
    wires.network.connect(wires.a, "b", "b:1")
    wires.run(100)
    assert wires.heard == [(10.0, "b", Connected(2, None)), (20.0, "a", Connected(1, "b"))]


def test_a_program_that_is_down_refuses() -> None:
    wires = Wires()
    wires.network.crash(wires.b)
    wires.network.connect(wires.a, "b", "b:1")
    wires.run(100)
    assert wires.heard == [(20.0, "a", ConnectFailed("b", "refused"))]


def test_nobody_is_reached_over_a_cut_link() -> None:
    wires = Wires()
    wires.network.cut("a", "b")
    wires.network.connect(wires.a, "b", "b:1")
    wires.run(100)
    assert wires.heard == [(10.0, "a", ConnectFailed("b", "unreachable"))]


def test_an_address_where_nobody_lives_cannot_be_dialled() -> None:
    wires = Wires()
    wires.network.connect(wires.a, "c", "c:1")
    wires.run(100)
    assert wires.heard == [(0.0, "a", ConnectFailed("c", "no host at c:1"))]


def test_who_crashes_while_dialling_never_hears_of_it() -> None:
    wires = Wires()
    wires.network.connect(wires.a, "b", "b:1")
    wires.run(15)
    wires.network.crash(wires.a)
    wires.a.is_up = True
    wires.run(100)
    assert [host for _, host, _ in wires.heard] == ["b"]


# Sending


def test_messages_arrive_in_order_after_the_delay(wires: Wires) -> None:
    ours, theirs = wires.connect()
    wires.network.send(wires.a, ours, accepted(1, 2))
    wires.run(5)
    wires.network.send(wires.a, ours, accepted(3))
    wires.network.send(wires.b, theirs, accepted(9))
    wires.run(100)
    assert wires.heard == [
        (30.0, "b", Received(theirs, accepted(1, 2))),
        (35.0, "b", Received(theirs, accepted(3))),
        (35.0, "a", Received(ours, accepted(9))),
    ]


def test_what_is_sent_in_one_instant_arrives_as_one_batch(wires: Wires) -> None:
    ours, theirs = wires.connect()
    for n in (1, 2, 3):
        wires.network.send(wires.a, ours, accepted(n))
    wires.run(100)
    assert wires.heard == [(30.0, "b", Received(theirs, accepted(1, 2, 3)))]


@pytest.mark.parametrize("seed", range(5))
def test_jitter_never_reorders(wires: Wires, seed: int) -> None:
    ours, _ = wires.connect()
    wires.network.set_quality("a", "b", LinkQuality(jitter_ns=30 * MILLISECOND))
    for n in range(1, 50):
        wires.network.send(wires.a, ours, accepted(n))
        wires.run(1)
    wires.run(100)
    assert wires.messages("b") == accepted(*range(1, 50))
    assert len({t for t, _, _ in wires.heard}) < 45, "some must have been held up behind others"
    assert not wires.losses()


def test_heartbeats_take_no_time_and_no_number(wires: Wires) -> None:
    ours, theirs = wires.connect()
    wires.network.send(wires.a, ours, [Accepted(1), Heartbeat(), Accepted(2)])
    wires.run(100)
    assert wires.heard == [
        (20.0, "b", Received(theirs, [Heartbeat()])),
        (30.0, "b", Received(theirs, accepted(1, 2))),
    ]


def test_a_delay_counts_from_when_a_message_is_sent_and_for_its_direction_only() -> None:
    wires = Wires()
    ours, theirs = wires.connect()
    wires.network.send(wires.a, ours, accepted(1))
    wires.network.set_quality("a", "b", LinkQuality(delay_ns=50 * MILLISECOND))
    wires.network.send(wires.a, ours, accepted(2))
    wires.network.send(wires.b, theirs, accepted(3))
    wires.run(100)
    assert [(t, host) for t, host, _ in wires.heard] == [(30.0, "b"), (30.0, "a"), (70.0, "b")]


# Closing


def test_a_peer_learns_of_a_close_after_what_was_sent_before(wires: Wires) -> None:
    ours, theirs = wires.connect()
    wires.network.send(wires.a, ours, accepted(1))
    wires.network.close(wires.a, ours, "enough")
    wires.run(100)
    assert wires.heard == [
        (30.0, "b", Received(theirs, accepted(1))),
        (30.0, "b", Disconnected(theirs, "closed by the peer: enough")),
    ]


def test_who_closed_hears_nothing_more(wires: Wires) -> None:
    ours, theirs = wires.connect()
    wires.network.send(wires.b, theirs, accepted(1))
    wires.network.close(wires.a, ours, "enough")
    wires.run(100)
    assert [host for _, host, _ in wires.heard] == ["b"]


# Bad links


@pytest.mark.parametrize(
    ("quality", "trouble"),
    [
        (LinkQuality(loss=0.3), "leaves a hole"),
        (LinkQuality(duplicate=0.3), "repeats"),
        (LinkQuality(reorder=0.3), "leaves a hole"),
    ],
)
def test_what_a_bad_link_does_ends_the_connection_at_both_ends(
    wires: Wires, quality: LinkQuality, trouble: str
) -> None:
    ours, _ = wires.connect()
    wires.network.set_quality("a", "b", quality)
    n = 0
    while ours in wires.a.ends:
        n += 1
        wires.network.send(wires.a, ours, accepted(n))
        wires.run(1)
    wires.run(100)
    (at_b, reason), (at_a, other_reason) = wires.losses()
    assert (at_b, at_a) == ("b", "a")
    assert trouble in reason
    assert reason in other_reason
    got = wires.messages("b")
    assert got == accepted(*range(1, len(got) + 1)), "nothing after the hole, and no repeat, comes through"


def test_heartbeats_survive_the_worst_link() -> None:
    wires = Wires()
    ours, theirs = wires.connect()
    wires.network.set_quality("a", "b", LinkQuality(loss=1.0, duplicate=1.0))
    wires.network.send(wires.a, ours, [Heartbeat()])
    wires.run(100)
    assert wires.heard == [(20.0, "b", Received(theirs, [Heartbeat()]))]


# Cuts


def test_what_is_sent_over_a_cut_link_vanishes_and_shows_as_a_hole_when_it_is_healed(wires: Wires) -> None:
    ours, theirs = wires.connect()
    wires.network.cut("b", "a")
    wires.network.send(wires.a, ours, [*accepted(1), Heartbeat()])
    wires.network.send(wires.b, theirs, accepted(7))
    wires.run(1000)
    assert not wires.heard
    wires.network.heal("a", "b")
    wires.network.send(wires.a, ours, accepted(2))
    wires.run(1000)
    assert [host for host, _ in wires.losses()] == ["b", "a"]
    assert "leaves a hole" in wires.losses()[0][1]
    assert not wires.messages("b")


def test_what_is_in_flight_when_the_link_is_cut_vanishes_too(wires: Wires) -> None:
    ours, _ = wires.connect()
    wires.network.send(wires.a, ours, accepted(1))
    wires.run(5)
    wires.network.cut("a", "b")
    wires.run(1000)
    assert not wires.heard
    assert wires.network.in_flight == 0


def test_a_connection_that_missed_nothing_goes_on_after_a_cut(wires: Wires) -> None:
    ours, _ = wires.connect()
    wires.network.cut("a", "b")
    wires.run(1000)
    wires.network.heal("b")
    wires.network.send(wires.a, ours, accepted(1))
    wires.run(100)
    assert wires.messages("b") == accepted(1)
    assert not wires.losses()


# Crashes


def test_a_crash_loses_what_was_in_flight_both_ways_and_tells_nobody(wires: Wires) -> None:
    ours, theirs = wires.connect()
    wires.network.send(wires.a, ours, accepted(1))
    wires.network.send(wires.b, theirs, accepted(2))
    wires.network.crash(wires.b)
    wires.run(1000)
    wires.network.send(wires.a, ours, accepted(3))
    wires.run(1000)
    assert not wires.heard


@pytest.mark.parametrize("said", [accepted(1), [Heartbeat()]])
def test_a_program_that_is_up_again_resets_what_it_does_not_know(wires: Wires, said: list[Message]) -> None:
    ours, _ = wires.connect()
    wires.network.crash(wires.b)
    wires.b.is_up = True
    wires.network.send(wires.a, ours, said)
    wires.run(1000)
    assert wires.losses() == [("a", "reset: the connection is not known")]


# Programs that do not read


def test_a_frozen_program_hears_everything_later_in_the_order_in_which_it_came(wires: Wires) -> None:
    ours, theirs = wires.connect()
    wires.b.is_frozen = True
    wires.network.send(wires.a, ours, accepted(1))
    wires.run(50)
    wires.network.connect(wires.a, "b", "b:1")
    wires.run(50)
    wires.network.send(wires.a, ours, accepted(2))
    wires.network.close(wires.a, ours, "enough")
    wires.run(50)
    assert [host for _, host, _ in wires.heard] == ["a"]
    wires.heard.clear()
    wires.network.arrivals.unfreeze(wires.b)
    assert [said for _, _, said in wires.heard] == [
        Received(theirs, accepted(1, 2)),
        Disconnected(theirs, "closed by the peer: enough"),
        Connected(4, None),
    ]


def test_a_paused_connection_is_read_when_it_is_resumed(wires: Wires) -> None:
    ours, theirs = wires.connect()
    wires.network.arrivals.pause(wires.b, theirs)
    wires.network.send(wires.a, ours, [Heartbeat()])
    wires.run(50)
    assert not wires.network.holds_unread(wires.b), "heartbeats carry nothing"
    wires.network.send(wires.a, ours, accepted(1))
    wires.run(50)
    wires.network.send(wires.a, ours, accepted(2))
    wires.network.close(wires.a, ours, "enough")
    wires.run(50)
    assert not wires.heard
    assert wires.network.holds_unread(wires.b)
    wires.network.arrivals.resume(wires.b, theirs)
    wires.run(0)
    assert [said for _, _, said in wires.heard] == [
        Received(theirs, [Heartbeat(), *accepted(1, 2)]),
        Disconnected(theirs, "closed by the peer: enough"),
    ]


def test_what_arrives_while_reading_resumes_comes_behind_what_was_waiting(wires: Wires) -> None:
    ours, theirs = wires.connect()
    wires.network.arrivals.pause(wires.b, theirs)
    wires.network.send(wires.a, ours, accepted(1))
    wires.run(50)
    later = wires.clock.now + 10 * MILLISECOND
    wires.clock.at(later, lambda _: wires.network.arrivals.resume(wires.b, theirs))
    wires.network.send(wires.a, ours, accepted(2))
    wires.run(50)
    assert wires.messages("b") == accepted(1, 2)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_who_does_not_read_for_too_long_is_dropped_and_told(wires: Wires, is_frozen: bool) -> None:
    ours, theirs = wires.connect()
    if is_frozen:
        wires.b.is_frozen = True
    else:
        wires.network.arrivals.pause(wires.b, theirs)
    big: list[Message] = [Publish(Batch([Publication("p", 1, b"x" * 6_000)]))]
    wires.network.send(wires.a, ours, big)
    wires.run(50)
    assert not wires.heard
    wires.network.send(wires.a, ours, big)
    wires.run(900)
    wires.network.send(wires.a, ours, [Heartbeat()])
    wires.run(50)
    assert not wires.losses(), "it has had no second yet"
    wires.run(100)
    wires.network.send(wires.a, ours, [Heartbeat()])
    wires.run(50)
    assert wires.losses() == [("a", "too slow: more than 10000 bytes were not read")]
    wires.heard.clear()
    if is_frozen:
        wires.network.arrivals.unfreeze(wires.b)
    else:
        wires.network.arrivals.resume(wires.b, theirs)
    wires.run(50)
    assert [said for _, _, said in wires.heard] == [
        Received(theirs, [Goodbye(Farewell.TOO_SLOW, "more than 10000 bytes were not read")]),
        Disconnected(theirs, "closed by the peer: too slow"),
    ]


def test_more_than_a_buffer_for_a_moment_is_no_slowness(wires: Wires) -> None:
    ours, theirs = wires.connect()
    big: list[Message] = [Publish(Batch([Publication("p", 1, b"x" * 20_000)]))]
    for _ in range(3):
        wires.network.arrivals.pause(wires.b, theirs)
        wires.network.send(wires.a, ours, big)
        wires.run(600)
        wires.network.arrivals.resume(wires.b, theirs)
        wires.run(50)
    assert len(wires.messages("b")) == 3
    assert not wires.losses()


def test_who_was_dropped_may_read_why_for_a_while_and_no_longer(wires: Wires) -> None:
    ours, theirs = wires.connect()
    wires.network.arrivals.pause(wires.b, theirs)
    wires.network.send(wires.a, ours, [Publish(Batch([Publication("p", 1, b"x" * 41_000)]))])
    wires.run(50)
    wires.network.send(wires.b, theirs, [Heartbeat()])
    wires.run(9_000)
    assert wires.losses() == [("a", "too slow: more than 10000 bytes were not read")]
    wires.run(2_000)
    wires.network.send(wires.b, theirs, [Heartbeat()])
    wires.run(50)
    assert wires.losses()[1:] == [("b", "reset: the connection is not known")]
