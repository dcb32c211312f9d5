"""`holdfast stream ls|show|forget`: the streams of a network, their logs, and who keeps these from forgetting."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from holdfast.cli.connection import tell
from holdfast.cli.console import OutputConsole, foreign
from holdfast.cli.durable_view import DurableView, Log, date_of
from holdfast.cli.failure import Failure, Trouble
from holdfast.cli.status import Answer, ask_once
from holdfast.cli.targets import add_network_arguments, loaded_network
from holdfast.cli.words import counted, duration, listed, moment, sized
from holdfast.messages.streams import Guarantee
from holdfast.runtime.admin_page import NoAnswer, Unwilling, tell_broker
from holdfast.runtime.network_file import Network, StreamEntry

__all__ = ["add_arguments", "asked", "told_silent"]


def add_arguments(commands: Any) -> None:
    """`holdfast stream ls`, `show NAME`, `forget NAME BROKER`, each with `--network FILE --output text|json`."""
    command = commands.add_parser("stream", help="the streams of a running network, and their logs")
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    ls = actions.add_parser("ls", help="all streams: what their logs hold, and who needs it")
    show = actions.add_parser("show", help="one stream: each of its logs, and for whom it waits")
    forget = actions.add_parser(
        "forget",
        help="do not keep events for a broker that will not come back",
        description="The logs of a stream wait for every broker with subscribers. This ends that for a broker that is"
        " gone for good: what only its subscribers have not had may go, and if it comes back they are told so by gaps.",
    )
    for parser, run in ((ls, _ls), (show, _show), (forget, _forget)):
        if parser is not ls:
            parser.add_argument("name", metavar="NAME", help="of the stream")
        if parser is forget:
            parser.add_argument("broker", metavar="BROKER", help="that cannot be reached any more")
        add_network_arguments(parser)
        parser.add_argument("--output", choices=["text", "json"], default="text")
        parser.set_defaults(run=run)


def asked(network: Network) -> list[Answer]:
    """Every broker's status.

    :raises Trouble: if none answers.
    """
    answers = asyncio.run(ask_once(network))
    if all(answer.page is None for answer in answers):
        raise Trouble(f"no broker of {network.name} answers: {answers[0].problem}")
    return answers


def told_silent(answers: Sequence[Answer]) -> int:
    """Say whose answer is missing; the exit status: 1 if any is."""
    for answer in answers:
        if answer.trouble and (answer.page is None or answer.page["name"] != answer.broker.name):
            tell(f"{answer.broker.name} {answer.trouble}; what it knows is missing here")
    return int(any(answer.page is None for answer in answers))


def _view(answers: Sequence[Answer]) -> DurableView:
    pages = {answer.broker.name: answer.page for answer in answers if answer.page is not None}
    return DurableView({name: page for name, page in pages.items() if page["name"] == name})


def _stream(network: Network, name: str) -> StreamEntry:
    for stream in network.streams:
        if stream.name == name:
            return stream
    raise Failure(f"there is no stream {name!r}; expected {', '.join(each.name for each in network.streams)}")


def _as_json(stream: StreamEntry, logs: Sequence[Log]) -> dict[str, Any]:
    is_logged = stream.guarantee is Guarantee.DURABLE
    return {
        "name": stream.name,
        "topics": list(stream.topics),
        "guarantee": str(stream.guarantee),
        "order": str(stream.order),
        "copies": 1 if is_logged else 0,
        "bytes": sum(log.status["bytes"] for log in logs),
        "logs": [log.as_json() for log in logs],
    }


# ls


def _ls(options: argparse.Namespace) -> int:
    network = loaded_network(options)
    answers = asked(network)
    view = _view(answers)
    if options.output == "json":
        found = [_as_json(stream, view.logs(stream.name)) for stream in network.streams]
        sys.stdout.write(json.dumps({"network": network.name, "streams": found}, ensure_ascii=False) + "\n")
    else:
        table = Table(
            "stream",
            "topics",
            "guarantee",
            "order",
            "logs",
            "size",
            "kept for",
            box=SIMPLE_HEAD,
            show_edge=False,
        )
        for stream in network.streams:
            table.add_row(*map(foreign, _row(stream, view.logs(stream.name))))
        OutputConsole().print(table)
    return told_silent(answers)


def _row(stream: StreamEntry, logs: Sequence[Log]) -> list[str]:
    told = [stream.name, listed(stream.topics, 3), str(stream.guarantee), str(stream.order)]
    if stream.guarantee is not Guarantee.DURABLE:
        return [*told, "none", "", ""]
    pins = [str(pin) for log in logs if log.pinned_for for pin in log.pins]
    size = sized(sum(log.status["bytes"] for log in logs))
    return [*told, str(len(logs)), size, listed(list(dict.fromkeys(pins)), 3) or "nobody"]


# show


def _show(options: argparse.Namespace) -> int:
    network = loaded_network(options)
    stream = _stream(network, options.name)
    answers = asked(network)
    logs = _view(answers).logs(stream.name)
    if options.output == "json":
        sys.stdout.write(json.dumps(_as_json(stream, logs), ensure_ascii=False) + "\n")
    else:
        console = OutputConsole()
        for line in (*_stream_lines(stream, logs), *(line for log in logs for line in _log_lines(log))):
            console.print(foreign(line), soft_wrap=True)
    return told_silent(answers)


def _stream_lines(stream: StreamEntry, logs: Sequence[Log]) -> Iterator[str]:
    yield f"Stream {stream.name}: {stream.guarantee}, order {stream.order}, topics {listed(stream.topics)}."
    if stream.guarantee is not Guarantee.DURABLE:
        yield "It is not logged."
        return
    age = "" if stream.retain is None else f" older than {duration(stream.retain / 1e9)}"
    size = "" if stream.retain_bytes is None else f" beyond {sized(stream.retain_bytes)} in one log"
    time = "" if stream.expires is None else f" past the time in its attribute {stream.expires}"
    early = " or".join(limit for limit in (age, size, time) if limit)
    gone = "and is read in the lake from then on" if stream.lake else "announced as a gap"
    kept = f"what is{early} goes all the same, {gone}" if early else "nothing goes before"
    yield f"An event goes when everybody has acknowledged it; {kept}. There is one copy of it (copies: 1)."
    if not logs:
        yield "Nothing was published yet: there is no log."


def _log_lines(log: Log) -> Iterator[str]:
    status = log.status
    yield ""
    yield f"{status['pubend']}, at {log.broker}: {sized(status['bytes'])}, {_moment('last event', status['last'])}"
    if log.problem is not None:
        yield f"  {log.problem}"
    if status["lake_problem"] is not None:
        yield f"  the lake cannot be read: {status['lake_problem']}"
    if status["unstable"]:
        lag = (log.clock - status["unstable_since"]) / 1e6
        yield f"  {counted(status['unstable'], 'append')} not on disk yet, the oldest for {lag:.3f} s"
    if status["given_up"]:
        yield f"  {_moment('given up to', status['given_up'])}"
    yield f"  {_moment('all have acknowledged up to', status['released'])} (T_r)"
    yield f"  {_moment('all brokers have delivered up to', status['delivered'])} (T_d)"
    for each in status["waits_for"]:
        reached = "" if each["reached"] else ", which it does not reach"
        yield f"  waits for {each['broker']}{reached}: {_moment('acknowledged up to', each['released'])}"
    if log.pinned_for:
        yield f"  kept for {listed([str(pin) for pin in log.pins])}; the oldest for {duration(log.pinned_for)}"


def _moment(what: str, tick: int) -> str:
    at = date_of(tick)
    return f"{what}: none" if at is None else f"{what} {moment(at)} (tick {tick})"


# forget


def _forget(options: argparse.Namespace) -> int:
    network = loaded_network(options)
    stream = _stream(network, options.name)
    answers = asked(network)
    waiting = [
        log.broker
        for log in _view(answers).logs(stream.name)
        if any(each["broker"] == options.broker for each in log.status["waits_for"])
    ]
    if not waiting:
        raise Failure(f"no log of {stream.name} waits for {options.broker}")
    wish = {"broker": options.broker, "stream": stream.name}
    for name in dict.fromkeys(waiting):
        admin = network.broker(name).admin
        assert admin is not None
        try:
            asyncio.run(tell_broker(admin, "/streams/forget", wish))
        except (NoAnswer, Unwilling) as error:
            raise Trouble(f"{name}: {error}") from error
    if options.output == "json":
        sys.stdout.write(json.dumps({**wish, "forgotten_at": list(dict.fromkeys(waiting))}) + "\n")
    else:
        logs = counted(len(waiting), "log")
        sys.stdout.write(
            f"{logs.capitalize()} of {stream.name} will not wait for {options.broker} any more.\n"
        )
    return told_silent(answers)
