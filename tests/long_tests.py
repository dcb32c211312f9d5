"""The tests marked ``long``, once each, which `make test` leaves out: ``python tests/long_tests.py 1 SEED``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-m", "long", "tests"]
    sys.exit(subprocess.call(command, cwd=ROOT))
