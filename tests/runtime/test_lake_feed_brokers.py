"""Real brokers feed who is behind their logs from the lake (issue 6, part 5); long: ``tests/real_lake.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

from durable_brokers import brokers_in, patiently
from holdfast.cli.main import main
from holdfast.pipeline.lake.table import LakeTable
from real_lake import (
    NAMES,
    STREAMS,
    lake_run,
    performed,
    published,
    received,
    subscribed,
    wait_forgotten,
    wait_running,
    wait_taken,
)

PARENTS = {"b1": None, "b2": "b1"}


@patiently
async def test_killed_while_they_feed_and_while_the_lake_is_compacted_they_feed_exactly(
    tmp_path: Path,
) -> None:
    counts = await performed(tmp_path, 2_000, seed=1)
    assert counts["kills"] == 4
    assert counts["files deleted"]


@patiently
async def test_without_the_lake_it_is_a_gap(tmp_path: Path) -> None:
    with brokers_in(tmp_path, PARENTS, streams=STREAMS.format(lake="false")) as brokers:
        await brokers.start(*NAMES)
        await subscribed(brokers)
        await wait_forgotten(brokers, await published(brokers, range(100)))
        await published(brokers, range(100, 110))
        found = await received(brokers, 109)
    assert found.numbers == list(range(100, 110))
    assert {gap.reason for gap in found.gaps} == {"max_retain"}


@pytest.mark.long
@patiently
async def test_what_the_lake_lacks_and_what_is_damaged_there_are_gaps_and_the_rest_is_served(
    tmp_path: Path,
) -> None:
    with brokers_in(tmp_path, PARENTS, streams=STREAMS.format(lake="true"), readers=True) as brokers:
        await brokers.start(*NAMES)
        await subscribed(brokers)
        with lake_run(brokers):
            await wait_running(brokers)
            await wait_taken(brokers, await published(brokers, range(100)))
        await wait_forgotten(brokers, await published(brokers, range(100, 200)))  # nobody has taken that
        with lake_run(brokers):
            await wait_taken(brokers, await published(brokers, range(200, 300)))
            last = await published(brokers, range(300, 400))
            await wait_taken(brokers, last)
            await wait_forgotten(brokers, last)
        table = LakeTable(tmp_path / "lake" / "all", "all")
        damaged = [file for file in table.files() if file.after < last <= file.tick]
        path = table.folder / damaged[0].path
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] + bytes(50) + data[len(data) // 2 + 50 :])
        for name in NAMES:  # nothing of it is in anybody's memory
            brokers.kill(name)
        await brokers.start(*NAMES)
        await published(brokers, range(400, 410))
        found = await received(brokers, 409)
        again = await received(brokers, 409, name="new", start="earliest")
        assert brokers.is_running("b1")
        said = [line for line in brokers.said("b1") if line.get("text") == "the lake is damaged"]
    assert {path.name in line["problem"] for line in said} == {True}
    assert found.numbers[:200] == [*range(100), *range(200, 300)]
    assert found.numbers[-10:] == list(range(400, 410))
    assert found.numbers == sorted(set(found.numbers))
    assert 399 not in found.numbers
    assert again.numbers == found.numbers, "who is new begins in the lake as well"
    assert {reason for gap in found.gaps for reason in gap.reason.split(", ")} == {"max_retain", "damaged"}


def test_a_broker_that_cannot_read_the_lake_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "network.toml").write_text(
        'name = "n"\n[[broker]]\nname = "b"\nlisten = "127.0.0.1:1"\n'
        '[[stream]]\nname = "orders"\ntopics = ["#"]\nlake = true\n'
    )
    monkeypatch.setattr("holdfast.pipeline.history.find_spec", lambda name: None)
    assert main(["broker", "b", "--network", str(tmp_path / "network.toml")]) == 2
    said = capsys.readouterr().err
    assert "lake = true (orders): this needs pyarrow and deltalake; pip install 'holdfast[spark]'" in said
