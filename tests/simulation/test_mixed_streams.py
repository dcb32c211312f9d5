"""A best-effort, a reliable and a durable stream in one network, under faults: each keeps its own promise.

Never a duplicate, FIFO of each publisher, nothing that was not asked for, on all three. On the durable one everything,
exactly once. On the reliable one everything, or a gap for who was without a broker, or when more failed than δ = 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from broken_brokers import BrokenBroker, Dropping, Repeating, Skipping
from holdfast.client.inbox import OVERTAKEN, Inbox
from holdfast.messages.message import Message
from holdfast.messages.overlay import Lapse
from holdfast.messages.publications import Deliveries
from holdfast.ordering.fifo import Fifo
from holdfast.ordering.watchful import Watchful
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.cast import MakeBroker
from holdfast.simulator.run import simulate
from mixed_runs import STREAMS, draw_mixed, judge, mixed, part_of, run_mixed

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


# A publisher that overtakes its own events

#: A chain, with a plain publisher at one end that also knows the other end.
CHAIN = "".join(
    [
        "Guarantee durable\nDelta 2\nDackEvery 100\nSeed 1\n",
        *(f"Site s{i} Parent {f's{i - 1}' if i else 'none'}\n" for i in range(7)),
        *(f"Process b{i} is broker On s{i} URL tcp://localhost:0/b\n" for i in range(7)),
        "Process p is publisher On s0 URL tcp://localhost:0/c\n",
        "Process heed is subscriber On s6 URL tcp://localhost:0/c\n",
    ]
)
#: Five events are accepted, and wait before the other end for two failures to be gone around; meanwhile p goes there.
OVERTAKING = """Subscriber heed Subscribe alarms/# As alarms
Publisher p Publish 2 Ontopic alarms/a Interval 1
Wait 2000
Drain 5000
Cut b5 b6
Publisher p Publish 5 Ontopic alarms/a Interval 1
Wait 270
Cut p b0
Wait 100
Freeze b4
Publisher p Publish 5 Ontopic alarms/a Interval 1
Wait 5000
Heal b5 b6
Unfreeze b4
Heal p b0
Wait 5000
Publisher p Publish 2 Ontopic alarms/a Interval 1
Drain 20000
Wait 2500
"""


def overtaking() -> list[TraceLine]:
    network = parse_configuration(CHAIN, "configuration")
    script = parse_script(OVERTAKING, "script", network)
    return list(simulate(network, script, make_broker=mixed(), others={"p": ("b6",)}).trace)


def test_what_a_publisher_overtakes_on_its_way_to_another_broker_is_announced() -> None:
    """Within δ: accepted events that can be delivered no more are told to whom they were for, and to nobody else."""
    trace = overtaking()
    assert not judge(trace, within_delta=True)
    delivered = [line["n"] for line in trace if line["kind"] == "deliver"]
    assert delivered == [1, 2, *range(8, 15)], "it was really overtaken, and order was kept"
    gaps = [(line["after"], line["upto"], line["reason"]) for line in trace if line["kind"] == "gap"]
    assert gaps == [(n - 1, n, OVERTAKEN) for n in range(3, 8)]


def test_one_that_is_not_announced_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inbox, "_add_overtaken", lambda self, late, numbers, found: None)
    assert {each.kind for each in judge(overtaking(), within_delta=True)} == {"lost"}


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
    for edge in (Fifo, Watchful):
        monkeypatch.setattr(edge, "admits", lambda self, pubend, tick: True)
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
