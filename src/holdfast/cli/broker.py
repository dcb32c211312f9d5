"""`holdfast broker NAME`: one broker of a network file, in this process, until it is told to stop."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from holdfast.cli.children import hold_leash
from holdfast.cli.failure import Failure, Trouble
from holdfast.cli.reader_process import ReaderProcess
from holdfast.cli.targets import add_network_arguments, loaded_network
from holdfast.errors import EnvironmentsFault
from holdfast.pipeline.errors import NotInstalled
from holdfast.pipeline.history import check_installed
from holdfast.runtime import logs
from holdfast.runtime.broker_process import STORE_FOLDER, BrokerService, CannotListen, run_broker
from holdfast.runtime.disk import CannotStore, DamagedFile, next_incarnation
from holdfast.runtime.lake_process import LakeProcess
from holdfast.runtime.log_writer import LogWriter
from holdfast.runtime.network_file import BrokerEntry, Network

__all__ = ["add_arguments"]

LAKE_MODULE: Final = "holdfast.pipeline.lake.feeder"


def add_arguments(commands: Any) -> None:
    """`holdfast broker NAME [--network FILE] [--set KEY=VALUE] [--log-format text|json] [--log-level LEVEL]`."""
    command = commands.add_parser("broker", help="run one broker of a network file, until Ctrl-C")
    command.add_argument("name", metavar="NAME", help="its name in the file")
    add_network_arguments(command)
    command.add_argument(
        "--log-format", choices=logs.FORMATS, help="[HOLDFAST_LOG_FORMAT; or text on a terminal, else json]"
    )
    command.add_argument("--log-level", choices=tuple(logs.LEVELS), default="info", help="[info]")
    command.add_argument("--leash", type=int, help=argparse.SUPPRESS)  # `holdfast up` holds the other end
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the broker; its log goes to standard error."""
    if options.leash is not None:
        hold_leash(options.leash)
    network = loaded_network(options, options.name)
    try:
        entry = network.broker(options.name)
    except KeyError:
        names = ", ".join(broker.name for broker in network.brokers)
        raise Failure(f"{options.network}: there is no broker {options.name!r}; expected {names}") from None
    form = _log_format(options)
    with LogWriter(sys.stderr) as output:
        handler = logs.write_to(output, form=form, level=options.log_level, has_room=output.has_room)
        try:
            settings = network.settings(entry.name, _incarnation(entry))
            with _reader(network, entry, form) if settings.is_durable else nullcontext():
                return run_broker(
                    settings,
                    entry.listen,
                    entry.admin,
                    data=entry.data if settings.is_durable else None,
                    lake=_lake(network) if settings.reads_lake else None,
                    insecure=network.insecure,
                    on_start=_say_listening,
                )
        except CannotListen as error:
            raise Trouble(f"{entry.name}: {error}") from error
        except EnvironmentsFault as error:  # of its disk
            raise Trouble(f"the folder of {entry.name}, {entry.data}: {error}") from error
        finally:
            handler.close()


def _reader(network: Network, entry: BrokerEntry, form: str) -> AbstractContextManager[object]:
    """What serves its logs to Spark, if the file wants that."""
    if entry.reader is None:
        return nullcontext()
    folder = entry.data / STORE_FOLDER
    return ReaderProcess(entry.name, folder, entry.reader, insecure=network.insecure, log_format=form)


def _lake(network: Network) -> LakeProcess:
    """What stands behind its logs.

    :raises Failure: if the packages that read it are missing.
    """
    try:
        check_installed()
    except NotInstalled as error:
        names = ", ".join(stream.name for stream in network.streams if stream.lake)
        raise Failure(f"{network.path}: lake = true ({names}): {error}") from error
    return LakeProcess([sys.executable, "-m", LAKE_MODULE, str(network.lake)])


def _log_format(options: argparse.Namespace) -> str:
    given: str | None = options.log_format or os.environ.get("HOLDFAST_LOG_FORMAT")
    if given is None:
        return "text" if sys.stderr.isatty() else "json"
    if given not in logs.FORMATS:
        raise Failure(f"HOLDFAST_LOG_FORMAT is {given!r}; expected {' or '.join(logs.FORMATS)}")
    return given


def _incarnation(entry: BrokerEntry) -> int:
    try:
        return next_incarnation(entry.data)
    except DamagedFile as error:
        raise Trouble(str(error)) from error
    except CannotStore as error:
        raise Trouble(f"the folder of {entry.name}, {error}") from error


def _say_listening(service: BrokerService) -> None:
    fields = {
        "node": service.broker.name,
        "address": service.listen,
        "admin": service.admin,
        "incarnation": service.broker.settings.incarnation,
    }
    logs.log("info", "listening", fields)
