"""The routing table against a dict, and what filter routing makes of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counted_calls import work_of
from examples import examples
from holdfast.events.event import Event, make_event
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.identity import SubscriptionId
from holdfast.matching.naive import NaiveIndex
from holdfast.messages.overlay import Role
from holdfast.node.station import Station
from holdfast.node.topology import Place
from holdfast.routing import filtering
from holdfast.routing.port import ClientPort, Port
from holdfast.routing.table import Entry, Table

FILTERS = ["a", "b", "#", "+ WHERE x > 1", "a WHERE x = 2"]
EVENTS = st.lists(
    st.builds(lambda topic, x: make_event(topic, {"x": x}), st.sampled_from("abc"), st.integers(0, 3)),
    max_size=6,
)
#: Which port, which number, which filter; a number that is there already is taken away.
MOVES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.sampled_from(FILTERS)), max_size=25)


def station(name: str) -> Station:
    return Station(Place(name, Role.BROKER, (name,)))


def ports() -> list[Port]:
    return [station("left"), station("right"), ClientPort("c", 1), ClientPort("d", 1)]


def entry(port: Port, number: int, filter: str) -> Entry:
    numbers = (number,) if isinstance(port, ClientPort) else ()
    return Entry(SubscriptionId(port.name, 1, number), parse_filter(filter), port, numbers)


def filled(
    moves: Sequence[tuple[int, int, str]], ways: list[Port]
) -> tuple[Table, dict[SubscriptionId, Entry]]:
    table = Table(NaiveIndex())
    model: dict[SubscriptionId, Entry] = {}
    for which, number, filter in moves:
        made = entry(ways[which], number, filter)
        if made.subscription in model:
            table.remove(made.subscription)
            del model[made.subscription]
        else:
            table.add(made)
            model[made.subscription] = made
    return table, model


def shares(touched: list[Port]) -> dict[str, list[tuple[int, list[int]]]]:
    """What each port got: positions, and sorted numbers of subscriptions."""
    found = {}
    for port in touched:
        assert port.name not in found, "a port is named once"
        at, numbers = port.take_share()
        padded = numbers if isinstance(port, ClientPort) else [()] * len(at)
        found[port.name] = [(i, sorted(each)) for i, each in zip(at, padded, strict=True)]
    return found


def wanted(
    model: dict[SubscriptionId, Entry], events: list[Event], arrival: Port | None
) -> dict[str, dict[int, list[int]]]:
    """The same, worked out one by one."""
    found: dict[str, dict[int, list[int]]] = {}
    for i, event in enumerate(events):
        for each in model.values():
            if each.port is not arrival and compile_filter(each.filter)(Subject(event)):
                found.setdefault(each.port.name, {}).setdefault(i, []).extend(each.numbers)
    return found


@given(MOVES)
@examples(100)
def test_the_table_holds_what_was_put_in_and_not_taken_out(moves: list[tuple[int, int, str]]) -> None:
    ways = ports()
    table, model = filled(moves, ways)
    assert {each.subscription: each for each in table} == model
    assert len(table) == len(model)
    for subscription, each in model.items():
        assert table.get(subscription) is each


@given(MOVES, EVENTS, st.integers(0, 4))
@examples(200)
def test_every_way_out_gets_each_event_once_with_all_its_subscriptions(
    moves: list[tuple[int, int, str]], events: list[Event], arrives_by: int
) -> None:
    ways = ports()
    arrival = ways[arrives_by] if arrives_by < 2 else None
    table, model = filled(moves, ways)
    expected = wanted(model, events, arrival)
    found = shares(filtering.gather(table, events, arrival))
    assert found == {
        name: [(i, sorted(numbers)) for i, numbers in sorted(each.items())] for name, each in expected.items()
    }
    assert all(not port.at and not port.subscriptions for port in ways), "nothing is left for the next batch"


def test_the_work_of_one_event_grows_with_its_matches_not_with_their_square() -> None:
    def work(count: int) -> int:
        client = ClientPort("c", 1)
        table = Table()
        for number in range(count):
            table.add(entry(client, number, "#"))
        counted = work_of(lambda: filtering.gather(table, [make_event("a")], None))
        [(_, numbers)] = shares([client])["c"]
        assert numbers == list(range(count))
        return counted.calls

    assert work(2_000) < 12 * work(200)


def test_what_matched_several_times_is_made_one_tuple_only_at_the_end() -> None:
    client = ClientPort("c", 1)
    client.at, client.subscriptions = [4], [(1,)]
    client.merge((2,))
    client.merge((3,))
    assert client.subscriptions == [(1,)], "no tuple grows while events are matched"
    assert client.take_share() == ([4], [(1, 2, 3)])
    assert client.take_share() == ([], [])


def test_an_id_is_installed_once() -> None:
    table, port = Table(), ClientPort("c", 1)
    table.add(entry(port, 1, "a"))
    with pytest.raises(AssertionError):
        table.add(entry(port, 1, "b"))
