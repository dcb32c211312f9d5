"""When a peer is silent, and when it must hear from us."""

from __future__ import annotations

import pytest

from by_hand import hello
from holdfast.clock import MILLISECOND, SECOND
from holdfast.overlay.session import (
    HEARTBEAT_MAX_NS,
    HEARTBEAT_MIN_NS,
    HELLO_WITHIN_NS,
    Session,
    common_version,
    heartbeat_problem,
)


def begun(at: int = 0, peer_heartbeat_ns: int = SECOND, detect_after_ns: int = 500 * MILLISECOND) -> Session:
    session = Session(1, 0, 5 * SECOND)
    session.begin(at, 100 * MILLISECOND, peer_heartbeat_ns, detect_after_ns)
    return session


def test_a_stranger_has_only_so_long_whatever_it_says() -> None:
    session = Session(1, 0, 5 * SECOND)
    session.hear(4 * SECOND)
    assert not session.is_silent(5 * SECOND - 1)
    assert session.is_silent(5 * SECOND)
    assert not session.may_beat(60 * SECOND)


def test_a_session_begins_with_the_peer_heard() -> None:
    session = begun(at=4 * SECOND, peer_heartbeat_ns=MILLISECOND)
    assert not session.is_silent(4 * SECOND + 499 * MILLISECOND)


@pytest.mark.parametrize(
    ("heartbeat_ns", "silent_after_ns"), [(SECOND, 3 * SECOND), (MILLISECOND, 500 * MILLISECOND)]
)
def test_silence_is_three_heartbeats_or_the_patience_whichever_is_longer(
    heartbeat_ns: int, silent_after_ns: int
) -> None:
    session = begun(peer_heartbeat_ns=heartbeat_ns)
    session.hear(0)
    assert not session.is_silent(silent_after_ns - 1)
    assert session.is_silent(silent_after_ns)


def test_until_its_first_word_a_peer_has_the_time_of_a_round_trip() -> None:
    session = begun(peer_heartbeat_ns=MILLISECOND)
    assert not session.is_silent(HELLO_WITHIN_NS - 1)
    assert session.is_silent(HELLO_WITHIN_NS)


def test_whoever_is_heard_is_not_silent() -> None:
    session = begun()
    session.hear(2 * SECOND)
    assert not session.is_silent(5 * SECOND - 1)
    assert session.is_silent(5 * SECOND)


def test_heartbeats_are_due_one_interval_after_the_beginning() -> None:
    session = begun(at=SECOND)
    assert not session.may_beat(SECOND + 100 * MILLISECOND - 1)
    assert session.may_beat(SECOND + 100 * MILLISECOND)


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(1, 1, 1), (0, 5, 1), (2, 5, None), (0, 0, None), (5, 0, None)]
)
def test_the_version_is_one_both_know(low: int, high: int, expected: int | None) -> None:
    assert common_version(hello("n", version_min=low, version_max=high)) == expected


def test_promises_nobody_can_use_are_refused() -> None:
    for bad in (-1, 0, HEARTBEAT_MIN_NS - 1, HEARTBEAT_MAX_NS + 1, 2**62):
        assert heartbeat_problem(bad) is not None
    for good in (HEARTBEAT_MIN_NS, SECOND, HEARTBEAT_MAX_NS):
        assert heartbeat_problem(good) is None
