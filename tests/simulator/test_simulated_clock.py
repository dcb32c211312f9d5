from __future__ import annotations

from holdfast.simulator.clock import VirtualClock


def test_things_happen_in_the_order_of_their_instants_and_ties_in_the_order_of_asking() -> None:
    clock = VirtualClock()
    seen: list[tuple[int, str]] = []
    for when, what in [(5, "c"), (1, "a"), (5, "d"), (2, "b")]:
        clock.at(when, lambda what: seen.append((clock.now, what)), what)
    clock.run_until(10)
    assert seen == [(1, "a"), (2, "b"), (5, "c"), (5, "d")]
    assert clock.now == 10


def test_what_is_asked_for_in_the_past_happens_now() -> None:
    clock = VirtualClock()
    clock.run_until(7)
    seen: list[int] = []
    clock.at(3, lambda _: seen.append(clock.now))
    clock.run_until(7)
    assert seen == [7]


def test_what_happens_may_ask_for_more_at_the_same_instant() -> None:
    clock = VirtualClock()
    seen: list[int] = []

    def again(left: int) -> None:
        seen.append(clock.now)
        if left:
            clock.at(clock.now, again, left - 1)

    clock.at(4, again, 3)
    clock.run_until(4)
    assert seen == [4, 4, 4, 4]


def test_nothing_beyond_the_limit_happens() -> None:
    clock = VirtualClock()
    seen: list[int] = []
    clock.at(11, seen.append, 1)
    clock.run_until(10)
    assert not seen
    assert clock.next_instant() == 11


def test_running_while_a_condition_holds_stops_as_soon_as_it_ceases() -> None:
    clock = VirtualClock()
    seen: list[int] = []
    for when in (1, 2, 3):
        clock.at(when, seen.append, when)
    assert clock.run_while(lambda: len(seen) < 2, 10)
    assert clock.now == 2
    assert not clock.run_while(lambda: len(seen) < 9, 10)
    assert clock.now == 10
