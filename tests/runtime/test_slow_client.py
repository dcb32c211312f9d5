"""The real client under a real driver, too slow for its broker: how that is felt at both ends."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.broker.settings import Settings as BrokerSettings
from holdfast.client.effect import Away, Delivered, Ready, Subscribed
from holdfast.client.input import AddSubscription, Consumed, Leave, Open
from holdfast.client.protocol import ClientCore
from holdfast.client.settings import Settings as ClientSettings
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.publications import Batch, Publication, Publish
from holdfast.messages.session import Welcome
from holdfast.runtime.addresses import Address
from holdfast.runtime.broker_process import BrokerService
from holdfast.runtime.driver import Driver
from holdfast.runtime.link import LinkLimits
from raw_peer import RawPeer, hello, wait_until
from scripted_core import LogBook

EVENTS = 400  # of 65 kB: more than the kernel and the broker hold for one client


class Application:
    """Takes nothing of what is delivered until it wakes up."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self._waiting = 0
        self._driver: Driver | None = None

    def __call__(self, effect: Any) -> None:
        self.told.append(effect)
        if isinstance(effect, Delivered):
            self._waiting += len(effect.items)
            self._consume()

    def wake(self, driver: Driver) -> None:
        self._driver = driver
        self._consume()

    def _consume(self) -> None:
        if self._driver is not None:
            self._driver.submit(Consumed(1, self._waiting))
            self._waiting = 0

    def heard(self, kind: type) -> list[Any]:
        return [effect for effect in self.told if isinstance(effect, kind)]


def test_a_client_that_consumes_too_slowly_stops_reading_is_dropped_told_and_comes_back() -> None:
    async def main() -> None:
        limits = LinkLimits(client_buffer_bytes_max=1_000_000)
        service = BrokerService(BrokerSettings("b", 1), Address("127.0.0.1", 0), limits=limits, log=LogBook())
        await service.start()
        application = Application()
        core = ClientCore(ClientSettings("slow", 1, str(service.listen)))
        driver = Driver(core, application=application, log=LogBook())
        await driver.start(Open(), AddSubscription(1, "#", buffer=10))
        await wait_until(lambda: application.heard(Subscribed))
        async with await RawPeer.dial(service.listen.port) as publisher:
            await publisher.send(hello("p"))
            await publisher.next_of(Welcome)
            for n in range(1, EVENTS + 1):
                event = pack(make_event("a", {}, bytes(65_000)))
                await publisher.send(Publish(Batch([Publication("p", n, event)])))
            await wait_until(lambda: service.broker.status()["clients"] == {"connected": 1, "away": 1})
            assert not application.heard(Away)
            assert sum(len(effect.items) for effect in application.heard(Delivered)) < EVENTS / 2
            application.wake(driver)
            await wait_until(lambda: application.heard(Away))
            assert "too-slow" in application.heard(Away)[0].reason
            await wait_until(lambda: len(application.heard(Ready)) == 2)
        driver.submit(Leave())
        await driver.stop()
        await service.stop()

    asyncio.run(main())
