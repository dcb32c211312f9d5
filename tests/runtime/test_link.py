"""Links over real sockets: how bytes are cut, who is dropped, and what the dropped are told."""

from __future__ import annotations

import asyncio
import random
import socket
from typing import Any

import pytest

from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted, Rejected
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Kind
from holdfast.overlay.transport import Close, Connected, Disconnected, Pause, Received, Resume, Send
from holdfast.runtime import clock
from holdfast.runtime.link import FIRST_FRAME_BYTES_MAX, TRANSPORT_BYTES, LinkLimits
from holdfast.wire.frame import FRAME_BYTES_MAX, header
from raw_peer import RawPeer, frames, hello, wait_until
from scripted_core import LogBook, ScriptedCore, driven

SAID: list[Message] = [hello("p"), Heartbeat(), Accepted(1), Rejected(2, "x" * 300), Heartbeat(), Accepted(3)]

#: Much more than the kernel's buffers for a connection on loopback.
FLOOD: list[Message] = [Rejected(n, "x" * 65_000) for n in range(400)]
FLOOD_BYTES = 400 * 65_000
PATIENCE_NS = 3600 * SECOND


@pytest.mark.parametrize("seed", range(5))
def test_messages_arrive_whole_however_their_bytes_are_cut(seed: int) -> None:
    async def main() -> None:
        draw = random.Random(seed)
        data = frames(*SAID)
        core = ScriptedCore()
        async with driven(core) as (_, port), await RawPeer.dial(port) as peer:
            sent = 0
            while sent < len(data):
                size = draw.choice((1, 2, 3, 8, 9, 10, 100))
                seen = len(core.inputs)
                await peer.send_bytes(data[sent : sent + size])
                sent += size
                if draw.random() < 0.5:
                    await asyncio.sleep(0)
                    await wait_until(lambda seen=seen: len(core.inputs) >= seen)  # type: ignore[misc]
            await wait_until(lambda: len(core.heard(1)) == len(SAID))
            assert core.heard(1) == SAID

    asyncio.run(main())


def test_frames_get_their_numbers_in_the_order_they_leave_and_heartbeats_none() -> None:
    async def main() -> None:
        core = ScriptedCore(
            lambda stimulus: [Send(1, SAID[:3]), Send(1, SAID[3:])] if stimulus == "go" else []
        )
        async with driven(core) as (driver, port), await RawPeer.dial(port) as peer:
            await wait_until(lambda: core.connections)
            driver.submit("go")
            driver.submit("go")
            # A hole, a repeat or a numbered heartbeat would raise here.
            assert [await peer.next() for _ in range(2 * len(SAID))] == SAID * 2

    asyncio.run(main())


BAD = {
    "noise": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "an unknown kind": header(99, 1, 0),
    "too large": (FRAME_BYTES_MAX + 1).to_bytes(4) + bytes(5),
    "smaller than its header": bytes(9),
    "a repeated number": frames(hello("p")) * 2,
    "a hole": frames(hello("p"), after=1),
    "a body that is none": header(33, 1, 3) + b"\xc1\xc1\xc1",
}


@pytest.mark.parametrize("bad", BAD)
def test_a_malformed_frame_closes_its_connection_and_no_other(bad: str) -> None:
    async def main() -> None:
        log = LogBook()
        core = ScriptedCore(
            lambda stimulus: [Send(2, stimulus.messages)] if isinstance(stimulus, Received) else []
        )
        async with driven(core, log=log) as (driver, port):
            async with await RawPeer.dial(port) as culprit, await RawPeer.dial(port) as bystander:
                await wait_until(lambda: core.connections == [1, 2])
                await culprit.send_bytes(BAD[bad])
                farewell = await culprit.next()
                assert isinstance(farewell, Goodbye)
                assert farewell.farewell is Farewell.PROTOCOL
                assert await culprit.next() is None
                await bystander.send(hello("q"), Accepted(5))
                assert [await bystander.next(), await bystander.next()] == [hello("q"), Accepted(5)]
            assert core.inputs[2] == Disconnected(1, f"protocol: {farewell.reason}")
            [reason] = log.reasons("warning")
            assert reason == f"protocol: {farewell.reason}"
            await wait_until(lambda: len(driver.connections) == 0)

    asyncio.run(main())


def test_a_stranger_cannot_fill_memory_before_its_first_frame_is_complete() -> None:
    async def main() -> None:
        core = ScriptedCore()
        async with driven(core) as (_, port), await RawPeer.dial(port) as peer:
            await peer.send_bytes((FRAME_BYTES_MAX - 1).to_bytes(4) + bytes(FIRST_FRAME_BYTES_MAX))
            farewell = await peer.next()
            assert isinstance(farewell, Goodbye)
            assert "first" in farewell.reason

    asyncio.run(main())


def test_a_large_frame_is_welcome_after_the_first() -> None:
    async def main() -> None:
        core = ScriptedCore()
        large = Rejected(1, "x" * (FRAME_BYTES_MAX - 100))
        async with driven(core) as (_, port), await RawPeer.dial(port) as peer:
            await peer.send(hello("p"))
            await peer.send(large)
            await wait_until(lambda: len(core.heard(1)) == 2)
            assert core.heard(1)[1] == large

    asyncio.run(main())


def flooding(stimulus: Any) -> list[Any]:
    return [Send(1, FLOOD)] if stimulus == "flood" else []


def test_a_peer_that_does_not_read_is_dropped_and_told_while_another_gets_everything() -> None:
    async def main() -> None:
        limits = LinkLimits(client_buffer_bytes_max=1_000_000)
        core = ScriptedCore(
            lambda stimulus: flooding(stimulus) or ([Send(2, SAID)] if stimulus == "other" else [])
        )
        log = LogBook()
        async with driven(core, limits=limits, log=log) as (driver, port):
            async with await RawPeer.dial(port) as slow, await RawPeer.dial(port) as other:
                await wait_until(lambda: core.connections == [1, 2])
                driver.submit("flood")
                await wait_until(lambda: core.lost)
                assert driver.connections.queued_bytes < 1_000
                driver.submit("other")
                assert [await other.next() for _ in SAID] == SAID
                # It reads again: whole frames, and then why there are no more.
                *before, last = await slow.rest()
                assert before == FLOOD[: len(before)]
                assert isinstance(last, Goodbye)
                assert last.farewell is Farewell.TOO_SLOW
                assert core.lost == {1: f"too-slow: {last.reason}"}
            assert log.reasons("warning") == [f"too-slow: {last.reason}"]

    asyncio.run(main())


def test_a_burst_over_the_buffer_reaches_a_peer_that_reads() -> None:
    async def main() -> None:
        core = ScriptedCore(flooding)
        limits = LinkLimits(client_buffer_bytes_max=FLOOD_BYTES // 2)
        async with driven(core, limits=limits) as (driver, port), await RawPeer.dial(port) as peer:
            await wait_until(lambda: core.connections)
            driver.submit("flood")
            assert [await peer.next() for _ in FLOOD] == FLOOD
            assert not core.lost

    asyncio.run(main())


def test_a_peer_that_stays_behind_is_dropped_though_it_was_a_burst_that_left_it_there() -> None:
    async def main() -> None:
        core = ScriptedCore(
            lambda stimulus: flooding(stimulus) or ([Send(1, [Heartbeat()])] if stimulus == "beat" else [])
        )
        limits = LinkLimits(client_buffer_bytes_max=FLOOD_BYTES // 3, slow_ns=20 * MILLISECOND)
        async with driven(core, limits=limits) as (driver, port), await RawPeer.dial(port):
            await wait_until(lambda: core.connections)
            flooded = clock.now()
            driver.submit("flood")

            def lost_at_a_beat() -> bool:
                driver.submit("beat")
                return bool(core.lost)

            await wait_until(lost_at_a_beat)
            assert "too-slow" in core.lost[1]
            assert clock.now() - flooded >= 20 * MILLISECOND

    asyncio.run(main())


def test_who_has_caught_up_may_fall_behind_again() -> None:
    async def main() -> None:
        core = ScriptedCore(flooding)
        limits = LinkLimits(client_buffer_bytes_max=FLOOD_BYTES // 2, slow_ns=PATIENCE_NS)
        async with driven(core, limits=limits) as (driver, port), await RawPeer.dial(port) as peer:
            await wait_until(lambda: core.connections)
            for _ in range(2):
                driver.submit("flood")
                assert [await peer.next() for _ in FLOOD] == FLOOD
                assert driver.connections.open[1]._behind_since is None

    asyncio.run(main())


def test_a_peer_that_never_reads_is_gone_after_the_time_to_linger() -> None:
    async def main() -> None:
        limits = LinkLimits(client_buffer_bytes_max=1_000_000, linger_ns=50 * MILLISECOND)
        core = ScriptedCore(flooding)
        async with driven(core, limits=limits) as (driver, port), await RawPeer.dial(port):
            await wait_until(lambda: core.connections)
            driver.submit("flood")
            await wait_until(lambda: len(driver.connections) == 0)

    asyncio.run(main())


def test_what_fits_into_the_buffer_waits_there_until_the_peer_reads() -> None:
    async def main() -> None:
        core = ScriptedCore(flooding)
        limits = LinkLimits(client_buffer_bytes_max=sum(map(len, map(frames, FLOOD))))
        async with driven(core, limits=limits) as (driver, port), await RawPeer.dial(port) as peer:
            await wait_until(lambda: core.connections)
            driver.submit("flood")
            await wait_until(lambda: driver.connections.queued_bytes > 0)
            held = driver.connections.open[1]._transport.get_write_buffer_size()
            assert held < 2 * TRANSPORT_BYTES + 65_100
            assert [await peer.next() for _ in FLOOD] == FLOOD
            assert not core.lost

    asyncio.run(main())


def test_a_broker_may_leave_more_unread_than_a_client() -> None:
    async def main() -> None:
        limits = LinkLimits(client_buffer_bytes_max=1, broker_buffer_bytes_max=10**9)
        core = ScriptedCore(flooding)
        async with driven(core, limits=limits) as (driver, port), await RawPeer.dial(port) as broker:
            await broker.send(hello("b", Kind.BROKER))
            await wait_until(lambda: core.heard(1))
            driver.submit("flood")
            assert [await broker.next() for _ in FLOOD] == FLOOD

    asyncio.run(main())


def test_a_paused_link_reads_nothing_and_its_peer_feels_it_until_it_is_resumed() -> None:
    async def main() -> None:
        def react(stimulus: Any) -> list[Any]:
            match stimulus:
                case Connected(connection):
                    return [Pause(connection)]
                case "resume":
                    return [Resume(1)]
            return []

        core = ScriptedCore(react)
        async with driven(core) as (driver, port), await RawPeer.dial(port) as peer:
            await wait_until(lambda: core.connections)
            await peer.send(hello("p"))
            sending = asyncio.create_task(peer.send(*FLOOD))
            writer = peer._streams[1]
            await wait_until(lambda: writer.transport.get_write_buffer_size() > 0)
            seen = len(core.heard(1))
            driver.submit("nudge")
            await wait_until(lambda: core.inputs[-1] == "nudge")
            assert len(core.heard(1)) == seen
            assert not sending.done()
            driver.submit("resume")
            await sending
            await wait_until(lambda: core.heard(1)[-1:] == FLOOD[-1:])
            assert core.heard(1) == [hello("p"), *FLOOD]

    asyncio.run(main())


def test_the_last_words_reach_a_peer_that_was_still_talking() -> None:
    async def main() -> None:
        last = Goodbye(Farewell.TAKEN_OVER, "somebody else")

        def react(stimulus: Any) -> list[Any]:
            match stimulus:
                case Connected(connection):
                    return [Pause(connection)]
                case "close":
                    return [Send(1, [last]), Close(1, "taken over")]
            return []

        core = ScriptedCore(react)
        async with driven(core) as (driver, port), await RawPeer.dial(port) as peer:
            await wait_until(lambda: core.connections)
            talking = asyncio.create_task(peer.send(hello("p"), *FLOOD))
            await wait_until(lambda: peer._streams[1].transport.get_write_buffer_size() > 0)
            driver.submit("close")
            await talking  # to nowhere, but a reset would have broken it
            assert await peer.rest() == [last]

    asyncio.run(main())


def test_more_connections_than_allowed_are_refused_and_the_others_live() -> None:
    async def main() -> None:
        core = ScriptedCore(lambda stimulus: [Send(1, [Accepted(1)])] if stimulus == "go" else [])
        async with driven(core, links_max=1) as (driver, port):
            async with await RawPeer.dial(port) as first, await RawPeer.dial(port) as second:
                assert await second.rest() == []
                driver.submit("go")
                assert await first.next() == Accepted(1)
            await wait_until(lambda: len(driver.connections) == 0)
            async with await RawPeer.dial(port):
                await wait_until(lambda: core.connections == [1, 3])

    asyncio.run(main())


def test_small_writes_leave_at_once() -> None:
    async def main() -> None:
        core = ScriptedCore()
        async with driven(core) as (driver, port), await RawPeer.dial(port):
            await wait_until(lambda: core.connections)
            sock = driver.connections.open[1]._transport.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    asyncio.run(main())


def test_the_default_time_to_linger_is_ten_seconds() -> None:
    assert LinkLimits().linger_ns == 10 * SECOND
