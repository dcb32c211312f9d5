"""`holdfast status`: how a running network is, in words; what every broker's admin port says, side by side."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from holdfast.cli.arguments import seconds
from holdfast.cli.console import OutputConsole, foreign
from holdfast.cli.durable_view import DurableView
from holdfast.cli.status_overlay import OverlayView
from holdfast.cli.targets import add_network_arguments, loaded_network
from holdfast.cli.words import duration
from holdfast.runtime.admin_page import NoAnswer, status_page
from holdfast.runtime.network_file import BrokerEntry, Network

__all__ = ["Answer", "Rates", "add_arguments", "ask_once", "client_count", "rates_between"]

OVER_S: Final = 1.0  #: as long as nobody wonders what is being done
#: What helps who cannot be asked.
ADD_ADMIN: Final = (
    'give its [[broker]] one, such as admin = "127.0.0.1:7100", with a port of its own, and restart it'
)


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast the counters of a broker grow, per second: its own, and those of its reliable data plane."""

    own: Mapping[str, float]
    reliable: Mapping[str, float]

    @property
    def arriving(self) -> float:
        """Events from publishers and neighbours. What plain clients publish reliably is in both kinds of counters."""
        relayed = self.reliable["accepted"] - self.reliable["originated"]
        return self.own["received"] + self.own["published"] + relayed

    @property
    def leaving(self) -> float:
        """Copies to neighbours and subscribers."""
        return self.own["forwarded"] + self.own["delivered"] + self.reliable["forwarded"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one broker said: its page and its rates (per second), or why it said nothing."""

    broker: BrokerEntry
    page: Mapping[str, Any] | None
    problem: str = ""
    rates: Rates | None = None

    @property
    def trouble(self) -> str:
        """What is not as it should be, as the end of a sentence; empty if all is well."""
        if self.broker.admin is None:
            return f"cannot be asked: {self.problem}; {ADD_ADMIN}"
        if self.page is None:
            return f"does not answer at {self.broker.admin}: {self.problem}"
        if self.page["name"] != self.broker.name:
            return f"is not what answers at {self.broker.admin}: that is {self.page['name']}"
        absent = [_neighbour(one) for one in self._absent()]
        if absent:
            return f"is without {', '.join(absent)}"
        if not self.page["ready"]:
            return "is not ready yet"
        problems = DurableView({self.broker.name: self.page}).problems()
        return next((problem for _, problem in problems), "")

    def _absent(self) -> list[Mapping[str, Any]]:
        """The neighbours it does not speak with."""
        neighbours = [] if self.page is None else self.page["neighbours"]
        return [one for one in neighbours if one["state"] != "active"]

    def lacks_only(self, silent: Collection[str]) -> bool:
        """Whether its trouble is that of others, and said of them: it is without some that do not answer us either."""
        is_itself = self.page is not None and self.page["name"] == self.broker.name
        absent = {one["name"] for one in self._absent()}
        return is_itself and bool(absent) and absent <= set(silent)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        up = None if self.broker.admin is None else self.page is not None
        found = {"name": self.broker.name, "up": up, "trouble": self.trouble or None}
        rates = None if self.rates is None else asdict(self.rates)
        return {**found, "status": self.page, "rates": rates}


def add_arguments(commands: Any) -> None:
    """`holdfast status [--network FILE] [--over S] [--output text|json]`."""
    command = commands.add_parser("status", help="how a running network is")
    add_network_arguments(command)
    command.add_argument(
        "--over", type=seconds, default=OVER_S, metavar="S", help="how long to watch for the rates [1]"
    )
    command.add_argument("--output", choices=["text", "json"], default="text")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask everyone, twice; status 1 if anything is not as it should be."""
    network = loaded_network(options)
    answers = asyncio.run(ask_all(network, options.over))
    if options.output == "json":
        found = {
            "network": network.name,
            "brokers": [answer.as_json() for answer in answers],
            "overlay": OverlayView(network, _pages(answers)).as_json(),
            "durable": DurableView(_pages(answers)).as_json(),
        }
        sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
    else:
        _show(network, answers)
    return 1 if any(answer.trouble for answer in answers) else 0


async def ask_all(network: Network, over: float) -> list[Answer]:
    """Every broker's answer, with its rates over some seconds."""
    started = time.monotonic()
    first = await asyncio.gather(*(_ask_at(broker) for broker in network.brokers))
    if not any(answer.page for answer, _ in first):
        return [answer for answer, _ in first]
    if over > OVER_S:
        sys.stderr.write(f"watching for {over:g} s\n")
    await asyncio.sleep(max(0.0, started + over - time.monotonic()))
    return list(await asyncio.gather(*(_ask_again(*each, started + over) for each in first)))


async def _ask_at(broker: BrokerEntry) -> tuple[Answer, float]:
    """An answer, and when it came."""
    return await _ask(broker), time.monotonic()


async def _ask_again(then: Answer, at: float, until: float) -> Answer:
    """Who was silent for as long as the others are watched would only keep everybody waiting once more."""
    if then.page is None and at >= until:
        return then
    now, later = await _ask_at(then.broker)
    return Answer(now.broker, now.page, now.problem, rates_between(then.page, now.page, later - at))


async def ask_once(network: Network) -> list[Answer]:
    """Every broker's answer, in the order of the file."""
    return list(await asyncio.gather(*(_ask(broker) for broker in network.brokers)))


async def _ask(broker: BrokerEntry) -> Answer:
    if broker.admin is None:
        return Answer(broker, None, "it has no admin address in the file")
    try:
        return Answer(broker, await status_page(broker.admin))
    except NoAnswer as error:
        return Answer(broker, None, str(error))


def rates_between(
    then: Mapping[str, Any] | None, now: Mapping[str, Any] | None, elapsed: float
) -> Rates | None:
    """How fast each counter grew; None unless it was the same life of the broker all the time."""
    if then is None or now is None or then["incarnation"] != now["incarnation"]:
        return None
    return Rates(
        _growth(then["counters"], now["counters"], elapsed),
        _growth(then["overlay"]["counters"], now["overlay"]["counters"], elapsed),
    )


def _growth(then: Mapping[str, int], now: Mapping[str, int], elapsed: float) -> dict[str, float]:
    return {name: (now[name] - count) / elapsed for name, count in then.items()}


def _show(network: Network, answers: list[Answer]) -> None:
    console = OutputConsole()
    pages = _pages(answers)
    console.print(Text(f"Network {network.name}: {_summary(answers, len(pages))}."))
    silent = {answer.broker.name for answer in answers} - pages.keys()
    for answer in answers:
        if answer.trouble and not answer.lacks_only(silent):
            console.print(Text(f"{answer.broker.name} {answer.trouble}.", style="bold red"), soft_wrap=True)
    overlay = OverlayView(network, pages)
    for line in (*overlay.lines(), *DurableView(pages).lines()):
        console.print(foreign(line), soft_wrap=True)
    if pages:
        console.print(_table(answers, overlay.failures.brokers))


def _summary(answers: Sequence[Answer], up: int) -> str:
    count = len(answers)
    unasked = sum(answer.broker.admin is None for answer in answers)
    if unasked == count:
        return "its broker cannot be asked" if count == 1 else f"none of its {count} brokers can be asked"
    if count == up:
        return "its broker is up" if count == 1 else f"all {count} brokers are up"
    return f"{up} of {count} brokers are up" + (f", {unasked} cannot be asked" if unasked else "")


def _by_name(answers: Sequence[Answer]) -> dict[str, Answer]:
    """Who answered, by the name it says, at its own address or, if two are mixed up, at that of another."""
    there = [(str(answer.page["name"]), answer) for answer in answers if answer.page is not None]
    found = dict(sorted(there, key=lambda each: each[0] == each[1].broker.name))
    return {
        answer.broker.name: found[answer.broker.name] for answer in answers if answer.broker.name in found
    }


def _pages(answers: Sequence[Answer]) -> dict[str, Mapping[str, Any]]:
    """What the brokers of the network say."""
    return {name: answer.page for name, answer in _by_name(answers).items() if answer.page is not None}


def _table(answers: Sequence[Answer], down: Collection[str]) -> Table:
    table = Table("broker", "up for", "neighbours", box=SIMPLE_HEAD, show_edge=False)
    for heading in ("clients", "subscriptions", "kept", "in/s", "out/s"):
        table.add_column(heading, justify="right")
    found = _by_name(answers)
    for asked in answers:
        name = asked.broker.name
        answer = found.get(name, asked)
        page, rates = answer.page, answer.rates
        if page is None or page["name"] != name:
            is_down = name in down or (page is None and asked.broker.admin is not None)
            table.add_row(Text(name), Text("down" if is_down else "cannot be asked", style="bold red"))
            continue
        table.add_row(
            Text(name),
            duration(page["process"]["up_seconds"]),
            Text(", ".join(_neighbour(one) for one in page["neighbours"]) or "none"),
            f"{client_count(page):,}",
            f"{page['subscriptions']['installed']:,}",
            f"{page['overlay']['queued']:,}",
            *(["?", "?"] if rates is None else [f"{rates.arriving:,.0f}", f"{rates.leaving:,.0f}"]),
        )
    return table


def client_count(page: Mapping[str, Any]) -> int:
    """The clients a broker speaks with: plain ones, and those of its own that are members of the overlay."""
    members = [
        each for each in page["overlay"]["connections"] if each["role"] != "broker" and not each["past"]
    ]
    return int(page["clients"]["connected"]) + len(members)


def _neighbour(neighbour: Mapping[str, Any]) -> str:
    name, state = neighbour["name"], neighbour["state"]
    return str(name) if state == "active" else f"{name} ({state})"
