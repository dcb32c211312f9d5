"""Brokers in a row with a crowd of plain publishers at one end and a member that wants everything at the other.

All are what they are in production, but for their owners: these ask for what they want once, and count what they get.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.broker.broker import Broker
from holdfast.client.effect import Delivered
from holdfast.client.input import AddSubscription, Consumed, Leave, Open, Submit
from holdfast.client.member import MemberCore
from holdfast.client.protocol import ClientCore
from holdfast.client.settings import Settings
from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication
from holdfast.overlay.transport import Close, Connect, Core, Send
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.roles import broker_settings, client_settings, membership
from holdfast.simulator.world import World, address_of

__all__ = ["Crowd"]

BROKERS = 4
DACK_MS = 50
SUBSCRIBER = "u"


class Owned:
    """A client's core, and an owner who asks something of it at its start and takes what is delivered at once."""

    def __init__(self, core: ClientCore | MemberCore, *asked: Any) -> None:
        self.name = core.name
        self.core = core
        self.delivered = 0
        self._asked: Sequence[Any] = (Open(), *asked)

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        inputs, self._asked = [*self._asked, stimulus], ()
        effects: list[Any] = []
        for each in inputs:
            effects += self.core.step(each, now)
        for effect in effects:
            if isinstance(effect, Delivered):
                self.delivered += len(effect.items)
                effects += self.core.step(Consumed(effect.number, len(effect.items)), now)
        return [effect for effect in effects if isinstance(effect, Send | Connect | Close)]

    def next_deadline(self) -> Instant | None:
        return self.core.next_deadline()


class Crowd:
    """δ = 1; ``u`` is subscribed to everything."""

    def __init__(self) -> None:
        lines = ["Guarantee reliable", "Delta 1", f"DackEvery {DACK_MS}"]
        for i in range(BROKERS):
            lines.append(f"Site s{i} Parent {f's{i - 1}' if i else 'none'}")
            lines.append(f"Process b{i} is broker On s{i} URL tcp://localhost:0/b")
        lines.append(f"Process {SUBSCRIBER} is subscriber On s{BROKERS - 1} URL tcp://localhost:0/u")
        configuration = parse_configuration("\n".join(lines), "configuration")
        self.world = World(0)
        for process in configuration.processes:
            if process.kind == "broker":
                settings = replace(
                    broker_settings(configuration, process, 1, address_of, joins=False),
                    client_heartbeat_ns=60 * SECOND,
                )
                self._enter(process.name, Broker(settings))
            else:
                client = client_settings(configuration, process, 1, address_of)
                place = membership(configuration, process, 1, address_of)
                assert place is not None
                self._enter(process.name, Owned(MemberCore(client, place), AddSubscription(1, "#", 10**9)))
        self.publishers: list[str] = []
        self.published = 0
        self.world.run_for(2 * SECOND)

    def _enter(self, name: str, core: Core) -> None:
        self.world.add(name, lambda incarnation: core)  # nobody has a second life here

    def broker(self, name: str) -> Broker:
        core = self.world.nodes[name].core
        assert isinstance(core, Broker)
        return core

    @property
    def brokers(self) -> list[str]:
        return [f"b{i}" for i in range(BROKERS)]

    @property
    def subscriber(self) -> Owned:
        core = self.world.nodes[SUBSCRIBER].core
        assert isinstance(core, Owned)
        return core

    def come(self, count: int, events: int) -> None:
        """So many more publishers come to b0, and publish so many events each."""
        content = pack(make_event("t", {}, b""))
        for i in range(len(self.publishers), len(self.publishers) + count):
            name = f"p{i}"
            core = ClientCore(Settings(name, 1, address_of("b0"), heartbeat_ns=60 * SECOND))
            submit = Submit([Publication(name, n, content) for n in range(1, events + 1)])
            self._enter(name, Owned(core, submit))
            self.publishers.append(name)
        self.published += count * events
        self.settle()

    def publish(self, name: str, n: int) -> None:
        """One of them publishes once more."""
        event = pack(make_event("t", {}, b""))
        self.world.submit(name, Submit([Publication(name, n, event)]))
        self.published += 1

    def go(self) -> None:
        """All publishers leave."""
        for name in self.publishers:
            self.world.submit(name, Leave())
        self.settle()

    def settle(self) -> None:
        """Until everything has arrived, and is known to have."""
        self.world.run_while(lambda: self.subscriber.delivered < self.published, 20 * SECOND)
        self.world.run_for(10 * DACK_MS * MILLISECOND)
