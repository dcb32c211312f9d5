"""All tests, in two processes: one for each core.

Tests that start processes of their own wait for timers and sockets most of the time, and some judge by the clock; all
others compute. So the two kinds run beside each other, and those that compute give way (``nice``). One comes before all
others, alone: it uses both cores for half a minute, and what it finds depends on how much of them it gets.

    python tools/run_tests.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: The folders whose tests start processes, or listen on sockets; all others compute.
WAITING = ("bench", "cli", "embedded", "fuzz", "puppet", "runtime")

#: The one that runs alone.
ALONE = "tests/simulation/test_reliable_swarm.py::test_no_seed_breaks_a_promise"


def main() -> int:
    """Run all; the status of one that failed, 0 if none did."""
    folders = sorted({path.parent for path in (ROOT / "tests").glob("*/test_*.py")})
    computing = [str(each) for each in folders if each.name not in WAITING]
    computing += [str(each) for each in sorted((ROOT / "tests").glob("test_*.py"))]
    waiting = [str(ROOT / "tests" / name) for name in WAITING]
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    alone = subprocess.call([*pytest, ALONE], cwd=ROOT)
    log = ROOT / ".pytest_computing.log"
    with log.open("wb") as output:
        beside = subprocess.Popen(
            [*pytest, "--deselect", ALONE, *computing],
            stdout=output,
            stderr=output,
            cwd=ROOT,
            preexec_fn=lambda: os.nice(10),
        )
        status = subprocess.call([*pytest, *waiting], cwd=ROOT)
        status = beside.wait() or status or alone
    sys.stdout.write(log.read_text())
    log.unlink()
    return status


if __name__ == "__main__":
    sys.exit(main())
