from __future__ import annotations

from typing import Any

from holdfast.messages.durable import Acknowledge, Portion, Report, Requests, Saved
from holdfast.messages.message import Message
from holdfast.messages.overlay import Relay, Step, Trail
from holdfast.messages.publications import (
    Accepted,
    Batch,
    Deliveries,
    Publication,
    Publications,
    Publish,
)
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.ticks import Items, Lost
from holdfast.overlay.transport import Close, Connected, Disconnected, Received, Send
from holdfast.puppet.control import Traffic
from holdfast.puppet.watched import Watched
from holdfast.wire.frame import FrameReader, encode_parted, header
from scripted_core import ScriptedCore

HELLO = Hello("ann", Kind.CLIENT, 1, 1, "anonymous", 100)
WELCOME = Welcome("b1", Kind.BROKER, 1, 1, 100, last_number=0)
GOODBYE = Goodbye(Farewell.LEAVING, "left")


def watched(*effects: Any) -> Watched:
    """A core that answers its second input, and no other, with these effects."""
    answers = iter([[], list(effects)])
    return Watched(ScriptedCore(lambda stimulus: next(answers, []), "core"))


def heard(core: Watched, *messages: Message) -> None:
    core.step(Connected(7, None), 0)
    core.step(Received(7, list(messages)), 0)


def test_a_session_counts_what_is_sent_and_received_by_the_name_of_its_peer() -> None:
    core = watched(Send(7, [WELCOME, Accepted(1, ())]))
    heard(core, HELLO)
    assert core.sessions() == [Traffic("ann", 2, 1)]
    core.step(Received(7, [Accepted(2, ())]), 0)
    assert core.sessions() == [Traffic("ann", 2, 2)]


def test_heartbeats_are_not_counted() -> None:
    core = watched(Send(7, [Heartbeat(), WELCOME]))
    heard(core, Heartbeat(), HELLO, Heartbeat())
    assert core.sessions() == [Traffic("ann", 1, 1)]


def test_a_large_batch_counts_the_same_however_the_link_parts_it() -> None:
    batch = Batch([Publication("p", n, b"x" * 600_000) for n in range(1, 4)])
    trail = Trail((Step("p", 1),), [[1, 2, 3]])
    whole: list[Message] = [
        Publications("s", batch, range(3)),
        Deliveries("s", batch, range(3), [(1,)] * 3),
        Relay("s", batch, range(3), trail),
    ]
    reader, frames = FrameReader(), [frame for message in whole for frame in encode_parted(message)]
    assert len(frames) > len(whole)
    parts = [
        message
        for number, (kind, body) in enumerate(frames, start=1)
        for message in reader.feed(header(kind, number, len(body)) + body)
    ]
    core = watched(Send(7, [WELCOME, *whole]))
    heard(core, HELLO, *parts)
    assert core.sessions() == [Traffic("ann", 1 + 9, 1 + 9)]
    core.step(Received(7, [Publish(batch)]), 0)
    assert core.sessions() == [Traffic("ann", 10, 13)]


def test_of_durable_streams_events_and_losses_are_counted_and_silence_is_not() -> None:
    batch = Batch([Publication("p", n, b"") for n in (1, 2)])
    passed: list[Message] = [
        Items("x", 1, [1, 5], [5, 9], [batch.publications[0], None], [Lost(0, 1, "max_retain")]),
        Items("x", 1, [9], [12], [None]),
        Portion(1, "x", 1, batch, [5, 9], [0, 1], 9),
        Portion(1, "x", 1, Batch([]), [], [], 12),
        Portion(1, "x", 1, Batch([]), [], [], 20, 15, "max_retain"),
        Requests("b", "a", "x", [1, 2], batch),
        Report("b", "a", "x", 1, 5, 5),
        Acknowledge(1, {"x": 5}, 1),
        Saved(1, 1),
    ]
    core = watched(Send(7, passed))
    heard(core, HELLO, *passed)
    assert core.sessions() == [Traffic("ann", 7, 1 + 7)]


def test_a_peer_that_was_dialled_is_known_by_its_welcome() -> None:
    core = watched()
    heard(core, WELCOME)
    assert core.sessions() == [Traffic("b1", 0, 1)]


def test_a_peer_that_has_not_introduced_itself_is_there_without_a_name() -> None:
    core = watched()
    core.step(Connected(7, None), 0)
    assert core.sessions() == [Traffic("", 0, 0)]


def test_a_session_is_forgotten_when_it_is_lost_or_closed() -> None:
    lost = watched()
    heard(lost, HELLO)
    lost.step(Disconnected(7, "reset"), 0)
    assert lost.sessions() == []
    closed = watched(Send(7, [GOODBYE]), Close(7, "left"))
    heard(closed, HELLO)
    assert closed.sessions() == []


def test_it_is_driven_as_the_core_within() -> None:
    within = ScriptedCore(lambda stimulus: [GOODBYE], "core")
    within.deadline = 42
    core = Watched(within)
    assert (core.name, core.next_deadline(), core.step("anything", 0)) == ("core", 42, [GOODBYE])
