"""`holdfast bench peers`: each peer that is installed under each workload, the report, the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from holdfast.bench import peers_raw
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.peers import (
    AWAITED,
    DISK,
    FAN_OUT,
    JOBS,
    LATENCY,
    PUBLISHING,
    WRITTEN,
    Contest,
    Fact,
    Size,
    all_peers,
)
from holdfast.bench.peers_bare import BARE, BARE_SYNCING, BareLoop, Syncs
from holdfast.bench.peers_evidence import Evidence
from holdfast.bench.peers_nats import Nats
from holdfast.bench.peers_peer import EVENT_BYTES, OnDisk, Peer
from holdfast.bench.peers_process import is_in_memory
from holdfast.bench.peers_report import NATS_UNSYNCED, fact_rows, left_out, peers_figures, peers_markdown
from holdfast.cli.main import main

TINY = Size(seconds=0.05, repetitions=2, subscribers=8, per_second=400, evidence_seconds=0.1)


def skip_missing(peer: Peer) -> None:
    if reason := peer.missing():
        pytest.skip(f"{peer.name}: {reason}")


@pytest.mark.long
@pytest.mark.parametrize("peer", all_peers(), ids=lambda peer: peer.name)
def test_a_peer_is_measured_under_every_workload(peer: Peer, tmp_path: Path) -> None:
    skip_missing(peer)
    with Contest([peer], tmp_path, TINY) as contest:
        (fact,) = contest.facts()
        outcomes = {
            (outcome.job, outcome.variant): outcome for job in JOBS.values() for outcome in job(contest)
        }
    wanted = {
        (job, peer.name)
        for job in (PUBLISHING, AWAITED, FAN_OUT, WRITTEN, f"{LATENCY}, p50", f"{LATENCY}, p99")
    }
    floors = {
        (f"{LATENCY}, p{percent}", floor) for percent in (50, 99) for floor in (DISK, BARE, BARE_SYNCING)
    }
    assert set(outcomes) == wanted | floors
    assert all(len(outcome.runs) == TINY.repetitions for outcome in outcomes.values())
    assert all(value > 0 for outcome in outcomes.values() if outcome.job != WRITTEN for value in outcome.runs)
    assert fact.version[0].isdigit()
    if not fact.evidence.problem:
        assert fact.evidence.is_synced == fact.statement.synced, fact.evidence.judged(fact.statement)
    if fact.statement.synced and not is_in_memory(tmp_path):
        assert outcomes[WRITTEN, peer.name].value >= 400, "what is synced was written"


def test_peers_take_turns_in_one_run(tmp_path: Path) -> None:
    peers: list[Peer] = [Nats(always=True), Nats(always=False)]
    skip_missing(peers[0])
    with Contest(peers, tmp_path, TINY) as contest:
        found = [outcome.variant for outcome in contest.publishing()]
    assert found == [peer.name for peer in peers] * 2, "for nobody, and for one who is away"


@pytest.mark.parametrize("syncs", get_args(Syncs))
def test_a_bare_loop_hands_on_what_it_has_on_disk(syncs: Syncs, tmp_path: Path) -> None:
    bare = BareLoop(syncs)
    bare.start(tmp_path / "bare")
    try:
        assert len(bare.latencies_ns(400, 0.1)) == 40
        published = bare.publish_pipelined(0.05, 64, is_awaited=False).events
        (process, *_) = bare.process_ids()
    finally:
        bare.stop()
    assert (tmp_path / "bare" / "events").stat().st_size == (40 + published) * EVENT_BYTES
    assert not Path(f"/proc/{process}").exists()


def test_whoever_was_started_is_ended_when_another_fails(tmp_path: Path) -> None:
    running: list[int] = []

    class Failing(Nats):
        def start(self, folder: Path) -> None:
            running.extend(first.process_ids())
            raise BenchFailed("no")

    first = Nats(always=True)
    skip_missing(first)
    with pytest.raises(BenchFailed, match="no"), Contest([first, Failing(always=False)], tmp_path, TINY):
        pass
    (process,) = running
    assert not Path(f"/proc/{process}").exists()


# The report

SYNCED, UNSYNCED = OnDisk(True, 1, "…"), OnDisk(False, 1, "…")
FACTS = [
    Fact("Holdfast", "1.0", SYNCED, Evidence(100, 100)),
    Fact("Holdfast, its Python client", "1.0", SYNCED, Evidence(100, 100)),
    Fact("honest", "1.0", SYNCED, Evidence(100, 120)),
    Fact("hasty", "1.0", OnDisk(True, 1, "…", delivers_sooner=True), Evidence(100, 100)),
    Fact("lying", "1.0", SYNCED, Evidence(100, 3)),
    Fact(NATS_UNSYNCED, "1.0", UNSYNCED, Evidence(100, 0)),
]


def outcome(job: str, variant: str, *runs: float) -> Outcome:
    return Outcome(job, variant, "…", runs)


OUTCOMES = [
    outcome(PUBLISHING, "Holdfast", 150_000),
    outcome(PUBLISHING, "Holdfast, its Python client", 90_000),
    outcome(PUBLISHING, "honest", 50_000),
    outcome(PUBLISHING, "lying", 200_000),
    outcome(PUBLISHING, NATS_UNSYNCED, 160_000),
    outcome(f"{LATENCY}, p50", DISK, 400),
    outcome(f"{LATENCY}, p50", "Holdfast", 1_500),
    outcome(f"{LATENCY}, p99", "Holdfast", 4_000),
    outcome(f"{LATENCY}, p99", BARE, 1_600),
    outcome(f"{LATENCY}, p99", BARE_SYNCING, 800),
    outcome(f"{LATENCY}, p99", "honest", 8_000),
    outcome(f"{LATENCY}, p99", "hasty", 2_000),
    outcome(f"{LATENCY}, p99", "lying", 1_000),
    outcome(WRITTEN, "Holdfast", 901),
]


def test_holdfast_is_held_against_the_best_peer_that_was_seen_to_sync() -> None:
    figures = {figure.name: figure for figure in peers_figures(OUTCOMES, FACTS)}
    assert figures[PUBLISHING].verdict == "holds"
    assert figures[f"{PUBLISHING} over the best peer that syncs"].value == 3
    assert figures[f"{PUBLISHING} over {NATS_UNSYNCED}"].verdict == "short of the goal"
    assert figures[f"{LATENCY}, p50 beyond a sync"].value == pytest.approx(1.1)
    assert figures[f"{LATENCY}, p50 beyond a sync"].verdict == "missed"
    assert figures[f"{LATENCY}, p99 over the lowest of a peer that syncs"].value == 0.5
    assert figures[f"{LATENCY}, p99 over {BARE}"].value == 2.5
    assert figures[f"{LATENCY}, p99 of {BARE} over the lowest of a peer that syncs"].value == 0.2
    assert figures[f"{LATENCY}, p99 of {BARE_SYNCING} over the lowest of a peer that syncs"].value == 0.1
    assert figures[WRITTEN].verdict == "missed"
    assert FAN_OUT not in figures, "what was not measured is not promised"


def test_a_peer_whose_system_calls_were_not_seen_is_believed() -> None:
    assert Fact("x", "1.0", SYNCED, Evidence(problem="strace is not installed")).really_syncs
    assert not Fact("x", "1.0", UNSYNCED, Evidence(problem="strace is not installed")).really_syncs


def test_without_holdfast_nothing_is_promised() -> None:
    others = [each for each in OUTCOMES if not each.variant.startswith("Holdfast")]
    assert not peers_figures(others, FACTS)
    assert "promised" not in peers_markdown(others, FACTS, {}, "holdfast bench peers")


def test_the_page_says_what_is_on_disk_and_who_is_left_out() -> None:
    page = peers_markdown(OUTCOMES, FACTS, {"Mosquitto, QoS 1": "mosquitto is not installed"}, "…")
    assert "Mosquitto, QoS 1 is left out: mosquitto is not installed." in page
    seen = "3 syncs of a file while 100 events were acknowledged one by one, which is not what it says"
    assert f"| lying | 1.0 | … | no | 1 | {seen} |" in page
    assert "| publishing over the best peer that syncs | 3.00 × | ≥ 2 |" in page
    assert [row[3] for row in fact_rows(FACTS)] == ["yes", "yes", "yes", "yes", "no", "no"]
    assert left_out({}) == []


# The command


def test_the_command_measures_what_is_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    skip_missing(Nats(always=False))
    if is_in_memory(tmp_path):
        pytest.skip(f"{tmp_path} is in memory")
    page = tmp_path / "page.md"
    asked = ["bench", "peers", "--peer", "as it comes", "--only", PUBLISHING, "--seconds", "0.02", "--json"]
    assert main([*asked, "--data", str(tmp_path), "--markdown", str(page)]) == 0
    *measured, fact = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [(each["job"], each["variant"]) for each in measured] == [
        (job, NATS_UNSYNCED) for job in (PUBLISHING, AWAITED)
    ]
    assert (fact["broker"], fact["synced"], fact["copies"]) == (NATS_UNSYNCED, "no", "1")
    assert f"| publishing | {NATS_UNSYNCED} |" in page.read_text()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["page.md"], "the files of the peers are gone"


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_raw, "found_program", lambda name: None)


@pytest.mark.usefixtures("nothing_installed")
def test_whoever_is_not_installed_is_said_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "peers", "--peer", "rabbit", "--peer", "mosq"]) == 2
    said = capsys.readouterr().err
    assert "RabbitMQ, quorum queues is left out: rabbitmq-server is not installed." in said
    assert "Mosquitto, QoS 1 is left out: mosquitto is not installed." in said
    assert "there is nobody to measure" in said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--only", "fanout"], "--only fanout: there is no such job; expected one of publishing, latency, "),
        (
            ["--peer", "kafka"],
            "--peer kafka: there is no such peer; expected some of Holdfast; Holdfast, its ",
        ),
        (["--seconds", "0"], "--seconds 0: expected from 0.01 to 60"),
        (["--data", "nowhere"], "--data nowhere: there is no such folder"),
        (["--data", "/dev/shm"], "--data /dev/shm is in memory, where a sync costs nothing"),
        (["--markdown", "nowhere/page.md"], "--markdown nowhere/page.md: there is no folder nowhere"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "/dev/shm" in asked and not is_in_memory(Path("/dev/shm")):
        pytest.skip("/dev/shm is no memory here")
    assert main(["bench", "peers", *asked]) == 2
    assert said in capsys.readouterr().err
