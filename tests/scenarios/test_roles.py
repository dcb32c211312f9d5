from __future__ import annotations

import pytest

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Neighbour, Routing, Stream
from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.streams import Order
from holdfast.overlay.transport import Wake
from holdfast.scenarios.actor import Actor
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.roles import broker_settings, broker_status, client_settings, is_settled
from simulations import CHAIN

NETWORK = parse_configuration(
    f"{CHAIN}RoutingPolicy flooding\nOrdering NO\nHeartbeat 50\nDetectAfter 300\nProbeEvery 70\n", "network"
)

ALONE = "Site s Parent none\nProcess b is broker On s URL tcp://localhost:1/b\n"


def address(name: str) -> str:
    return f"{name}.example:1"


def test_a_broker_dials_its_parent_and_waits_for_its_children() -> None:
    settings = broker_settings(NETWORK, NETWORK.process("b2"), 3, address)
    assert (settings.name, settings.incarnation) == ("b2", 3)
    assert settings.neighbours == (Neighbour("b1", "b1.example:1"), Neighbour("b3", None))


def test_a_broker_obeys_the_configuration() -> None:
    settings = broker_settings(NETWORK, NETWORK.process("b2"), 1, address)
    assert settings.routing is Routing.FLOODING
    assert settings.streams == (Stream("scenario", ("#",), Order.NONE),)
    assert settings.trace_forwards
    assert (settings.heartbeat_ns, settings.client_heartbeat_ns) == (50 * MILLISECOND, 50 * MILLISECOND)
    assert (settings.detect_after_ns, settings.probe_every_ns) == (300 * MILLISECOND, 70 * MILLISECOND)


@pytest.mark.parametrize("name", ["p", "u2"])
def test_a_client_knows_the_broker_of_its_site(name: str) -> None:
    settings = client_settings(NETWORK, NETWORK.process(name), 2, address)
    assert (settings.name, settings.incarnation) == (name, 2)
    assert settings.broker == ("b1.example:1" if name == "p" else "b2.example:1")
    assert settings.detect_after_ns == 300 * MILLISECOND
    assert settings.backoff_min_ns <= settings.backoff_max_ns == 70 * MILLISECOND


def test_a_brokers_status_has_tables_queues_and_connections() -> None:
    broker = Broker(broker_settings(NETWORK, NETWORK.process("b2"), 1, address))
    broker.step(Wake(), 0)
    status = broker_status(broker)
    assert list(status) == ["tables", "queues", "connections"]
    assert list(status["connections"]["neighbours"]) == ["b1", "b3"]


def test_a_broker_is_settled_alone_but_not_connected_to_all() -> None:
    broker = Broker(broker_settings(NETWORK, NETWORK.process("b2"), 1, address))
    broker.step(Wake(), 0)
    assert not is_settled(broker, to_all=False)
    broker.step(Wake(), 10 * SECOND)
    assert is_settled(broker, to_all=False), "it has given its neighbours up"
    assert not is_settled(broker, to_all=True)
    one = parse_configuration(ALONE)
    alone = Broker(broker_settings(one, one.process("b"), 1, address))
    alone.step(Wake(), 0)
    assert is_settled(alone, to_all=True)


def test_a_client_is_settled_when_it_is_connected() -> None:
    actor = Actor(client_settings(NETWORK, NETWORK.process("p"), 1, address))
    actor.step(Wake(), 0)
    assert not is_settled(actor, to_all=False)
