"""`holdfast subscription ls|show|seek|rm`: the durable subscriptions of a network, who reads them, and how far."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from holdfast.cli.connection import tell
from holdfast.cli.console import OutputConsole, foreign
from holdfast.cli.durable_view import SECOND, date_of
from holdfast.cli.failure import Failure, Trouble
from holdfast.cli.targets import add_network_arguments, loaded_network
from holdfast.cli.words import counted, duration, listed, moment, plain
from holdfast.messages.streams import Guarantee
from holdfast.runtime.admin_page import NoAnswer, Unwilling, tell_broker
from holdfast.runtime.kept_subscriptions import KeptSubscriptions, kept_subscriptions
from holdfast.runtime.operator import InvalidStart, seek_to

__all__ = ["add_arguments"]


def add_arguments(commands: Any) -> None:
    """`holdfast subscription ls`, `show NAME`, `seek NAME TO`, `rm NAME`, with `--network FILE --output text|json`."""
    command = commands.add_parser("subscription", help="the durable subscriptions of a running network")
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    ls = actions.add_parser("ls", help="all: where they are, who reads them, how far behind they are")
    show = actions.add_parser("show", help="one: where it stands in each log")
    seek = actions.add_parser("seek", help="let one that nobody reads go on elsewhere in the stream")
    rm = actions.add_parser("rm", help="end one for good: its name is free, and what only it needed may go")
    for parser, run in ((ls, _ls), (show, _show), (seek, _seek), (rm, _rm)):
        if parser is not ls:
            parser.add_argument("name", metavar="NAME", help="its durable name")
        if parser is seek:
            parser.add_argument(
                "to", metavar="TO", help="now, earliest, a time such as 2026-01-31T12:00:00Z, or a token"
            )
        add_network_arguments(parser)
        parser.add_argument("--output", choices=["text", "json"], default="text")
        parser.set_defaults(run=run)


def _found(options: argparse.Namespace) -> KeptSubscriptions:
    """Ask everybody.

    :raises Failure: if no stream is durable.
    :raises Trouble: if nobody answers.
    """
    network = loaded_network(options)
    if all(stream.guarantee is not Guarantee.DURABLE for stream in network.streams):
        raise Failure(f"{network.path}: no stream is durable, so there are no durable subscriptions")
    found = asyncio.run(kept_subscriptions(network))
    if len(found.silent) == len(network.brokers):
        raise Trouble(f"no broker of {network.name} answers: {next(iter(found.silent.values()))}")
    return found


def _tell_silent(found: KeptSubscriptions) -> int:
    for name, problem in found.silent.items():
        tell(f"{name} does not answer: {problem}; what it keeps is missing here")
    return int(bool(found.silent))


def _named(found: KeptSubscriptions, name: str) -> dict[str, Any]:
    if (each := found.named(name)) is not None:
        return each
    if (lost := found.at_silent_named(name)) is not None:
        broker = lost["broker"]
        raise Trouble(f"{name} is kept by {broker}, which does not answer: {found.silent[broker]}")
    _tell_silent(found)
    raise Failure(f"there is no durable subscription {name!r}; holdfast subscription ls shows all")


# Reading


def _behind(place: Mapping[str, Any]) -> float:
    """How far a subscription may be behind in one log, in seconds of that log."""
    if place["state"] == "current":
        return 0.0
    at = place["told"] if place["state"] == "catching up" else place["acknowledged"]
    return max(0, place["known"] - at) / SECOND if at else 0.0


def _as_json(each: Mapping[str, Any]) -> dict[str, Any]:
    since = date_of(each["away_since"])
    places = [{**place, "behind_seconds": _behind(place)} for place in each["places"]]
    return {**each, "state": _state(each), "away_since": since and since.isoformat(), "places": places}


def _state(each: Mapping[str, Any]) -> str:
    if each["client"] is None:
        return "away"
    states = {place["state"] for place in each["places"]}
    return next((state for state in ("waiting", "catching up") if state in states), "current")


def _ls(options: argparse.Namespace) -> int:
    found = _found(options)
    if options.output == "json":
        listed_ = [_as_json(each) for each in found.kept]
        document = {"network": found.network.name, "subscriptions": listed_, "not_answering": found.at_silent}
        sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
        return _tell_silent(found)
    table = Table(
        "subscription", "at", "read by", "behind", "gaps", "filter", box=SIMPLE_HEAD, show_edge=False
    )
    for each in found.kept:
        since = date_of(each["away_since"])
        reader = each["client"] or ("nobody" if since is None else f"nobody since {moment(since)}")
        behind = max(map(_behind, each["places"]), default=0.0)
        said = "" if _state(each) == "current" else duration(behind)
        gaps = sum(each["gaps"].values())
        table.add_row(
            *map(foreign, (each["name"], each["broker"], reader, said, f"{gaps:,}", each["filter"]))
        )
    for each in found.at_silent:
        table.add_row(*map(foreign, (each["name"], each["broker"], "?", "?", "?", each["filter"])))
    if table.row_count:
        OutputConsole().print(table)
    else:
        sys.stdout.write("There are no durable subscriptions.\n")
    return _tell_silent(found)


def _show(options: argparse.Namespace) -> int:
    found = _found(options)
    each = _named(found, options.name)
    if options.output == "json":
        sys.stdout.write(json.dumps(_as_json(each), ensure_ascii=False) + "\n")
        return 0
    console = OutputConsole()
    for line in _lines(each):
        console.print(foreign(line), soft_wrap=True)
    return 0


def _lines(each: Mapping[str, Any]) -> Iterator[str]:
    since = date_of(each["away_since"])
    reader = f"{each['client']} reads it" if each["client"] else "nobody reads it"
    away = (
        ""
        if since is None
        else f" since {moment(since)} ({duration((each['clock'] - each['away_since']) / SECOND)})"
    )
    yield f"Durable subscription {each['name']} to {each['filter']}, kept by {each['broker']}: {reader}{away}."
    if each["moved_from"]:
        yield f"It has moved here, and {listed(each['moved_from'])} has not let go of it yet."
    if each["waits_for"]:
        yield f"It is not told of {listed(each['waits_for'])} yet, which cannot be reached."
    if each["gaps"]:
        reasons = [f"{count:,} {reason}" for reason, count in each["gaps"].items()]
        yield f"Since its broker started it was told that events are gone: {listed(reasons)}."
    for place in each["places"]:
        at = date_of(place["acknowledged"])
        acknowledged = "nothing acknowledged" if at is None else f"acknowledged up to {moment(at)}"
        behind = f", up to {duration(_behind(place))} behind" if _behind(place) else ""
        yield f"  {place['pubend']}: {place['state']}, {acknowledged} (tick {place['acknowledged']}){behind}"


# Doing


def _seek(options: argparse.Namespace) -> int:
    try:
        seek_to(options.name, options.to)
    except InvalidStart as error:
        raise Failure(str(error)) from error
    found = _found(options)
    each = _named(found, options.name)
    _tell(found, [each["broker"]], "/subscriptions/seek", {"name": options.name, "to": options.to})
    if options.output == "json":
        sys.stdout.write(
            json.dumps({"name": options.name, "broker": each["broker"], "to": options.to}) + "\n"
        )
    else:
        sys.stdout.write(
            f"{plain(options.name)} goes on from {options.to}, at {each['broker']} or wherever it is read.\n"
        )
    return 0


def _rm(options: argparse.Namespace) -> int:
    found = _found(options)
    _named(found, options.name)
    brokers = found.copies[options.name]
    _tell(found, brokers, "/subscriptions/end", {"name": options.name})
    if options.output == "json":
        sys.stdout.write(json.dumps({"name": options.name, "ended_at": brokers}) + "\n")
    else:
        kept = f" ({counted(len(brokers), 'broker')} had it)" if len(brokers) > 1 else ""
        sys.stdout.write(f"{plain(options.name)} is ended{kept}.\n")
    return _tell_silent(found)


def _tell(found: KeptSubscriptions, brokers: Sequence[str], path: str, wish: Mapping[str, Any]) -> None:
    for name in brokers:
        admin = found.network.broker(name).admin
        assert admin is not None
        try:
            asyncio.run(tell_broker(admin, path, wish))
        except (NoAnswer, Unwilling) as error:
            raise Trouble(f"{name}: {error}") from error
