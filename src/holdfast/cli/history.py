"""`holdfast history FILTER`: what was, out of lake and logs together; see `docs/lake.md`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from rich.box import SIMPLE_HEAD
from rich.table import Table

from holdfast.cli.connection import tell
from holdfast.cli.console import OutputConsole, foreign
from holdfast.cli.failure import Failure, Trouble
from holdfast.cli.lake_view import moment_of
from holdfast.cli.sub import json_line, shown_payload
from holdfast.cli.targets import add_network_arguments, loaded_network
from holdfast.cli.words import counted, plain, sized
from holdfast.client.item import Gap
from holdfast.errors import CallersFault, EnvironmentsFault
from holdfast.pipeline.history import history

if TYPE_CHECKING:
    from holdfast.pipeline.past import History

__all__ = ["add_arguments"]

TABLE_ROWS: Final = 1_000  #: of a table for people, unless another number is given


def add_arguments(commands: Any) -> None:
    """`holdfast history FILTER [--since T] [--until T] [--format jsonl|parquet|table] [--count N] …`."""
    command = commands.add_parser(
        "history",
        help="what a filter matched, in the lake and in the logs",
        description="Writes the events that a filter matches, in the order in which they were accepted, out of the lake"
        " and what the logs have beyond it. What is lost is a gap, in its place.",
    )
    command.add_argument("filter", nargs="?", default="#", metavar="FILTER", help="[#]")
    command.add_argument("--since", metavar="TIME", help="the first moment, such as 2026-01-31T12:00:00Z")
    command.add_argument("--until", metavar="TIME", help="the first moment that is not meant any more")
    command.add_argument("--stream", metavar="NAME", help="only this stream")
    command.add_argument("--format", choices=["jsonl", "parquet", "table"], default="jsonl")
    command.add_argument("--out", type=Path, metavar="FILE", help="where to write; parquet needs it")
    command.add_argument(
        "--count", type=int, metavar="N", help=f"at most so many [all; {TABLE_ROWS} of a table]"
    )
    command.add_argument("--from", dest="source", choices=["auto", "log", "lake"], default="auto")
    command.add_argument(
        "--local-segments", action="store_true", help="read the brokers' folders, and ask no log reader"
    )
    command.add_argument("--stats", action="store_true", help="say how much was read")
    add_network_arguments(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write what was."""
    if options.format == "parquet" and options.out is None:
        raise Failure("--format parquet needs --out FILE")
    if options.count is not None and options.count < 1:
        raise Failure(f"--count is {options.count}; expected a number from 1")
    try:
        found = history(
            options.filter,
            network=loaded_network(options),
            stream=options.stream,
            since=options.since,
            until=options.until,
            read_from=options.source,
            local_segments=options.local_segments,
        )
        rows = _written(found, options)
        if options.stats:
            tell(
                f"{counted(rows, 'row')}; {sized(found.read.bytes)} of {sized(found.read.of)} of the lake read"
            )
    except CallersFault as error:
        raise Failure(plain(str(error))) from error
    except EnvironmentsFault as error:
        raise Trouble(plain(str(error))) from error
    return 0


def _written(found: History, options: argparse.Namespace) -> int:
    """How many rows there were."""
    if options.format == "parquet":
        return _parquet(found, options)
    if options.format == "table":
        return _table(found, options.count or TABLE_ROWS)
    with _output(options.out) as out:
        count = 0
        for item in islice(found, options.count):
            out.write(json_line(item))
            count += 1
    return count


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    try:
        out = path.open("w", encoding="utf-8")
    except OSError as error:
        raise Trouble(f"{path}: cannot be written: {error.strerror}") from error
    with out:
        yield out


def _parquet(found: History, options: argparse.Namespace) -> int:
    from holdfast.pipeline.past import write_parquet

    return write_parquet(found, options.out, options.count)


def _table(found: History, most: int) -> int:
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    table.add_column("accepted", no_wrap=True)
    for column in ("topic", "attributes", "payload"):
        table.add_column(column, overflow="fold")
    count = 0
    for cells in islice(_cells(found), most):
        table.add_row(*map(foreign, cells))
        count += 1
    OutputConsole().print(table)
    if count == most:
        tell(f"the first {most:,}; --count has more, --format jsonl all")
    return count


def _cells(found: History) -> Iterator[tuple[str, ...]]:
    for item in found:
        if isinstance(item, Gap):
            yield moment_of(item.upto), "-- gap", f"{item.pubend}: {item.reason}", ""
        else:
            attributes = " ".join(f"{name}={value!r}" for name, value in item.attributes.items())
            yield moment_of(item.tick), item.topic, attributes, shown_payload(item.payload)
