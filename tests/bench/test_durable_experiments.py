"""The experiments of durable streams: what they claim holds, and is missed where it should be."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.bench import durable_auto_ack, durable_disconnections, durable_scaling
from holdfast.bench.durable_auto_ack import auto_acknowledge
from holdfast.bench.durable_catch_up import Outage
from holdfast.bench.durable_chain import chain_finding
from holdfast.bench.durable_disconnections import DisconnectionsPlan, disconnections
from holdfast.bench.durable_experiments import DURABLE_EXPERIMENTS
from holdfast.bench.durable_filtering import WAYS, Cost
from holdfast.bench.durable_latency import ALL_LOG, CHAIN, CHAIN_JOB, SYNC
from holdfast.bench.durable_microbenchmark import filtering_finding
from holdfast.bench.durable_outage import OutagePlan, broker_outage
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_scaling import Costs, Work, count_work, scaling
from holdfast.bench.durable_simulated import Crowd, Sample, catch_up_seconds, slopes
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.overlay_finding import Finding
from holdfast.cli.bench_durable import EXPERIMENTS
from holdfast.cli.main import main

FEW = DisconnectionsPlan(Crowd(subscribers=1, per_second=20, slow_ms=25), every_s=14, first_s=3)


def missed(finding: Finding) -> list[str]:
    return [check.claim for check in finding.checks if not check.holds]


def test_every_experiment_can_be_asked_for() -> None:
    assert tuple(DURABLE_EXPERIMENTS) == EXPERIMENTS


# E1.1


def chain_outcomes(sync: float, one: float, every: float) -> list[Outcome]:
    values = {SYNC: sync, CHAIN: one, ALL_LOG: every}
    return [
        Outcome(f"{CHAIN_JOB}, p{percent}", variant, "µs", (value,))
        for percent in (50, 99)
        for variant, value in values.items()
    ]


def test_e11_the_delay_is_logging_and_little_else() -> None:
    assert chain_finding(chain_outcomes(400, 1_500, 1_600), 5).holds
    assert len(missed(chain_finding(chain_outcomes(400, 2_500, 2_600), 5))) == 1
    assert len(missed(chain_finding(chain_outcomes(400, 1_500, 3_000), 5))) == 1


# E1.2


COSTS = Costs(event=200, copy=20, arrival=150, delivery=10, caught_up=5)


def test_e12_work_is_counted_in_the_simulator() -> None:
    assert count_work(2, seconds=1) == Work(2.0, 0.25)


def test_e12_capacity_grows_with_the_brokers() -> None:
    found = scaling(COSTS, {brokers: Work(brokers, 0.25) for brokers in durable_scaling.BROKERS})
    assert found.holds
    assert found.summary[0][1] == pytest.approx((1_250 - 150) / 2.5)


def test_e12_costly_copies_and_costly_catching_up_are_seen() -> None:
    work = {brokers: Work(brokers, 0.25) for brokers in durable_scaling.BROKERS}
    assert any("hardly notices" in claim for claim in missed(scaling(replace(COSTS, copy=100), work)))
    assert any("disconnections" in claim for claim in missed(scaling(replace(COSTS, caught_up=200), work)))


def test_e12_costs_lost_in_noise_are_seen() -> None:
    work = {brokers: Work(brokers, 0.25) for brokers in durable_scaling.BROKERS}
    assert any("noise" in claim for claim in missed(scaling(replace(COSTS, copy=-3), work)))


# E1.3


def test_e13_latest_delivered_goes_on_and_released_waits() -> None:
    found = disconnections(FEW)
    assert missed(found) == []
    assert {float(row[0]) for row in found.data} >= {3.0, 8.0, 16.9}


def test_e13_slow_subscribers_are_seen() -> None:
    slow = replace(FEW, crowd=replace(FEW.crowd, slow_ms=32), every_s=20)
    found = disconnections(slow)
    # what the subscriber needs itself is not the brokers'
    assert float(found.summary[0][3]) > 1.5 * FEW.needed_s
    assert missed(found) == []


def test_e13_what_brokers_add_to_catching_up_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_disconnections, "catch_up_seconds", lambda *a: catch_up_seconds(*a) + 1)
    assert [claim[:11] for claim in missed(disconnections(FEW))] == ["the brokers"]


def test_e13_slopes_and_catching_up_are_read_off() -> None:
    samples = [Sample(t / 2, 1_000 + 400 * t, 0, 0) for t in range(5)]
    assert slopes(samples, 0, 2, 1.0) == [800, 800]
    trace = [
        {"kind": "publish", "t": 1.0, "publisher": "p", "n": 1},
        {"kind": "publish", "t": 3.0, "publisher": "p", "n": 2},
        {"kind": "deliver", "t": 3.5, "publisher": "p", "n": 1, "subscriber": "u"},
        {"kind": "deliver", "t": 3.6, "publisher": "p", "n": 2, "subscriber": "u"},
    ]
    assert catch_up_seconds(trace, "u", 2.0, 1.0) == pytest.approx(1.6)
    with pytest.raises(BenchFailed, match="v never caught up"):
        catch_up_seconds(trace, "v", 2.0, 1.0)


# E1.4


def test_e14_ratios_are_held_against_the_paper() -> None:
    costs = dict.fromkeys(WAYS, Cost(100, 10_000, 1))
    good = {**costs, "filtering log": Cost(5, 240, 1)}
    assert filtering_finding({way: [cost] for way, cost in good.items()}, 100).holds
    bad = {**costs, "filtering log": Cost(50, 1_000, 1)}
    assert len(missed(filtering_finding({way: [cost] for way, cost in bad.items()}, 100))) == 6


# E1.5


def test_e15_consumers_share_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_auto_ack, "CONSUMERS", (1, 25, 200))
    monkeypatch.setattr(durable_auto_ack, "EVENTS", 64)
    rates = iter([100.0, 5_000.0, 9_000.0, 100.0, 5_000.0, 4_000.0])
    monkeypatch.setattr(durable_auto_ack, "_commits_per_second", lambda scale, count: next(rates))
    scale = DurableScale(tmp_path, repetitions=1)
    assert missed(auto_acknowledge(scale)) == []
    assert len(missed(auto_acknowledge(scale))) == 2


def test_e15_commits_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_auto_ack, "EVENTS", 64)
    assert durable_auto_ack._commits_per_second(DurableScale(tmp_path, seconds=0.3), 2) > 0


# E1.6


SMALL = OutagePlan(Crowd(subscribers=8, per_second=10, slow_ms=50), first_s=3, down_s=3, after_s=8)


def test_e16_what_was_missed_is_asked_for_once() -> None:
    found = broker_outage(SMALL, [Outage(2, 1.0)], 3)
    assert missed(found) == []


def test_e16_late_and_repeated_copies_are_seen() -> None:
    found = broker_outage(SMALL, [Outage(7, 8.0)], 3)
    assert [claim.split(":")[0] for claim in missed(found)] == ["real", "real"]


# The command


def test_an_experiment_leaves_its_data_and_its_part_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(DURABLE_EXPERIMENTS, "E1.3", lambda scale: disconnections(FEW))
    page = tmp_path / "durable.md"
    asked = ["bench", "durable", "--experiment", "E1.3", "--out", str(tmp_path), "--markdown", str(page)]
    assert main(asked) == 0
    with (tmp_path / "durable-disconnections.csv").open() as file:
        assert len(list(csv.reader(file))) > 100
    assert "`holdfast bench durable --experiment E1.3`" in page.read_text()
    assert "rows written to" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ["--only", "publish"],
            "--only publish: there is no such job; expected one of publishing, latency, ",
        ),
        (["--data", "nowhere"], "--data nowhere: there is no such folder"),
        (["--experiment", "E1.3", "--out", "nowhere"], "--out nowhere: there is no such folder"),
        (["--markdown", "nowhere/page.md"], "--markdown nowhere/page.md: there is no folder nowhere"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "durable", *asked]) == 2
    assert said in capsys.readouterr().err


def test_a_failed_run_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(scale: DurableScale) -> Finding:
        raise BenchFailed("nothing came")

    monkeypatch.setitem(DURABLE_EXPERIMENTS, "E1.6", fail)
    assert main(["bench", "durable", "--experiment", "E1.6"]) == 1
    assert "its figures mean nothing: nothing came" in capsys.readouterr().err
