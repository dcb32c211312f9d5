"""The benchmarks of durable streams run, at a size that takes no time, and a load that gets something wrong says so."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.bench import durable_filtering, durable_reception
from holdfast.bench.durable import DURABLE_JOBS
from holdfast.bench.durable_catch_up import ASKED_JOB, CATCH_UP_JOB, CURRENT_JOB, ONE, OUTAGE
from holdfast.bench.durable_fan_out import FAN_OUT_JOB, NETWORK, SHORT, SUSTAINED, WRITTEN_JOB
from holdfast.bench.durable_filtering import BYTES_JOB, CPU_JOB, FILTERING, ONE_LOG, WAYS
from holdfast.bench.durable_latency import (
    ALL_LOG,
    CHAIN,
    CHAIN_JOB,
    LATENCY_JOB,
    OFFERED_JOB,
    ONE_BROKER,
    PAIR,
    RECEIPT,
    SYNC,
)
from holdfast.bench.durable_load import EVERYTHING, DurableLoad, group_filter
from holdfast.bench.durable_pacer import Pacer
from holdfast.bench.durable_process import BrokerProcess
from holdfast.bench.durable_publishing import ACKNOWLEDGED, BARE_FILE, RAW, REAL
from holdfast.bench.durable_reception import FIRST, Reception
from holdfast.bench.durable_report import durable_figures, durable_markdown
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_wire import PORTION, REJECTED, Publisher, Subscriber
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_wire import PUBLISHER, BenchFailed
from holdfast.clock import MILLISECOND
from holdfast.messages.durable import Portion
from holdfast.messages.publications import Batch, Publication, Rejected
from holdfast.wire.frame import encode
from raw_peer import wait_until
from running import Running


def test_a_benchmark_that_is_terminated_leaves_nothing_behind(tmp_path: Path) -> None:
    with Running("bench", "durable", "--quick", "--data", str(tmp_path)) as running:
        asyncio.run(wait_until(lambda: list(tmp_path.glob("*/*/*"))))
        running.tell(signal.SIGTERM)
        assert running.ended()[0] == 130
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def tiny(tmp_path: Path) -> DurableScale:
    return DurableScale(
        tmp_path,
        seconds=0.05,
        repetitions=1,
        sustained_seconds=0.1,
        subscribers=8,
        brokers=2,
        missed=200,
        together=4,
        outage_seconds=0.3,
        filtered=400,
    )


def run(name: str, scale: DurableScale) -> dict[tuple[str, str], Outcome]:
    """What was measured by job and variant; every figure must mean something, and nothing may stay behind."""
    outcomes = list(DURABLE_JOBS[name](scale))
    assert all(value > 0 for outcome in outcomes for value in outcome.runs)
    assert not list(scale.folder.iterdir())
    return {(outcome.job, outcome.variant): outcome for outcome in outcomes}


@pytest.mark.long
def test_publishing_is_measured_beside_a_bare_file_and_with_the_real_client(tiny: DurableScale) -> None:
    assert set(run("publishing", tiny)) == {(ACKNOWLEDGED, variant) for variant in (RAW, BARE_FILE, REAL)}


def test_latency_is_measured_beside_a_sync(tiny: DurableScale) -> None:
    percents = [f"{LATENCY_JOB}, p{percent}" for percent in (50, 99)]
    assert set(run("latency", tiny)) == {
        (job, variant) for job in percents for variant in (SYNC, ONE_BROKER, RECEIPT)
    }


@pytest.mark.long
def test_the_chain_is_measured_with_one_and_with_all_brokers_logging_matches(tiny: DurableScale) -> None:
    percents = [f"{CHAIN_JOB}, p{percent}" for percent in (50, 99)]
    assert set(run("chain", tiny)) == {
        (job, variant) for job in percents for variant in (SYNC, CHAIN, ALL_LOG)
    }


def test_fan_out_is_measured_with_what_the_network_writes_for_an_event(tiny: DurableScale) -> None:
    found = run("fan-out", tiny)
    assert {variant for job, variant in found if job == FAN_OUT_JOB} == {SHORT, SUSTAINED}
    whole = found[WRITTEN_JOB, NETWORK].value
    assert whole == pytest.approx(found[WRITTEN_JOB, "phb"].value + found[WRITTEN_JOB, "shb"].value)
    assert found[WRITTEN_JOB, "phb"].value > 418  # it is on disk


@pytest.mark.long
def test_the_offered_load_is_measured(tiny: DurableScale) -> None:
    percents = [f"{OFFERED_JOB}, p{percent}" for percent in (50, 99)]
    assert set(run("offered", tiny)) == {(job, variant) for job in percents for variant in (SYNC, PAIR)}


def test_the_filtering_log_writes_a_fraction_of_what_event_logs_do(
    tiny: DurableScale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable_filtering, "SUBSCRIBERS", durable_filtering.MATCHES)
    found = run("filtering-log", tiny)
    assert set(found) == {(job, way) for job in (CPU_JOB, BYTES_JOB) for way in WAYS}
    assert found[BYTES_JOB, ONE_LOG].over(found[BYTES_JOB, FILTERING]) > 10
    assert found[BYTES_JOB, ONE_LOG].value > 25 * 418


@pytest.mark.long
def test_catching_up_is_measured_for_one_and_for_many(tiny: DurableScale) -> None:
    assert set(run("catch-up", tiny)) == {(CATCH_UP_JOB, ONE), (CATCH_UP_JOB, "4 together")}


@pytest.mark.long
def test_after_an_outage_everybody_is_current_and_nothing_was_sent_for_each_subscriber(
    tiny: DurableScale,
) -> None:
    """E1.6: the copies that leave are the distinct events, however many wait for them."""
    found = run("outage", tiny)
    assert set(found) == {(CURRENT_JOB, OUTAGE), (ASKED_JOB, OUTAGE)}
    assert 0.9 < found[ASKED_JOB, OUTAGE].value < 1.5


# What goes wrong


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess("phb", tmp_path / "phb") as started:
        yield started


def subscribed(broker: BrokerProcess, filter: str, due: int, step: int) -> Subscriber:
    subscriber = Subscriber(broker.port, "sink", due, step)
    subscriber.subscribe(filter)
    subscriber.wait_confirmed()
    return subscriber


def test_what_comes_out_of_order_or_for_somebody_else_fails_a_run(broker: BrokerProcess) -> None:
    sink = subscribed(broker, EVERYTHING, FIRST, 2)
    with (
        DurableLoad(Publisher(broker.port, PUBLISHER), [sink], 1) as load,
        pytest.raises(BenchFailed, match=f"came where {FIRST} was due"),
    ):
        load.publish(64)


def test_what_does_not_come_fails_a_run(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_reception, "STALL_SECONDS", 0.2)
    sink = subscribed(broker, group_filter(0), FIRST, 4)
    with DurableLoad(Publisher(broker.port, PUBLISHER), [sink], 1) as load:
        load.publish(64)
        sink.due -= 4
        sink.step = 8
        with pytest.raises(BenchFailed, match="1 subscribers miss something"):
            load.wait_current()


def test_a_publisher_apart_says_when_it_sent_each_event(broker: BrokerProcess) -> None:
    sink = subscribed(broker, EVERYTHING, FIRST, 1)
    with Reception([sink]) as reception, Pacer(broker.port, 30) as pacer:
        for first in (FIRST, FIRST + 15):
            began = time.monotonic_ns()
            pacer.begin(1_000, 15)
            latencies = reception.take(15, pacer.sent_at)
            pacer.wait()
            assert len(latencies) == 15
            assert all(0 < latency < time.monotonic_ns() - began for latency in latencies)
            sent = [pacer.sent_at[n] for n in range(first, first + 15)]
            assert sent == sorted(set(sent))
            assert all(at >= began + i * MILLISECOND for i, at in enumerate(sent, 1)), "none is early"


def test_a_publisher_apart_that_fails_says_why(broker: BrokerProcess) -> None:
    with Pacer(broker.port, 10) as pacer:
        broker.kill()
        pacer.begin(1_000, 10)
        with pytest.raises(BenchFailed, match="publisher: "):
            pacer.wait()


def test_a_publisher_apart_that_has_gone_is_missed(broker: BrokerProcess) -> None:
    with Pacer(broker.port, 10) as pacer:
        (its,) = multiprocessing.active_children()
        its.kill()
        with pytest.raises(BenchFailed, match="publisher: it ended with status -9"):
            pacer.wait()


def portion(ticks: list[int], first: int, upto: int, lost_through: int = 0) -> memoryview:
    batch = Batch([Publication(PUBLISHER, first + i, b"") for i in range(len(ticks))])
    message = Portion(1, "s@b/0", 1, batch, ticks, range(len(ticks)), upto, lost_through, "because")
    kind, body = encode(message)
    assert kind == PORTION
    return memoryview(body)


def test_ticks_that_do_not_go_up_and_what_is_lost_fail_a_run(broker: BrokerProcess) -> None:
    with ExitStack() as stack:
        sink = Subscriber(broker.port, "sink", FIRST, 1)
        stack.callback(sink.close)
        assert sink.on_frame(PORTION, portion([10, 11], FIRST, 12)) == 2
        assert sink.token == {"s@b/0": (1, 12)}
        with pytest.raises(BenchFailed, match="ticks that do not go up"):
            sink.on_frame(PORTION, portion([12], FIRST + 2, 13))
        with pytest.raises(BenchFailed, match="lost up to 20, because"):
            sink.on_frame(PORTION, portion([], FIRST + 2, 20, lost_through=20))


def test_what_is_refused_fails_a_run(broker: BrokerProcess) -> None:
    with ExitStack() as stack:
        publisher = Publisher(broker.port, PUBLISHER)
        stack.callback(publisher.close)
        with pytest.raises(BenchFailed, match="7 is refused: no room"):
            publisher.on_frame(REJECTED, memoryview(encode(Rejected(7, "no room"))[1]))


def test_a_broker_that_ends_is_named(tmp_path: Path) -> None:
    with BrokerProcess("phb", tmp_path / "phb") as broker:
        first = broker.ask()["incarnation"]
        broker.kill()
        broker.start_again()
        while not broker.has_started():
            pass
        assert broker.ask()["incarnation"] == first + 1
        broker.kill()
    with pytest.raises(BenchFailed, match="the broker phb ended with status"):
        BrokerProcess("phb", tmp_path / "phb", "--no-such-option")


# Figures


def test_figures_are_held_against_what_is_promised(tmp_path: Path) -> None:
    scale = DurableScale(tmp_path)
    outcomes = [
        Outcome(ACKNOWLEDGED, RAW, "events/s", (120_000.0,)),
        Outcome(ACKNOWLEDGED, BARE_FILE, "events/s", (240_000.0,)),
        Outcome(f"{LATENCY_JOB}, p50", SYNC, "µs", (400.0,)),
        Outcome(f"{LATENCY_JOB}, p50", ONE_BROKER, "µs", (1_500.0,)),
        Outcome(CURRENT_JOB, OUTAGE, "s", (51.0,)),
    ]
    verdicts = {figure.name: figure.verdict for figure in durable_figures(outcomes, scale)}
    assert verdicts == {
        ACKNOWLEDGED: "short of the goal",
        "publishing over the bare file": "holds",
        f"{LATENCY_JOB}, p50 beyond a sync": "missed",
        f"{CURRENT_JOB} of 25 s": "missed",
    }
    page = durable_markdown(outcomes, scale, "holdfast bench durable")
    assert "| publishing over the bare file | 0.50 × |" in page
