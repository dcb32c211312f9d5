from __future__ import annotations

import pytest

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Neighbour, Routing, Stream
from holdfast.clock import MILLISECOND
from holdfast.messages.streams import Order
from holdfast.overlay.transport import Wake
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.roles import broker_settings, broker_status, client_settings
from simulations import CHAIN

NETWORK = parse_configuration(
    f"{CHAIN}RoutingPolicy flooding\nOrdering NO\nHeartbeat 50\nDetectAfter 300\nProbeEvery 70\n", "network"
)


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
