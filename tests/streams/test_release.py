"""When the log may forget: R1.13-R1.15, R1.33, R1.34, B1.8, B1.9, I17, and the release side of X24."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.streams.release import (
    Expiry,
    Facts,
    MaxBytes,
    MaxRetain,
    Minima,
    Policy,
    Reason,
    Release,
    Report,
    release,
)

SECOND = 1_000_000  # in ticks
SHBS = ("a", "b", "c")
REPORTS = st.lists(
    st.tuples(st.sampled_from(SHBS), st.integers(0, 9), st.integers(0, 30), st.integers(0, 30)), max_size=25
)


def minima_of(**reports: tuple[int, int]) -> Minima:
    return Minima(reports=[Report(shb, 1, *values) for shb, values in reports.items()])


def check_history(kind: type[Minima], steps: list[tuple[str, int, int, int]]) -> None:
    """T_r and T_d are what the latest reports allow, never more, and never go back (I17)."""
    minima = kind()
    for shb in SHBS:
        minima.expect(shb)
    latest: dict[str, tuple[int, int, int]] = {}
    for shb, number, released, delivered in steps:
        before = minima.released, minima.delivered
        minima.on_report(Report(shb, number, released, delivered))
        if number > latest.get(shb, (0,))[0]:
            delivered = max(delivered, latest.get(shb, (0, 0, 0))[2])
            latest[shb] = number, min(released, delivered), delivered
        assert minima.released >= before[0]
        assert minima.delivered >= before[1]
        assert minima.released <= minima.delivered
        if len(latest) < len(SHBS):
            assert minima.released == minima.delivered == 0, "one that never reported counts as nothing"
        else:
            assert minima.delivered == min(each[2] for each in latest.values())
            assert minima.released <= max(before[0], min(each[1] for each in latest.values()))


@examples(200)
@given(REPORTS)
def test_b1_8_minima_are_over_all_shbs_and_never_go_back(steps: list[tuple[str, int, int, int]]) -> None:
    check_history(Minima, steps)


class ByArrival(Minima):
    """The last report to arrive counts, not the latest one made."""

    def on_report(self, report: Report) -> bool:
        self._reports[report.shb] = report
        self._advance()
        return True


class OnlyThoseHeard(Minima):
    """Whoever has not reported does not count."""

    def expect(self, shb: str) -> None:
        pass


@pytest.mark.parametrize("kind", [ByArrival, OnlyThoseHeard])
def test_the_property_can_fail(kind: type[Minima]) -> None:
    everybody = [("a", 2, 5, 5), ("b", 1, 9, 9), ("c", 1, 9, 9), ("a", 1, 8, 8)]
    check_history(Minima, everybody)
    with pytest.raises(AssertionError):
        check_history(kind, everybody)


def test_b1_8_a_new_shb_begins_at_t_d_and_cannot_drag_anything_down() -> None:
    minima = minima_of(a=(10, 20), b=(12, 25))
    assert minima.admit("new") == Report("new", 0, 20, 20)
    assert (minima.released, minima.delivered) == (10, 20)
    minima.on_report(Report("a", 2, 30, 30))
    assert (minima.released, minima.delivered) == (12, 20), "but from now on it counts"
    assert minima.admit("a").delivered == 30, "one that is known is not new"


def test_b1_8_an_shb_that_had_subscribers_before_it_was_heard_of_has_all_that_is_still_there() -> None:
    minima = minima_of(a=(10, 20), b=(12, 25))
    assert minima.admit("late", 9) == Report("late", 0, 9, 9)
    assert minima.admit("late", 4) == Report("late", 0, 4, 4), "somebody else there had subscribed earlier"
    assert minima.admit("late", 8) == Report("late", 0, 4, 4)
    assert (minima.released, minima.delivered) == (4, 4)
    minima.on_report(Report("late", 1, 15, 15))
    assert (minima.released, minima.delivered) == (10, 15)
    assert minima.admit("late", 4).delivered == 15, "now it is known"


def test_b1_8_nothing_goes_while_an_shb_that_was_heard_of_late_has_not_reported() -> None:
    minima = minima_of(a=(10, 20), b=(12, 25))
    minima.expect("late")
    assert release(3, minima, Facts(now=100), [MaxRetain(1)]) == []
    minima.expect("a")
    minima.on_report(Report("late", 1, 8, 9))
    assert (minima.released, minima.delivered) == (8, 9)


def test_b1_8_only_an_operator_takes_an_shb_out() -> None:
    minima = minima_of(a=(10, 20), gone=(3, 4))
    assert (minima.released, minima.delivered) == (3, 4)
    assert [report.shb for report in minima.pinning()] == ["gone"]
    minima.remove("gone")
    assert (minima.released, minima.delivered) == (10, 20)
    minima.remove("a")
    assert (minima.released, minima.delivered) == (10, 20), "nobody left: nothing is released for that"


def test_b1_9_a_subscriber_that_moves_pins_at_its_new_broker_before_the_old_one_lets_go() -> None:
    minima = minima_of(old=(10, 50), new=(40, 50))
    pin = Report("new", 2, 10, 55)
    minima.on_report(pin)
    minima.on_report(Report("old", 2, 50, 55))
    assert minima.released == 10
    minima.on_report(Report("new", 1, 40, 50))  # an older one, by a longer road
    assert minima.released == 10


def test_i17_what_was_reported_outlives_a_restart() -> None:
    minima = minima_of(a=(10, 20), b=(12, 25))
    again = Minima(minima.released, minima.delivered, minima.reports)
    assert (again.released, again.delivered) == (10, 20)
    again.on_report(Report("a", 1, 99, 99))
    assert again.released == 10


# Policies


@examples(200)
@given(
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(0, 30),
)
def test_r1_15_a_tick_goes_when_all_released_it_or_it_is_old_and_all_delivered_it(
    released: int, delivered: int, now: int, max_retain: int, lost: int
) -> None:
    minima = minima_of(a=(min(released, delivered), delivered))
    pieces = release(lost, minima, Facts(now), [MaxRetain(max_retain)])
    gone = {t for piece in pieces for t in range(piece.after + 1, piece.upto + 1)} | {*range(1, lost + 1)}
    for t in range(1, 41):
        rule = t <= minima.released or (t <= minima.delivered and now - t > max_retain)
        assert (t in gone) == (rule or t <= lost)


def test_r1_34_without_a_policy_nothing_goes_early() -> None:
    assert release(0, minima_of(a=(10, 50)), Facts(10**9), []) == [Release(0, 10, Reason.ACKNOWLEDGED)]
    assert release(10, minima_of(a=(10, 50)), Facts(10**9), [Expiry()]) == []


def test_max_bytes_lets_the_oldest_parts_go() -> None:
    facts = Facts(99, segments=[(10, 400), (20, 400), (30, 400)])
    assert MaxBytes(1200).allows(facts)[0] == 0
    assert MaxBytes(1199).allows(facts)[0] == 10
    assert MaxBytes(800).allows(facts)[0] == 10
    assert MaxBytes(0).allows(facts)[0] == 20, "what came last is what somebody waits for"
    assert release(0, minima_of(a=(0, 5)), facts, [MaxBytes(0)]) == [Release(0, 5, Reason.MAX_BYTES)], (
        "whoever is current never sees a gap (R1.14)"
    )


def test_r1_33_expired_events_go_and_reasons_are_told_apart() -> None:
    policies: list[Policy] = [MaxRetain(10 * SECOND), Expiry()]
    facts = Facts(15 * SECOND, expired_through=8 * SECOND)
    assert release(0, minima_of(a=(2 * SECOND, 15 * SECOND)), facts, policies) == [
        Release(0, 2 * SECOND, Reason.ACKNOWLEDGED),
        Release(2 * SECOND, 5 * SECOND - 1, Reason.MAX_RETAIN),
        Release(5 * SECOND - 1, 8 * SECOND, Reason.EXPIRED),
    ]


def test_x24_early_release_reaches_what_is_ten_seconds_old_and_never_past_t_d() -> None:
    policies: list[Policy] = [MaxRetain(10 * SECOND)]
    now = Facts(30 * SECOND)
    alone = minima_of(shb=(5 * SECOND, 30 * SECOND))
    gap = release(5 * SECOND, alone, now, policies)
    assert len(gap) == 1
    assert 19 * SECOND <= gap[0].upto <= 20.5 * SECOND
    parted = minima_of(shb=(5 * SECOND, 30 * SECOND), other=(8 * SECOND, 8 * SECOND))
    assert release(5 * SECOND, parted, now, policies) == [Release(5 * SECOND, 8 * SECOND, Reason.MAX_RETAIN)]
