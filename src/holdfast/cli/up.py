"""`holdfast up`: the whole network of a file on this machine, as one process per broker, with one log.

Ctrl-C stops it. A broker that ends by itself is reported and ends the whole, with status 1; only one that is killed,
in a network that can bypass it (delta is not 0), is started again, while the others go on.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.cli.children import Children, Death
from holdfast.cli.targets import add_network_arguments, loaded_network
from holdfast.runtime.admin_page import NoAnswer, is_ready, status_page
from holdfast.runtime.logs import FORMATS
from holdfast.runtime.network_document import BROKER_VARIABLES
from holdfast.runtime.network_file import Network

__all__ = ["Brokers", "add_arguments", "wait_ready"]

#: How often a starting broker is asked whether it is ready.
ASK_EVERY_S: Final = 0.05
#: A broker that was killed is started again so much later: one that cannot live must not keep the machine busy.
START_AGAIN_AFTER_S: Final = 1.0
CLI: Final = "holdfast.cli.main"


def add_arguments(commands: Any) -> None:
    """`holdfast up [--network FILE] [--set KEY=VALUE] [--log-format text|json]`."""
    command = commands.add_parser("up", help="run all brokers of a network file here, until Ctrl-C")
    add_network_arguments(command)
    command.add_argument("--log-format", choices=FORMATS, default="text", help="[text]")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the network until it is stopped, or one of its brokers ends."""
    network = loaded_network(options)
    death = asyncio.run(_run(network, options))
    if death is None:
        return 0
    sys.stderr.write(f"holdfast: {death}; the others were stopped\n")
    return 1


async def _run(network: Network, options: argparse.Namespace) -> Death | None:
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, told_to_stop.set)
    log = _Log(network, told_to_stop)
    stopping = asyncio.create_task(told_to_stop.wait())
    async with Children(log.write) as children:
        flags = [flag for given in options.set for flag in ("--set", given)]
        # Where one broker listens is not where all of them do.
        environment = {name: text for name, text in os.environ.items() if name not in BROKER_VARIABLES}
        brokers = Brokers(children, network, [*flags, "--log-format", options.log_format], environment)
        await brokers.start_all()
        dying = asyncio.create_task(_until_one_ends(brokers, log))
        announcing = asyncio.create_task(_announce(brokers, log))
        await asyncio.wait([stopping, dying], return_when=asyncio.FIRST_COMPLETED)
        announcing.cancel()
        death = dying.result() if dying.done() and not told_to_stop.is_set() else None
        dying.cancel()
        stopping.cancel()
        log.write("up", f"stopping: {death or 'told to'}")
    return death


class Brokers:
    """One process for each broker of a file; ``flags`` and ``environment`` are the same for all."""

    def __init__(
        self, children: Children, network: Network, flags: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.children = children
        self.network = network
        self.names = [broker.name for broker in network.brokers]
        self._flags = flags
        self._environment = environment

    async def start_all(self) -> None:
        """Start them, in the order of the file."""
        for name in self.names:
            await self.start(name)

    async def start(self, name: str) -> None:
        """Start one, or one that has ended again."""
        place = ["--network", str(self.network.path), "--leash", "{leash}"]
        await self.children.start(name, CLI, ["broker", name, *place, *self._flags], self._environment)


async def _until_one_ends(brokers: Brokers, log: _Log) -> Death:
    """Wait until a broker ends that is not started again: the others need it, or it has refused to run."""
    while True:
        death = await brokers.children.first_death(*brokers.names)
        if not brokers.network.delta or death.status >= 0:
            return death
        log.write("up", f"{death}; it is started again")
        await asyncio.sleep(START_AGAIN_AFTER_S)
        await brokers.start(death.name)


async def wait_ready(network: Network) -> None:
    """Wait until every broker with an admin port is ready for clients."""
    for broker in network.brokers:
        while broker.admin is not None and not await is_ready(broker.admin):
            await asyncio.sleep(ASK_EVERY_S)


async def _announce(brokers: Brokers, log: _Log) -> None:
    network = brokers.network
    while not await _are_ours(brokers):
        await asyncio.sleep(ASK_EVERY_S)
    await wait_ready(network)
    count = len(network.brokers)
    are = f"{count} brokers are" if count > 1 else "1 broker is"
    url = f"holdfast://{network.brokers[0].address}"
    log.write("up", f"network {network.name}: {are} ready; connect to {url}; Ctrl-C stops")


async def _are_ours(brokers: Brokers) -> bool:
    """Whether those who answer are our processes: others may be there on the same ports, and ours will not be."""
    for broker in brokers.network.brokers:
        try:
            page = None if broker.admin is None else await status_page(broker.admin)
        except NoAnswer:
            return False
        if page is not None and page["process"]["pid"] != brokers.children.pid(broker.name):
            return False
    return True


class _Log:
    """One log of all, each line with who wrote it; when nobody reads it any more, we stop."""

    def __init__(self, network: Network, told_to_stop: asyncio.Event) -> None:
        self._width = max(len(broker.name) for broker in network.brokers)
        self._told_to_stop = told_to_stop

    def write(self, name: str, line: str) -> None:
        """One line."""
        try:
            sys.stdout.write(f"{name:<{self._width}} | {line}\n")
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._told_to_stop.set()
