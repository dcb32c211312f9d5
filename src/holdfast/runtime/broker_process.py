"""One broker as a process: its driver, its admin port, its signals.

SIGTERM and SIGINT stop it cleanly: no more connections, a Goodbye to everybody, what is queued is sent, and the
process ends with status 0. A second signal ends it at once. A bug ends it with status 1 and a traceback in the log.

A broker of durable streams has a data folder, and in it a store. Its core counts in ticks of the wall clock, and is
told whenever that was set: an operator, or a daemon that keeps time, may do so while the clock of its timers goes on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from holdfast.broker.broker import Broker
from holdfast.broker.durable.inspection import subscriptions_of
from holdfast.broker.input import ClockSet, Stop
from holdfast.broker.settings import Settings
from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.errors import EnvironmentsFault
from holdfast.overlay.transport import Wake
from holdfast.runtime import clock, logs
from holdfast.runtime.addresses import Address, words_of
from holdfast.runtime.admin import Action, Admin, Answer, Page
from holdfast.runtime.collector import Collector
from holdfast.runtime.driver import Driver, DriverFailed
from holdfast.runtime.lake_process import LakeProcess
from holdfast.runtime.loop import run
from holdfast.runtime.metrics import CONTENT_TYPE, BrokerMetrics
from holdfast.runtime.operator import Operator
from holdfast.runtime.real_store import RealStore

__all__ = ["STORE_FOLDER", "BrokerService", "CannotListen", "run_broker"]

STORE_FOLDER: Final = "streams"  #: in a broker's data folder
CLOCK_CHECK_SECONDS: Final = 1.0
CLOCK_MOVED_NS: Final = MILLISECOND  #: less is not worth telling: ticks are made unique anyway


class CannotListen(EnvironmentsFault):
    """An address that is taken, or is none of this machine's."""

    def __init__(self, address: Address, error: OSError) -> None:
        super().__init__(f"cannot listen on {address}: {words_of(error)}")
        self.address = address


class BrokerService:
    """A broker that listens, in the running loop; ``driver_options`` are those of ``Driver``.

    ``data`` is its folder; a broker without durable streams needs none. ``lake`` is what its logs have behind them; a
    broker needs it if one of its streams does.

    :raises DiskFull, DiskFailed, NoLog, UnknownFormat: as ``RealStore.start``.
    """

    def __init__(
        self,
        settings: Settings,
        listen: Address,
        admin: Address | None = None,
        *,
        data: Path | None = None,
        lake: LakeProcess | None = None,
        insecure: bool = False,
        **driver_options: Any,
    ) -> None:
        if settings.is_durable and data is None:
            raise ValueError(f"{settings.name} has durable streams, and no folder for their logs")
        if settings.reads_lake and lake is None:
            raise ValueError(f"{settings.name} has streams that are read from the lake, and no lake")
        self.store = (
            None
            if data is None
            else RealStore(data / STORE_FOLDER, lake=lake, limit_of=settings.retain_bytes_of)
        )
        self.broker = (
            Broker(settings) if self.store is None else Broker(settings, recovered=self.store.start())
        )
        self._operator = Operator(lambda wish: self.driver.submit(wish))
        self.driver = Driver(
            self.broker,
            store=self.store,
            application=self._operator.on_effect,
            insecure=insecure,
            **driver_options,
        )
        self.listen = listen  #: with the real port, once started
        self.admin = admin
        self._metrics = BrokerMetrics(self.broker, self.driver)
        pages: dict[str, Page] = {
            "/livez": self._live,
            "/startupz": self._started,
            "/readyz": self._ready,
            "/metrics": lambda: Answer(HTTPStatus.OK, self._metrics.page(), CONTENT_TYPE),
            "/status": lambda: Answer.json(self.status()),
        }
        actions: Mapping[str, Action] = {}
        if self.broker.durable is not None:
            pages["/subscriptions"] = self._subscriptions
            actions = self._operator.actions
        self._server = Admin(pages, actions, insecure=insecure)
        self._listens = False
        self._started_at = clock.now()
        self._started_on = datetime.now(UTC)
        self._wall_offset_ns = 0  #: as the core was told
        self._clock_check: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Listen and go; the admin port first, so that it can say what is still missing.

        :raises CannotListen: if one of the two addresses cannot be had.
        :raises BadAddress: if one of them is not loopback, and insecurity was not allowed.
        """
        try:
            if self.admin is not None:
                self.admin = await _bind(self._server.listen, self.admin)
            self.listen = await _bind(self.driver.listen, self.listen)
        except BaseException:
            await self._server.stop()
            await self._close_store()
            raise
        self._listens = True
        if self.store is not None:
            self._check_clock()
        await self.driver.start(Wake())

    async def stop(self) -> None:
        """Say goodbye, send what is queued, write what was to be written, close everything."""
        if self._clock_check is not None:
            self._clock_check.cancel()
        self.driver.submit(Stop())
        await self.driver.stop()
        await self._server.stop()
        await self._close_store()

    async def _close_store(self) -> None:
        if self.store is not None:
            await asyncio.to_thread(self.store.close)

    def _check_clock(self) -> None:
        """Tell the core what the wall clock shows, if it does not know, and look again soon."""
        offset_ns = _wall_offset_ns()
        if abs(offset_ns - self._wall_offset_ns) > CLOCK_MOVED_NS:
            self._wall_offset_ns = offset_ns
            self.driver.submit(ClockSet(offset_ns))
        loop = asyncio.get_running_loop()
        self._clock_check = loop.call_later(CLOCK_CHECK_SECONDS, self._check_clock)

    def status(self) -> dict[str, Any]:
        """The broker's own status, and its process."""
        process = {
            "pid": os.getpid(),
            "since": self._started_on.isoformat(timespec="seconds"),
            "up_seconds": (clock.now() - self._started_at) / SECOND,
            "listen": str(self.listen),
            "connections": len(self.driver.connections),
            "queued_bytes": self.driver.connections.queued_bytes,
            "turns": self.driver.turns,
        }
        page = self.broker.status()
        for lapse in page["overlay"]["lapses"]:
            lapse["at"] = self._date(lapse["at"])
        return {**page, "process": process}

    def _subscriptions(self) -> Answer:
        assert self.broker.durable is not None
        return Answer.json(subscriptions_of(self.broker.durable))

    def _date(self, at: Instant) -> str:
        """An instant of the driver's, as a date."""
        since = timedelta(seconds=(at - self._started_at) / SECOND)
        return (self._started_on + since).isoformat(timespec="seconds")

    def _live(self) -> Answer:
        failure = self.driver.failure
        return Answer.checks({"loop": None, "core": None if failure is None else f"failed: {failure!r}"})

    def _started(self) -> Answer:
        return Answer.checks({"listening": None if self._listens else "not yet"})

    def _ready(self) -> Answer:
        neighbours = None if self.broker.is_ready else f"waiting for {self._missing() or 'the first turn'}"
        return Answer.checks({"listening": None if self._listens else "not yet", "neighbours": neighbours})

    def _missing(self) -> str:
        return ", ".join(
            f"{neighbour['name']} ({neighbour['state']})"
            for neighbour in self.broker.status()["neighbours"]
            if neighbour["state"] != "active"
        )


def _wall_offset_ns() -> int:
    """How far the wall clock is ahead of ours: of three readings the one in which least time passed."""
    readings: list[tuple[int, int]] = []
    for _ in range(3):
        before, wall, after = clock.now(), time.time_ns(), clock.now()
        readings.append((after - before, wall - (before + after) // 2))
    return min(readings)[1]


async def _bind(listen: Callable[[str, int], Any], address: Address) -> Address:
    try:
        return Address(address.host, await listen(*address))
    except OSError as error:
        raise CannotListen(address, error) from error


def run_broker(
    settings: Settings,
    listen: Address,
    admin: Address | None = None,
    *,
    data: Path | None = None,
    lake: LakeProcess | None = None,
    insecure: bool = False,
    on_start: Callable[[BrokerService], None] | None = None,
) -> int:
    """Run a broker in this process until a signal or a bug ends it; returns the exit status.

    ``data`` is its folder, which a broker of durable streams needs, ``lake`` as in ``BrokerService``; ``on_start`` is
    called once it listens.

    :raises DiskFull, DiskFailed, NoLog, UnknownFormat: if its folder cannot be had, or what is in it not be read.
    :raises CannotListen: if an address cannot be had.
    :raises BadAddress: if one is not loopback, and insecurity was not allowed.
    """
    allow_many_connections()

    async def main() -> int:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_on_stray_exception)
        transcribe = logs.LOGGER.isEnabledFor(logging.DEBUG)
        collector = Collector()
        service = BrokerService(
            settings,
            listen,
            admin,
            data=data,
            lake=lake,
            insecure=insecure,
            transcribe=transcribe,
            rest=collector.rest,
        )
        await service.start()
        collector.start()
        signalled = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, signalled.set)
        try:
            if on_start is not None:
                on_start(service)
            return await _until_the_end(service, signalled)
        finally:
            collector.stop()

    return run(main())


async def _until_the_end(service: BrokerService, signalled: asyncio.Event) -> int:
    asked = asyncio.ensure_future(signalled.wait())
    failed = asyncio.ensure_future(service.driver.wait_stopped())
    await asyncio.wait((asked, failed), return_when=asyncio.FIRST_COMPLETED)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().remove_signal_handler(number)
    await service.stop()
    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked
    try:
        await failed
    except DriverFailed:
        return 1  # logged where it happened
    return 0


def _on_stray_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What no callback caught: a bug, or a system out of sockets; either way an operator should know."""
    text = str(context.get("message", "an exception nobody caught"))
    error = context.get("exception")
    if error is None:
        logs.log("error", text, {})
    else:
        logs.bug(text, error, {})


def allow_many_connections() -> None:
    """Raise this process's limit of open files to what it may have: one per connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
