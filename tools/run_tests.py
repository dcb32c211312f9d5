"""All tests, on two cores in three processes.

Tests that start processes of their own wait for timers and sockets most of the time, and some judge by the clock; all
others compute. So the kinds run beside each other, and those that compute give way (``nice``); so do those of Spark,
which do both. One comes before all others, alone: it uses both cores for half a minute, and what it finds depends on
how much of them it gets.

    python tools/run_tests.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: The folders whose tests start processes, or listen on sockets.
WAITING = ("bench", "cli", "embedded", "fuzz", "puppet", "runtime")
SPARK = ("pipeline",)

#: The one that runs alone.
ALONE = "tests/simulation/test_reliable_swarm.py::test_no_seed_breaks_a_promise"

PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]


class Beside:
    """Tests that run beside others and give way to them; what they say is kept until they are done."""

    def __init__(self, name: str, niceness: int, tests: list[str]) -> None:
        self._log = ROOT / f".pytest_{name}.log"
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [*PYTEST, "--deselect", ALONE, *tests],
                stdout=output,
                stderr=output,
                cwd=ROOT,
                preexec_fn=lambda: os.nice(niceness),
            )

    def wait(self) -> int:
        """Say what they said; their status."""
        status = self._process.wait()
        sys.stdout.write(self._log.read_text())
        self._log.unlink()
        return status


def main() -> int:
    """Run all; the status of one that failed, 0 if none did."""
    folders = sorted({path.parent for path in (ROOT / "tests").glob("*/test_*.py")})
    computing = [str(each) for each in folders if each.name not in (*WAITING, *SPARK)]
    computing += [str(each) for each in sorted((ROOT / "tests").glob("test_*.py"))]
    statuses = [subprocess.call([*PYTEST, ALONE], cwd=ROOT)]
    beside = [Beside("spark", 5, _folders(SPARK)), Beside("computing", 10, computing)]
    statuses.append(subprocess.call([*PYTEST, *_folders(WAITING)], cwd=ROOT))
    statuses += [each.wait() for each in beside]
    return next(filter(None, statuses), 0)


def _folders(names: tuple[str, ...]) -> list[str]:
    return [str(ROOT / "tests" / name) for name in names]


if __name__ == "__main__":
    sys.exit(main())
