"""The logs of a network in words: who keeps them from forgetting, since when, and what their disks refuse."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.cli.durable_view import DurableView
from holdfast.cli.sub import _text_line
from holdfast.cli.words import duration, moment, sized
from holdfast.client.item import Gap

NOW = datetime.now(UTC)
CLOCK = int(NOW.timestamp()) * 1_000_000
HOUR = 3_600_000_000


def log(**changes: Any) -> dict[str, Any]:
    return {
        "pubend": "orders@b1/0",
        "stream": "orders",
        "state": "ok",
        "problem": None,
        "last": CLOCK,
        "unstable": 0,
        "unstable_since": None,
        "bytes": 3 << 20,
        "given_up": 0,
        "released": CLOCK - 3 * HOUR,
        "delivered": CLOCK,
        "waits_for": [{"broker": "b2", "released": CLOCK - 3 * HOUR, "reached": True, "pins": True}],
        **changes,
    }


def staged(**changes: Any) -> dict[str, Any]:
    return {"attempts": 0, "bytes": 0, "oldest": None, "problem": None, **changes}


def page(*pubends: dict[str, Any], **changes: Any) -> dict[str, Any]:
    counts = {"here": 0, "away": 0, "catching_up": 0, "away_longest_since": None, "ending": 0}
    durable: dict[str, Any] = {
        "clock": CLOCK,
        "problem": None,
        "hosted": [],
        "subscriptions": counts,
        "elsewhere": [],
        "gaps": {},
        "logging": {"bytes": 0, "held_up": 0},
        "staged": staged(),
    }
    return {"durable": {**durable, "pubends": list(pubends), **changes}}


def hosted(*names: str, **changes: Any) -> dict[str, Any]:
    pinned = [{"name": name, "away_since": CLOCK - 2 * HOUR} for name in names]
    known = {"pubend": "orders@b1/0", "reached": True, "problem": None, "readers": 1}
    return {**known, "pinned_by": pinned, **changes}


def test_who_pins_a_log_is_found_at_the_broker_it_waits_for() -> None:
    away = moment(datetime.fromtimestamp(CLOCK // 1_000_000, UTC) - timedelta(hours=2))
    view = DurableView({"b1": page(log()), "b2": page(hosted=[hosted("audit")])})
    assert list(view.lines()) == [
        "One log holds 3.0 MiB, one copy of every event.",
        f"orders@b1/0 keeps what is up to 3 h old, for audit at b2, away since {away}.",
    ]
    (found,) = view.as_json()["logs"]
    assert (found["pinned_seconds"], found["pinned_by"][0]["subscription"]) == (3 * 3600.0, "audit")
    json.dumps(view.as_json())


def test_a_broker_that_does_not_answer_pins_by_itself_and_one_that_has_everything_does_not() -> None:
    (line,) = [line for line in DurableView({"b1": page(log())}).lines() if "keeps" in line]
    assert line.endswith("for b2, which does not answer.")
    whole = log(
        released=CLOCK, waits_for=[{"broker": "b2", "released": CLOCK, "reached": True, "pins": False}]
    )
    assert not [line for line in DurableView({"b1": page(whole)}).lines() if "keeps" in line]
    just_now = log(released=CLOCK - 1_000_000)
    assert not [line for line in DurableView({"b1": page(just_now)}).lines() if "keeps" in line]


def test_what_was_given_up_is_not_kept_for_anybody() -> None:
    (found,) = DurableView({"b1": page(log(given_up=CLOCK - HOUR))}).logs()
    assert found.pinned_for == 3600.0


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (page(log(state="refusing", problem="full")), ("b1", "refuses events of orders: full")),
        (page(log(state="failed", problem="EIO")), ("b1", "refuses events of orders: EIO")),
        (page(problem="full"), ("b1", "cannot save what its subscribers acknowledge: full")),
        (page(staged=staged(problem="EIO")), ("b1", "cannot stage what tasks write: EIO")),
        (
            page(hosted=[hosted(problem="full")]),
            ("b1", "cannot note who wants what of orders@b1/0: full"),
        ),
    ],
)
def test_a_disk_that_refuses_is_a_problem(said: dict[str, Any], problem: tuple[str, str]) -> None:
    assert list(DurableView({"b1": said}).problems()) == [problem]


def test_a_log_that_nobody_reads_any_more_need_not_be_reached() -> None:
    """A subscription has moved on, and the log is being told so."""
    assert list(DurableView({"b2": page(hosted=[hosted(reached=False, readers=0)])}).lines()) == []


def test_gaps_and_unreached_logs_are_told() -> None:
    view = DurableView(
        {"b2": page(hosted=[hosted(reached=False)], gaps={"max_retain": 2}), "b3": {"durable": None}}
    )
    assert list(view.lines()) == [
        "b2 does not reach orders@b1/0: its subscribers wait.",
        "b2 has had to tell subscribers that events are gone: 2 max_retain.",
    ]


def test_what_is_staged_and_not_committed_for_a_while_is_told() -> None:
    old, young = staged(attempts=2, bytes=3 << 20, oldest=CLOCK - HOUR), staged(attempts=1, oldest=CLOCK)
    assert list(DurableView({"b1": page(staged=old), "b2": page(staged=young)}).lines()) == [
        "b1 keeps two attempts of 3.0 MiB staged that nobody has committed, the oldest for 1 h."
    ]


def test_events_that_wait_for_a_log_elsewhere_are_told_if_it_cannot_be_reached() -> None:
    waiting = [
        {"broker": "b1", "events": 12, "reached": False},
        {"broker": "b3", "events": 1, "reached": True},
    ]
    assert list(DurableView({"b2": page(elsewhere=waiting)}).lines()) == [
        "b2 does not reach b1, which is to log 12 events: their publishers wait."
    ]


def test_publishers_that_wait_for_a_disk_are_told() -> None:
    held_up, busy = {"bytes": 300 << 20, "held_up": 3}, {"bytes": 4096, "held_up": 0}
    assert list(DurableView({"b1": page(logging=held_up), "b2": page(logging=busy)}).lines()) == [
        "b1 has 300.0 MiB on the way to its disk, and holds up three publishers for it."
    ]


def test_times_and_sizes_are_said_as_people_do() -> None:
    assert [duration(each) for each in (0.5, 61, 90_000)] == ["0 s", "1 min 1 s", "1 d 1 h"]
    assert [sized(each) for each in (0, 1023, 1024, 10 << 30)] == [
        "0 bytes",
        "1,023 bytes",
        "1.0 KiB",
        "10.0 GiB",
    ]
    assert moment(datetime(2020, 1, 2, 3, 4, tzinfo=UTC)).startswith("2020-01-0")


def test_a_gap_of_a_log_is_a_span_of_time() -> None:
    day = datetime(2026, 1, 31, 12, tzinfo=UTC)
    start = int(day.timestamp()) * 1_000_000
    line = _text_line(Gap("orders@b1/0", start, start + HOUR, "max_retain"))
    local = day.astimezone()
    assert line == (
        f"-- gap: what orders@b1/0 had from {local:%Y-%m-%d %H:%M:%S} to {local + timedelta(hours=1):%Y-%m-%d %H:%M:%S}"
        " may be missing here: it was older than the stream keeps\n"
    )
    assert "had up to" in _text_line(Gap("orders@b1/0", 0, start, "acknowledged, max_bytes"))
