"""A best-effort, a reliable and a durable stream in one network, under faults: each keeps its own promise.

Never a duplicate, FIFO of each publisher, nothing that was not asked for, on all three. On the durable one everything,
exactly once. On the reliable one everything, or a gap for who was without a broker, or when more failed than δ = 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from broken_brokers import BrokenBroker, Dropping, Repeating, Skipping
from holdfast.client.inbox import Inbox
from holdfast.messages.message import Message
from holdfast.messages.overlay import Lapse
from holdfast.messages.publications import Deliveries
from holdfast.ordering.fifo import Fifo
from holdfast.simulator.cast import MakeBroker
from mixed_runs import STREAMS, draw_mixed, part_of, run_mixed

#: A few of each; `python tests/mixed_runs.py 0 100 within` runs more.
SEEDS = [(seed, within) for within in (True, False) for seed in range(2)]

#: Seeds that found something, each in its time: durable subscriptions that got nothing unlogged after their broker's
#: restart, or beside another one; tags that were taken back.
ONCE_FAILED = [(8, True), (8, False), (17, False)]


@pytest.mark.parametrize(("seed", "within_delta"), SEEDS + ONCE_FAILED)
def test_each_stream_keeps_its_promise(seed: int, within_delta: bool) -> None:
    run = run_mixed(seed, within_delta=within_delta)
    assert not run.violations, str(run)
    kinds = Counter(line["kind"] for line in run.trace)
    assert kinds["accepted"] == kinds["publish"] > 0
    for stream in STREAMS:
        assert any(line["kind"] == "deliver" for line in part_of(run.trace, stream))


def test_what_is_drawn_has_all_that_can_happen() -> None:
    text = "".join(
        str(draw_mixed(seed, within_delta=within)) for seed in range(20) for within in (True, False)
    )
    for word in (
        "Crash b",
        "Freeze b",
        "Cut b",
        "Cut p",
        "Cut all",
        "Cut kept",
        "p0 also goes to",
        "kept also goes",
    ):
        assert word in text


# Canaries: whatever is judged of one stream is caught when it is broken


class Alarmist(BrokenBroker):
    """Says that more has failed than the network survives, when nothing has."""

    def spoil(self, message: Message) -> Sequence[Message]:
        is_told = isinstance(message, Deliveries) and self.is_time()
        return [message, Lapse(self.name, 1, self.seen)] if is_told else [message]


@pytest.mark.parametrize(
    ("make_broker", "kind", "stream"),
    [
        (Dropping, "lost", "alarms"),
        (Skipping, "lost", "orders"),
        (Alarmist, "needless", ""),
    ],
)
def test_a_broker_that_breaks_one_promise_is_caught(make_broker: MakeBroker, kind: str, stream: str) -> None:
    found = run_mixed(1, within_delta=True, make_broker=make_broker).violations
    assert any(each.kind == kind and each.message.startswith(stream) for each in found)


def test_an_edge_that_lets_everything_pass_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the streams that are not logged; where an event stands in a log is known to who reads it."""
    monkeypatch.setattr(Fifo, "admits", lambda self, pubend, tick: True)
    found = run_mixed(1, within_delta=True, make_broker=Repeating).violations
    assert {each.message.partition(":")[0] for each in found if each.kind == "duplicate"} == {
        "hints",
        "alarms",
    }


def test_a_client_that_announces_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the reliable stream: of the other one nothing is promised, and of the third nothing is missing."""
    monkeypatch.setattr(Inbox, "begin_doubt", lambda self, reason="", *, is_forgotten=True: None)
    found = run_mixed(8, within_delta=True).violations
    assert {each.kind for each in found} == {"lost"}
    assert {each.message.partition(":")[0] for each in found} == {"alarms"}
