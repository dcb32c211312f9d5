"""`holdfast audit TRACE...`: whether the promises of a network were kept, told from its traces; see `docs/audit.md`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from holdfast.cli.failure import Failure, Trouble
from holdfast.cli.progress import progress
from holdfast.cli.words import plain
from holdfast.errors import CallersFault, EnvironmentsFault
from holdfast.pipeline.audit.engine import audit, choose
from holdfast.pipeline.audit.line import Line
from holdfast.pipeline.audit.verdict import Verdict
from holdfast.pipeline.audit.violation import Violation

__all__ = ["add_arguments"]

#: So many violations of a kind are shown to people.
SHOWN_MAX: Final = 20
_STEP: Final = 10_000


def add_arguments(commands: Any) -> None:
    """`holdfast audit TRACE... [--engine local|spark] [--json]`."""
    command = commands.add_parser(
        "audit",
        help="judge traces: was every promise kept?",
        description="Reads traces of `holdfast puppet`, JSON Lines or Parquet, and says whether the network kept its"
        " promises. Exit status 0 if it did, 1 with every violation if not, 2 if a trace cannot be read.",
    )
    command.add_argument(
        "traces", type=Path, nargs="+", metavar="TRACE", help="a trace, of one run or several"
    )
    command.add_argument(
        "--engine", choices=("local", "spark"), help="who judges; by the size of the traces unless given"
    )
    command.add_argument(
        "--master", metavar="URL", help="the Spark to use (default: one inside this process)"
    )
    command.add_argument(
        "--archive",
        type=Path,
        metavar="FILE",
        help="for executors without Holdfast; see `holdfast pack-spark`",
    )
    command.add_argument(
        "--unfinished", action="store_true", help="judge what can be judged of runs that have no end"
    )
    command.add_argument("--json", action="store_true", help="the verdict as one JSON object")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge, and say what was found."""
    try:
        engine = options.engine or ("spark" if options.master else choose(options.traces))
        with progress() as shown:
            task = shown.add_task("lines", total=None)

            def watch(lines: Iterable[tuple[str, Line]]) -> Iterator[tuple[str, Line]]:
                for count, line in enumerate(lines):
                    if count % _STEP == 0:
                        shown.update(task, completed=count)
                    yield line

            def step(what: str, part: int, parts: int | None) -> None:
                shown.update(task, description=what, completed=part, total=parts)

            verdict = audit(
                options.traces,
                engine,
                unfinished=options.unfinished,
                master=options.master,
                archive=options.archive,
                watch=watch,
                step=step,
            )
    except CallersFault as error:
        raise Failure(plain(str(error))) from error
    except EnvironmentsFault as error:
        raise Trouble(str(error)) from error
    if options.json:
        sys.stdout.write(json.dumps({"engine": engine, **verdict.as_json()}, indent=1) + "\n")
    else:
        sys.stdout.write(_told(verdict, engine))
    return 0 if verdict.is_kept else 1


def _told(verdict: Verdict, engine: str) -> str:
    """The verdict in words."""
    runs = "1 run" if verdict.runs == 1 else f"{verdict.runs:,} runs"
    counts = ", ".join(
        f"{verdict.lines.get(kind, 0):,} {word}"
        for kind, word in (("publish", "published"), ("accepted", "accepted"), ("deliver", "delivered"))
    )
    lines = [f"{runs}, {sum(verdict.lines.values()):,} lines: {counts} ({engine} engine)"]
    if verdict.is_kept:
        lines.append("promises kept")
    else:
        lines.append(f"promises broken: {sum(verdict.counts.values()):,}")
        lines += [f"  {kind:<12} {count:>10,}" for kind, count in verdict.counts.items()]
        for kind, count in verdict.counts.items():
            rows = [each for each in verdict.violations if each.kind == kind]
            lines += ["", *_table(rows[:SHOWN_MAX], is_several=verdict.runs > 1)]
            if count > SHOWN_MAX:
                lines.append(
                    f"… and {count - min(len(rows), SHOWN_MAX):,} more of {kind}; --json has up to 1,000"
                )
    lines += [f"not judged in {note}" for note in verdict.notes]
    return "".join(f"{plain(line)}\n" for line in lines)


def _table(rows: Sequence[Violation], *, is_several: bool) -> Iterator[str]:
    """One line each: what is wrong, and the line of the trace that shows it."""
    for each in rows:
        which = f"run {each.run}, " if is_several else ""
        yield f"{each.kind:<12} {each.words}  ({which}{each.node} line {each.i}, t={each.t:.3f})"
