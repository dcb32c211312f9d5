"""`holdfast derive QUERY --into STREAM`: a query over streams, run for ever, and published; see `docs/derive.md`."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.arguments import count, seconds
from holdfast.cli.connection import tell
from holdfast.cli.failure import Failure, Trouble, decode, read_bytes
from holdfast.cli.targets import network_file
from holdfast.cli.termination import terminated_like_interrupted
from holdfast.cli.words import counted, listed, plain
from holdfast.errors import CallersFault, EnvironmentsFault
from holdfast.pipeline.history import check_installed

if TYPE_CHECKING:
    from holdfast.pipeline.derive.run import Batch, Wanted

__all__ = ["add_arguments"]

EVERY_SECONDS: Final = 2.0
BATCH_EVENTS: Final = 100_000
AGAIN_SECONDS: Final = 5.0


def add_arguments(commands: Any) -> None:
    """`holdfast derive QUERY --into STREAM [--topic TOPIC] [--checkpoint FOLDER] [--once] …`."""
    command = commands.add_parser(
        "derive",
        help="a query over streams, whose results are a stream",
        description="Runs a SELECT of Spark SQL over durable streams, which are tables under their names, for ever, and"
        " publishes each row of its result once. Stopped or killed, the same command goes on where it was.",
    )
    command.add_argument("query", type=Path, metavar="QUERY", help="a file with one SELECT")
    command.add_argument(
        "--into", required=True, metavar="STREAM", help="the durable stream the results go to"
    )
    command.add_argument("--topic", metavar="TOPIC", help="of all results [their column topic]")
    command.add_argument(
        "--checkpoint", type=Path, metavar="FOLDER", help="where its progress is kept [QUERY.checkpoint]"
    )
    command.add_argument(
        "--since",
        default="earliest",
        metavar="TIME",
        help="where it begins: earliest, latest, or a time such as 2026-01-31T12:00:00Z [earliest]",
    )
    command.add_argument("--once", action="store_true", help="end when it has done what is there now")
    command.add_argument(
        "--every",
        type=seconds,
        default=EVERY_SECONDS,
        metavar="SECONDS",
        help=f"how often to look for more [{EVERY_SECONDS:g}]",
    )
    command.add_argument(
        "--batch",
        type=count,
        default=BATCH_EVENTS,
        metavar="N",
        help=f"at most so many events of a stream at a time [{BATCH_EVENTS}]",
    )
    command.add_argument(
        "--on-gap", choices=("fail", "ignore"), default="fail", help="what to do where events are lost [fail]"
    )
    command.add_argument(
        "--subscription",
        metavar="NAME",
        help="have the logs keep what was not read yet, by a durable subscription NAME-STREAM for each stream",
    )
    default = network_file()
    command.add_argument("--network", type=Path, default=default, metavar="FILE", help=f"[{default}]")
    command.add_argument(
        "--master", metavar="URL", help="the Spark to use (default: one inside this process)"
    )
    command.add_argument(
        "--archive",
        type=Path,
        metavar="FILE",
        help="for executors without Holdfast; see `holdfast pack-spark`",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Derive, until it is done or interrupted."""
    text = decode(read_bytes(options.query), str(options.query), 1)
    try:
        check_installed("pyspark")
        with terminated_like_interrupted():
            return _interruptible(_wanted(options, text), options)
    except CallersFault as error:
        raise Failure(plain(str(error))) from error
    except EnvironmentsFault as error:
        raise Trouble(plain(str(error))) from error


def _wanted(options: argparse.Namespace, text: str) -> Wanted:
    from holdfast.pipeline.derive.query import Query
    from holdfast.pipeline.derive.run import Wanted, prepare
    from holdfast.pipeline.origins import network_at

    wanted = Wanted(
        Query(options.query, text, network_at(options.network)),
        options.into,
        options.topic,
        options.checkpoint or options.query.with_suffix(".checkpoint"),
        options.since,
        None if options.once else options.every,
        options.on_gap,
        options.subscription,
        options.batch,
    )
    prepare(wanted)
    return wanted


def _interruptible(wanted: Wanted, options: argparse.Namespace) -> int:
    """Ctrl-C asks for an end between two calls of Spark: one that is broken off leaves its connection unusable."""
    stopping = Event()
    with ThreadPoolExecutor(1) as thread:
        work = thread.submit(_derived, wanted, options, stopping)
        try:
            return work.result()
        except KeyboardInterrupt:
            tell("stopping")
            stopping.set()
            work.result()
            raise


def _derived(wanted: Wanted, options: argparse.Namespace, stopping: Event) -> int:
    from holdfast.pipeline.derive.checkpoint import held_checkpoint
    from holdfast.pipeline.derive.errors import Derailed
    from holdfast.pipeline.derive.run import follow, start
    from holdfast.pipeline.sessions import register
    from holdfast.pipeline.spark_session import spark_session

    with held_checkpoint(wanted.checkpoint, wanted.begun):
        tell("starting Spark")
        with spark_session(options.master, options.archive) as spark:
            register(spark)
            while not stopping.is_set():
                query = start(spark, wanted)
                _tell_begun(wanted, query.id)
                try:
                    follow(query, _told, stopping)
                    break
                except Derailed as error:
                    if options.once or not error.is_passing:
                        raise
                    tell(f"{error}; tried again in {AGAIN_SECONDS:g} s")
                    stopping.wait(AGAIN_SECONDS)
                finally:
                    query.stop()
    return 0


def _tell_begun(wanted: Wanted, publisher: str) -> None:
    read = listed([each.name for each in wanted.query.streams])
    tell(f"{read} into {wanted.into}, published by {publisher}; checkpoint {wanted.checkpoint}")


def _told(batch: Batch) -> None:
    results = "" if batch.results is None else f", {counted(batch.results, 'result')}"
    upto = f", all up to {batch.watermark}" if batch.watermark else ""
    sys.stdout.write(f"batch {batch.number}: {counted(batch.events, 'event')}{results}{upto}\n")
    sys.stdout.flush()
    if batch.late:
        tell(f"batch {batch.number}: {counted(batch.late, 'row')} came too late and were left out")
