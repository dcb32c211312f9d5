"""When events expire (R1.33): stretches against a plain list of every event, and what a value means."""

from __future__ import annotations

from math import ceil, inf, nan
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.events.event import Content, make_event
from holdfast.messages.ticks import ORIGIN
from holdfast.streams import expiring as module
from holdfast.streams.expiring import NEVER, STRETCHES_MAX, Expiries, Expiring, expiry_of

SECOND = 1_000_000


def event(**attributes: Any) -> Content:
    return make_event("a", attributes)


class Every:
    """The plain twin: every event with its expiry."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int]] = []
        self.latest = ORIGIN  #: of all there ever were

    def add(self, tick: int, expiry: int) -> None:
        self.events.append((tick, expiry))
        self.latest = max(self.latest, expiry)

    def expired_through(self, now: int) -> int:
        through = ORIGIN
        for tick, expiry in self.events:
            if expiry > now:
                break
            through = tick
        return through

    def drop(self, through: int) -> None:
        self.events = [each for each in self.events if each[0] > through]


class Both:
    """The two side by side, and what was saved last."""

    def __init__(self) -> None:
        self.clever = Expiring("until")
        self.plain = Every()
        self.last = 0
        self._saved: tuple[bytes, int] = msgspec.msgpack.encode(self.clever.kept()), 0

    def add(self, later: int, seconds: float | None) -> None:
        self.last += later
        value = {} if seconds is None else {"until": seconds}
        self.clever.add([(self.last, event(**value))])
        self.plain.add(self.last, NEVER if seconds is None else max(0, ceil(seconds * SECOND)))

    def drop(self, through: int) -> None:
        self.clever.drop(through)
        self.plain.drop(through)

    def save(self) -> None:
        self._saved = msgspec.msgpack.encode(self.clever.kept()), self.last

    def restart(self) -> None:
        """What was saved, and the events behind that, from the log."""
        row, upto = self._saved
        self.clever = Expiring("until", msgspec.msgpack.decode(row, type=Expiries), upto)
        self.clever.drop(self.plain.events[0][0] - 1 if self.plain.events else self.last)
        tail = [(tick, expiry) for tick, expiry in self.plain.events if tick > upto]
        for tick, expiry in tail:
            value = {} if expiry == NEVER else {"until": expiry / SECOND}
            self.clever.add([(tick, event(**value))])


#: Events come together, or after a while; they expire in any order, or never.
ADDED = st.tuples(
    st.just("add"), st.sampled_from((1, 1, 3, 40, 1_000)), st.integers(-1, 30) | st.sampled_from((None, 7, 7))
)
DROPPED = st.tuples(st.just("drop"), st.integers(0, 3_000), st.none())
LIVES = st.tuples(st.sampled_from(("save", "restart")), st.just(0), st.none())
STEPS = st.lists(ADDED | ADDED | ADDED | ADDED | DROPPED | LIVES, max_size=120)


def play(steps: list[Any]) -> Both:
    both = Both()
    for what, number, seconds in steps:
        match what:
            case "add":
                both.add(number, seconds)
            case "drop":
                both.drop(min(number, both.last))
            case "save":
                both.save()
            case "restart":
                both.restart()
    return both


@examples(200)
@given(STEPS, st.integers(-1, 31))
def test_few_events_are_known_each_for_itself(steps: list[Any], now: int) -> None:
    both = play(steps)
    assert both.clever.expired_through(now * SECOND) == both.plain.expired_through(now * SECOND)


@examples(200)
@given(STEPS, st.integers(2, 12))
def test_with_many_nothing_expires_too_early_and_stretches_are_bounded(steps: list[Any], most: int) -> None:
    """R1.33: never above the first that has not expired, and nothing is held that has all expired."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STRETCHES_MAX", most)
        patch.setattr(module, "_FEWER", most * 3 // 4)
        patch.setattr(module, "_FEW", most // 4)
        both = play(steps)
        assert len(both.clever.kept().lasts) <= most
        for now in range(-1, 32):
            assert both.clever.expired_through(now * SECOND) <= both.plain.expired_through(now * SECOND)
        if both.plain.events and both.plain.latest < NEVER:
            assert both.clever.expired_through(both.plain.latest) == both.last


def test_a_long_log_with_one_time_to_live_expires_in_time_give_or_take_a_hundredth() -> None:
    """An hour of five events a second, each with a minute to live; nobody acknowledges."""
    known, step, lives = Expiring("until"), SECOND // 5, 60 * SECOND
    ticks = range(step, 3_600 * SECOND, step)
    known.add((tick, event(until=(tick + lives) / SECOND)) for tick in ticks)
    assert len(known.kept().lasts) <= STRETCHES_MAX
    for at in (0.1, 0.5, 0.9, 0.99):
        now = ceil(at * ticks[-1])
        late = now - lives - known.expired_through(now)
        assert 0 <= late <= step + ticks[-1] // 100, at


def test_when_little_is_left_it_is_known_exactly_again() -> None:
    both = Both()
    for tick in range(3 * STRETCHES_MAX):
        both.add(1_000, tick)
    both.drop(both.last)
    for seconds in (1, 3, 2, 4):
        both.add(1, seconds)
    for now in range(5):
        assert both.clever.expired_through(now * SECOND) == both.plain.expired_through(now * SECOND)


# What is saved


@pytest.mark.parametrize("kept", [None, Expiries("other", [10], [0])])
def test_of_what_was_logged_under_another_setting_nothing_is_known_and_nothing_expires(
    kept: Expiries | None,
) -> None:
    known = Expiring("until", kept, 10)
    known.add([(11, event(until=1))])
    assert known.expired_through(NEVER - 1) == ORIGIN
    known.drop(10)
    assert known.expired_through(SECOND) == 11


def test_silence_does_not_stand_in_the_way_and_what_has_not_expired_does() -> None:
    known = Expiring("until")
    known.add(
        [(5, event(until=1)), (SECOND, event(until=2)), (9 * SECOND, event()), (10 * SECOND, event(until=2))]
    )
    assert known.expired_through(SECOND - 1) == ORIGIN
    assert known.expired_through(SECOND) == 5
    assert known.expired_through(60 * SECOND) == SECOND
    assert known.expired_through(60 * SECOND, 9 * SECOND) == 10 * SECOND, "that may go anyway"
    assert known.expired_through(60 * SECOND, 9 * SECOND - 1) == SECOND
    known.drop(9 * SECOND)
    assert known.expired_through(60 * SECOND) == 10 * SECOND


# What a value means


@pytest.mark.parametrize(
    ("value", "expiry"),
    [
        (1_700_000_000, 1_700_000_000 * SECOND),
        (1_700_000_000.25, 1_700_000_000_250_000),
        (0.0000011, 2),  # rather late than early
        (0, ORIGIN),
        (-5, ORIGIN),
        (-1e300, ORIGIN),
        (1e300, NEVER),
        (2**63 - 1, NEVER),
        (inf, NEVER),
        (-inf, NEVER),
        (nan, NEVER),
        (True, NEVER),
        (False, NEVER),
        ("1700000000", NEVER),
        (b"1", NEVER),
        (None, NEVER),
    ],
)
def test_seconds_since_the_epoch_whole_or_not_and_nothing_else(value: object, expiry: int) -> None:
    assert expiry_of(value) == expiry


@pytest.mark.parametrize("value", [False, True, "soon", b"soon"])
def test_an_attribute_of_another_type_never_expires(value: Any) -> None:
    known = Expiring("until")
    known.add([(5, event(until=value, other=1))])
    assert known.expired_through(NEVER - 1) == ORIGIN
