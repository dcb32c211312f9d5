"""A broker with a data folder: its store is opened before it speaks, and closed after; it is told what time it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.broker.broker import Broker
from holdfast.broker.input import ClockSet
from holdfast.broker.settings import Settings
from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.overlay.transport import Wake
from holdfast.runtime import broker_process, clock
from holdfast.runtime.addresses import Address
from holdfast.runtime.broker_process import BrokerService, CannotListen
from holdfast.storage.files import DiskFailed
from raw_peer import PATIENCE_SECONDS, wait_until

ANY_PORT = Address("127.0.0.1", 0)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main(), PATIENCE_SECONDS)

    asyncio.run(bounded())


def service(data: Path | None, listen: Address = ANY_PORT) -> BrokerService:
    return BrokerService(Settings("b1", 1, ()), listen, data=data)


@pytest.fixture
def inputs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What brokers hear."""
    heard: list[Any] = []
    step = Broker.step

    def listening(broker: Broker, stimulus: Any, now: Instant) -> list[Any]:
        heard.append(stimulus)
        return step(broker, stimulus, now)

    monkeypatch.setattr(Broker, "step", listening)
    return heard


def test_the_folder_is_the_broker_s_until_it_has_stopped(tmp_path: Path) -> None:
    async def main() -> None:
        first = service(tmp_path / "b1")
        await first.start()
        with pytest.raises(DiskFailed, match="another process writes here"):
            service(tmp_path / "b1")
        with pytest.raises(CannotListen):
            await service(tmp_path / "b2", first.listen).start()
        await first.stop()
        for name in ("b1", "b2"):
            again = service(tmp_path / name)
            await again.start()
            await again.stop()

    run(main)


def test_the_wall_clock_is_the_first_thing_it_hears(tmp_path: Path, inputs: list[Any]) -> None:
    async def main() -> None:
        started = service(tmp_path)
        await started.start()
        await wait_until(lambda: Wake() in inputs)
        await started.stop()

    run(main)
    first, second = inputs[:2]
    assert second == Wake()
    assert isinstance(first, ClockSet)
    assert abs(first.offset_ns - (time.time_ns() - clock.now())) < 100 * MILLISECOND


def test_a_wall_clock_that_is_set_is_told_and_one_that_drifts_a_little_is_not(
    tmp_path: Path, inputs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    offset_ns = 1_700_000_000 * SECOND
    checks = 0

    def wall_clock() -> int:
        nonlocal checks
        checks += 1
        return 7 + offset_ns + checks % 2 * MILLISECOND // 2

    monkeypatch.setattr(broker_process, "CLOCK_CHECK_SECONDS", 0.001)
    monkeypatch.setattr("holdfast.runtime.broker_process.clock", SimpleNamespace(now=lambda: 7))
    monkeypatch.setattr("holdfast.runtime.broker_process.time", SimpleNamespace(time_ns=wall_clock))

    def told() -> list[int]:
        return [stimulus.offset_ns for stimulus in inputs if isinstance(stimulus, ClockSet)]

    async def main() -> None:
        nonlocal offset_ns
        started = service(tmp_path)
        await started.start()
        before = checks
        await wait_until(lambda: checks > before + 15)
        assert len(told()) == 1
        offset_ns -= 3_600 * SECOND
        await wait_until(lambda: len(told()) == 2)
        assert round((told()[0] - told()[1]) / SECOND) == 3_600
        await started.stop()

    run(main)


def test_a_broker_without_a_folder_has_no_store_and_no_date(inputs: list[Any]) -> None:
    async def main() -> None:
        started = service(None)
        await started.start()
        await wait_until(lambda: bool(inputs))
        await started.stop()
        assert started.store is None

    run(main)
    assert not any(isinstance(stimulus, ClockSet) for stimulus in inputs)
