"""What an operator does through the admin port of real brokers with real disks: seek, end, forget, and who may."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.broker.durable.course import Course
from holdfast.broker.durable.own import REFUSE_NS, OwnPubend
from holdfast.broker.input import Seek
from holdfast.broker.settings import Neighbour, Settings, Stream
from holdfast.client.errors import TakenOver
from holdfast.client.item import Item, LoggedEvent
from holdfast.clock import MILLISECOND
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication
from holdfast.messages.streams import Guarantee
from holdfast.runtime import admin
from holdfast.runtime.addresses import Address
from holdfast.runtime.broker_process import BrokerService
from holdfast.runtime.operator import InvalidStart, seek_to
from holdfast.streams.checkpoint_token import Place, Token
from holdfast.streams.pubend import Kept, Request
from holdfast.streams.storing import ChopMatches, EventsRefused, TryEvents
from raw_peer import wait_until
from scenario import scenario

ANY = Address("127.0.0.1", 0)
STREAM = Stream("orders", ("orders/#",), guarantee=Guarantee.DURABLE)
PUBEND = "orders@a/0"


def settings(name: str, *neighbours: Neighbour, **more: Any) -> Settings:
    return Settings(name, 1, neighbours, (STREAM,), report_every_ns=20 * MILLISECOND, **more)


@asynccontextmanager
async def running(*told: tuple[Settings, Path]) -> AsyncIterator[list[BrokerService]]:
    """Brokers, each below the one before it."""
    async with AsyncExitStack() as stack:
        services: list[BrokerService] = []
        for each, folder in told:
            neighbours = each.neighbours
            if services:
                neighbours = (Neighbour(services[-1].broker.name, str(services[-1].listen)), *neighbours)
            service = BrokerService(replace(each, neighbours=neighbours), ANY, ANY, data=folder)
            await service.start()
            stack.push_async_callback(service.stop)
            services.append(service)
        for service in services:
            await wait_until(lambda service=service: service.broker.is_ready)  # type: ignore[misc]
        yield services


@asynccontextmanager
async def client(service: BrokerService, name: str) -> AsyncIterator[holdfast.Network]:
    async with holdfast.connect(f"holdfast://{service.listen}", name=name) as network:
        yield network


async def ask(
    service: BrokerService,
    method: str,
    path: str,
    body: bytes = b"",
    length: int | None = -1,
    fields: str = "",
) -> tuple[int, dict[str, str], str]:
    """Status, fields and body of an answer; ``length`` is what is said of the body, if it is another."""
    assert service.admin is not None
    reader, writer = await asyncio.open_connection(*service.admin)
    said = len(body) if length == -1 else length
    counted = "" if said is None else f"Content-Length: {said}\r\n"
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{counted}{fields}\r\n".encode() + body)
    writer.write_eof()
    head, _, text = (await reader.read()).decode().partition("\r\n\r\n")
    writer.transport.abort()
    first, *lines = head.split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), text.strip()


async def do(service: BrokerService, path: str, **wish: Any) -> tuple[int, str]:
    status, _, text = await ask(service, "POST", path, json.dumps(wish).encode())
    return status, text


def pubend(service: BrokerService) -> Mapping[str, Any]:
    found: list[Mapping[str, Any]] = service.status()["durable"]["pubends"]
    assert len(found) == 1
    return found[0]


async def publish(network: holdfast.Network, *numbers: int) -> list[int]:
    """The ticks of events with these numbers."""
    return [(await network.publish("orders/eu", {"i": n}, n=n)).tick for n in numbers]


async def read(network: holdfast.Network, durable: str, count: int) -> list[int]:
    """The numbers of the next events of a durable subscription, which acknowledges them."""
    async with network.subscribe("orders/#", durable=durable, acknowledge="auto") as items:
        return numbers([await items.get() for _ in range(count)])


def numbers(items: list[Item]) -> list[int]:
    assert all(isinstance(item, LoggedEvent) for item in items), items
    return [item.n for item in items if isinstance(item, LoggedEvent)]


def moment(tick: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick)).isoformat()


@scenario
async def test_a_subscription_is_moved_to_where_it_is_told(tmp_path: Path) -> None:
    """B1.9: it begins anew there; what its broker has let go of is filtered once more."""
    async with running((settings("a"), tmp_path)) as (a,), client(a, "p") as p, client(a, "s") as s:
        for name in ("keeps", "moved"):  # the first one acknowledges nothing, so nothing is given up
            await read(s, name, 0)
        ticks = await publish(p, 1, 2, 3, 4, 5)
        assert await read(s, "moved", 5) == [1, 2, 3, 4, 5]

        async def moved(to: str, count: int) -> list[int]:
            assert await do(a, "/subscriptions/seek", name="moved", to=to) == (200, "done")
            return await read(s, "moved", count)

        assert await moved("earliest", 5) == [1, 2, 3, 4, 5]
        assert await moved(moment(ticks[3]), 2) == [4, 5]
        assert await moved(str(Token({PUBEND: Place(1, ticks[1])})), 3) == [3, 4, 5]
        assert await moved("earliest", 2) == [1, 2]
        assert await do(a, "/subscriptions/seek", name="moved", to="now") == (200, "done")
        await publish(p, 6)
        assert await read(s, "moved", 1) == [6]


@scenario
async def test_who_goes_back_beyond_the_filtering_log_has_everything_filtered_once_more(
    tmp_path: Path,
) -> None:
    """The log of events still has them, for another broker perhaps; only who wanted them was forgotten here."""
    async with running((settings("a"), tmp_path)) as (a,), client(a, "p") as p, client(a, "s") as s:
        for name in ("keeps", "moved"):
            await read(s, name, 0)
        ticks = await publish(p, 1, 2, 3)
        assert await read(s, "moved", 3) == [1, 2, 3]
        assert a.store is not None
        a.store.submit(ChopMatches(PUBEND, ticks[-1]))
        assert await do(a, "/subscriptions/seek", name="moved", to="earliest") == (200, "done")
        assert await read(s, "moved", 3) == [1, 2, 3]


@scenario
async def test_what_was_sought_is_on_disk(tmp_path: Path) -> None:
    async with running((settings("a"), tmp_path)) as (a,), client(a, "p") as p, client(a, "s") as s:
        for name in ("keeps", "moved"):
            await read(s, name, 0)
        await publish(p, 1, 2)
        assert await read(s, "moved", 2) == [1, 2]
        assert await do(a, "/subscriptions/seek", name="moved", to="earliest") == (200, "done")
    async with running((replace(settings("a"), incarnation=2), tmp_path)) as (a,), client(a, "s") as s:
        assert await read(s, "moved", 2) == [1, 2]


@scenario
async def test_a_subscription_is_not_moved_under_its_reader_nor_to_nowhere(tmp_path: Path) -> None:
    async with running((settings("a"), tmp_path)) as (a,), client(a, "s") as s:
        async with s.subscribe("orders/#", durable="d"):
            being_read = "'d' is being read by s: stop that first"
            assert await do(a, "/subscriptions/seek", name="d", to="now") == (409, being_read)
        nowhere = await do(a, "/subscriptions/seek", name="d", to="yesterday")
        assert (nowhere[0], nowhere[1].partition(";")[0]) == (400, "'yesterday' is no place in a stream")
        late = moment((a.status()["durable"]["clock"] // 1_000_000 + 3_600) * 1_000_000)
        status, text = await do(a, "/subscriptions/seek", name="d", to=late)
        assert status == 409
        assert text.startswith(f"{late[:19]}Z has not come yet: this broker's clock is at 20")
        endless = str(Token({PUBEND: Place(1, 2**62)}))
        status, text = await do(a, "/subscriptions/seek", name="d", to=endless)
        assert (status, text.partition(":")[0]) == (409, f"tick {2**62} has not come yet")
        none = "there is no durable subscription 'x' here"
        assert await do(a, "/subscriptions/seek", name="x", to="now") == (409, none)
        assert await do(a, "/subscriptions/end", name="x") == (409, none)
        status, text = await do(a, "/subscriptions/end", nam="d")
        assert (status, text.partition(":")[0]) == (400, "the body is not what was expected")


@scenario
async def test_an_ended_subscription_is_over_for_its_reader_and_pins_nothing(tmp_path: Path) -> None:
    async with running((settings("a"), tmp_path)) as (a,), client(a, "p") as p, client(a, "s") as s:
        async with s.subscribe("orders/#", durable="d") as items:
            await publish(p, 1)
            await items.get()
            await wait_until(lambda: pubend(a)["waits_for"][0]["pins"])
            assert await do(a, "/subscriptions/end", name="d") == (200, "done")
            with pytest.raises(TakenOver, match="ended by an operator"):
                await items.get()
        await wait_until(lambda: not any(each["pins"] for each in pubend(a)["waits_for"]))
        async with s.subscribe("orders/# WHERE i > 1", durable="d"):  # the name is free
            assert a.status()["durable"]["subscriptions"]["here"] == 1


@scenario
async def test_b1_8_a_broker_that_is_gone_is_forgotten_by_name_and_one_that_is_there_is_not(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        told = (settings("a", Neighbour("b", None)), tmp_path / "a"), (settings("b"), tmp_path / "b")
        a, b = await stack.enter_async_context(running(*told))
        async with client(b, "s") as s, client(a, "p") as p:
            await read(s, "d", 0)
            await publish(p, 1)
        await wait_until(lambda: [each["pins"] for each in pubend(a)["waits_for"]] == [True])
        status, text = await do(a, "/streams/forget", broker="b")
        assert (status, text.partition(",")[0]) == (409, "b can be reached")
        assert await do(a, "/streams/forget", broker="c") == (409, "no log here waits for c")
        await b.stop()
        await wait_until(lambda: not pubend(a)["waits_for"][0]["reached"])
        assert await do(a, "/streams/forget", broker="b", stream="news") == (409, "no log here waits for b")
        assert await do(a, "/streams/forget", broker="b", stream="orders") == (200, "done")
        assert pubend(a)["waits_for"] == []


@scenario
async def test_a_subscription_that_nobody_reads_for_too_long_expires(tmp_path: Path) -> None:
    told = settings("a", expire_after_ns=300 * MILLISECOND)
    async with (
        running((told, tmp_path)) as (a,),
        client(a, "s") as s,
        s.subscribe("orders/#", durable="read"),
    ):
        await read(s, "left", 0)
        counts = a.status()["durable"]["subscriptions"]
        assert (counts["here"], counts["away"]) == (1, 1)
        await wait_until(lambda: a.status()["durable"]["subscriptions"]["away"] == 0)
        assert a.status()["durable"]["subscriptions"]["here"] == 1


@scenario
async def test_status_and_metrics_say_who_pins_a_log_and_that_a_disk_is_full(tmp_path: Path) -> None:
    """Issue 5, build 7; one copy is said to be one."""
    async with running((settings("a"), tmp_path)) as (a,), client(a, "p") as p, client(a, "s") as s:
        await read(s, "d", 0)
        (tick,) = await publish(p, 1)
        await wait_until(lambda: pubend(a)["delivered"] >= tick)
        found = pubend(a)
        assert (found["pubend"], found["last"], found["state"], found["copies"]) == (PUBEND, tick, "ok", 1)
        assert found["released"] < tick
        (waits,) = found["waits_for"]
        assert (waits["broker"], waits["reached"], waits["pins"]) == ("a", True, True)
        durable = a.status()["durable"]
        (hosted,) = durable["hosted"]
        (pinning,) = hosted["pinned_by"]
        assert pinning["name"] == "d"
        assert 0 < durable["clock"] - pinning["away_since"] < 30_000_000
        (subscription,) = json.loads((await ask(a, "GET", "/subscriptions"))[2])["subscriptions"]
        assert (subscription["name"], subscription["client"]) == ("d", None)
        assert subscription["places"][0]["state"] == "away"

        a.driver.submit(EventsRefused(PUBEND, "no space left on device", is_final=False))
        await wait_until(lambda: pubend(a)["state"] == "refusing")
        assert pubend(a)["problem"] == "no space left on device"
        page = (await ask(a, "GET", "/metrics"))[2]
        labels = f'{{broker="a",pubend="{PUBEND}",stream="orders"}}'
        assert f"holdfast_log_refusing{labels} 1.0" in page
        assert f"holdfast_log_copies{labels} 1.0" in page
        for figure in (
            "staged_attempts",
            "staged_bytes",
            "staged_seconds",
            "staged_swept_total",
            "epochs_total",
        ):
            assert f'holdfast_{figure}{{broker="a"}} 0.0' in page
        assert 'holdfast_durable_subscriptions{broker="a",state="away"} 1.0' in page


def test_a_full_disk_is_a_state_until_there_is_room() -> None:
    own = OwnPubend(Course(PUBEND, "orders", is_own=True), STREAM, Kept(), None, ())
    own.publish([Request(0, Publication("p", 1, pack(make_event("orders/eu"))))], 10)
    own.on_refused("full", 1, 0, is_final=False)
    assert (own.problem, own.failure) == ("full", None)
    assert own.try_again(REFUSE_NS - 1) is None
    assert own.try_again(REFUSE_NS) == TryEvents(PUBEND)
    assert own.on_tried(None)
    assert own.problem is None


@scenario
async def test_actions_are_for_this_machine_and_not_for_browsers(tmp_path: Path) -> None:
    async with running((settings("a"), tmp_path)) as (a,):
        path = "/subscriptions/end"
        body = b'{"name": "d"}'
        assert (await ask(a, "POST", path, body, fields="Origin: http://evil.example\r\n"))[0] == 403
        assert (await ask(a, "POST", path, body, length=None))[0] == 411
        assert (await ask(a, "POST", path, body, length=admin.BODY_BYTES_MAX + 1))[0] == 413
        assert (await ask(a, "POST", path, body, length=len(body) + 1))[0] == 400
        status, fields, _ = await ask(a, "GET", path)
        assert (status, fields["Allow"]) == (405, "POST")
        status, fields, _ = await ask(a, "POST", "/status")
        assert (status, fields["Allow"]) == (405, "GET, HEAD")
        assert (await ask(a, "POST", path, body))[0] == 409


@pytest.mark.parametrize(
    ("peer", "is_near"),
    [
        (("127.0.0.1", 5), True),
        (("::1", 5, 0, 0), True),
        (("10.0.0.1", 5), False),
        (("fe80::1%eth0", 5, 0, 3), False),
        (None, False),
        (("", 0), False),
    ],
)
def test_this_machine_is_loopback(peer: object, is_near: bool) -> None:
    assert admin.is_this_machine(peer) is is_near


def test_a_broker_of_durable_streams_needs_a_folder() -> None:
    with pytest.raises(ValueError, match="a has durable streams, and no folder"):
        BrokerService(settings("a"), ANY)


def test_places_in_a_stream_are_read() -> None:
    assert seek_to("d", "now") == Seek("d")
    assert seek_to("d", "earliest") == Seek("d", 0)
    assert seek_to("d", "1970-01-01T00:00:01Z") == Seek("d", 999_999)
    assert seek_to("d", "1970-01-01T01:00:01+01:00") == Seek("d", 999_999)
    assert seek_to("d", str(Token({"p": Place(1, 7)}))) == Seek("d", None, {"p": 7})
    for text in ("2026-01-31T12:00:00", "hf1.xx", "", "soon"):
        with pytest.raises(InvalidStart):
            seek_to("d", text)


@pytest.mark.parametrize(
    "text", ["2026-01-31", "2026-01-31T12", "2026-01-31 12:00", "20260131", "2026-W05-6"]
)
def test_of_a_time_without_a_zone_one_is_proposed_that_is_taken(text: str) -> None:
    with pytest.raises(
        InvalidStart, match=r"has no time zone; expected one, such as [^ ]+ for UTC$"
    ) as refused:
        seek_to("d", text)
    proposed = str(refused.value).split()[-3]
    wished = datetime.fromisoformat(text).replace(tzinfo=UTC)
    assert seek_to("d", proposed) == seek_to("d", wished.isoformat())
