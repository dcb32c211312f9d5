"""Members that are missed by their home and live: they are not expelled, or hear that they were [B0.25]."""

from __future__ import annotations

import pytest
from graced import DETECT, GRACE, MODES, SLACK, answer_ms, expelled_at, farewells, graced, knowing_of
from schedules import checked, complete, stream

from holdfast.messages.overlay import Leave, Missing, Present
from holdfast.messages.session import Farewell
from holdfast.messages.subscriptions import Lore
from holdfast.node.graves import of_life
from holdfast.node.settings import Acknowledge

# The living


@pytest.mark.parametrize("acknowledge", MODES)
@pytest.mark.parametrize("delta", [1, 2])
def test_a_member_cut_off_from_its_home_is_served_by_others_and_stays(
    delta: int, acknowledge: Acknowledge
) -> None:
    net, tap = graced("P-A-B-C-S C-T", delta, "S", "T", acknowledge=acknowledge)
    net.cut("C", "S")
    stream(net, "P", 5 * GRACE, 50)
    assert tap.sent(Present, "B", "C")
    assert "S" in net.node("C").topology
    net.heal("C", "S")
    net.run(4000)
    assert complete(net, "S", "P")
    assert complete(net, "T", "P")
    assert not tap.sent(Leave)
    assert not checked(net, tap)


@pytest.mark.parametrize(
    ("tree", "cuts", "by"),
    [
        ("P-A-B-C-S", [("C", "S"), ("B", "C")], "B"),  # C asks A, and A asks B
        ("P-A-B-C-S B-D", [("C", "S"), ("B", "C")], "B"),
        ("P-A-B-C-S C-D-E", [("C", "S"), ("B", "C")], "B"),
    ],
)
def test_who_serves_it_is_found_around_cut_links(tree: str, cuts: list[tuple[str, str]], by: str) -> None:
    """δ = 2: its home has lost it and the way to whoever serves it; the question goes around."""
    net, tap = graced(tree, 2, "S")
    for a, b in cuts:
        net.cut(a, b)
    stream(net, "P", 5 * GRACE, 50)
    assert net.node(by).reach["S"].is_open
    assert not tap.sent(Leave)
    for a, b in cuts:
        net.heal(a, b)
    net.run(5000)
    assert complete(net, "S", "P")
    assert not checked(net, tap)


def test_a_home_that_is_cut_off_from_everybody_concludes_nothing() -> None:
    """It hears nothing of its member, and nothing of those who would know."""
    net, tap = graced("P-A-B-C-S", 1, "S")
    net.world.isolate("C")
    stream(net, "P", 5 * GRACE, 50)
    net.run(2000)
    assert complete(net, "S", "P")
    net.world.network.heal("C")
    stream(net, "P", 1000, 50)
    net.run(5000)
    assert complete(net, "S", "P")
    assert not tap.sent(Leave)
    assert not checked(net, tap)


def test_a_home_that_was_frozen_does_not_take_its_own_absence_for_that_of_others() -> None:
    net, tap = graced("P-A-B-C-S", 1, "S")
    net.cut("C", "S")
    stream(net, "P", 1500, 50)
    net.freeze("C")
    stream(net, "P", 3 * GRACE, 50)
    net.unfreeze("C")
    stream(net, "P", 2 * GRACE, 50)
    net.heal("C", "S")
    net.run(4000)
    assert complete(net, "S", "P")
    assert not tap.sent(Leave)
    assert not checked(net, tap)


def test_a_way_on_which_nobody_can_be_reached_holds_an_expulsion_up() -> None:
    """D may be alive, and in session with S; once it is back and says nothing, S is expelled."""
    net, tap = graced("P-A-B-S B-D", 1, "S")
    net.crash("S", "D")
    net.run(4 * GRACE)
    assert not tap.sent(Leave)
    net.restart("D")
    net.run(answer_ms(1) + 2000)
    assert knowing_of(net, "S") == []
    assert not checked(net, tap)


def test_a_member_is_missed_anew_each_time() -> None:
    """Grace is not saved up: a member that is back for a moment has all of it again."""
    net, tap = graced("P-A-B-S", 0, "S")
    for _ in range(4):
        net.cut("B", "S")
        net.run(GRACE)
        net.heal("B", "S")
        net.run(700)
    assert not tap.sent(Leave)
    stream(net, "P", 200)
    net.run(2000)
    assert complete(net, "S", "P")


# Coming back


@pytest.mark.parametrize("late", [-300, 100, 700, 1500, 2200])
def test_a_member_that_is_back_before_it_is_given_up_has_lost_nothing(late: int) -> None:
    """Before it is asked for, and at any time while it is."""
    net, tap = graced("P-A-B-S", 1, "S")
    net.freeze("S")
    stream(net, "P", DETECT + GRACE + late, 50)
    net.unfreeze("S")
    stream(net, "P", 500, 50)
    net.run(4000)
    assert bool(tap.sent(Missing)) == (late > 0)
    assert complete(net, "S", "P")
    assert not tap.sent(Leave)
    assert not checked(net, tap)


@pytest.mark.parametrize("late", [0, 500, 3000])
def test_a_member_that_is_back_too_late_hears_why_and_begins_anew(late: int) -> None:
    net, tap = graced("P-A-B-S B-T", 1, "S", "T")
    net.freeze("S")
    stream(net, "P", DETECT + GRACE + answer_ms(1) + SLACK + late, 50)
    assert expelled_at(net, tap, "S", "B")
    net.unfreeze("S")
    net.run(1000)
    farewell = net.node("S").farewell
    assert farewell is not None
    assert farewell[0] is Farewell.UNKNOWN
    assert "away for too long" in farewell[1]
    assert "a new connection under the same name will work" in farewell[1]
    net.crash("S")
    net.restart("S")
    net.run(1500)
    stream(net, "P", 200, 50)
    net.run(3000)
    assert net.got("S")[-4:] == net.got("T")[-4:]
    assert complete(net, "T", "P")
    assert not checked(net, tap)


@pytest.mark.parametrize("after", [-60, -40, -20, -10, 0, 10, 20, 40])
def test_a_member_that_is_back_at_a_neighbour_in_the_moment_it_is_expelled(after: int) -> None:
    """Either it stays and has everything, or it hears that it was expelled; never both."""
    net, tap = graced("P-A-B-S B-T", 1, "S", "T")
    net.world.isolate("S")
    net.run(DETECT)
    stream(net, "P", GRACE + answer_ms(1) - 100 + after, 50)
    net.world.network.heal("S")
    net.cut("B", "S")
    stream(net, "P", 1500, 50)
    net.heal("B", "S")
    net.run(4000)
    if tap.sent(Leave):
        assert net.node("S").farewell is not None
        assert knowing_of(net, "S") == []
    else:
        assert net.node("S").farewell is None
        assert complete(net, "S", "P")
    assert complete(net, "T", "P")
    assert not net.held()


@pytest.mark.parametrize("by", ["B", "A"])
def test_a_member_in_session_whose_life_is_told_to_be_over_hears_so(by: str) -> None:
    """Who serves it was away when it was expelled, and hears of that late: the member does not go on deaf."""
    net, tap = graced("P-A-B-S", 1, "S")
    if by == "A":
        net.cut("B", "S")
        net.run(1000)
    assert net.node(by).reach["S"].is_open
    grave = Lore((), (of_life("S", 1),))
    net.do("A", lambda bare: bare.node.spread.on_lore(bare.node.reach["B"], grave))
    net.do("B", lambda bare: bare.node.spread.on_lore(bare.node.reach["A"], grave))
    net.run(300)
    assert Farewell.UNKNOWN in farewells(tap, by, "S")
    assert "S" not in net.node(by).topology
    net.heal("B", "S")
    net.run(1000)
    assert net.node("S").farewell is not None
    assert knowing_of(net, "S") == []
