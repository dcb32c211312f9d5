"""What reliable costs is measured, at a size that takes no time; the tap counts what passes, and changes nothing."""

from __future__ import annotations

import socket

import pytest

from holdfast.bench import network_reliable
from holdfast.bench.network_outcome import Outcome, Scale
from holdfast.bench.network_reliable import (
    BEST_EFFORT,
    CHAIN_JOB,
    CONTROL_JOB,
    DACK,
    KILLED,
    RELIABLE,
    STALL_JOB,
    STOPPED,
    TOLD_JOB,
    reliable,
)
from holdfast.bench.network_report import network_figures
from holdfast.bench.network_tap import Tap
from holdfast.wire.frame import header


@pytest.mark.long
def test_everything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_reliable, "SUBSCRIPTIONS", 20)
    monkeypatch.setattr(network_reliable, "BROKERS", 3)
    outcomes = list(reliable(Scale(seconds=0.05, repetitions=1)))
    assert [(outcome.job, outcome.variant) for outcome in outcomes] == [
        (CHAIN_JOB, BEST_EFFORT),
        (CHAIN_JOB, RELIABLE),
        (CONTROL_JOB, DACK),
        (STALL_JOB, KILLED),
        (STALL_JOB, STOPPED),
        (TOLD_JOB, "until it is ready"),
    ]
    found = {(outcome.job, outcome.variant): outcome.value for outcome in outcomes}
    assert all(value > 0 for value in found.values())
    # Who hangs is noticed by nobody before the detector's time, of which a beat may have passed.
    assert found[STALL_JOB, STOPPED] > network_reliable.DETECT_MS - 150


def test_the_promises_are_judged() -> None:
    outcomes = [
        Outcome(CHAIN_JOB, BEST_EFFORT, "events/s", (100.0,)),
        Outcome(CHAIN_JOB, RELIABLE, "events/s", (49.0,)),
        Outcome(CONTROL_JOB, DACK, "%", (11.0,)),
        Outcome(STALL_JOB, KILLED, "ms", (701.0,)),
        Outcome(STALL_JOB, STOPPED, "ms", (699.0,)),
    ]
    assert [figure.verdict for figure in network_figures(outcomes)] == ["missed", "missed", "missed", "holds"]


@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_the_tap_counts_frames_by_kind_however_they_are_cut(step: int) -> None:
    there = header(48, 1, 300) + bytes(300) + header(3, 1, 0) + header(48, 2, 5) + bytes(5)
    back = header(49, 1, 40) + bytes(40)
    with socket.create_server(("127.0.0.1", 0)) as server, Tap(server.getsockname()[1]) as tap:
        with socket.create_connection(("127.0.0.1", tap.port)) as near:
            far, _ = server.accept()
            with far:
                for start in range(0, len(there), step):
                    near.sendall(there[start : start + step])
                assert far.recv(len(there), socket.MSG_WAITALL) == there
                far.sendall(back)
                assert near.recv(len(back), socket.MSG_WAITALL) == back
        assert far.fileno() == -1
    assert tap.bytes_by_kind() == {48: 309 + 14, 3: 9, 49: 49}
