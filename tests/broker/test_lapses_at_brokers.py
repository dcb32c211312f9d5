"""A broker hears of a lapse: its plain clients are told, and others are told up to where those have published."""

from __future__ import annotations

from by_hand import ByHand, publish, subscribe
from holdfast.broker.settings import Stream
from holdfast.messages.marks import is_mark, read_mark
from holdfast.messages.overlay import Lapse, Relay
from holdfast.messages.publications import Publication
from holdfast.messages.streams import Guarantee

LAPSE = Lapse("far", 2, 1)


def world_of() -> ByHand:
    return ByHand(["child"], streams=(Stream("default", ("#",), guarantee=Guarantee.RELIABLE),))


def relayed(world: ByHand, connection: int) -> list[Publication]:
    relays = [each for each in world.heard[connection] if isinstance(each, Relay)]
    return [relay.batch.publications[i] for relay in relays for i in relay.at]


def test_a_plain_client_hears_of_it_once() -> None:
    world = world_of()
    child, client = world.neighbour("child"), world.client("s")
    world.say(client, subscribe("s", 1))
    for _ in range(2):
        world.step_of(child, LAPSE)
    assert [each for each in world.heard[client] if isinstance(each, Lapse)] == [LAPSE]


def test_whoever_has_published_is_marked_for() -> None:
    world = world_of()
    child, client, _ = world.neighbour("child"), world.client("p"), world.client("q")
    world.say(client, publish("p", 3, 4))
    world.step_of(child, LAPSE)
    [mark] = relayed(world, child)
    assert is_mark(mark)
    assert (mark.publisher, read_mark(mark).upto, read_mark(mark).answers) == ("p", 4, {"far": (2, 1)})


def test_whoever_publishes_later_is_marked_for_before() -> None:
    world = world_of()
    child, client = world.neighbour("child"), world.client("p")
    world.step_of(child, LAPSE)
    assert relayed(world, child) == []
    world.say(client, publish("p", 7))
    world.say(client, publish("p", 8))
    marks = [each for each in relayed(world, child) if is_mark(each)]
    assert [read_mark(mark).upto for mark in marks] == [6]


def starts_again(guarantee: Guarantee) -> list[str]:
    """What a broker without neighbours says when it begins its second life."""
    world = ByHand(incarnation=2, streams=(Stream("default", ("#",), guarantee=guarantee),))
    return [log.text for log in world.logs]


def test_where_nothing_is_reliable_nothing_can_lapse() -> None:
    lapsed = "more have failed together than delta"
    assert lapsed in starts_again(Guarantee.RELIABLE)
    assert lapsed not in starts_again(Guarantee.BEST_EFFORT)
