"""The page of the soak is also its memory: what is written is read back, and goes on from there."""

from __future__ import annotations

from pathlib import Path

import pytest

import soak


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    page = tmp_path / "soak.md"
    monkeypatch.setattr(soak, "PAGE", page)
    return page


def test_what_was_never_soaked_has_no_counts(memory: Path) -> None:
    assert soak.kept() == {}
    assert soak.kept_counts() == {}


def test_counts_are_kept_from_run_to_run(memory: Path) -> None:
    soaked = soak.everything()
    reliable = next(each for each in soaked if "reliable_swarm" in each.what)
    for _ in range(2):
        reliable.add('seed 3: well\ncounts: {"runs": 100, "events": 7, "gaps": 0}\n')
    memory.write_text(soak.page(soaked))
    assert soak.kept()[reliable.what] == (2 * reliable.chunk, 2)
    assert soak.kept_counts() == {reliable.what: {"runs": 200, "events": 14, "gaps": 0}}


def test_the_next_chunk_has_seeds_of_its_own(memory: Path) -> None:
    reliable = next(each for each in soak.everything() if each.what.endswith("--wild"))
    reliable.add("")
    command, _ = reliable.command()
    assert command[-4:] == ["--seed", str(reliable.chunk), "--count", str(reliable.chunk)]


def test_twenty_thousand_reliable_networks_are_soaked() -> None:
    assert sum(each.target for each in soak.everything() if "reliable_swarm" in each.what) == 20_000


def test_networks_that_lose_something_are_soaked_and_what_they_lost_is_kept(memory: Path) -> None:
    soaked = soak.everything()
    lapses = next(each for each in soaked if "reliable_lapse_swarm" in each.what)
    lapses.add('counts: {"runs": 50, "losing": 6, "losses": 1203}\n')
    memory.write_text(soak.page(soaked))
    assert soak.kept_counts()[lapses.what] == {"runs": 50, "losing": 6, "losses": 1203}
    assert lapses.command()[0] == [
        *lapses.what.split(),
        "--seed",
        str(lapses.chunk),
        "--count",
        str(lapses.chunk),
    ]


def test_five_minutes_of_real_brokers_are_soaked_each_with_a_seed_of_its_own(memory: Path) -> None:
    real = next(each for each in soak.everything() if "real_overlay" in each.what)
    commands = []
    while real.done < real.target:
        commands.append(real.command()[0])
        real.add("")
    assert commands == [["tests/real_overlay.py", "60", str(seed)] for seed in range(1, 6)]
