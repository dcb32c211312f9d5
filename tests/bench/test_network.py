"""The network benchmarks run, at a size that takes no time, and a load that is told something wrong says so."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.bench import network_simulation
from holdfast.bench.cores import apart
from holdfast.bench.figure import put_section
from holdfast.bench.network import JOBS
from holdfast.bench.network_bare import precomputed
from holdfast.bench.network_clients import PUBLISHING, RAW, RECEIVING
from holdfast.bench.network_latency import CHAIN, ECHO, LATENCY, ONE_HOP, PLACED, TURNS
from holdfast.bench.network_load import Load
from holdfast.bench.network_outcome import Outcome, Scale
from holdfast.bench.network_process import Measured
from holdfast.bench.network_report import network_figures, network_markdown
from holdfast.bench.network_slow import NOT_READING, READING
from holdfast.bench.network_throughput import BARE
from holdfast.bench.network_wire import PUBLISHER, BenchFailed
from holdfast.bench.network_workload import EVENT_BYTES, Shape
from holdfast.cli.main import main
from holdfast.events.packed import unpack
from holdfast.filters.parse import parse_filter
from holdfast.matching.engine import engines
from holdfast.matching.naive import NaiveIndex
from holdfast.wire.frame import FrameReader, header

TINY = Scale(
    seconds=0.02,
    repetitions=1,
    connections=8,
    content_sizes=(200,),
    clients=12,
    brokers=3,
    virtual_seconds=1,
)
SHAPES = [Shape("fan-out", 8, 8), Shape("stream", 1, 1), Shape("content", 8, 200)]


def run(name: str) -> dict[str, set[str]]:
    """The variants of each job that were measured; every figure must mean something."""
    found: dict[str, set[str]] = {}
    for outcome in JOBS[name](TINY):
        assert len(outcome.runs) in (TINY.repetitions, TURNS * TINY.repetitions)
        assert all(value > 0 for value in outcome.runs)
        found.setdefault(outcome.job, set()).add(outcome.variant)
    return found


@pytest.mark.long
def test_throughput_is_measured_with_every_engine_and_beside_the_bare_loop() -> None:
    everything = {*engines(), BARE}
    assert run("fan-out") == {"fan-out": everything}
    assert run("one-subscriber") == {"one subscriber": everything}
    assert run("content") == {"content, 200 subscriptions": everything}


def test_the_raw_limit_is_measured() -> None:
    assert run("loopback") == {"loopback": {"writes of 65,536 bytes", "writes of 418 bytes"}}


@pytest.mark.long
def test_latency_is_measured_beside_the_echo() -> None:
    variants = {ECHO, ONE_HOP, CHAIN}
    jobs = [f"{job}, p{percent}" for job in (LATENCY, PLACED) for percent in (50, 99)]
    before = os.sched_getaffinity(0)
    assert run("latency") == dict.fromkeys(jobs, variants)
    assert os.sched_getaffinity(0) == before


def test_load_and_servers_have_a_core_each_while_they_are_measured() -> None:
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        pytest.skip("there is one core")
    with Measured("echo") as server:
        with apart([server.process_id]):
            assert {len(os.sched_getaffinity(0)), len(os.sched_getaffinity(server.process_id))} == {1}
            assert os.sched_getaffinity(0) != os.sched_getaffinity(server.process_id)
        assert os.sched_getaffinity(0) == os.sched_getaffinity(server.process_id) == cores


@pytest.mark.long
def test_a_client_that_does_not_read_is_given_up_and_the_others_are_timed() -> None:
    variants = {READING, NOT_READING}
    assert run("slow-reader") == {"12 clients, p50": variants, "12 clients, p99": variants}


@pytest.mark.long
def test_real_clients_are_measured_beside_raw_ones() -> None:
    assert run("client") == {"fan-out with the real client": {RAW, RECEIVING, PUBLISHING}}


def test_the_simulator_is_measured() -> None:
    assert len(run("simulator")) == 1


def test_the_simulators_trace_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_simulation, "SUBSCRIBERS_EACH", 1)
    script = network_simulation.script(1).replace("Subscriber u0 Subscribe t0\n", "")
    monkeypatch.setattr(network_simulation, "script", lambda seconds: script)
    with pytest.raises(BenchFailed, match="delivered 750 of 1000, 0 again"):
        network_simulation.run(1, 1)


# The command


def test_the_command_measures_what_is_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    asked = ["bench", "network", "--only", "loopback", "--seconds", "0.02", "--json", "--markdown", str(page)]
    assert main(asked) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["job"], len(line["runs"])) for line in lines] == [("loopback", 3)] * 2
    assert "| loopback | writes of 418 bytes |" in page.read_text()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--only", "fanout"], "--only fanout: there is no such job; expected one of loopback, fan-out, "),
        (["--seconds", "0"], "--seconds 0: expected from 0.01 to 60"),
        (["--markdown", "nowhere/page.md"], "--markdown nowhere/page.md: there is no folder nowhere"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "network", *asked]) == 2
    assert said in capsys.readouterr().err


def test_a_failed_run_is_said_and_shows_no_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(scale: Scale) -> Iterator[Outcome]:
        raise BenchFailed("sink-3: publisher#17 came where publisher#16 was due")
        yield

    monkeypatch.setitem(JOBS, "fan-out", lose)
    assert main(["bench", "network", "--only", "fan-out"]) == 1
    said = capsys.readouterr()
    assert "the benchmark failed, its figures mean nothing: sink-3: publisher#17" in said.err
    assert not said.out


# What a load notices


@pytest.fixture
def load() -> Iterator[Load]:
    with Measured("broker") as broker, Load(Shape("fan-out", 8, 8).workload(), broker.port) as load:
        yield load


def _run_to_the_end(load: Load, events: int) -> None:
    load.run(events)
    load.finish()


def test_a_load_gets_exactly_what_is_due(load: Load) -> None:
    run = load.run(500)
    assert (run.events, run.deliveries) == (500, 1_000)
    load.finish()


def test_a_delivery_that_was_not_due_is_caught(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = load.workload.segment(500)
    del segment.rows[3][17]
    monkeypatch.setattr(load.workload, "segment", lambda events: segment)
    with pytest.raises(
        BenchFailed, match=r"sink-3: publisher#\d+ for \[1\] came where publisher#\d+ for \[1\] was due"
    ):
        load.run(500)


def test_a_delivery_after_the_last_is_caught(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = load.workload.segment(500)
    del segment.rows[3][-1]
    segment.deliveries[-1] -= 1
    monkeypatch.setattr(load.workload, "segment", lambda events: segment)
    with pytest.raises(BenchFailed, match="came when nothing was due any more"):
        _run_to_the_end(load, 500)


def test_a_delivery_that_does_not_come_is_caught(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = load.workload.segment(500)
    segment.rows[3].append(segment.rows[3][-1])
    segment.deliveries[-1] += 1
    monkeypatch.setattr(load.workload, "segment", lambda events: segment)
    monkeypatch.setattr("holdfast.bench.network_load.STALL_SECONDS", 0.3)
    with pytest.raises(BenchFailed, match="1 deliveries are missing"):
        load.run(500)


def test_an_event_published_again_is_caught(load: Load) -> None:
    load.run(100)
    load.workload = load.workload.fresh()
    with pytest.raises(BenchFailed, match="were taken for duplicates"):
        load.run(100)


# The workloads


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_owed_is_what_the_naive_matcher_says(shape: Shape) -> None:
    workload = shape.workload()
    index = NaiveIndex()
    owners = {
        index.add(parse_filter(filter)): (connection, number)
        for connection, own in enumerate(workload.filters)
        for number, filter in enumerate(own, start=1)
    }
    for packed, owed in list(zip(workload.packed, workload.owed, strict=True))[:200]:
        matched = sorted(owners[slot] for slot in index.match([unpack(packed)])[0])
        assert matched == sorted((sink, number) for sink, numbers in owed for number in numbers)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_frame_holds_events_of_the_promised_size(shape: Shape) -> None:
    assert Shape.from_text(str(shape)) == shape
    kind, body = shape.workload().segment(10, frame_events=10).bodies[0]
    assert len(body) == pytest.approx(10 * EVENT_BYTES, rel=0.02)
    (message,) = FrameReader().feed(header(kind, 1, len(body)) + body)
    assert [each.publisher for each in message.batch.publications] == [PUBLISHER] * 10  # type: ignore[union-attr]


def test_the_bare_loop_makes_a_row_once_for_all_who_get_it() -> None:
    targets = precomputed(Shape("fan-out", 8, 8).workload())
    assert len({id(prefix) for owed in targets for _, prefix in owed}) == 1


def test_a_fan_out_event_is_for_a_quarter_of_the_subscribers() -> None:
    assert Shape("fan-out", 100, 100).workload().matches == 25


# The report


def outcome(job: str, variant: str, *runs: float) -> Outcome:
    return Outcome(job, variant, "…", runs)


def test_bounds_are_judged_for_the_fastest_engine_and_ratios_by_repetition() -> None:
    figures = {
        figure.name: figure
        for figure in network_figures(
            [
                outcome("fan-out", "pure", 5e5, 5e5, 5e5),
                outcome("fan-out", "compiled", 9e5, 1.2e6, 2e6),
                outcome("fan-out", BARE, 1e6, 2e6, 4e6),
                outcome("one subscriber", "pure", 199_999),
                outcome("latency, p50", ECHO, 100, 100, 1_000),
                outcome("latency, p50", ONE_HOP, 150, 190, 3_000),
            ]
        )
    }
    assert figures["fan-out"].verdict == "holds"
    assert figures["fan-out over the bare loop"].value == pytest.approx(0.6)
    assert figures["fan-out over the bare loop"].verdict == "short of the goal"
    assert figures["one subscriber"].verdict == "missed"
    assert figures["one hop over the bare echo, p50"].value == pytest.approx(1.9)
    assert "chain of 5 over one hop, p50" not in figures, "what was not measured is not promised"


def test_each_benchmark_writes_its_own_part_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    network = network_markdown([outcome("fan-out", "compiled", 2e6)], "holdfast bench network")
    put_section(page, "Matching", "the first run")
    put_section(page, "Network", network)
    put_section(page, "Matching", "the second run")
    text = page.read_text()
    assert text.count("## Matching") == text.count("## Network") == 1
    assert "the second run" in text
    assert "the first run" not in text
    assert "| fan-out | 2,000,000 deliveries/s | ≥ 1,000,000 |  | holds |" in text
