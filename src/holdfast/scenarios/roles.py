"""The parts that processes of a configuration play, the same in both worlds: what they are told, and what they say.

``address`` says where a process is to be dialled, host:port; only the world knows that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from holdfast.broker import settings as broker
from holdfast.broker.broker import Broker
from holdfast.client import settings as client
from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.overlay import Join, Role
from holdfast.messages.streams import Guarantee, Order
from holdfast.node.settings import Acknowledge, NodeSettings
from holdfast.scenarios.actor import Actor
from holdfast.scenarios.topology import Configuration, Process
from holdfast.scenarios.vicinity import brokers_near

__all__ = [
    "UNACKNOWLEDGED_MAX",
    "broker_settings",
    "broker_status",
    "client_settings",
    "is_dialled",
    "is_settled",
    "membership",
]

#: A scenario is one stream with the topics ``#``.
STREAM: Final = "scenario"

#: How far a publisher of a scenario runs ahead of its acknowledgements.
UNACKNOWLEDGED_MAX: Final = 1_000

#: Far beyond the end of any script: who is down is waited for, unless the script says ``Expel``.
_MEMBER_GRACE_NS: Final = 1_000_000 * SECOND

#: A client of a durable network has an incarnation for each life, and for each move to another broker in it.
_MOVES_MAX: Final = 1_000

_ORDERS: Final = {"NO": Order.NONE, "FIFO": Order.FIFO, "TOTAL": Order.TOTAL}

_BACKOFF_MIN_NS: Final = 50 * MILLISECOND


def broker_settings(
    configuration: Configuration,
    process: Process,
    incarnation: int,
    address: Callable[[str], str],
    *,
    joins: bool = False,
) -> broker.Settings:
    """What a broker is told; ``joins``: the others do not know it yet."""
    neighbours = tuple(
        broker.Neighbour(join.node, join.address, None if join.beside == process.name else join.beside)
        for join in _places(configuration, process, address)
    )
    return broker.Settings(
        process.name,
        incarnation,
        neighbours,
        streams=(_stream(configuration),),
        routing=broker.Routing(configuration.routing),
        home=configuration.parent_of(process.name) if joins else None,
        address=address(process.name) if joins else None,
        delta=configuration.delta,
        acknowledge=Acknowledge(configuration.acknowledge),
        refill=configuration.refill,
        dack_every_ns=configuration.dack_every_ns,
        trace_forwards=configuration.logging == "full",
        heartbeat_ns=configuration.heartbeat_ns,
        detect_after_ns=configuration.detect_after_ns,
        probe_every_ns=configuration.probe_every_ns,
        client_heartbeat_ns=configuration.heartbeat_ns,
        member_grace_ns=_MEMBER_GRACE_NS,
    )


def _places(configuration: Configuration, process: Process, address: Callable[[str], str]) -> Iterator[Join]:
    """The brokers a process knows. A child dials its parent, not the other way."""
    parent = configuration.parent_of(process.name)
    for name, beside, distance in brokers_near(configuration, process.name):
        is_child = distance == 1 and name != parent
        yield Join(name, Role.BROKER, beside, None if is_child else address(name), 0)


def _stream(configuration: Configuration) -> broker.Stream:
    order = _ORDERS[configuration.ordering]
    guarantee = Guarantee(configuration.guarantee)
    if guarantee is not Guarantee.DURABLE:
        return broker.Stream(STREAM, ("#",), order, guarantee)
    root = next(site.name for site in configuration.sites if site.parent is None)
    return broker.Stream(
        STREAM,
        ("#",),
        order,
        guarantee,
        pubends=1 if order is Order.TOTAL else configuration.pubends,
        sequencer=configuration.broker_of(root).name if order is Order.TOTAL else None,
        retain_ns=configuration.retain_ns,
    )


def client_settings(
    configuration: Configuration, process: Process, incarnation: int, address: Callable[[str], str]
) -> client.Settings:
    """What the client of a publisher or subscriber is told."""
    above = configuration.parent_of(process.name)
    assert above is not None, f"{process.name} is a client and has a broker"
    is_durable = configuration.guarantee == "durable"
    return client.Settings(
        process.name,
        incarnation * _MOVES_MAX if is_durable else incarnation,
        address(above),
        heartbeat_ns=configuration.heartbeat_ns,
        detect_after_ns=configuration.detect_after_ns,
        backoff_min_ns=min(_BACKOFF_MIN_NS, configuration.probe_every_ns),
        backoff_max_ns=configuration.probe_every_ns,
        stream=STREAM,
        unacknowledged_max=UNACKNOWLEDGED_MAX,
    )


def membership(
    configuration: Configuration, process: Process, incarnation: int, address: Callable[[str], str]
) -> NodeSettings | None:
    """What a client of a reliable network is told as a node of the overlay; None in any other."""
    if configuration.guarantee != "reliable":
        return None
    return NodeSettings(
        process.name,
        incarnation,
        Role.PUBLISHER if process.kind == "publisher" else Role.SUBSCRIBER,
        configuration.delta,
        tuple(_places(configuration, process, address)),
        home=configuration.parent_of(process.name),
        address=address(process.name),
        acknowledge=Acknowledge(configuration.acknowledge),
        refill=configuration.refill,
        floods=configuration.routing == "flooding",
        trace_forwards=configuration.logging == "full",
        heartbeat_ns=configuration.heartbeat_ns,
        detect_after_ns=configuration.detect_after_ns,
        probe_every_ns=configuration.probe_every_ns,
        dack_every_ns=configuration.dack_every_ns,
    )


def is_dialled(configuration: Configuration, process: Process) -> bool:
    """Whether others connect to a process, which then must listen: to brokers, and to every node of an overlay."""
    return process.kind == "broker" or configuration.guarantee == "reliable"


def is_settled(core: Broker | Actor, *, to_all: bool) -> bool:
    """Whether a process is connected, and a subscriber's subscriptions are confirmed.

    A broker is connected when it has met its neighbours or given them up; with ``to_all``, when it has met them. A
    script begins when everybody is connected to all.
    """
    if isinstance(core, Actor):
        return core.is_settled
    return core.node.is_connected_to_all if to_all else core.is_ready


def broker_status(broker: Broker) -> dict[str, Any]:
    """The fields of a broker's ``status`` line."""
    status = broker.status()
    neighbours = {each["name"]: each["state"] for each in status["neighbours"]}
    held = {each["name"]: each["held"] for each in status["neighbours"]}
    return {
        "tables": {"subscriptions": status["subscriptions"]},
        "queues": {"held": held, "counters": status["counters"]},
        "connections": {
            "neighbours": neighbours,
            "clients": status["clients"],
            "overlay": status["overlay"],
        },
    }
