"""`holdfast demo`: a network of seven brokers here, real processes all of them, with traffic, live; two are killed.

It lives in a temporary folder on free ports of this machine, ends by itself and leaves no process behind. In the end it
says whether every subscriber got all that matches its filter, once and in order; the exit status says it too. What
stays is the scenario, two small files, and a line that runs it again in the simulator.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.live import Live

from holdfast.cli.arguments import seconds
from holdfast.cli.children import Children
from holdfast.cli.console import OutputConsole
from holdfast.cli.demo_figures import Figures
from holdfast.cli.demo_plan import BROKERS, KILLED, Plan, make_network, make_plan
from holdfast.cli.demo_view import picture, plain_line, summary
from holdfast.cli.failure import Trouble
from holdfast.cli.status import ask_once
from holdfast.cli.up import Brokers, wait_ready
from holdfast.clock import SECOND
from holdfast.runtime.network_file import Network
from holdfast.scenarios.commands import Crash, Restart

__all__ = ["add_arguments"]

CLIENTS: Final = "holdfast.cli.demo_clients"
#: How long brokers may take to come back, and then what is on its way to arrive, after the last event was published.
BACK_WITHIN_S: Final = 20.0
ARRIVE_WITHIN_S: Final = 10.0
LOOK_EVERY_S: Final = 0.25
PLAIN_LINE_EVERY_S: Final = 1.0


def add_arguments(commands: Any) -> None:
    """`holdfast demo [--seconds S] [--seed N]`."""
    command = commands.add_parser(
        "demo", help="a network of seven brokers here, with traffic, live; two of them are killed"
    )
    command.add_argument(
        "--seconds", type=seconds, default=10.0, metavar="S", help="how long to publish [10]"
    )
    command.add_argument("--seed", type=int, default=1, metavar="N", help="of the events [1]")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the demo, leave its last picture on the screen, and sum up."""
    console = OutputConsole()
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        network = make_network(Path(folder))
        urls = {broker.name: f"holdfast://{broker.address}" for broker in network.brokers}
        plan = make_plan(urls, options.seconds, options.seed)
        demo = Demo(network, plan, console)
        try:
            asyncio.run(demo.run())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
    console.print(summary(demo.figures))
    if demo.was_interrupted:
        return 130
    console.print(f"The same in the simulator:\n  {_replay(plan)}", soft_wrap=True)
    if not demo.figures.is_right:
        raise Trouble(
            "not everybody got all that matches, once and in order\n" + "\n".join(demo.figures.words)
        )
    console.print("Every subscriber got all that matches its filter, once and in order.")
    return 0


def _replay(plan: Plan) -> str:
    """Write the scenario where it stays; the command that runs it."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-scenario-"))
    files = {"network.txt": plan.configuration_text, "script.txt": plan.script_text}
    for name, text in files.items():
        (folder / name).write_text(text)
    # As it was called: the folder of the command need not be on the path.
    command = (
        sys.argv[0] if Path(sys.argv[0]).name == "holdfast" else f"{sys.executable} -m holdfast.cli.main"
    )
    return f"{command} puppet {' '.join(shlex.quote(str(folder / name)) for name in files)} --sim --check"


class Demo:
    """One run: brokers, then subscribers, then publishers; two brokers go and return; then all of it backwards."""

    def __init__(self, network: Network, plan: Plan, console: Console) -> None:
        self.figures = Figures()
        self.was_interrupted = False
        self._network = network
        self._console = console
        self._plan = plan
        self._changed = asyncio.Event()
        self._started = 0.0
        self._printed = 0.0

    async def run(self) -> None:
        """Until the time is over, or Ctrl-C; a second Ctrl-C does not wait for what is on its way.

        :raises Trouble: if a process ends that should not.
        :raises CancelledError: after the second.
        """
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._interrupt, task)
        async with Children(self._on_line) as children:
            try:
                await self._run(children)
            finally:  # before their brokers, or they wait for receipts in vain
                await children.stop("publishers")
                await children.stop("subscribers")

    def _interrupt(self, task: asyncio.Task[None]) -> None:
        if self.was_interrupted or not self._started:
            task.cancel()
        self.was_interrupted = True
        self._changed.set()

    def _on_line(self, name: str, line: str) -> None:
        self.figures.on_line(name, line, time.monotonic())
        self._changed.set()

    async def _run(self, children: Children) -> None:
        with self._console.status(f"starting {len(BROKERS)} brokers …"):
            environment = {
                name: text for name, text in os.environ.items() if not name.startswith("HOLDFAST_")
            }
            brokers = Brokers(children, self._network, ["--log-level", "error"], environment)
            await brokers.start_all()
            await self._while_alive(wait_ready(self._network), children, *BROKERS)
            await children.start("subscribers", CLIENTS, ["subscribers", self._plan.as_json(), "{leash}"])
            subscribed = self._until(lambda: self.figures.is_subscribed)
            await self._while_alive(subscribed, children, *BROKERS, "subscribers")
        await children.start("publishers", CLIENTS, ["publishers", self._plan.as_json(), "{leash}"])
        self._started = time.monotonic()
        if self._console.is_terminal:
            with Live(console=self._console, auto_refresh=False) as live:
                await self._traffic(brokers, partial(self._draw, live))
        else:
            await self._traffic(brokers, self._print)

    async def _traffic(self, brokers: Brokers, show: Callable[[], None]) -> None:
        """Show what happens until everything is published and has arrived, or does not arrive in time."""
        children = brokers.children
        others = (*(name for name in BROKERS if name not in KILLED), "subscribers")
        faults = asyncio.create_task(self._faults(brokers))
        try:
            await self._while_alive(self._shown(show), children, *others, "publishers")
            if not self.was_interrupted:
                await self._while_alive(self._whole_again(faults), children, *others)
        finally:
            faults.cancel()
        await children.stop("publishers")
        with suppress(TimeoutError):  # the summary says what is lost
            async with asyncio.timeout(ARRIVE_WITHIN_S):
                arrived = self._until(lambda: "publishers" in self.figures.finished and not self.figures.lost)
                await self._while_alive(arrived, children, *others)
        show()

    async def _faults(self, brokers: Brokers) -> None:
        """Kill, and start again, who is to be, when it is time."""
        for at in self._plan.faults:
            await asyncio.sleep(self._started + at.at_ns / SECOND - time.monotonic())
            match at.command:
                case Crash(name):
                    await brokers.children.kill(name)
                    self.figures.on_killed(name, time.monotonic() - self._started)
                    self._tell(f"{name} is killed, with -9")
                case Restart(name):
                    await brokers.start(name)
                    self.figures.on_started_again(name)
                    self._tell(f"{name} is started again, without its memory")

    async def _whole_again(self, faults: asyncio.Task[None]) -> None:
        """Wait until who was killed is back.

        :raises Trouble: if that takes too long.
        """
        try:
            async with asyncio.timeout(BACK_WITHIN_S):
                await faults
                await wait_ready(self._network)
        except TimeoutError:
            raise Trouble("\n".join(["a broker did not come back", *self.figures.words])) from None

    async def _shown(self, show: Callable[[], None]) -> None:
        """Draw until everything is published: the last picture of the brokers is one of traffic, not of its end."""
        while "publishers" not in self.figures.finished and not self.was_interrupted:
            self.figures.on_pages(await ask_once(self._network), time.monotonic())
            show()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._until(lambda: "publishers" in self.figures.finished or self.was_interrupted)

    def _draw(self, live: Live) -> None:
        live.update(picture(self.figures, time.monotonic() - self._started), refresh=True)

    def _print(self) -> None:
        elapsed = time.monotonic() - self._started
        if elapsed >= self._printed + PLAIN_LINE_EVERY_S:
            self._printed = elapsed
            self._console.print(plain_line(self.figures, elapsed))

    def _tell(self, what: str) -> None:
        """Something happened; in the picture it is to be seen."""
        if not self._console.is_terminal:
            self._console.print(f"{time.monotonic() - self._started:5.1f} s · {what}")

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    async def _while_alive(self, work: Coroutine[Any, Any, None], children: Children, *names: str) -> None:
        """Do something that needs these children.

        :raises Trouble: if one of them ends meanwhile.
        """
        working = asyncio.ensure_future(work)
        dying = asyncio.ensure_future(children.first_death(*names))
        try:
            await asyncio.wait([working, dying], return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise Trouble("\n".join([str(dying.result()), *self.figures.words]))
            working.result()
        finally:
            for task in (working, dying):
                task.cancel()
