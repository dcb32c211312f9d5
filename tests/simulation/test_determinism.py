"""The same seed gives the same run, whatever else differs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.scenarios.trace import digest
from holdfast.simulator.swarm import run_seed
from simulations import CHAIN, simulated

SEEDS = (3, 11)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("faults", [False, True])
def test_a_seed_gives_the_same_digest_twice_in_a_row(seed: int, faults: bool) -> None:
    assert run_seed(seed, faults=faults).digest == run_seed(seed, faults=faults).digest


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("faults", [False, True])
def test_messages_as_bytes_give_the_same_digest_as_messages_as_objects(seed: int, faults: bool) -> None:
    assert len({run_seed(seed, faults=faults, wire=wire).digest for wire in (False, True)}) == 1


def test_other_seeds_give_other_digests() -> None:
    assert len({run_seed(seed, faults=True).digest for seed in range(8)}) == 8


def test_the_seed_of_a_scenario_decides_what_its_links_do() -> None:
    script = "Subscriber u3 Subscribe a\nPublisher p Publish 50 Ontopic a Interval 5\n"
    network = CHAIN + "Link b1 b2 Jitter 30\n"
    runs = [digest(simulated(f"{network}Seed {seed}\n", script).trace) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_the_digest_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "from holdfast.simulator.swarm import run_seed\n"
        f"print([run_seed(seed, faults=faults).digest for seed in {SEEDS} for faults in (False, True)])\n"
    )
    digests = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(run.stdout)
    assert len(digests) == 1
    assert digests == {f"{[run_seed(s, faults=faults).digest for s in SEEDS for faults in (False, True)]}\n"}
