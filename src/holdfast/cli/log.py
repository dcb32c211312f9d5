"""`holdfast log verify|dump|stat DIR`: look into a log without its broker, running or not; nothing is changed.

Exit status 1 if anything is damaged. A torn tail is none: it is what a crash leaves, and the next start cuts it off;
unless the broker's tables know that it was whole (``log_ends``). Tables that cannot say are damage, too;
where there are none, somebody has copied the log alone.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from holdfast.cli.arguments import index
from holdfast.cli.console import OutputConsole
from holdfast.cli.failure import Failure
from holdfast.cli.log_ends import KnownEnds, known_ends
from holdfast.cli.words import counted
from holdfast.errors import EnvironmentsFault
from holdfast.runtime.real_store import TABLES_FILE
from holdfast.storage.block import INDEX_MAX, Batch
from holdfast.storage.damage import Damage
from holdfast.storage.manifest import MANIFEST
from holdfast.storage.reader import LogReader
from holdfast.storage.real_files import RealFiles
from holdfast.storage.segment import Segment
from holdfast.storage.view import Chopped

__all__ = ["add_arguments"]

PREVIEW_BYTES: Final = 48


def add_arguments(commands: Any) -> None:
    """`holdfast log verify|dump|stat DIR [--output json]`."""
    group = commands.add_parser("log", help="verify, dump or measure a log on disk")
    verbs = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb, run, said in (
        ("verify", verify, "read every byte, and name what is damaged"),
        ("dump", dump, "every record in order, and every hole in its place"),
        ("stat", stat, "what the log and each of its segments hold"),
    ):
        parser = verbs.add_parser(verb, help=said)
        where = "the folder with the log's segments" + (
            ", or one with logs below" if verb == "verify" else ""
        )
        parser.add_argument("folder", metavar="DIR", type=Path, help=where)
        parser.add_argument("--output", choices=["text", "json"], default="text")
        parser.set_defaults(run=_told(run))
        if verb == "dump":
            parser.add_argument(
                "--after", metavar="INDEX", type=index, default=0, help="only records above this index"
            )
            parser.add_argument(
                "--through",
                metavar="INDEX",
                type=index,
                default=INDEX_MAX,
                help="only records up to this index",
            )


def _told(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """What the system refuses of a folder is said as what it refuses of a file is."""

    def told(options: argparse.Namespace) -> int:
        try:
            return run(options)
        except OSError as error:
            if error.filename is None:  # our output
                raise
            raise Failure(f"{error.filename}: {error.strerror}") from error

    return told


def verify(options: argparse.Namespace) -> int:
    """Read a whole log, or all logs below a folder; 1 if anything is damaged."""
    folder: Path = options.folder
    shelves = [] if _is_log(folder) else _shelves(folder)
    if shelves:
        return max(_verify_shelf(each, options.output) for each in shelves)
    known = known_ends(folder.absolute().parent)
    reader = _opened(folder, deep=True)
    if options.output == "text":
        _tell_unknown(known)
    return _verify(folder, reader, known, options.output)


def _verify_shelf(shelf: Path, output: str) -> int:
    """All logs of a broker, and those that its tables know of and that are not there."""
    known = known_ends(shelf)
    logs = _logs_in(shelf)
    lost = {name: end for name, end in sorted(known.by_log.items()) if end and not _is_log(shelf / name)}
    if output == "text":
        _tell_unknown(known)
    statuses = [_verify(each, _opened(each, deep=True), known, output) for each in logs]
    for name, end in lost.items():
        _say_lost(shelf / name, end, output)
    if not logs and not lost:
        if output == "text":
            sys.stdout.write(f"{shelf}: no log yet\n")
        elif known.is_damage:
            _say(_nothing_in(shelf) | {"end_lost": None, "end_unknown": known.unknown})
    return max([*statuses, int(known.is_damage or bool(lost))])


def _tell_unknown(known: KnownEnds) -> None:
    if known.unknown is not None:
        kind = "damaged" if known.is_damage else "unknown"
        sys.stdout.write(f"{kind}   whether the end of a log is whole is not known: {known.unknown}\n")


def _say_lost(folder: Path, end: int, output: str) -> None:
    if output == "json":
        _say(_nothing_in(folder) | {"end_lost": {"after": 0, "upto": end}, "end_unknown": None})
    else:
        sys.stdout.write(f"damaged   the log is lost: the broker's tables know that it went up to {end}\n")
        sys.stdout.write(f"{folder}: nothing is left\n")


def _nothing_in(folder: Path) -> dict[str, object]:
    return {"folder": str(folder), "segments": 0, "records": 0, "damages": [], "torn_tail": None}


def _verify(folder: Path, reader: LogReader, known: KnownEnds, output: str) -> int:
    records = sum(segment.records for segment in reader.view.segments)
    last, end = reader.view.last_index, known.of(folder.absolute().name)
    damages = len(reader.damages) + (last < end)
    if output == "json":
        _say(
            {
                "folder": str(folder),
                "segments": len(reader.view.segments),
                "records": records,
                "damages": [_damage_json(damage) for damage in reader.damages],
                "torn_tail": None if reader.torn is None else str(reader.torn),
                "end_lost": {"after": last, "upto": end} if last < end else None,
                "end_unknown": known.unknown,
            }
        )
    else:
        for damage in reader.damages:
            sys.stdout.write(f"damaged   {damage}\n")
        if reader.torn is not None:
            sys.stdout.write(f"torn      {reader.torn}\n")
        if last < end:
            sys.stdout.write(f"damaged   {_end_lost(last, end)}\n")
        whole = "nothing else is damaged" if known.is_damage else "nothing is damaged"
        verdict = counted(damages, "place is damaged", "places are damaged") if damages else whole
        segments = counted(len(reader.view.segments), "segment")
        sys.stdout.write(f"{folder}: {segments}, {counted(records, 'record')}; {verdict}\n")
    return int(damages > 0 or known.is_damage)


def _end_lost(last: int, end: int) -> str:
    return f"the end is lost: the log ends at {last}, and the broker's tables know that it went up to {end}"


def dump(options: argparse.Namespace) -> int:
    """Write out records and holes; 1 if anything there is damaged, as ``verify`` finds it."""
    if options.after > options.through:
        raise Failure(f"--after {options.after} is above --through {options.through}: nothing is between")
    known = known_ends(options.folder.absolute().parent)
    reader = _opened(options.folder)
    last, end = reader.view.last_index, known.of(options.folder.absolute().name)
    in_json = options.output == "json"
    is_damaged = False
    for item in _with_damaged_files(reader, options.after, options.through):
        is_damaged |= isinstance(item, Damage)
        for line in _json_lines(item) if in_json else _text_lines(item):
            sys.stdout.write(line + "\n")
    if max(last, options.after) < min(end, options.through):
        is_damaged = True
        if in_json:
            _say({"end_lost": {"after": last, "upto": end}})
        else:
            sys.stdout.write(f"damaged   {_end_lost(last, end)}\n")
    if known.is_damage and last < options.through:
        is_damaged = True
        if in_json:
            _say({"end_unknown": known.unknown})
        else:
            _tell_unknown(known)
    return int(is_damaged)


def _with_damaged_files(reader: LogReader, after: int, through: int) -> Iterator[Batch | Damage | Chopped]:
    """What a scan comes upon, behind what is broken and has no place among the records: a file's header, for one."""
    yield from (damage for damage in reader.damages if not damage.loses_records)
    yield from reader.view.scan(after, through)


def stat(options: argparse.Namespace) -> int:
    """What the log and its segments hold, by their zone maps."""
    reader = _opened(options.folder)
    view = reader.view
    summary = {
        "identity": reader.identity.hex(),
        "records": sum(segment.records for segment in view.segments),
        "bytes": view.size,
        "chopped": view.chopped,
        "first_index": view.first_index,
        "last_index": view.last_index,
        "damages": len(reader.damages),
    }
    if options.output == "json":
        _say(summary | {"segments": [_segment_json(segment) for segment in view.segments]})
    else:
        for name, value in summary.items():
            said = value if isinstance(value, str) else "none" if value is None else f"{value:,}"
            sys.stdout.write(f"{name.replace('_', ' '):12}{said}\n")
        if view.segments:
            OutputConsole().print(_table(view.segments))
    return 1 if reader.damages else 0


def _is_log(folder: Path) -> bool:
    return (folder / MANIFEST).exists() or any(folder.glob("*.segment"))


def _shelves(folder: Path) -> list[Path]:
    """Where logs lie: the folder ``streams`` of a broker's data, of that of a broker, or of that of all brokers."""
    places = [folder, folder / "streams", *(each / "streams" for each in _inside(folder))]
    return [each for each in places if (each / TABLES_FILE).exists() or _logs_in(each)]


def _logs_in(shelf: Path) -> list[Path]:
    return [each for each in _inside(shelf) if _is_log(each)]


def _inside(folder: Path) -> list[Path]:
    """Unlike ``glob`` this does not pass over what may not be read."""
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _opened(folder: Path, *, deep: bool = False) -> LogReader:
    if not folder.is_dir():
        problem = "a file, not a folder" if folder.exists() else "no such folder"
        raise Failure(f"{folder}: {problem}; expected one with the segments of a log")
    below = [] if _is_log(folder) else [log for shelf in _shelves(folder) for log in _logs_in(shelf)]
    if below:
        raise Failure(f"{folder}: no log, but a folder with logs below; expected one of\n{_lines(below)}")
    try:
        return LogReader(RealFiles(folder, write=False), unsynced=True, deep=deep)
    except EnvironmentsFault as fault:
        raise Failure(f"{folder}: {fault}") from fault


def _lines(folders: list[Path]) -> str:
    return "\n".join(f"    {folder}" for folder in folders)


def _text_lines(item: Batch | Damage | Chopped) -> Iterator[str]:
    if isinstance(item, Damage):
        yield f"damaged   {item}"
    elif isinstance(item, Chopped):
        yield f"chopped   records up to {item.through} were released"
    else:
        time = _moment(item.time)
        for index, record in zip(item.indexes, item.records, strict=True):
            preview = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in record[:PREVIEW_BYTES])
            yield f"{index:20} {time} {len(record):8} bytes  {preview}{'…' if len(record) > PREVIEW_BYTES else ''}"


def _json_lines(item: Batch | Damage | Chopped) -> Iterator[str]:
    if isinstance(item, Damage):
        yield json.dumps({"damage": _damage_json(item)})
    elif isinstance(item, Chopped):
        yield json.dumps({"chopped": item.through})
    else:
        for index, record in zip(item.indexes, item.records, strict=True):
            data = base64.b64encode(record).decode("ascii")
            yield json.dumps({"index": index, "time": item.time, "base64": data})


def _damage_json(damage: Damage) -> dict[str, object]:
    return {
        "file": damage.file,
        "offset": damage.offset,
        "length": damage.length,
        "first_lost": damage.first or None,
        "last_lost": damage.last or None,
        "problem": damage.problem,
    }


def _segment_json(segment: Segment) -> dict[str, object]:
    return {
        "file": segment.name,
        "sealed": segment.is_sealed,
        "bytes": segment.size,
        "records": segment.records,
        "first_index": segment.first or None,
        "last_index": segment.last if segment.records else None,
        "earliest_time": segment.earliest,
        "latest_time": segment.latest,
    }


def _table(segments: list[Segment]) -> Table:
    table = Table("segment", box=None, padding=(0, 2, 0, 0))
    for column in ("records", "first", "last", "bytes"):
        table.add_column(column, justify="right")
    table.add_column("state")
    for segment in segments:
        first, last = (str(segment.first), str(segment.last)) if segment.records else ("", "")
        state = "sealed" if segment.is_sealed else "open"
        table.add_row(segment.name, f"{segment.records:,}", first, last, f"{segment.size:,}", state)
    return table


def _moment(time: int) -> str:
    """A writer's nanoseconds since 1970, as people write them; other clocks' as they are."""
    try:
        return datetime.fromtimestamp(time // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(time)


def _say(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
