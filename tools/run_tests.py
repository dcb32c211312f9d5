"""All tests, on two cores, three runs of pytest at a time.

Tests that start processes of their own wait for timers and sockets most of the time, and some judge by the clock: they
are one run, so that they do not meet each other, and all others give way to it (``nice``). Tests of Spark share a
session, which takes long to start; those that compute come in parts, whenever there is room. One test comes before all
others, alone: it uses both cores for half a minute, and what it finds depends on how much of them it gets.

    python tools/run_tests.py [FOLDER…]

With folders of ``tests``, only theirs, in the same way: ``pipeline audit drivers`` are those of Spark.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: The folders whose tests start processes, or listen on sockets.
WAITING = ("bench", "cli", "embedded", "fuzz", "puppet", "runtime")
#: Others, each group a run of its own, the longest first; what is not named here is one more.
GROUPS = (
    ("pipeline",),
    ("simulation", "simulator"),
    ("node", "models", "client"),
    ("audit", "drivers"),
    ("matching", "filters"),
)
AT_ONCE = 3

#: How much these give way; those of Spark less: its workers have to answer within ten seconds, which cannot be set.
GIVING_WAY = (10, 5)
SPARK = ("tests/pipeline", "tests/audit")

#: The one that runs alone.
ALONE = "tests/simulation/test_reliable_swarm.py::test_no_seed_breaks_a_promise"

#: Hundreds of processes are started, and half of what that takes would be to compile our modules again, each time.
ENVIRONMENT = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not long"]


def main(wanted: Sequence[str]) -> int:
    """Run all, or those wanted; the status of one that failed, 0 if none did."""
    folders = sorted({path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")})
    unknown = sorted(set(wanted) - set(folders))
    if unknown:
        sys.exit(f"no tests are in {', '.join(unknown)}: expected some of {', '.join(folders)}")
    named = {name for group in (WAITING, *GROUPS) for name in group}
    files = (
        [] if wanted else sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").glob("test_*.py"))
    )
    rest = tuple(name for name in folders if name not in named)
    waiting, *groups = (
        [f"tests/{name}" for name in group if not wanted or name in wanted]
        for group in (WAITING, *GROUPS, rest)
    )
    groups[-1] += files
    statuses = []
    if not wanted or Path(ALONE).parent.name in wanted:
        statuses.append(subprocess.call([*PYTEST, ALONE], cwd=ROOT, env=ENVIRONMENT))
    with ThreadPoolExecutor(AT_ONCE) as runs:
        aloud = (
            [runs.submit(subprocess.call, [*PYTEST, *waiting], cwd=ROOT, env=ENVIRONMENT)] if waiting else []
        )
        beside = [runs.submit(_quietly, tests) for tests in groups if tests]
        statuses += [run.result() for run in aloud]
        for run in beside:
            status, said = run.result()
            statuses.append(status)
            sys.stdout.write(said)
    return next(filter(None, statuses), 0)


def _quietly(tests: list[str]) -> tuple[int, str]:
    """Run some that give way to others; their status, and what they said."""
    done = subprocess.run(
        ["nice", "-n", str(GIVING_WAY[tests[0] in SPARK]), *PYTEST, "--deselect", ALONE, *tests],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
