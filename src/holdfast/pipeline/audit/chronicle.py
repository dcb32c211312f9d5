"""The chronicle of one run: the lines that there are few of, and that decide what is owed of the many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from holdfast.errors import CallersFault
from holdfast.pipeline.audit.line import ASKING, FAULTS, Line
from holdfast.pipeline.audit.tenure import Key

__all__ = ["Chronicle", "ChronicleError", "chronicles_of"]


class ChronicleError(CallersFault):
    """A run that has no beginning, or no end."""


class Chronicle:
    """Who asked for what, what broke, what was announced as gone; each in the order of whoever wrote it."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.head: Line | None = None
        self.end: Line | None = None
        self.asking: dict[Key, list[Line]] = defaultdict(list)
        self.upgraded: dict[Key, list[Line]] = defaultdict(list)
        self.gaps: dict[Key, list[Line]] = defaultdict(list)
        self.faults: list[Line] = []

    def add(self, line: Line) -> None:
        """Take a line of ``CONTROL``."""
        if line.kind == "run":
            self.head = self._once(self.head, line)
        elif line.kind == "end":
            self.end = self._once(self.end, line)
        elif line.kind in FAULTS:
            self.faults.append(line)
        else:
            assert line.subscriber is not None
            assert line.subscription is not None
            key = line.subscriber, line.subscription
            if line.kind in ASKING:
                self.asking[key].append(line)
            else:
                (self.gaps if line.kind == "gap" else self.upgraded)[key].append(line)

    def _once(self, before: Line | None, line: Line) -> Line:
        if before is not None:
            raise ChronicleError(
                f"run {self.run} has two '{line.kind}' lines; give each line of a trace the name of its run"
                " in a field 'run', or each run a file of its own"
            )
        return line

    def settle(self, *, unfinished: bool) -> None:
        """All lines are there: put them in order.

        :raises ChronicleError: if the first or, unless that is expected, the last is missing.
        """
        if self.head is None:
            raise ChronicleError(f"run {self.run} has no 'run' line: what was promised is not known")
        if self.end is None and not unfinished:
            raise ChronicleError(
                f"run {self.run} has no 'end' line: the trace is cut, and whether what has not come would have come"
                " cannot be told. With --unfinished the rest is judged: duplicate, misorder, wrong, late, unexplained,"
                " total-order, no-interest, and what was lost before something that came"
            )
        for table in (self.asking, self.upgraded, self.gaps):
            for lines in table.values():
                lines.sort(key=lambda line: (line.i, line.t))
        self.faults.sort(key=lambda line: (line.node, line.i, line.t))


def chronicles_of(
    runs: Iterable[str], lines: Iterable[tuple[str, Line]], *, unfinished: bool
) -> dict[str, Chronicle]:
    """The chronicles of these runs, by name, of their control lines.

    :raises ChronicleError: if the beginning of one is missing, or its end where it is not ``unfinished``.
    """
    chronicles = {run: Chronicle(run) for run in sorted(runs)}
    for run, line in lines:
        chronicles[run].add(line)
    for chronicle in chronicles.values():
        chronicle.settle(unfinished=unfinished)
    return chronicles
