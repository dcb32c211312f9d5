"""`holdfast match FILTERS EVENTS`: which filters match which events, as `contracts.md` §3 has it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from holdfast.cli.failure import Failure, decode, read_bytes
from holdfast.cli.filter import indented
from holdfast.cli.progress import progress
from holdfast.errors import FilterError, InvalidEvent
from holdfast.events.event import Event
from holdfast.events.json_form import event_from_json
from holdfast.events.strict_json import places
from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.matching.engine import new_index

__all__ = ["add_arguments"]

_READ_BYTES = 1 << 18


def add_arguments(commands: Any) -> None:
    """`holdfast match FILTERS EVENTS`."""
    command = commands.add_parser(
        "match",
        help="match a file of filters against a file of events",
        description="Prints one JSON line per event: its index from 0, and the line numbers of the filters that match.",
    )
    command.add_argument(
        "filters", type=Path, metavar="FILTERS", help="one filter per line; blank and -- lines skipped"
    )
    command.add_argument(
        "events", type=Path, metavar="EVENTS", help="events as JSON Lines; - reads standard input"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Match, and print as the events come."""
    index = new_index()
    lines: list[int] = []
    for line, filter in read_filters(options.filters):
        subscription = index.add(filter)
        assert subscription == len(lines)
        lines.append(line)
    name = "standard input" if str(options.events) == "-" else str(options.events)
    count = 0
    with opened(options.events) as source, progress() as shown:
        task = shown.add_task("events", total=None)
        for batch, failure in batches(source, name):
            for matched in index.match(batch):
                # Subscriptions were numbered in the order of the lines, so these ascend too.
                result = {"event": count, "matches": [lines[i] for i in matched]}
                sys.stdout.write(json.dumps(result) + "\n")
                count += 1
            sys.stdout.flush()
            shown.update(task, completed=count)
            if failure is not None:
                raise failure
    return 0


def read_filters(path: Path) -> list[tuple[int, Filter]]:
    """The filters of a file with their line numbers from 1.

    :raises Failure: naming every bad filter.
    """
    filters: list[tuple[int, Filter]] = []
    problems: list[str] = []
    for number, line in enumerate(read_bytes(path).split(b"\n"), start=1):
        try:
            text = decode(line, str(path), number)
            if text.strip() and not text.startswith("--"):
                filters.append((number, parse_filter(text)))
        except Failure as failure:
            problems.append(f"{failure}\n")
        except FilterError as error:
            problems.append(
                f"{path}, line {number}, column {error.column}: {error.summary}\n\n{indented(error.pointed())}\n"
            )
    if problems:
        raise Failure("\n".join([f"{len(problems)} bad filter{'s'[: len(problems) > 1]}", *problems]))
    return filters


def opened(path: Path) -> BinaryIO:
    """The file, or standard input for ``-``."""
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        return path.open("rb")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


def batches(source: BinaryIO, name: str) -> Iterator[tuple[list[Event], Failure | None]]:
    """Whatever has arrived since the last batch, as events; a bad one ends them, after those before it."""
    number, rest = 0, b""
    while True:
        data = source.read1(_READ_BYTES) if hasattr(source, "read1") else source.read(_READ_BYTES)
        if not data and not rest:
            return
        *complete, rest = (rest + data).split(b"\n") if data else (rest, b"")
        events: list[Event] = []
        for line in complete:
            number += 1
            if not line.strip():
                continue
            text = ""
            try:
                text = decode(line, name, number)
                events.append(event_from_json(text))
            except InvalidEvent as error:
                yield events, Failure(f"{name}, line {number}, column {column_of(error, text)}: {error}")
                return
            except Failure as failure:
                yield events, failure
                return
        yield events, None


def column_of(error: InvalidEvent, line: str) -> int:
    """Where in its line an event is wrong: where it ceases to be JSON, or where the member stands; else its start."""
    if error.column is not None:
        return error.column
    start = len(line) - len(line.lstrip())
    if error.field == "json":
        return start + 1  # no object, or one that cannot be read
    member, _, name = error.field.partition(".")
    found = [place for place in places(line) if place.name == member]
    if not found:
        return start + 1
    place = found[-1]  # of one that appears twice, the second
    if name and line[place.value] == "{":
        named = [inner for inner in places(line, place.value) if inner.name == name]
        place = named[-1] if named else place
    return place.start + 1
