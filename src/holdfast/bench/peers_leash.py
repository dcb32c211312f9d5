"""Somebody else's server on a leash: it ends when whoever measures it does, however that ends.

`python -m holdfast.bench.peers_leash COMMAND …` runs a command in a session of its own, says its process id, and
stops the whole session when standard input ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Final

__all__: list[str] = []

STDIN: Final = 0
GRACE_SECONDS: Final = 5.0


def main(command: list[str]) -> int:
    """Run it; its exit status."""
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.flush()
    threading.Thread(target=_hold, args=(child,), daemon=True).start()
    status = child.wait()
    _signal(child.pid, signal.SIGKILL)  # those of its session that it left behind
    return status


def _hold(child: subprocess.Popen[bytes]) -> None:
    # not through sys.stdin, whose lock would be held when the server ends by itself
    while os.read(STDIN, 4_096):
        pass
    _signal(child.pid, signal.SIGTERM)
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _signal(child.pid, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
