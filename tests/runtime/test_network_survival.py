"""What a set of failures stops: the rules the plan and the status go by, against the network itself, simulated.

R0.3: with up to δ failures everybody is served; I5: nothing spans more than δ+1 hops, nor passes more than δ bypassed
nodes of 2δ+1 in a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, permutations
from typing import Any

import pytest

from holdfast.node.settings import NodeSettings
from holdfast.runtime.network_survival import Attachment, Client, Failures, Survival, Tree, link
from holdfast.scenarios import roles
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.simulator import cast, run
from holdfast.simulator.run import simulate

Parents = Mapping[str, str | None]

PAIR: Parents = {"a": None, "b": "a"}
STAR: Parents = {"a": None, "b": "a", "c": "a", "d": "a"}
FORK: Parents = {"a": None, "b": "a", "c": "a", "d": "b", "e": "b"}
CHAIN: Parents = {"a": None, "b": "a", "c": "b", "d": "c", "e": "d"}
LONG: Parents = {"a": None, "b": "a", "c": "b", "d": "c", "e": "d", "f": "e", "g": "f"}


def scenario(parents: Parents, delta: int, guarantee: str) -> str:
    lines = [f"Guarantee {guarantee}", f"Delta {delta}", "DackEvery 100"]
    for name, parent in parents.items():
        lines.append(f"Site s{name} Parent {'none' if parent is None else f's{parent}'}")
        for kind, short in (("broker", ""), ("publisher", "p"), ("subscriber", "u")):
            lines.append(f"Process {short}{name} is {kind} On s{name} URL tcp://localhost:{len(lines)}/x")
    return "\n".join(lines)


def script(parents: Parents, down: Failures) -> str:
    """Everybody subscribes to all; then that fails; then everybody publishes."""
    lines = [f"Subscriber u{name} Subscribe #" for name in parents]
    lines += [f"Crash {name}" for name in sorted(down.brokers)]
    lines += [f"Cut {one} {other}" for one, other in sorted(down.links)]
    lines += ["Wait 2500", *(f"Publisher p{name} Publish 1 Ontopic t Interval 1" for name in parents)]
    return "\n".join([*lines, "Wait 1500"])


class World:
    """A network in the simulator, with a publisher and a subscriber at every broker."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.publishers = self.subscribers = Attachment.PLAIN
        monkeypatch.setattr(cast, "membership", self._membership)
        monkeypatch.setattr(run, "FINAL_DRAIN_NS", 0)  # what waits would be waited for

    def _membership(self, configuration: Any, process: Any, *given: Any) -> NodeSettings | None:
        member = roles.membership(configuration, process, *given)
        attachment = self.publishers if process.kind == "publisher" else self.subscribers
        if member is None or attachment is Attachment.PLAIN:
            return None
        return member if attachment is Attachment.LISTENING else replace(member, address=None)

    def heard(
        self,
        parents: Parents,
        delta: int,
        down: Failures,
        publishers: Attachment = Attachment.PLAIN,
        subscribers: Attachment = Attachment.PLAIN,
        guarantee: str = "reliable",
    ) -> set[tuple[str, str]]:
        """At which broker who was published at which is heard."""
        self.publishers, self.subscribers = publishers, subscribers
        configuration = parse_configuration(scenario(parents, delta, guarantee))
        result = simulate(configuration, parse_script(script(parents, down), "script", configuration))
        lines = (line for line in result.trace if line["kind"] == "deliver")
        return {(line["publisher"][1:], line["subscriber"][1:]) for line in lines}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def failures(parents: Parents, most: int) -> Iterator[Failures]:
    """Every set of so many brokers and links, or fewer."""
    tree = Tree(parents)
    for size in range(most + 1):
        for brokers in range(size + 1):
            for some in combinations(tree.brokers, brokers):
                for links in combinations(tree.links, size - brokers):
                    yield Failures(frozenset(some), frozenset(links))


def expected(
    parents: Parents,
    delta: int,
    down: Failures,
    publishers: Attachment = Attachment.PLAIN,
    subscribers: Attachment = Attachment.PLAIN,
    *,
    is_reliable: bool = True,
) -> set[tuple[str, str]]:
    survival = Survival(Tree(parents), delta)
    return {
        (one, other)
        for one in parents
        for other in parents
        if survival.hears(Client(one, publishers), Client(other, subscribers), down, is_reliable=is_reliable)
    }


@pytest.mark.parametrize("attachment", list(Attachment))
@pytest.mark.parametrize(
    ("parents", "delta"), [(PAIR, 1), (STAR, 1), (FORK, 1), (CHAIN, 1), (STAR, 2)], ids=str
)
def test_within_delta_the_rules_say_who_hears_whom_in_every_set_of_failures(
    world: World, parents: Parents, delta: int, attachment: Attachment
) -> None:
    for down in failures(parents, delta):
        found = world.heard(parents, delta, down, attachment, attachment)
        assert found == expected(parents, delta, down, attachment, attachment), down


@pytest.mark.parametrize(("publishers", "subscribers"), list(permutations(Attachment, 2)))
def test_they_do_so_for_clients_of_two_kinds(
    world: World, publishers: Attachment, subscribers: Attachment
) -> None:
    """One of the two that listens is enough where a link has failed, or the broker of both."""
    for down in failures(FORK, 1):
        found = world.heard(FORK, 1, down, publishers, subscribers)
        assert found == expected(FORK, 1, down, publishers, subscribers), down


@pytest.mark.parametrize("parents", [FORK, CHAIN], ids=str)
def test_what_best_effort_passes_around_failures_is_known_too(world: World, parents: Parents) -> None:
    too_many = Failures(frozenset("bc"))
    for down in [*failures(parents, 1), too_many]:
        found = world.heard(parents, 1, down, guarantee="best-effort")
        assert found == expected(parents, 1, down, is_reliable=False), down


@pytest.mark.parametrize(("parents", "delta"), [(FORK, 0), (FORK, 1), (CHAIN, 1), (LONG, 2)], ids=str)
def test_of_all_sets_of_one_more_than_delta_brokers_exactly_the_named_ones_part_the_network(
    world: World, parents: Parents, delta: int
) -> None:
    """Whoever is beyond one end does not hear whoever is beyond the other; any other set stops its own clients only."""
    named: dict[frozenset[str], set[tuple[str, str]]] = {}
    for apart in Survival(Tree(parents), delta).first_apart():
        pairs = {
            (a, b) for one in apart.sides for other in apart.sides if one != other for a in one for b in other
        }
        named.setdefault(frozenset(apart.failed), set()).update(pairs)
    assert named
    for some in combinations(parents, delta + 1):
        up = [name for name in parents if name not in some]
        found = world.heard(parents, delta, Failures(frozenset(some)))
        if frozenset(some) in named:
            assert found.isdisjoint(named[frozenset(some)]), some
        else:
            assert found == {(one, other) for one in up for other in up}, some


# The rules by themselves


@pytest.mark.parametrize("delta", [1, 2, 3])
@pytest.mark.parametrize("parents", [STAR, FORK, CHAIN, LONG], ids=str)
def test_within_delta_only_those_who_lost_the_link_towards_each_other_do_not_hear_each_other(
    parents: Parents, delta: int
) -> None:
    """R0.3: what the plan says in a sentence, for every set of at most δ failures."""
    tree = Tree(parents)
    survival = Survival(tree, delta)
    for down in failures(parents, delta):
        silent = survival.silent_pairs(down)
        assert {each for each in down.links if not down.brokers.intersection(each)} <= set(silent), down
        for one, other in silent:
            path = tree.path(one, other)
            assert {link(*path[:2]), link(*path[-2:])} <= down.links, down
        if len(down.links) <= 1:
            assert len(silent) <= 1, down


def test_two_links_around_one_part_their_outer_ends(world: World) -> None:
    """a-x-b-c-x-d: a speaks with c and d with b, so nobody looks for a way between a and d, δ+1 hops apart."""
    down = Failures(links=frozenset([("a", "b"), ("c", "d")]))
    assert Survival(Tree(CHAIN), 2).silent_pairs(down) == [("a", "b"), ("a", "d"), ("c", "d")]
    assert world.heard(CHAIN, 2, down) == expected(CHAIN, 2, down)


def test_no_broker_is_left_alone_where_there_are_more_than_one_and_delta() -> None:
    for parents in (STAR, FORK, CHAIN):
        survival = Survival(Tree(parents), 2)
        for down in failures(parents, 2):
            silent = survival.silent_pairs(down)
            up = [name for name in parents if name not in down.brokers]
            for name in up:
                assert sum(name in pair for pair in silent) < len(up) - 1, down
    assert Survival(Tree(PAIR), 1).silent_pairs(Failures(links=frozenset([("a", "b")]))) == [("a", "b")]


def test_without_delta_every_inner_broker_parts_the_network() -> None:
    found = [(each.failed, each.sides) for each in Survival(Tree(FORK), 0).first_apart()]
    assert found == [(("a",), (("b", "d", "e"), ("c",))), (("b",), (("a", "c"), ("d",), ("e",)))]


def test_brokers_in_a_row_and_nearly_in_a_row_part_the_network_together() -> None:
    found = {each.failed: each for each in Survival(Tree(CHAIN), 1).first_apart()}
    assert set(found) == {("b", "c"), ("c", "d"), ("b", "d")}
    assert found["b", "c"].sides == (("a",), ("d", "e"))
    assert (found["b", "c"].between, found["b", "d"].between) == ((), ("c",))
    assert found["c", "d"].pairs == 2


@pytest.mark.parametrize("delta", [0, 1, 2])
@pytest.mark.parametrize("parents", [FORK, CHAIN, LONG], ids=str)
def test_the_pairs_a_set_of_brokers_parts_are_those_of_its_sides(parents: Parents, delta: int) -> None:
    """I5, both ways: by the way of an event, and by the shape of the tree."""
    survival = Survival(Tree(parents), delta)
    named: dict[frozenset[str], set[frozenset[str]]] = {}
    for apart in survival.first_apart():
        for one, other in combinations(apart.sides, 2):
            pairs = {frozenset((a, b)) for a in one for b in other}
            named.setdefault(frozenset(apart.failed), set()).update(pairs)
    for some in combinations(parents, delta + 1):
        silent = {frozenset(pair) for pair in survival.silent_pairs(Failures(frozenset(some)))}
        assert silent == named.get(frozenset(some), set()), some


def test_delta_is_used_up_near_what_failed_and_whole_elsewhere() -> None:
    survival = Survival(Tree(LONG), 1)
    used = survival.used_near(Failures(frozenset("a"), frozenset([("b", "c")])))
    assert used == {"a": 2, "b": 2, "c": 2, "d": 1, "e": 0, "f": 0, "g": 0}
