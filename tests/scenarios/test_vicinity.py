from __future__ import annotations

from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.vicinity import Near, brokers_in_reach, brokers_near
from simulations import CHAIN


def test_brokers_are_near_up_to_one_hop_more_than_may_fail() -> None:
    """R0.4: the topology map reaches δ+1 hops; clients lead nowhere."""
    chain = parse_configuration(CHAIN)
    assert list(brokers_near(chain, "b2")) == [Near("b1", "b2", 1), Near("b3", "b2", 1)]
    assert list(brokers_near(chain, "u3")) == [Near("b3", "u3", 1)]
    wider = parse_configuration(CHAIN + "Delta 1\n")
    assert list(brokers_near(wider, "u3")) == [Near("b3", "u3", 1), Near("b2", "b3", 2)]
    assert list(brokers_near(wider, "b1")) == [Near("b2", "b1", 1), Near("b3", "b2", 2)]


def test_only_a_client_of_a_reliable_network_has_another_broker_in_reach() -> None:
    for guarantee, reach in (("best-effort", ["b3"]), ("reliable", ["b3", "b2", "b1"])):
        network = parse_configuration(f"{CHAIN}Delta 2\nGuarantee {guarantee}\n")
        assert brokers_in_reach(network, "u3") == reach
