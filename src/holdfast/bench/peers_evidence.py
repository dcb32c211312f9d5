"""Whether a broker really syncs before it acknowledges, as the kernel sees it: its system calls, traced.

Events are published one at a time, so a broker that acknowledges only what is on disk must sync some file once for each
of them. A sync is a call that syncs, or a write to a file that was opened to be written synchronously. kill -9 would
show nothing: the operating system keeps what was written. It needs strace, and the right to use it.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.bench.peers_peer import OnDisk, Peer
from holdfast.bench.peers_process import found_program

__all__ = ["Evidence", "counted_syncs", "evidence"]

ATTACH_SECONDS: Final = 10.0
CALLS: Final = "openat,fsync,fdatasync,msync,sync_file_range,write,writev,pwrite64,pwritev,pwritev2"
_SYNC = re.compile(r"\b(?:fsync|fdatasync)\(\d+<(?P<path>[^>]*)>")
_WRITE = re.compile(r"\bp?write(?:64|v|v2)?\(\d+<(?P<path>[^>]*)>")
_OPENED = re.compile(r'\bopenat\([^"]*"(?P<path>[^"]*)".*\bO_D?SYNC\b')


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen while events were published one at a time."""

    acknowledged: int = 0
    syncs: int = 0  #: of the file that was synced most often
    problem: str = ""  #: why nothing was seen

    @property
    def is_synced(self) -> bool:
        """Whether there was a sync for each."""
        return self.syncs >= self.acknowledged > 0

    def judged(self, statement: OnDisk) -> str:
        """In words, beside what is said."""
        if self.problem:
            return f"not looked at: {self.problem}"
        seen = (
            f"{self.syncs:,} syncs of a file while {self.acknowledged:,} events were acknowledged one by one"
        )
        if self.is_synced == statement.synced:
            return seen
        return f"{seen}, which is not what it says"


def evidence(peer: Peer, folder: Path, seconds: float) -> Evidence:
    """Trace a broker whose files are in this folder while it acknowledges one event at a time, for so long."""
    program = found_program("strace")
    if program is None:
        return Evidence(problem="strace is not installed")
    with tempfile.TemporaryDirectory() as place:
        trace = Path(place) / "trace"
        command = [program, "-f", "-y", "-e", f"trace={CALLS}", "-o", str(trace)]
        processes = peer.process_ids()
        for process in processes:
            command += ["-p", str(process)]
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, bufsize=0)
        try:
            if problem := _attached(tracer, len(processes)):
                return Evidence(problem=problem)
            run = peer.publish_pipelined(seconds, 1, is_awaited=False)
        finally:
            tracer.terminate()
            tracer.communicate()
        synchronous = _synchronous_files(processes)
        counts = counted_syncs(trace.read_text(errors="replace"), folder, synchronous)
        return Evidence(run.events, max(counts.values(), default=0))


def _attached(tracer: subprocess.Popen[bytes], processes: int) -> str:
    """Wait until the tracer has them all; why it has not, else."""
    assert tracer.stderr is not None
    said = ""
    deadline = time.monotonic() + ATTACH_SECONDS
    while len(re.findall(r"Process \d+ attached", said)) < processes:
        if not select.select([tracer.stderr], [], [], max(0, deadline - time.monotonic()))[0]:
            return f"strace did not attach within {ATTACH_SECONDS:g} s"
        if not (more := os.read(tracer.stderr.fileno(), 4_096)):
            return said.strip().splitlines()[0] if said.strip() else "strace ended"
        said += more.decode(errors="replace")
    return ""


def _synchronous_files(processes: list[int]) -> set[str]:
    """The files that some process has open to be written synchronously."""
    found: set[str] = set()
    for process in processes:
        with suppress(OSError):
            for entry in Path(f"/proc/{process}/fdinfo").iterdir():
                with suppress(OSError):
                    flags = re.search(r"^flags:\s+(\d+)", entry.read_text(), re.MULTILINE)
                    if flags is not None and int(flags[1], 8) & os.O_DSYNC:
                        found.add(os.readlink(f"/proc/{process}/fd/{entry.name}"))
    return found


def counted_syncs(trace: str, folder: Path, synchronous: set[str]) -> Counter[str]:
    """By file of this folder, how many calls in a trace put something on disk before they return."""
    files = set(synchronous)
    counts: Counter[str] = Counter()
    for line in trace.splitlines():
        if opened := _OPENED.search(line):
            files.add(opened["path"])
        elif sync := _SYNC.search(line):
            counts[sync["path"]] += 1
        elif write := _WRITE.search(line):
            counts[write["path"]] += write["path"] in files or "RWF_DSYNC" in line
    whole = folder.resolve()
    return Counter({path: count for path, count in counts.items() if Path(path).is_relative_to(whole)})
