"""What is over stays so [B0.24, I14]: ranges against a plain set, and a withdrawal among very many."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.filters.parse import parse_filter
from holdfast.identity import SubscriptionId
from holdfast.messages.overlay import Role
from holdfast.messages.subscriptions import Grave
from holdfast.node.graves import Graves, of_life
from holdfast.node.host import Host
from holdfast.node.interest import Interest, grave_of
from holdfast.node.interests import Interests
from holdfast.node.partitions import Partitions
from holdfast.node.reach import Reach
from holdfast.node.settings import NodeSettings
from holdfast.node.topology import Topology
from holdfast.routing.port import Port
from holdfast.routing.table import Table

numbers = st.integers(1, 40)
ranges = st.tuples(numbers, numbers).map(sorted)


@given(st.lists(ranges))
def test_ranges_hold_what_was_put_into_them_and_nothing_else(buried: list[list[int]]) -> None:
    graves, plain = Graves(), set[int]()
    for first, last in buried:
        graves.add(Grave("s", 1, first, last))
        plain.update(range(first, last + 1))
    assert {n for n in range(1, 42) if SubscriptionId("s", 1, n) in graves} == plain
    told = [(grave.first, grave.last) for grave in graves]
    assert told == sorted(told)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(told)), "apart"
    for first in range(1, 41):
        for last in range(first, 41):
            assert graves.covers(Grave("s", 1, first, last)) == plain.issuperset(range(first, last + 1))


def test_a_life_takes_earlier_ones_with_it_and_no_later_one() -> None:
    graves = Graves()
    graves.add(Grave("s", 1, 3, 4))
    graves.add(of_life("s", 2))
    assert all(SubscriptionId("s", life, 7) in graves for life in (1, 2))
    assert SubscriptionId("s", 3, 7) not in graves
    assert list(graves) == [of_life("s", 2)]


def test_a_withdrawal_among_very_many_looks_at_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker holds the subscriptions of all its plain clients under its own name."""
    settings = NodeSettings("b", 1, Role.BROKER)
    reach = Reach(Topology("b", 1), 1, 1)
    interests = Interests(settings, reach, Table(), Partitions("b", 1), lambda _: None, lambda *_: None)
    for n in range(1, 2001):
        interests.add(Interest(SubscriptionId("b", 1, n), parse_filter("#"), "#", (), Port("c"), n))
    looks: list[SubscriptionId] = []
    contains = Graves.__contains__

    def counted(graves: Graves, each: SubscriptionId) -> bool:
        looks.append(each)
        return contains(graves, each)

    monkeypatch.setattr(Graves, "__contains__", counted)
    interests.bury(grave_of(SubscriptionId("b", 1, 1000)))
    assert len(interests) == 1999
    assert SubscriptionId("b", 1, 1000) not in interests
    assert len(looks) < 10


def test_a_host_must_say_what_only_it_can() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Host()  # type: ignore[abstract]
