"""What processes that were started here have used, and that they can be made to give way."""

from __future__ import annotations

import os
import subprocess
import sys

from holdfast.bench.process_tree import processor_seconds, subdue
from holdfast.runtime.priority import NICENESS, back_cores

BUSY = """
import subprocess, sys, time
while time.process_time() < 0.3: pass
print("done", flush=True)
sys.stdin.read()
"""
PARENT = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {BUSY!r}]).returncode)"


def test_what_a_child_of_a_child_has_used_counts_while_it_lives_and_afterwards() -> None:
    before = processor_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        assert processor_seconds() - before >= 0.25
    assert processor_seconds() - before >= 0.25


def test_processes_of_a_name_give_way_with_what_they_have_started_and_others_do_not() -> None:
    ours = (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0))
    with (
        subprocess.Popen(
            ["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True
        ) as shell,
        subprocess.Popen(["sleep", "60"]) as other,
    ):
        assert shell.stdout is not None
        below = int(shell.stdout.readline())
        subdue("sh")
        found = [
            (os.getpriority(os.PRIO_PROCESS, each), os.sched_getaffinity(each))
            for each in (shell.pid, below, other.pid)
        ]
        os.kill(below, 9)
        other.kill()
    theirs = (max(ours[0], NICENESS), back_cores())
    assert found == [theirs, theirs, ours]
