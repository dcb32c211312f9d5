"""Whatever stands in a network file: it is a network, or is refused with the place of everything that is wrong."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from holdfast.cli.init import DEFAULT_FILE
from holdfast.runtime.network_document import Override
from holdfast.runtime.network_file import NetworkFileError, read_network

#: How many files are tried; `make soak` may try more.
FILES = int(os.environ.get("HOLDFAST_EXAMPLES", "400"))

WHOLE = re.sub(r"^# ?(?=[a-z_]+ = )", "", DEFAULT_FILE, flags=re.MULTILINE)
WHOLE = WHOLE.replace('order = "fifo"', 'order = "total"')  # which has a sequencer
LINES = [line for line in WHOLE.splitlines() if line and not line.startswith(("#", "address"))]
VALUES = [
    "1",
    "-1",
    "0",
    "1.5",
    "true",
    '""',
    '"x"',
    "[]",
    "[1]",
    '["#", "a/+"]',
    "{}",
    "{name = 1}",
    "1979-05-27",
    "9" * 30,
]
VALUES += [
    '"127.0.0.1:7000"',
    '"[::1]:0"',
    '"total"',
    '"reliable"',
    '"fifo"',
    '"7d"',
    '"10GiB"',
    '"root"',
    "inf",
    "[[]]",
    "[{}]",
    "'''\n'''",
]
KEYS = [
    "name",
    "broker",
    "stream",
    "limits",
    "neighbours.x",
    "clients.grace_ms",
    '"a b"',
    "limits.clients_max",
    "delta",
]


def mutated(rng: random.Random) -> str:
    lines = list(LINES)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        key = lines[at].partition(" = ")[0]
        match rng.randrange(6):
            case 0:
                lines[at] = f"{key} = {rng.choice(VALUES)}"
            case 1:
                del lines[at]
            case 2:
                lines.insert(at, rng.choice(lines))
            case 3:
                lines.insert(at, f"{rng.choice(KEYS)} = {rng.choice(VALUES)}")
            case 4:
                lines[at] = rng.choice(
                    ["[broker]", "[[limits]]", "[[broker]]", "[stream.x]", "[[broker.x]]", "[a.b]"]
                )
            case 5:
                cut = rng.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:cut] + rng.choice("\"'[]{}=.#\\\n\x00é") + lines[at][cut:]
    return "\n".join(lines)


def override(rng: random.Random) -> Override:
    parts = [
        part
        for part in rng.choice([*KEYS, "broker.root.listen", "stream.s.topics", "broker.x"]).split(".")
        if part
    ]
    return Override("--set x", tuple(parts), rng.choice(VALUES))


def test_the_file_with_everything_in_it_is_a_network(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text("\n".join(LINES))
    assert len(read_network(path).brokers) == 3


def test_a_mutated_file_is_a_network_or_refused_with_places(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    outcomes = {"a network": 0, "refused": 0}
    for seed in range(FILES):
        rng = random.Random(seed)
        path.write_text(text := mutated(rng))
        overrides = [override(rng)] if rng.random() < 0.3 else []
        try:
            read_network(path, overrides)
            outcomes["a network"] += 1
        except NetworkFileError as error:
            outcomes["refused"] += 1
            last = text.count("\n") + 1
            for problem in error.problems:
                line = re.match(rf"{re.escape(str(path))}, line (\d+)(, column \d+)?: .|--set x: .", problem)
                assert line, f"seed {seed}: {problem}"
                assert line[1] is None or 1 <= int(line[1]) <= last, f"seed {seed}: {problem}"
        except Exception as error:
            pytest.fail(f"seed {seed}: {error!r}\n{text}\n{overrides}")
    assert min(outcomes.values()) > 5, outcomes
