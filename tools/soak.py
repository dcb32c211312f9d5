"""`make soak`: the properties, swarms and campaigns again, at length; resumable, and its counts are kept.

Each runs in chunks, each chunk with seeds of its own, until it has had its number of examples, seeds or
seconds. After every chunk the counts are written to `docs/soak.md`, which is also where a later run goes on
from. A failing chunk stops the soak and prints the one line that repeats it.

    python tools/soak.py [--seconds N] [--only WORD]     stop after the chunk in which N seconds have passed
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "soak.md"
CHUNKS = 20  # a property's examples are run in so many parts, each with a seed of its own

COUNTS = "counts: "

HEAD = """# Soak

Written by `tools/soak.py` (`make soak`). Properties of the test suite run with fresh seeds until they have had
their number of examples; swarms of simulated networks until so many seeds are done; networks of real processes
under faults, and campaigns of bad bytes against a live broker, for so many seconds. A run that is stopped goes on
from the counts below. A chunk that fails is not counted and stops the soak.

| claim | what runs | done | of | chunks |
| --- | --- | --- | --- | --- |
"""

COUNTED = """
## What networks have counted

*Suppressions* are repeats an edge turned away; *rejections* late copies a node turned away that had not seen them, when
everybody beyond had; *refills* publications given back to a node that had lost them; *partial* subscriptions that were
confirmed without a fragment, and upgraded later; *gaps* what was announced as perhaps lost, beyond delta only. What is
lost without a gap fails a run, within delta and beyond. *Losses* are events that were owed to a subscription and did
not come, each under a gap; *losing* the runs that had any.

"""


@dataclass
class Soaked:
    """A claim, what tries to break it, and how often it has held."""

    claim: str
    what: str  #: a test, or the command line without its seeds
    target: int = 50_000
    chunks_of: int = CHUNKS
    done: int = 0
    chunks: int = 0
    counts: dict[str, int] = field(default_factory=dict)  #: what else it has counted, over all chunks

    @property
    def chunk(self) -> int:
        """How much one chunk does."""
        return self.target // self.chunks_of

    def row(self) -> str:
        """A row of the page, from which `kept` reads it back."""
        return f"| {self.claim} | `{self.what}` | {self.done} | {self.target} | {self.chunks} |\n"

    def add(self, output: str) -> None:
        """A chunk has held; if it has counted, its last line says what."""
        self.done += self.chunk
        self.chunks += 1
        last = output.rstrip().rpartition("\n")[2]
        if last.startswith(COUNTS):
            for name, count in json.loads(last.removeprefix(COUNTS)).items():
                self.counts[name] = self.counts.get(name, 0) + count

    def command(self) -> tuple[list[str], dict[str, str]]:
        """The next chunk: its command, and what it adds to the environment."""
        seed = self.chunks + 1
        if self.what.startswith("tests/") and "::" in self.what:
            pytest = ["-m", "pytest", "-q", "-x", f"--hypothesis-seed={seed}", self.what]
            return pytest, {"HOLDFAST_EXAMPLES": str(self.chunk)}
        if self.what.startswith("tests/"):
            script, *options = self.what.split()
            return [script, str(self.chunk), str(seed), *options], {}
        return [*self.what.split(), "--seed", str(self.done), "--count", str(self.chunk)], {}


def everything() -> list[Soaked]:
    """What is soaked, the most important first. Where the compiled engine was built, both engines are."""
    index = "tests/matching/test_index.py::test_every_engine_agrees_with_the_naive_twin"
    automaton = "tests/matching/test_automaton.py::test_every_pattern_matches_where_it_selects_something"
    sqlite = "tests/filters/test_sqlite_agreement.py::test_the_evaluator_and_sqlite_agree_on_true_false_and_unknown"
    xpath = (
        "tests/filters/test_tree_pattern.py::test_a_path_selects_something_where_libxml2_selects_something"
    )
    covering = "tests/filters/test_covering.py::test_what_is_covered_matches_nothing_that_the_cover_does_not"
    tree = "tests/models/test_broker_tree.py::test_with_faults_nothing_is_wrong_and_what_heals_is_whole"
    swarm = "-m holdfast.simulator.swarm"
    reliable = "-m holdfast.simulator.reliable_swarm"
    lapses = "-m holdfast.simulator.reliable_lapse_swarm"
    real = "tests/real_overlay.py"
    durable = "tests/real_durable.py"
    logged = "-m holdfast.simulator.durable_swarm"
    names, shared = "tests/names_swarm.py", "tests/real_names.py"
    programs = "tests/real_programs.py"
    planted, bare = "tests/large_planted.py", "tests/bare_cluster.py"
    lies = "tests/fuzz_durable_campaign.py"
    spark = "tests/real_pipeline.py"
    # Five kills each of drivers, executors, brokers, and with brokers; where Spark is installed.
    piped = [
        Soaked("Spark's drivers, executors, and brokers killed so often: every event once", spark, 25, 5)
    ]
    fed = "tests/real_lake.py"
    # Of each network all its events from the lake.
    lake = [Soaked("events from the lake, brokers killed, files vacuumed: exactly once", fed, 500_000, 5)]
    # Four kills each of four checkpoints.
    piped += [
        Soaked(
            "holdfast derive killed so often, brokers too: every window once", "tests/real_derive.py", 16, 4
        )
    ]
    piped.append(
        Soaked(
            "events from the lake, then live, in one query while logs forget",
            "tests/large_backfill.py",
            1_000_000,
            1,
        )
    )
    return [
        *(lake if find_spec("deltalake") else []),
        *(piped if find_spec("pyspark") else []),
        # A minute each of five networks; first, since it is soon over.
        Soaked("13 real brokers, delta 2, seconds of faults at 500 events/s: nothing lost", real, 300, 5),
        # Thirty kills each of ten networks.
        Soaked("5 real brokers killed so often, 40 durable subscribers: exactly once", durable, 300, 10),
        # Forty troubles each of ten networks.
        Soaked(
            "users' programs and brokers killed or stalled so often: exactly once, from table to table",
            programs,
            400,
            10,
        ),
        # Twelve kills each of five networks.
        Soaked(
            "real brokers killed so often, many clients under few durable names: all is read", shared, 60, 5
        ),
        Soaked("and by programs that share a checkpoint: each event once", f"{shared} --tokens", 60, 5),
        Soaked("reliable networks within delta: nothing lost, every law held", reliable, 12_000, 120),
        Soaked("reliable networks beyond delta: safe, then alive again", f"{reliable} --wild", 8_000, 80),
        Soaked("reliable networks that forget too much: no loss without a gap", lapses, 4_000, 80),
        Soaked("durable networks with faults: exactly once, in order", f"{logged} --faults", 14_000, 140),
        Soaked("durable networks whose subscribers come and go: exactly once, in order", logged, 5_000, 50),
        Soaked(
            "and with hardly any room, falling behind all the time", f"{logged} --faults --tight", 4_000, 80
        ),
        Soaked("and under limits that are drawn small", "tests/cramped.py --faults", 4_000, 80),
        Soaked("and both", "tests/cramped.py --faults --tight", 4_000, 80),
        Soaked("many clients under few durable names: one reads, and all of it", names, 4_000, 80),
        Soaked("and with faults: nothing is lost, nothing stays behind", f"{names} --faults", 10_000, 200),
        Soaked(
            "and by clients that know several brokers: the same", f"{names} --faults --several", 4_000, 80
        ),
        Soaked("few brokers, one name, every order: the same", f"{names} --faults --narrow", 10_000, 100),
        Soaked(
            "and by clients that know several, in every order",
            f"{names} --faults --several --narrow",
            6_000,
            60,
        ),
        Soaked("and where a clock is wrong: the same", f"{names} --faults --narrow --skewed", 4_000, 40),
        Soaked(
            "and where nobody else comes: nobody is ousted", f"{names} --faults --several --alone", 4_000, 80
        ),
        Soaked("and of several logs, released meanwhile: the same", f"{names} --released", 2_000, 40),
        Soaked("and with faults", f"{names} --faults --several --released", 2_000, 40),
        Soaked(
            "and where an operator removes some: what comes after is whole", f"{names} --removed", 2_000, 40
        ),
        Soaked("and with faults", f"{names} --faults --several --removed", 2_000, 40),
        Soaked("and all of that", f"{names} --faults --several --released --removed", 2_000, 40),
        Soaked("few brokers, one name, several logs: the same", f"{names} --released --narrow", 10_000, 100),
        Soaked(
            "and where an operator removes some, in every order",
            f"{names} --released --removed --narrow",
            10_000,
            100,
        ),
        Soaked("programs with one checkpoint: each event once, in order", f"{names} --tokens", 2_000, 40),
        Soaked("and with faults", f"{names} --tokens --faults --several", 2_000, 40),
        Soaked("and of several logs, in every order", f"{names} --tokens --released --narrow", 10_000, 100),
        Soaked(
            "and with all of that", f"{names} --tokens --faults --several --released --narrow", 10_000, 100
        ),
        Soaked("and by who reads slowly", f"{names} --tokens --released --narrow --slow", 4_000, 40),
        Soaked(
            "and where silence is committed, too", f"{names} --tokens --released --narrow --auto", 4_000, 40
        ),
        Soaked("names of a stream in total order: the same order for all", f"{names} --total", 2_000, 40),
        Soaked("and with faults and checkpoints", f"{names} --total --tokens --faults --several", 2_000, 40),
        Soaked("durable networks with a lake behind every log: no gap", f"{logged} --lake", 2_000, 40),
        Soaked("and with faults: nothing that was owed is missing", f"{logged} --lake --faults", 4_000, 80),
        Soaked("simulated networks with faults: safe, then live", f"{swarm} --faults", 10_000, 50),
        Soaked("simulated networks without faults: complete", swarm, 4_000),
        Soaked("deliveries in a trace: clean is clean, every kind planted is found", planted, 3_000_000, 3),
        Soaked(
            "a cluster without Holdfast: refused in a line each; with the archive it audits alike", bare, 3, 3
        ),
        Soaked("tests too long for make test, each once", "tests/long_tests.py", 1, 1),
        Soaked("bad bytes at every port, seconds of them", "tests/fuzz_campaign.py", 600, 10),
        Soaked("lies about durable streams at every port, seconds of them", lies, 600, 10),
        Soaked("brokers in any interleaving", f"{tree}[filter]", 10_000),
        Soaked("index = naive twin, all filters", f"{index}[everything]"),
        Soaked("naive twin = SQLite", sqlite),
        Soaked("XPath = lxml's own", xpath),
        Soaked("index = naive twin, plain predicates", f"{index}[plain predicates]"),
        Soaked("covering is sound", covering),
        Soaked("index = naive twin, deep conditions", f"{index}[deep]", 10_000),
        # Each example is a history of some fifty documents and twenty patterns.
        Soaked("automaton = tree patterns one by one, pure", f"{automaton}[pure]", 1_000),
        Soaked("automaton = tree patterns one by one, compiled", f"{automaton}[compiled]", 1_000),
    ]


def kept() -> dict[str, tuple[int, int]]:
    """The examples and chunks of earlier runs, by what ran."""
    if not PAGE.exists():
        return {}
    row = re.compile(r"^\| [^|]+ \| `([^`]+)` \| (\d+) \| \d+ \| (\d+) \|$", re.MULTILINE)
    return {what: (int(done), int(chunks)) for what, done, chunks in row.findall(PAGE.read_text())}


def kept_counts() -> dict[str, dict[str, int]]:
    """What else earlier runs have counted, by what ran."""
    if not PAGE.exists():
        return {}
    counts: dict[str, dict[str, int]] = {}
    for what, text in re.findall(r"^- `([^`]+)`: (.+)$", PAGE.read_text(), re.MULTILINE):
        pairs = (each.rpartition(" ") for each in text.split(", "))
        counts[what] = {name: int(count) for name, _, count in pairs}
    return counts


def page(soaked: list[Soaked]) -> str:
    """All counts, as they are written down."""
    counted = [each for each in soaked if each.counts]
    lines = [
        f"- `{each.what}`: {', '.join(f'{name} {count}' for name, count in each.counts.items())}\n"
        for each in counted
    ]
    return HEAD + "".join(each.row() for each in soaked) + (COUNTED if lines else "") + "".join(lines)


def run(chosen: Soaked) -> None:
    """One chunk; exits if it fails."""
    command, environment = chosen.command()
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        given = "".join(f"{name}={value} " for name, value in environment.items())
        quoted = " ".join(f"'{word}'" if "[" in word else word for word in command)
        sys.exit(f"{done.stdout[-20_000:]}\n{done.stderr}\nto repeat: {given}python {quoted}")
    chosen.add(done.stdout)


def main() -> None:
    """Give everything its share, the first of the list first, until time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", default="", help="only those whose claim or command contains this")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    soaked = everything()
    for each in soaked:
        each.done, each.chunks = kept().get(each.what, (0, 0))
        each.counts = kept_counts().get(each.what, {})
    while time.monotonic() < end:
        wanted = [each for each in soaked if options.only in each.claim + each.what]
        waiting = [each for each in wanted if each.done < each.target]
        if not waiting:
            print("everything has had its share")
            return
        chosen = waiting[0]
        start = time.monotonic()
        run(chosen)
        PAGE.write_text(page(soaked))
        print(
            f"{chosen.claim}: {chosen.done} of {chosen.target} ({time.monotonic() - start:.0f} s)", flush=True
        )


if __name__ == "__main__":
    main()
