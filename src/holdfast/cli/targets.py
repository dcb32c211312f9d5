"""What several commands ask alike: which network file, which address, and how a coroutine is run to its end."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from holdfast.cli.failure import Failure, Trouble
from holdfast.cli.init import NETWORK_FILE
from holdfast.client.errors import TakenOver
from holdfast.errors import CallersFault, EnvironmentsFault
from holdfast.runtime.addresses import BadAddress, parse_address
from holdfast.runtime.network_document import overrides_from_environment, overrides_from_flags
from holdfast.runtime.network_file import Network, NetworkFileError, read_network

__all__ = [
    "Target",
    "add_network_arguments",
    "add_set_argument",
    "add_url_arguments",
    "loaded_network",
    "network_file",
    "run_to_end",
    "target_of",
]

#: The first broker of the file that `holdfast init` writes.
DEFAULT_URL: Final = "holdfast://127.0.0.1:7000"

Result = TypeVar("Result")


class Target(NamedTuple):
    """Where a client connects; ``insecure``: also if that is beyond this machine."""

    url: str
    insecure: bool


def network_file() -> Path:
    """Where the network file is, unless something else is said."""
    return Path(os.environ.get("HOLDFAST_NETWORK") or NETWORK_FILE)


def add_network_arguments(command: argparse.ArgumentParser) -> None:
    """``--network FILE`` and ``--set KEY=VALUE``."""
    default = network_file()
    command.add_argument("--network", type=Path, default=default, metavar="FILE", help=f"[{default}]")
    add_set_argument(command)


def add_set_argument(command: argparse.ArgumentParser) -> None:
    """``--set KEY=VALUE``."""
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="above the file, such as limits.clients_max=5 or broker.NAME.listen=127.0.0.1:7005; repeatable",
    )


def add_url_arguments(command: argparse.ArgumentParser) -> None:
    """``--url URL`` and ``--insecure``."""
    where = f"HOLDFAST_URL, the first broker of {NETWORK_FILE} here, or {DEFAULT_URL}"
    command.add_argument("--url", metavar="URL", help=f"where the network is [{where}]")
    command.add_argument(
        "--insecure",
        action="store_true",
        help="also beyond this machine, where others can read and forge [HOLDFAST_INSECURE, or what that file says]",
    )


def loaded_network(options: argparse.Namespace, broker: str | None = None) -> Network:
    """The network file with what stands above it; ``broker`` is the one this process runs.

    :raises Failure: with everything that is wrong.
    """
    try:
        above = [*overrides_from_environment(os.environ, broker), *overrides_from_flags(options.set)]
        return read_network(options.network, above)
    except NetworkFileError as error:
        count = len(error.problems)
        raise Failure(f"{count} problems\n{error}" if count > 1 else str(error)) from error


def target_of(options: argparse.Namespace) -> Target:
    """Where a client is to connect; what the network file says of it counts, unless a URL was given.

    :raises Failure: if the URL is empty, or a network file is there to say so and cannot be used.
    """
    if options.url == "":
        raise Failure(f"--url is empty; expected one such as {DEFAULT_URL}")
    given: str | None = options.url or os.environ.get("HOLDFAST_URL")
    file = network_file()
    if given or not file.exists():
        url, insecure = given or DEFAULT_URL, options.insecure or _is_insecure(os.environ)
        if not insecure:
            _refuse_beyond(url)
        return Target(url, insecure)
    try:
        network = read_network(file, overrides_from_environment(os.environ))
    except NetworkFileError as error:
        raise Failure(f"{error}\n(or say --url)") from error
    return Target(f"holdfast://{network.brokers[0].address}", options.insecure or network.insecure)


def _refuse_beyond(url: str) -> None:
    """An address beyond this machine is refused as the user of a command can allow it; what is no URL, elsewhere."""
    with suppress(BadAddress):
        if not parse_address(url.removeprefix("holdfast://"), insecure=True).is_loopback:
            reason = "only loopback is allowed, since there is no TLS yet, and others can read and forge"
            raise Failure(f"{url} is beyond this machine: {reason}; --insecure allows it all the same")


def _is_insecure(environment: Mapping[str, str]) -> bool:
    said = environment.get("HOLDFAST_INSECURE") or "false"
    if said not in ("true", "false"):
        raise Failure(f"HOLDFAST_INSECURE is {said!r}; expected true or false")
    return said == "true"


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a client's work; SIGTERM ends it as cleanly as Ctrl-C does.

    :raises Failure: if what it was given can never work.
    :raises Trouble: if the network did not do its part.
    """

    async def with_signals() -> Result:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(with_signals())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except CallersFault as error:
        raise Failure(str(error)) from error
    except TakenOver as error:
        if error.durable is not None:
            raise Trouble(str(error)) from error
        raise Trouble(f"{error} and has taken over; give one of the two another --name") from error
    except EnvironmentsFault as error:
        raise Trouble(str(error)) from error
