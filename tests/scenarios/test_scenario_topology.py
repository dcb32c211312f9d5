"""The tree of sites and processes, and the quality of links."""

from __future__ import annotations

from holdfast.clock import MILLISECOND
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.topology import DEFAULT_QUALITY, LinkQuality

NETWORK = parse_configuration(
    """
    Site top Parent none
    Site left Parent top
    Site right Parent top
    Site below Parent left
    Process s is subscriber On below URL tcp://localhost:0/
    Process b3 is broker On below URL tcp://localhost:0/
    Process b1 is broker On left URL tcp://localhost:0/
    Process b0 is broker On top URL tcp://localhost:0/
    Process b2 is broker On right URL tcp://localhost:0/
    Process p is publisher On left URL tcp://localhost:0/
    Link top left Delay 5 Loss 0.1
    Link b1 -> b0 Jitter 2
    Link s below Delay 0
    """
)


def test_brokers_hang_like_their_sites_and_clients_on_their_broker() -> None:
    assert NETWORK.tree() == {"s": "b3", "b3": "b1", "b1": "b0", "b0": None, "b2": "b0", "p": "b1"}
    assert NETWORK.parent_of("b3") == "b1"
    assert NETWORK.parent_of("b0") is None
    assert NETWORK.broker_of("left").name == "b1"
    assert [process.name for process in NETWORK.of_kind("broker")] == ["b3", "b1", "b0", "b2"]


def test_neighbours_are_the_one_above_and_those_below() -> None:
    assert NETWORK.neighbours("b1") == ["b0", "b3", "p"]
    assert NETWORK.neighbours("b0") == ["b1", "b2"]
    assert NETWORK.neighbours("s") == ["b3"]
    for name in NETWORK.tree():
        assert all(name in NETWORK.neighbours(other) for other in NETWORK.neighbours(name))


def test_a_site_stands_for_its_broker() -> None:
    assert NETWORK.node("left") == "b1"
    assert NETWORK.node("p") == "p"


def test_the_last_line_about_a_direction_decides_and_says_everything() -> None:
    assert NETWORK.quality("b0", "b1") == LinkQuality(5 * MILLISECOND, loss=0.1)
    assert NETWORK.quality("b1", "b0") == LinkQuality(jitter_ns=2 * MILLISECOND)
    assert NETWORK.quality("b3", "s") == NETWORK.quality("s", "b3") == LinkQuality(0)
    assert NETWORK.quality("b0", "b2") == DEFAULT_QUALITY
    assert LinkQuality(10 * MILLISECOND, 0, 0.0, 0.0, 0.0) == DEFAULT_QUALITY
