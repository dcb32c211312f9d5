"""The admin port: what it says of a broker, and what it does with bad requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from holdfast.broker.settings import Neighbour, Settings
from holdfast.runtime import admin
from holdfast.runtime.addresses import Address, BadAddress
from holdfast.runtime.admin import Admin, Answer
from holdfast.runtime.broker_process import BrokerService, CannotListen
from raw_peer import PATIENCE_SECONDS, RawPeer, hello, wait_until

ANY = Address("127.0.0.1", 0)


@asynccontextmanager
async def broker(*neighbours: Neighbour) -> AsyncIterator[tuple[BrokerService, int]]:
    service = BrokerService(Settings("b1", 3, neighbours), ANY, ANY)
    await service.start()
    assert service.admin is not None
    try:
        yield service, service.admin.port
    finally:
        await service.stop()


async def ask(port: int, request: bytes, *, ends: bool = False) -> tuple[int, dict[str, str], str]:
    """Status, fields and body of the answer to these bytes; status 0 if the connection ends without one."""
    async with dialled(port) as (reader, writer), asyncio.timeout(PATIENCE_SECONDS):
        response = b""
        with suppress(ConnectionError):
            writer.write(request)
            if ends:
                writer.write_eof()
            response = await reader.read()
    head, _, body = response.partition(b"\r\n\r\n")
    if not head:
        return 0, {}, ""
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body.decode()


@asynccontextmanager
async def dialled(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


def get(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def test_a_broker_alone_is_alive_started_and_ready() -> None:
    async def main() -> None:
        async with broker() as (service, port):
            await wait_until(lambda: service.broker.is_ready)
            assert (await ask(port, get("/livez")))[0::2] == (200, "loop: ok\ncore: ok\n")
            assert (await ask(port, get("/startupz")))[0::2] == (200, "listening: ok\n")
            assert (await ask(port, get("/readyz?verbose=1")))[0::2] == (
                200,
                "listening: ok\nneighbours: ok\n",
            )

    asyncio.run(main())


def test_a_broker_that_waits_for_a_neighbour_is_not_ready_and_says_for_whom() -> None:
    async def main() -> None:
        async with broker(Neighbour("b2", None)) as (_, port):
            status, _, body = await ask(port, get("/readyz"))
            assert (status, body) == (503, "listening: ok\nneighbours: waiting for b2 (never met)\n")
            assert (await ask(port, get("/livez")))[0] == 200

    asyncio.run(main())


def test_a_broker_whose_core_failed_is_not_alive() -> None:
    async def main() -> None:
        async with broker() as (service, port):
            service.driver.failure = KeyError("a bug")
            status, _, body = await ask(port, get("/livez"))
            assert (status, body) == (503, "loop: ok\ncore: failed: KeyError('a bug')\n")

    asyncio.run(main())


def test_status_is_the_brokers_own_with_its_process() -> None:
    async def main() -> None:
        async with broker() as (service, port):
            async with await RawPeer.dial(service.listen.port) as client:
                await client.send(hello("c"))
                await client.next()
                status, fields, body = await ask(port, get("/status"))
            page = json.loads(body)
            assert (status, fields["Content-Type"]) == (200, "application/json")
            assert (page["name"], page["incarnation"], page["clients"]["connected"]) == ("b1", 3, 1)
            assert page["process"]["listen"] == str(service.listen)
            assert page["process"]["connections"] == 1

    asyncio.run(main())


def test_metrics_count_what_the_broker_counts() -> None:
    async def main() -> None:
        async with broker() as (service, port):
            await wait_until(lambda: service.broker.is_ready)
            service.broker.counters.published = 17
            service.broker.counters.lapses = 2
            status, fields, body = await ask(port, get("/metrics"))
            assert status == 200
            assert fields["Content-Type"].startswith("text/plain; version=")
            assert 'holdfast_published_total{broker="b1"} 17.0' in body
            assert 'holdfast_lapses_total{broker="b1"} 2.0' in body
            assert 'holdfast_connections{broker="b1"} 0.0' in body
            assert "process_resident_memory_bytes" in body

    asyncio.run(main())


def test_head_has_the_length_and_no_body() -> None:
    async def main() -> None:
        async with broker() as (_, port):
            status, fields, body = await ask(port, get("/livez", "HEAD"))
            assert (status, fields["Content-Length"], body) == (200, str(len("loop: ok\ncore: ok\n")), "")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/"), 404),
        (get("/livez/"), 404),
        (get("/../etc/passwd"), 404),
        (get("/livez", "POST"), 405),
        (get("/livez", "BREW"), 405),
        (b"GET /livez\r\n\r\n", 400),
        (b"GET /livez HTTP/2.0\r\n\r\n", 400),
        (b"get /livez HTTP/1.1\r\n\r\n", 400),
        (b"GET  /livez HTTP/1.1\r\n\r\n", 400),
        (b"GET /l\xffvez HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\nHost: x\n\n\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n", 431),
        (b"GET /" + b"x" * 100_000, 431),
    ],
)
def test_a_bad_request_is_told_so_and_the_next_is_served(request_bytes: bytes, status: int) -> None:
    async def main() -> None:
        async with broker() as (_, port):
            answered, fields, body = await ask(port, request_bytes)
            assert answered == status
            assert body
            assert fields.get("Allow") == ("GET, HEAD" if status == 405 else None)
            assert (await ask(port, get("/livez")))[0] == 200

    asyncio.run(main())


@pytest.mark.parametrize(("sent", "status"), [(b"", 0), (b"GET /livez HT", 400)])
def test_half_a_request_is_no_request(sent: bytes, status: int) -> None:
    async def main() -> None:
        async with broker() as (_, port):
            assert (await ask(port, sent, ends=True))[0] == status

    asyncio.run(main())


def test_a_slow_request_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "REQUEST_SECONDS", 0.05)

    async def main() -> None:
        async with broker() as (_, port):
            assert (await ask(port, b"GET /livez"))[0] == 0

    asyncio.run(main())


def test_only_so_many_are_served_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "CONNECTIONS_MAX", 2)

    async def main() -> None:
        async with broker() as (service, port):
            async with dialled(port), dialled(port):
                await wait_until(lambda: len(service._server._serving) == 2)
                assert (await ask(port, get("/livez")))[0] == 0
            await wait_until(lambda: not service._server._serving)
            assert (await ask(port, get("/livez")))[0] == 200

    asyncio.run(main())


def test_a_page_that_fails_is_a_500_that_names_it() -> None:
    def broken() -> Answer:
        raise KeyError("a bug")

    async def main() -> None:
        server = Admin({"/broken": broken})
        port = await server.listen("127.0.0.1", 0)
        status, _, body = await ask(port, get("/broken"))
        assert (status, body) == (500, "/broken: KeyError('a bug')\n")
        await server.stop()

    asyncio.run(main())


def test_stopping_leaves_no_task_and_no_connection() -> None:
    async def main() -> None:
        async with broker() as (service, port):
            async with dialled(port) as (reader, _):
                await wait_until(lambda: service._server._serving)
                await service.stop()
                assert await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_an_address_that_is_taken_is_named() -> None:
    async def main() -> None:
        async with broker() as (service, _):
            other = BrokerService(Settings("b2", 1), service.listen, ANY)
            with pytest.raises(CannotListen, match=str(service.listen)):
                await other.start()

    asyncio.run(main())


def test_an_address_that_leaves_this_machine_is_refused() -> None:
    async def main() -> None:
        anywhere = Address("0.0.0.0", 0)
        for listen, page in ((anywhere, ANY), (ANY, anywhere)):
            with pytest.raises(BadAddress, match="insecure = true"):
                await BrokerService(Settings("b", 1), listen, page).start()

    asyncio.run(main())
