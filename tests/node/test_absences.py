"""Members that die without a word are missed, asked for and expelled [B0.25], and others are not disturbed."""

from __future__ import annotations

import pytest
from graced import DETECT, GRACE, MODES, SLACK, answer_ms, brokers, expelled_at, farewells, graced, knowing_of
from harness import Bare
from schedules import checked, complete, stream

from holdfast.clock import MILLISECOND
from holdfast.messages.overlay import Leave, Missing, Present
from holdfast.messages.session import Farewell
from holdfast.node.absences import EXPELLED_MAX, Absences
from holdfast.node.settings import Acknowledge
from holdfast.overlay.transport import Send

# The dead


@pytest.mark.parametrize("acknowledge", MODES)
@pytest.mark.parametrize("delta", [0, 1, 2])
def test_b025_a_member_that_dies_is_expelled_after_its_grace_and_nothing_is_kept_for_it(
    delta: int, acknowledge: Acknowledge
) -> None:
    net, tap = graced("P-A-B-C-S C-T", delta, "S", "T", acknowledge=acknowledge)
    stream(net, "P", 300)
    net.crash("S")
    died = net.now
    stream(net, "P", GRACE)
    net.run(0)
    assert net.held(), "it is waited for"
    assert knowing_of(net, "S")
    stream(net, "P", DETECT + answer_ms(delta) + SLACK, 50)
    (at,) = expelled_at(net, tap, "S", "C")
    assert died + GRACE + answer_ms(delta) <= at <= died + DETECT + GRACE + answer_ms(delta) + SLACK
    net.run(3000)
    assert knowing_of(net, "S") == []
    assert complete(net, "T", "P")
    assert not checked(net, tap), "no queue, no table that differs"


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_dead_publisher_is_no_partition_any_more(is_restarted: bool) -> None:
    """B0.25: until it is expelled nobody can say what it would publish, and new subscriptions are partial."""
    net, tap = graced("P-A-B-S B-Q", 1)
    net.crash("Q")
    net.run(1000)
    net.subscribe("S", 1)
    net.run(500)
    assert net.partial("S", 1)
    if is_restarted:  # what an earlier life of it led, another one ends
        net.crash("B")
        net.run(800)
        net.restart("B")
    net.run(GRACE + answer_ms(1) + 1000)
    net.subscribe("S", 2)
    net.run(1000)
    assert net.partial("S", 2) == ()
    assert net.full_at("S", 1) is not None, "and those that were are whole"
    stream(net, "P", 200)
    net.run(3000)
    assert {*net.got("S", 1)} == {*net.got("S", 2)} == {f"P#{n}" for n in range(1, 11)}
    assert not checked(net, tap)


def test_two_members_of_one_broker_die_and_others_elsewhere_too() -> None:
    net, tap = graced("P-A-B-S B-T A-S2 P-A", 1, "S", "T", "S2")
    stream(net, "P", 200)
    net.crash("S")
    net.run(700)
    net.crash("T", "S2")
    stream(net, "P", 1000)
    net.run(GRACE + answer_ms(1) + 4000)
    assert [knowing_of(net, each) for each in ("S", "T", "S2")] == [[], [], []]
    (first,), (second,) = expelled_at(net, tap, "S", "B"), expelled_at(net, tap, "T", "B")
    assert 500 <= second - first <= 1000
    assert not checked(net, tap)


@pytest.mark.parametrize("delta", [0, 1, 2])
def test_a_home_that_restarts_learns_of_the_dead_from_others_and_expels_them(delta: int) -> None:
    net, tap = graced("P-A-B-S B-T", delta, "S", "T")
    net.crash("S")
    net.run(1000)
    net.crash("B")
    stream(net, "P", 1000)
    net.restart("B")
    back = net.now
    stream(net, "P", 1500)
    assert "S" in net.node("B").topology
    net.run(GRACE + answer_ms(delta) + 3000)
    (at,) = expelled_at(net, tap, "S", "B")
    assert back + GRACE + answer_ms(delta) <= at <= back + GRACE + answer_ms(delta) + 1500
    assert knowing_of(net, "S") == []
    if delta:  # else B lost what had come to it; that is another matter
        assert complete(net, "T", "P")
    assert not net.held()
    assert set(map(tuple, net.knowing().values())) == {("T.1#1",)}


def test_a_home_that_is_down_expels_nobody_and_nobody_does_so_for_it() -> None:
    net, _ = graced("P-A-B-C-S", 1, "S")
    net.crash("S")
    net.run(1000)
    net.crash("C")
    net.run(4 * GRACE)
    assert knowing_of(net, "S") == ["P", "A", "B"]


def test_many_that_die_together_are_expelled_a_few_at_a_time() -> None:
    names = [f"S{i}" for i in range(EXPELLED_MAX + 3)]
    net, tap = graced("P-A-B " + " ".join(f"B-{name}" for name in names), 1, *names)
    net.crash(*names)
    net.run(DETECT + GRACE + answer_ms(1) + 3000)
    times = [expelled_at(net, tap, name, "B")[0] for name in names]
    assert len({*times}) == 2
    assert max(times) - min(times) <= 200
    assert not checked(net, tap)


# Questions


def test_each_question_is_passed_on_once_and_no_farther_than_the_member_is_known() -> None:
    net, tap = graced("P-A-B-C-D-S C-E", 1, "S")
    net.crash("S")
    net.run(DETECT + GRACE + 200)
    asked = [(frame.node, frame.peer) for frame in tap.sent(Missing)]
    assert asked == [("D", "C"), ("C", "B"), ("C", "E")]
    net.run(answer_ms(1) + 1000)
    assert len(tap.sent(Missing)) == 3 * (answer_ms(1) // DETECT)
    assert not net.node("C").absences._questions, "nothing is left of it"


@pytest.mark.parametrize("message", [Missing("S", 1, 1, 1), Present("S", 1)])
def test_only_brokers_ask_and_answer(message: Missing | Present) -> None:
    net, tap = graced("P-A-B-S", 1, "S")

    def forge(bare: Bare) -> list[object]:
        connection = bare.node.reach["A"].connection
        assert connection is not None
        return [Send(connection, [message])]

    net.do("P", forge)
    net.run(200)
    assert net.node("A").refusals == 1
    assert farewells(tap, "A", "P") == [Farewell.PROTOCOL]
    assert not tap.sent(Missing, "A")


def test_an_answer_of_an_earlier_life_does_not_count() -> None:
    net, _ = graced("P-A-B-S", 1, "S")
    net.crash("S")
    net.run(1000)
    node = net.node("B")
    absence = node.reach.away["S"]
    since = absence.since
    for incarnation, expected in ((0, since), (1, net.world.now)):
        node.absences.on_present(Present("S", incarnation), net.world.now)
        assert absence.since == expected


def test_members_in_session_cost_a_tick_nothing() -> None:
    net, _ = graced("P-A-B-S B-T B-S2", 1, "S", "T", "S2")
    assert not any(net.node(name).reach.away for name in brokers(net))
    net.crash("T")
    net.run(1000)
    assert {name: [*net.node(name).reach.away] for name in brokers(net)} == {"A": [], "B": ["T"]}


# Planted


def test_without_the_mechanism_the_dead_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Absences, "tick", lambda absences, now: [])
    net, tap = graced("P-A-B-S", 1, "S")
    net.crash("S")
    stream(net, "P", 200)
    net.run(6 * GRACE)
    assert knowing_of(net, "S") == ["P", "A", "B"]
    assert checked(net, tap)


def test_without_the_question_the_living_are_expelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Absences, "on_missing", lambda absences, sender, missing: [])
    net, tap = graced("P-A-B-S", 1, "S")
    net.cut("B", "S")
    stream(net, "P", 3 * GRACE, 50)
    net.run(1000)
    assert tap.sent(Leave)


def test_without_the_patience_of_a_lonely_home_the_living_are_expelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Absences, "_is_asked", lambda absences, station: True)
    net, _ = graced("P-A-B-C-S", 1, "S")
    net.world.isolate("C")
    net.run(5 * GRACE)
    net.world.network.heal("C")
    net.run(3000)
    assert not complete(net, "S", "P") or net.node("S").farewell is not None


def test_the_answer_time_follows_delta_and_the_detector() -> None:
    net, _ = graced("P-A-B-S", 2)
    assert net.node("A").absences.answer_within_ns == answer_ms(2) * MILLISECOND == 7 * DETECT * MILLISECOND
