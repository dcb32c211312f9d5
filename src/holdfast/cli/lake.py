"""`holdfast lake run|compact|ls|show`: every durable stream as a table of Delta Lake; see `docs/lake.md`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.connection import tell
from holdfast.cli.failure import Failure, Trouble
from holdfast.cli.lake_view import list_tables, moment_of, show_table
from holdfast.cli.targets import add_network_arguments, loaded_network
from holdfast.cli.words import counted, plain, sized
from holdfast.errors import CallersFault, EnvironmentsFault
from holdfast.messages.streams import Guarantee
from holdfast.pipeline.history import check_installed
from holdfast.runtime.network_file import Network, StreamEntry

if TYPE_CHECKING:
    from holdfast.pipeline.lake.keeping import Keeping
    from holdfast.pipeline.lake.run import Round
    from holdfast.pipeline.lake.table import LakeTable
    from holdfast.pipeline.origins import Origins

__all__ = ["add_arguments", "logged_streams"]

EVERY_SECONDS: Final = 10.0
GRACE_HOURS: Final = 24


def add_arguments(commands: Any) -> None:
    """`holdfast lake run [--once]`, `compact`, `ls`, `show STREAM`, each with `--network FILE`."""
    command = commands.add_parser("lake", help="durable streams as tables that other engines read too")
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    run = actions.add_parser(
        "run",
        help="take what the logs have into the tables, again and again",
        description="Takes what is stable in the logs into a table for each stream, below the lake's folder. Killed at"
        " any moment it loses nothing and repeats nothing: the tables say how far they go.",
    )
    compact = actions.add_parser("compact", help="put small files together, and delete what nobody needs")
    ls = actions.add_parser("ls", help="all tables: how much is in them, and up to when")
    show = actions.add_parser("show", help="one table: each of its pubends, its columns, its last commits")
    for parser, work in ((run, _run), (compact, _compact), (ls, _ls), (show, _show)):
        add_network_arguments(parser)
        parser.set_defaults(run=work)
        if parser in (run, compact):
            parser.add_argument(
                "--stream", action="append", metavar="NAME", help="only this one; repeatable [all]"
            )
        else:
            parser.add_argument("--output", choices=["text", "json"], default="text")
    run.add_argument("--once", action="store_true", help="end when the tables have what is stable now")
    run.add_argument(
        "--every",
        type=_seconds,
        default=EVERY_SECONDS,
        metavar="SECONDS",
        help=f"how often to look for more [{EVERY_SECONDS:g}]",
    )
    run.add_argument(
        "--subscription",
        metavar="NAME",
        help="have the logs keep what is not in the tables yet, by a durable subscription NAME-STREAM for each stream",
    )
    run.add_argument(
        "--local-segments", action="store_true", help="read the brokers' folders, and ask no log reader"
    )
    compact.add_argument(
        "--grace",
        type=_hours,
        default=GRACE_HOURS,
        metavar="HOURS",
        help=f"how long who reads an older version of a table finds its files [{GRACE_HOURS}]",
    )
    show.add_argument("name", metavar="STREAM")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; expected seconds, up to 86400")
    return seconds


def _hours(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is no time; expected whole hours, from 1 to 10000")
    return int(text)


def logged_streams(network: Network, names: list[str] | None) -> list[StreamEntry]:
    """The durable streams of a network, or those of them that are named.

    :raises Failure: if one is not there, or not durable.
    """
    found = {stream.name: stream for stream in network.streams if stream.guarantee is Guarantee.DURABLE}
    for name in names or ():
        if name not in found:
            raise Failure(
                f"there is no durable stream {name!r} in {network.path}; expected {', '.join(found)}"
            )
    return [stream for name, stream in found.items() if not names or name in names]


def _guarded(work: Callable[[], int]) -> int:
    try:
        check_installed()
        return work()
    except CallersFault as error:
        raise Failure(plain(str(error))) from error
    except EnvironmentsFault as error:
        raise Trouble(plain(str(error))) from error


# run


def _run(options: argparse.Namespace) -> int:
    return _guarded(lambda: _follow(options))


def _follow(options: argparse.Namespace) -> int:
    followed = list(_followed(options))
    while True:
        is_more = False
        for each in followed:
            try:
                is_more |= each.round()
            except EnvironmentsFault as error:
                if options.once:
                    raise
                tell(f"{error}; tried again in {options.every:g} s")
                each.table.refresh()
        if not is_more:
            if options.once:
                return 0
            time.sleep(options.every)


@dataclass(slots=True)
class _Followed:
    """A stream and its table."""

    table: LakeTable
    origins: Origins
    keeping: Keeping | None

    def round(self) -> bool:
        """Whether there was something new."""
        from holdfast.pipeline.lake.run import take_round

        done = take_round(self.table, self.origins)
        if self.keeping is not None:
            self.keeping.acknowledge()
        if done is not None:
            sys.stdout.write(f"{plain(_told(self.table.stream, done))}\n")
            sys.stdout.flush()
            for problem in done.problems.values():
                tell(str(problem))
        return done is not None


def _followed(options: argparse.Namespace) -> Iterator[_Followed]:
    from holdfast.pipeline.lake.keeping import Keeping
    from holdfast.pipeline.lake.table import LakeTable
    from holdfast.pipeline.origins import origins_in

    network = loaded_network(options)
    for stream in logged_streams(network, options.stream):
        origins = origins_in(network, stream.name, local=options.local_segments)
        table = LakeTable.made(network.lake / stream.name, stream.name, stream.attributes)
        keeping = None
        if options.subscription is not None:
            keeping = Keeping(network, table, origins, options.subscription)
            keeping.begin()
        yield _Followed(table, origins, keeping)


def _told(stream: str, done: Round) -> str:
    upto = max(upto for _, upto in done.ranges.values())
    told = f"{stream}: {counted(done.rows, 'row')}, {sized(done.size)}, up to {moment_of(upto)}: version {done.version}"
    if done.gaps:
        told += f"; {counted(done.gaps, 'gap')}"
    for name, count in sorted(done.mistyped.items()):
        told += f"; {counted(count, 'value')} of another type in {name}"
    return told


# compact


def _compact(options: argparse.Namespace) -> int:
    return _guarded(lambda: _compact_all(options))


def _compact_all(options: argparse.Namespace) -> int:
    from holdfast.pipeline.lake.compact import compact

    for stream, table in _tables(loaded_network(options), options.stream):
        if table is None:
            tell(f"{stream.name} has no table yet")
            continue
        made = compact(table)
        gone = table.vacuum(options.grace)
        table.checkpoint()
        files = (
            f"{counted(made.before, 'file')} into {counted(made.after, 'file')}"
            if made.before
            else "nothing to do"
        )
        sys.stdout.write(f"{stream.name}: {files}; {counted(len(gone), 'old file')} deleted\n")
    return 0


def _tables(
    network: Network, names: list[str] | None = None
) -> Iterator[tuple[StreamEntry, LakeTable | None]]:
    from holdfast.pipeline.lake.errors import NoTable
    from holdfast.pipeline.lake.table import LakeTable

    for stream in logged_streams(network, names):
        try:
            yield stream, LakeTable(network.lake / stream.name, stream.name)
        except NoTable:
            yield stream, None


# ls and show


def _ls(options: argparse.Namespace) -> int:
    return _guarded(lambda: _list(options))


def _list(options: argparse.Namespace) -> int:
    network = loaded_network(options)
    found = [(stream.name, table) for stream, table in _tables(network)]
    list_tables(str(network.lake), found, options.output)
    return 0


def _show(options: argparse.Namespace) -> int:
    return _guarded(lambda: _show_one(options))


def _show_one(options: argparse.Namespace) -> int:
    [(stream, table)] = _tables(loaded_network(options), [options.name])
    if table is None:
        raise Failure(f"{stream.name} has no table yet; 'holdfast lake run' makes it")
    show_table(table, options.output)
    return 0
