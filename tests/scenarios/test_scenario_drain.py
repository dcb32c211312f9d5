"""When a network has drained: one definition for both worlds."""

from __future__ import annotations

import pytest

from holdfast.broker.broker import Broker
from holdfast.client.settings import Settings
from holdfast.overlay.transport import Wake
from holdfast.scenarios.actor import Actor
from holdfast.scenarios.actor_commands import DoDisconnect
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.drain import Standing, is_drained, standing_of
from holdfast.scenarios.roles import broker_settings
from holdfast.scenarios.topology import Configuration
from simulations import CHAIN

NETWORK = parse_configuration(CHAIN)
OVERLAY = parse_configuration(CHAIN + "Guarantee reliable\nDelta 1\n")

AT_REST = {
    "b1": Standing(peers=("b2", "p")),
    "b2": Standing(peers=("b1", "b3", "u2")),
    "b3": Standing(peers=("b2", "u3")),
    "p": Standing(peers=("b1",)),
    "u2": Standing(peers=("b2",)),
    "u3": Standing(peers=("b3",)),
}
LOST = Standing(holds=True, is_connected=False)


def drained(
    changed: dict[str, Standing],
    *,
    down: tuple[str, ...] = (),
    frozen: tuple[str, ...] = (),
    cut: tuple[str, str] | None = None,
    network: Configuration = NETWORK,
) -> bool:
    running = {name: each for name, each in (AT_REST | changed).items() if name not in (*down, *frozen)}
    return is_drained(network, running, frozen, lambda a, b: cut in ((a, b), (b, a)))


def test_a_network_in_which_nobody_holds_anything_has_drained() -> None:
    assert drained({})


@pytest.mark.parametrize("holder", ["b2", "p", "u3"])
def test_whoever_is_connected_and_holds_something_is_waited_for(holder: str) -> None:
    assert not drained({holder: Standing(holds=True)})


def test_a_client_that_will_be_connected_again_still_holds_its_items() -> None:
    assert not drained({"p": LOST})


def test_a_client_whose_broker_is_down_or_frozen_or_cut_off_is_not_waited_for() -> None:
    without_b1 = {"p": LOST, "b2": Standing(peers=("b3", "u2"))}
    assert drained(without_b1, down=("b1",))
    assert drained(without_b1, frozen=("b1",))
    assert drained({"p": LOST, "b1": Standing(peers=("b2",))}, cut=("b1", "p"))
    assert not drained({"p": LOST}, cut=("b1", "b2"))


def test_a_member_of_the_overlay_has_more_than_one_broker() -> None:
    without_b1 = {"p": LOST, "b2": Standing(peers=("b3", "u2"))}
    assert not drained(without_b1, down=("b1",), network=OVERLAY), "b2 will take it"
    assert not drained({"p": LOST}, cut=("b1", "p"), network=OVERLAY)
    assert drained({"p": LOST, "b3": Standing()}, down=("b1", "b2"), network=OVERLAY), "b3 is too far away"


def test_a_member_whose_broker_is_down_is_connected_through_another_and_still_waited_for() -> None:
    through_b2 = {"p": Standing(holds=True, peers=("b2",)), "b2": Standing(peers=("b3", "u2", "p"))}
    assert not drained(through_b2, down=("b1",), network=OVERLAY)


def test_what_is_held_for_somebody_who_is_down_is_not_drained() -> None:
    """Contracts §4: undelivered is undelivered, whoever it is for and however long he stays away."""
    assert not drained({"b3": Standing(holds=True, peers=("b2",))}, down=("u3",), network=OVERLAY)


def test_a_client_that_was_unplugged_is_not_waited_for() -> None:
    assert drained({"u2": Standing(holds=True, is_connected=False, is_unplugged=True)})


def test_a_frozen_process_is_waited_for_until_everybody_who_runs_has_given_it_up() -> None:
    assert not drained({}, frozen=("u3",))
    assert drained({"b3": Standing(peers=("b2",))}, frozen=("u3",))
    assert not drained({}, frozen=("b3", "u3")), "b2 has not given b3 up"
    assert drained({"b2": Standing(peers=("b1", "u2"))}, frozen=("b3", "u3")), "they have only each other"


def test_a_process_that_is_down_is_not_waited_for_even_if_its_neighbours_have_not_noticed() -> None:
    assert drained({}, down=("u3",))


def test_cores_say_how_they_stand() -> None:
    broker = Broker(broker_settings(NETWORK, NETWORK.process("b1"), 1, lambda name: name))
    assert standing_of(broker, ["b2"]) == Standing(peers=("b2",))
    actor = Actor(Settings("p", 1, "b1"))
    actor.step(Wake(), 0)
    assert standing_of(actor, []) == Standing(is_connected=False)
    actor.step(DoDisconnect(), 0)
    assert standing_of(actor, []) == Standing(is_connected=False, is_unplugged=True)
