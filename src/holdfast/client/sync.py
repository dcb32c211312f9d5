"""The client without async: the same calls, each waiting for its result.

    with holdfast.sync.connect("holdfast://localhost:7000", name="trader-7") as network:
        receipt = network.publish("orders/eu", {"price": 101.5}, b"...")
        with network.subscribe("orders/# WHERE price > 100") as items:
            for item in items:
                ...

Each connection has one thread, in which ``client.aio`` runs; it ends when the network is closed. Any number of threads
may call. Ctrl-C interrupts any wait and cancels what was waited for, as if a task of asyncio had been cancelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from holdfast.client import aio
from holdfast.client.aio_publishing import Attributes
from holdfast.client.aio_waiting import DEFAULT_TIMEOUT
from holdfast.client.errors import Closed
from holdfast.client.options import Acknowledging, OnGap, OnUpgrade, Options, Start
from holdfast.client.sync_publishing import Publisher, Sent
from holdfast.client.sync_subscription import Subscription, fetched
from holdfast.client.sync_thread import LoopThread

__all__ = ["Network", "Publisher", "Sent", "Subscription", "connect"]


class Network:
    """A connection to a network; see ``aio.Network``."""

    def __init__(self, thread: LoopThread, network: aio.Network) -> None:
        self._thread = thread
        self._network = network

    @property
    def name(self) -> str:
        """Who publishes."""
        return self._network.name

    @property
    def broker(self) -> str:
        """The name of the broker."""
        return self._network.broker

    @property
    def home(self) -> str:
        """The broker that logs what is published here; see ``aio.Network``."""
        return self._network.home

    @home.setter
    def home(self, broker: str) -> None:
        async def set_home() -> None:
            self._network.home = broker

        self._thread.run(set_home())

    @property
    def state(self) -> aio.State:
        """Where the client stands with its network."""
        return self._network.state

    @property
    def reason(self) -> str:
        """Why there is no session, where there is none."""
        return self._network.reason

    def wait_while(self, state: aio.State, timeout: float | None = DEFAULT_TIMEOUT) -> None:
        """Wait as long as the client stands so with its network.

        :raises TimedOut: if that does not change in time.
        """
        self._thread.run(self._network.wait_while(state, timeout))

    @property
    def is_member(self) -> bool:
        """Whether the client is a node of the network, which reaches past its broker."""
        return self._network.is_member

    @property
    def closed(self) -> bool:
        """Whether the connection is over."""
        return self._network.closed

    def publish(
        self,
        topic: str,
        attributes: Attributes = None,
        payload: bytes = b"",
        *,
        content_type: str = "",
        n: int | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> aio.Receipt:
        """Publish an event and wait until it is accepted."""
        return self._thread.run(
            self._network.publish(topic, attributes, payload, content_type=content_type, n=n, timeout=timeout)
        )

    def publisher(self, *, window: int = 512, timeout: float | None = DEFAULT_TIMEOUT) -> Publisher:
        """Publish with up to ``window`` events on their way."""
        return Publisher(self._thread, self._network.publisher(window=window, timeout=timeout))

    def subscribe(
        self,
        filter: str,
        *,
        durable: str | None = None,
        start: Start = "now",
        buffer: int = 1000,
        on_gap: OnGap = "item",
        silence: bool = False,
        acknowledge: Acknowledging = "manual",
        whole: bool = False,
        on_upgrade: OnUpgrade | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Subscription:
        """Subscribe, in a ``with``: entering waits for the confirmation, leaving unsubscribes; see ``aio.Network``.

        ``on_upgrade`` is called in the connection's own thread, and must not wait for anything.
        """
        options = Options(buffer, on_gap, silence, durable, start, acknowledge, whole, on_upgrade, timeout)
        return Subscription(self._thread, self._network.subscription(filter, fetched(options)), options)

    def close(self) -> None:
        """Say goodbye; waits in other threads end with ``Closed``."""
        try:
            self._thread.run(self._network.close())
        except Closed:
            return
        finally:
            self._thread.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def connect(
    url: str | Sequence[str],
    *,
    name: str | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    state: str | Path | None = None,
    broker: str | Sequence[str] | None = None,
    insecure: bool = False,
    member: bool | None = None,
    listen: str | None = None,
) -> Network:
    """Connect to a network; see ``aio.connect``. Close it, or use it in a ``with``."""
    connecting = aio.connect(
        url,
        name=name,
        timeout=timeout,
        state=state,
        broker=broker,
        insecure=insecure,
        member=member,
        listen=listen,
    )
    thread = LoopThread(f"holdfast {name or url}")
    try:
        return Network(thread, thread.run(connecting.__aenter__()))
    except BaseException:
        thread.end()
        raise
