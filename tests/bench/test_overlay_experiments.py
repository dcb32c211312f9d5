"""The experiments E0.1 to E0.6 run, at a size that takes no time; what they claim holds, and can be missed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.bench import overlay, overlay_load
from holdfast.bench.overlay_acks import AcksPlan, acks
from holdfast.bench.overlay_delay import DelayPlan, delay
from holdfast.bench.overlay_finding import Check, Finding
from holdfast.bench.overlay_load import LoadPlan, load
from holdfast.bench.overlay_locality import LocalityPlan, locality
from holdfast.bench.overlay_network import CORE, Extent, Network, Patience, perform
from holdfast.bench.overlay_recovery import RecoveryPlan, recovery
from holdfast.bench.overlay_vectors import VectorsPlan, vectors
from holdfast.cli.main import main
from holdfast.node import reach
from holdfast.node.holdings import Holdings

SMALL = Extent(
    edge_brokers=1, core_clients=(2, 1, 2), edge_clients=7, publishers=3, subscriptions=60, topics=12
)
QUICK = Patience(heartbeat_ms=100, detect_ms=500, dack_ms=200)

LOAD = LoadPlan(SMALL, QUICK, failures_s=(8, 16), end_s=24, settle_s=3, per_second=12)
DELAY = DelayPlan(SMALL, QUICK, fail_s=2, recover_s=5, end_s=8)
ACKS = AcksPlan(SMALL, Patience(heartbeat_ms=100, detect_ms=500, dack_ms=1_000), rates=(20, 40), phase_s=3)
RECOVERY = RecoveryPlan(SMALL, QUICK, rates=(5, 10), down_s=2, up_s=2, timeouts_ms=(200, 400))
LOCALITY = LocalityPlan(SMALL, QUICK, deltas=(1, 3), events=40, per_second=20)
VECTORS = VectorsPlan(deltas=(0, 2), batches=(1, 20))


def missed(finding: Finding) -> list[str]:
    return [check.claim for check in finding.checks if not check.holds]


# The network


def test_the_network_is_that_of_the_paper() -> None:
    network = Network(Extent())
    assert len(network.parents) == 86
    assert sum(map(network.degree, CORE)) / len(CORE) == 11
    assert len(network.wishes) == len(set(network.wishes)) == 2_600
    assert network.path("p1", network.behind("n3a"))[1:-1] == ["n1a", "n1", "n2", "n3", "n3a"]
    assert network.path("n1", "n1") == ["n1"]


def test_every_experiment_with_a_network_has_that_one() -> None:
    for plan in (LoadPlan(), DelayPlan(), AcksPlan(), RecoveryPlan(), LocalityPlan()):
        assert plan.extent == Extent()


def test_everybody_publishes_steadily() -> None:
    network = Network(Extent())
    lines = [line.split() for line in network.publishing(0, 100, 10)]
    assert {line[3] for line in lines} == {*network.publishers}
    assert sum(int(line[5]) for line in lines) == 1_000


# What is claimed holds


def test_e0_1_input_returns_to_its_level_and_output_rises() -> None:
    finding = load(LOAD)
    assert missed(finding) == []
    assert [row[:2] for row in finding.data[:3]] == [(0, "n1"), (0, "n2"), (0, "n3")]
    assert len(finding.data) == 3 * LOAD.end_s


def test_e0_2_each_node_that_hangs_costs_a_timeout() -> None:
    assert missed(delay(DELAY)) == []


def test_e0_3_depth_acknowledgements_do_not_follow_the_rate() -> None:
    assert missed(acks(ACKS)) == []


def test_e0_4_recovery_takes_the_same_time_and_a_timeout_for_each_hop_more() -> None:
    assert missed(recovery(RECOVERY)) == []


def test_e0_5_a_dead_subscribers_queue_stays_on_as_many_nodes_as_hold_it() -> None:
    finding = locality(LOCALITY)
    assert missed(finding) == []
    assert {row[2]: row[3] for row in finding.summary if row[0] == 1} == {
        "n3a": 40,
        "n3": 40,
        "n2": 0,
        "n1": 0,
        "n1a": 0,
        "p1": 0,
    }


def test_e0_6_vectors_have_their_length_and_share_their_names() -> None:
    assert missed(vectors(VECTORS)) == []


def test_an_experiment_finds_the_same_every_time() -> None:
    assert vectors(VECTORS) == vectors(VECTORS)


# What is claimed can be missed


def test_a_copy_too_few_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_one(*arguments: Any) -> list[Any]:
        trace = perform(*arguments)
        steady = (
            each for each in trace if each["kind"] == "forward" and each["from"] == "n2" and each["t"] > 5
        )
        lost = next(steady)
        return [each for each in trace if each is not lost]

    monkeypatch.setattr(overlay_load, "perform", without_one)
    assert missed(load(LOAD)) == ["copies out = next hops of the recipients, for every event"]


def test_more_input_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_more(*arguments: Any) -> list[Any]:
        trace = perform(*arguments)
        again = [
            each for each in trace if each["kind"] == "forward" and each["to"] == "n3" and each["t"] > 20
        ]
        return [*trace, *again[: len(again) // 5]]

    monkeypatch.setattr(overlay_load, "perform", with_more)
    assert "n3 without n2: input within 5 %" in missed(load(LOAD))


def test_a_slow_detector_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that gives up farther ones late costs more than a timeout for each."""
    patient = reach.Reach.__init__

    def slow(self: reach.Reach, topology: Any, probe_every_ns: int, detect_after_ns: int) -> None:
        patient(self, topology, probe_every_ns, 2 * detect_after_ns)

    monkeypatch.setattr(reach.Reach, "__init__", slow)
    assert any(
        claim.startswith("(b) timeout 400 ms, 3 hops")
        for claim in missed(recovery(replace(RECOVERY, rates=(5,))))
    )


def test_queues_that_are_never_purged_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Holdings, "safe", lambda self, path: (0, 0))
    assert len(missed(locality(LOCALITY))) == len(LOCALITY.deltas)


def test_depth_acknowledgements_out_of_their_period_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patience, "lines", lambda self: ["Heartbeat 100", "DetectAfter 500", "DackEvery 20"])
    assert "dack: one frame per connection, direction and period at most, at any rate" in missed(acks(ACKS))


def test_vectors_of_another_length_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.node.trails.vector_length", lambda delta: 2 * delta + 1)
    assert "3δ+1 nodes are named, at least two" in missed(vectors(VECTORS))


# The command


def found(*, holds: bool) -> Finding:
    checks = [Check("it is so", "it is" if holds else "it is not", holds)]
    return Finding("load", "A load", ("a", "b"), [(1, 2.5)], ("a",), [(1,)], checks, "A remark.")


def test_the_command_writes_the_data_and_the_page(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(overlay.EXPERIMENTS, "load", lambda: found(holds=True))
    page = tmp_path / "page.md"
    assert main(["bench", "overlay", "load", "--out", str(tmp_path), "--markdown", str(page)]) == 0
    assert (tmp_path / "load.csv").read_text() == "a,b\n1,2.5\n"
    assert "## A load\n\n`holdfast bench overlay load`, data in `load.csv`. A remark.\n" in page.read_text()
    assert "| it is so | it is | holds |" in page.read_text()
    assert "it is so" in capsys.readouterr().out


def test_the_command_fails_where_a_claim_is_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(overlay.EXPERIMENTS, "load", lambda: found(holds=False))
    assert main(["bench", "overlay", "load", "--out", str(tmp_path)]) == 1


def test_the_command_knows_every_experiment() -> None:
    from holdfast.cli.bench_overlay import NAMES

    assert {*NAMES} == {*overlay.EXPERIMENTS}


@pytest.mark.parametrize("option", ["--out", "--markdown"])
def test_the_command_refuses_a_folder_that_is_not_there(
    option: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["bench", "overlay", "vectors", "--out", str(tmp_path), option, str(tmp_path / "no" / "where")]
    assert main(asked) == 2
    assert f"{option} {tmp_path}/no/where: there is no" in capsys.readouterr().err
