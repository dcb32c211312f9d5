"""`make soak`: the properties again, with many more examples; resumable, and its counts are kept.

Each property runs in chunks, each chunk with a seed of its own, until it has had its number of examples. After every
chunk the counts are written to `docs/soak.md`, which is also where a later run goes on from. A failing chunk stops the
soak and prints the one line that repeats it.

    python tools/soak.py [--seconds N]     stop after the chunk in which N seconds have passed
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "soak.md"
CHUNKS = 20  # a property's examples are run in so many parts, each with a seed of its own

HEAD = """# Soak

Written by `tools/soak.py` (`make soak`). Each property of the test suite, run with fresh seeds until it has had its
number of examples; a run that is stopped goes on from the counts below. A chunk that fails is not counted and stops
the soak.

| property | test | examples | of | chunks |
| --- | --- | --- | --- | --- |
"""


@dataclass
class Property:
    """A claim, the test that makes it, and how often it has held."""

    claim: str
    test: str
    target: int = 50_000
    examples: int = 0
    chunks: int = 0

    def row(self) -> str:
        """A row of the page, from which `kept` reads it back."""
        return f"| {self.claim} | `{self.test}` | {self.examples} | {self.target} | {self.chunks} |\n"


def properties() -> list[Property]:
    """What is soaked, the most important first. Where the compiled engine was built, both engines are."""
    index = "tests/matching/test_index.py::test_every_engine_agrees_with_the_naive_twin"
    automaton = "tests/matching/test_automaton.py::test_every_pattern_matches_where_it_selects_something"
    sqlite = "tests/filters/test_sqlite_agreement.py::test_the_evaluator_and_sqlite_agree_on_true_false_and_unknown"
    xpath = (
        "tests/filters/test_tree_pattern.py::test_a_path_selects_something_where_libxml2_selects_something"
    )
    covering = "tests/filters/test_covering.py::test_what_is_covered_matches_nothing_that_the_cover_does_not"
    return [
        Property("index = naive twin, all filters", f"{index}[everything]"),
        Property("naive twin = SQLite", sqlite),
        Property("XPath = lxml's own", xpath),
        Property("index = naive twin, plain predicates", f"{index}[plain predicates]"),
        Property("covering is sound", covering),
        Property("index = naive twin, deep conditions", f"{index}[deep]", 10_000),
        # Each example is a history of some fifty documents and twenty patterns.
        Property("automaton = tree patterns one by one, pure", f"{automaton}[pure]", 1_000),
        Property("automaton = tree patterns one by one, compiled", f"{automaton}[compiled]", 1_000),
    ]


def kept() -> dict[str, tuple[int, int]]:
    """The counts of earlier runs, by test."""
    if not PAGE.exists():
        return {}
    row = re.compile(r"^\| [^|]+ \| `([^`]+)` \| (\d+) \| \d+ \| (\d+) \|$", re.MULTILINE)
    return {test: (int(examples), int(chunks)) for test, examples, chunks in row.findall(PAGE.read_text())}


def run(chosen: Property) -> None:
    """One chunk; exits if it fails."""
    seed, examples = chosen.chunks + 1, chosen.target // CHUNKS
    command = [sys.executable, "-m", "pytest", "-q", "-x", f"--hypothesis-seed={seed}", chosen.test]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "HOLDFAST_EXAMPLES": str(examples)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        repeat = f"HOLDFAST_EXAMPLES={examples} python -m pytest -x --hypothesis-seed={seed} '{chosen.test}'"
        sys.exit(f"{done.stdout}\n{done.stderr}\nto repeat: {repeat}")
    chosen.examples += examples
    chosen.chunks += 1


def main() -> None:
    """Give every property its examples, the first of the list first, until time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    end = time.monotonic() + parser.parse_args().seconds
    soaked = properties()
    for chosen in soaked:
        chosen.examples, chosen.chunks = kept().get(chosen.test, (0, 0))
    while time.monotonic() < end:
        waiting = [p for p in soaked if p.examples < p.target]
        if not waiting:
            print("every property has had its examples")
            return
        chosen = waiting[0]
        start = time.monotonic()
        run(chosen)
        PAGE.write_text(HEAD + "".join(p.row() for p in soaked))
        print(
            f"{chosen.claim}: {chosen.examples} of {chosen.target} ({time.monotonic() - start:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
