"""`holdfast bench peers`: other brokers, where they are installed, under the same workloads as Holdfast."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from holdfast.bench.figure import figure_rows, put_section
from holdfast.cli.failure import Failure
from holdfast.cli.progress import progress
from holdfast.cli.termination import terminated_like_interrupted

__all__ = ["add_peers"]


def add_peers(benchmarks: Any) -> None:
    """`holdfast bench peers [--only JOB] [--peer TEXT] [--seconds S] [--data FOLDER] [--json] [--markdown FILE]`."""
    peers = benchmarks.add_parser(
        "peers", help="durable publishing, latency and fan-out beside NATS, Redis, RabbitMQ and Mosquitto"
    )
    peers.add_argument(
        "--only", action="append", metavar="JOB", help="one job, by its name; may be given several times"
    )
    peers.add_argument(
        "--peer", action="append", metavar="TEXT", help="those with this text in their name; several times"
    )
    peers.add_argument("--seconds", type=float, default=2.0, metavar="S", help="how long one run takes [2]")
    peers.add_argument(
        "--data",
        type=Path,
        default=Path(tempfile.gettempdir()),
        metavar="FOLDER",
        help="where the brokers keep their files while they are measured [the system's folder for that]",
    )
    peers.add_argument("--json", action="store_true", help="one JSON object per measurement")
    peers.add_argument("--markdown", type=Path, metavar="FILE", help="write the figures into this page too")
    peers.set_defaults(run=run_peers)


def run_peers(options: argparse.Namespace) -> int:
    """Measure, and show what came out; exit status 1 if a run lost, repeated or reordered something."""
    # Loaded here: the other commands need none of it.
    from holdfast.bench.network_outcome import Outcome
    from holdfast.bench.network_report import NETWORK_COLUMNS, network_rows
    from holdfast.bench.network_wire import BenchFailed
    from holdfast.bench.peers import JOBS, Contest, Size, all_peers
    from holdfast.bench.peers_report import (
        FACT_COLUMNS,
        fact_rows,
        left_out,
        peers_figures,
        peers_markdown,
    )
    from holdfast.bench.report import FIGURE_COLUMNS

    names = options.only or list(JOBS)
    _check(options, names, list(JOBS))
    asked = [
        peer
        for peer in all_peers()
        if not options.peer or any(text.lower() in peer.name.lower() for text in options.peer)
    ]
    if not asked:
        known = "; ".join(peer.name for peer in all_peers())
        raise Failure(f"--peer {' '.join(options.peer)}: there is no such peer; expected some of {known}")
    missing = {peer.name: reason for peer in asked if (reason := peer.missing()) is not None}
    for line in left_out(missing):
        sys.stderr.write(f"{line}\n")
    present = [peer for peer in asked if peer.name not in missing]
    if not present:
        raise Failure("there is nobody to measure")
    outcomes: list[Outcome] = []
    try:
        with (
            terminated_like_interrupted(),
            progress(beside_output=not options.json) as shown,
            tempfile.TemporaryDirectory(dir=options.data, prefix="holdfast-peers-") as folder,
        ):
            task = shown.add_task("starting", total=len(names) + 1)
            with Contest(present, Path(folder), Size(seconds=options.seconds)) as contest:
                shown.update(task, description="what is on disk")
                facts = list(contest.facts())
                for done, name in enumerate(names, start=1):
                    shown.update(task, completed=done, description=name)
                    for outcome in JOBS[name](contest):
                        outcomes.append(outcome)
                        if options.json:
                            _write_json(outcome.as_json())
    except BenchFailed as failed:
        sys.stderr.write(f"holdfast: the benchmark failed, its figures mean nothing: {failed}\n")
        return 1
    if options.json:
        for row in fact_rows(facts):
            _write_json(dict(zip(FACT_COLUMNS, row, strict=True)))
    else:
        _show("Peers", NETWORK_COLUMNS, network_rows(outcomes))
        _show("What is on disk when they acknowledge", FACT_COLUMNS, fact_rows(facts))
        _show("What is promised", FIGURE_COLUMNS, figure_rows(peers_figures(outcomes, facts)))
    if options.markdown is not None:
        section = peers_markdown(outcomes, facts, missing, "holdfast bench peers")
        put_section(options.markdown, "Peers", section)
    return 0


def _check(options: argparse.Namespace, names: list[str], known: list[str]) -> None:
    from holdfast.bench.peers_process import is_in_memory

    for name in names:
        if name not in known:
            raise Failure(f"--only {name}: there is no such job; expected one of {', '.join(known)}")
    if not 0.01 <= options.seconds <= 60:
        raise Failure(f"--seconds {options.seconds:g}: expected from 0.01 to 60")
    if options.markdown is not None and not options.markdown.parent.is_dir():
        raise Failure(f"--markdown {options.markdown}: there is no folder {options.markdown.parent}")
    if not options.data.is_dir():
        raise Failure(f"--data {options.data}: there is no such folder")
    if is_in_memory(options.data):
        raise Failure(
            f"--data {options.data} is in memory, where a sync costs nothing; expected one on a disk"
        )


def _write_json(fields: dict[str, object] | dict[str, str]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _show(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    if rows:
        table = Table(*columns, title=title, title_justify="left")
        for row in rows:
            table.add_row(*row)
        Console(width=None if sys.stdout.isatty() else 200).print(table)
