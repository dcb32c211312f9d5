"""`holdfast sub FILTER`: prints what matches, as it comes, and in its place what is missing.

With ``--durable NAME`` the network keeps the place: what was printed is acknowledged when more is asked for, so that
whoever reads under this name goes on behind it. What was taken and could not be printed comes again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shlex
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TextIO

from holdfast.cli.arguments import count, seconds
from holdfast.cli.connection import connected, tell
from holdfast.cli.durable_view import date_of
from holdfast.cli.failure import Failure, Trouble
from holdfast.cli.filter import indented
from holdfast.cli.targets import Target, add_url_arguments, run_to_end, target_of
from holdfast.cli.words import listed, plain
from holdfast.client.errors import TimedOut
from holdfast.client.item import Gap, Item, LoggedEvent
from holdfast.errors import FilterError
from holdfast.events.event import Event
from holdfast.events.json_form import event_to_json
from holdfast.events.strict_json import dump_json
from holdfast.filters.parse import parse_filter
from holdfast.messages.subscriptions import Partition
from holdfast.runtime.operator import InvalidStart, start_in

__all__ = ["add_arguments", "json_line", "shown_payload"]

#: Items that may wait to be printed; then the client stops reading.
BUFFER: Final = 10_000
#: How long to wait for the network and its confirmation, unless another time was given.
CONNECT_WITHIN_S: Final = 10.0
#: A payload is cut to this many characters where people read.
PAYLOAD_CHARS_MAX: Final = 200
#: The pubend of a stream that is logged, whose ticks are times; any other is a publisher, and its ticks its numbers.
LOG: Final = re.compile(r"[^@]+@[^@]+/[0-9]+")
#: Why something may be missing, as people say it: on streams that are not logged,
REASONS: Final = {
    "disconnected": "this subscriber was disconnected",
    "beyond delta": "more brokers next to each other than delta lost their memory together",
    "overtaken": "its publisher went to another broker, and what it published there was faster",
}
#: and on those that are.
REASONS_OF_LOGS: Final = {
    "max_retain": "it was older than the stream keeps",
    "max_bytes": "the log was larger than the stream keeps",
    "expired": "its publisher had given it no more time",
    "acknowledged": "everybody had acknowledged it, and it was given up",
    "released": "it was given up long ago",
    "restored from a backup": "the log was restored from a backup, and is older than what was read of it",
    "could not be reached": "that log could not be reached when this began",
    "damaged": "the log is damaged there",
}


def add_arguments(commands: Any) -> None:
    """`holdfast sub FILTER [--durable NAME] [--start WHERE] [--json] [--count N] [--timeout S] [--name NAME] …`."""
    command = commands.add_parser("sub", help="subscribe, and print what comes")
    command.add_argument("filter", metavar="FILTER", help='for example "orders/# WHERE price > 100"')
    command.add_argument("rest", nargs="*", default=[], help=argparse.SUPPRESS)  # of a filter without quotes
    command.add_argument(
        "--durable", metavar="NAME", help="go on where whoever read under this name has come to"
    )
    command.add_argument(
        "--start",
        default="now",
        metavar="WHERE",
        help="on durable streams, where to begin what was not read before: now, earliest, a time, a token [now]",
    )
    command.add_argument("--json", action="store_true", help="one JSON object per event and gap")
    command.add_argument("--count", type=count, metavar="N", help="end after so many events")
    command.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        help="end with status 1 when nothing comes for so long [never]",
    )
    command.add_argument("--name", metavar="NAME", help="who subscribes [a name nobody had before]")
    add_url_arguments(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Subscribe and print until there is enough; a filter that is none is refused before anybody is asked."""
    if options.rest:
        said = " ".join([options.filter, *options.rest])
        raise Failure(f"a filter is one argument; put it in quotes, as in: holdfast sub {shlex.quote(said)}")
    try:
        parse_filter(options.filter)
    except FilterError as error:
        raise Failure(f"{error}\n\n{indented(error.pointed())}") from error
    try:
        options.start = start_in(options.start)
    except InvalidStart as error:
        raise Failure(f"--start: {error}") from error
    return run_to_end(_print_items(options, target_of(options)))


async def _print_items(options: argparse.Namespace, target: Target) -> int:
    written = json_line if options.json else _text_line
    left: int | None = options.count
    patience = options.timeout or CONNECT_WITHIN_S
    async with (
        connected(target, options.name, patience) as network,
        network.subscribe(
            options.filter,
            durable=options.durable,
            start=options.start,
            acknowledge="auto" if options.durable is not None else "manual",
            buffer=BUFFER,
            timeout=patience,
            on_upgrade=_tell_upgrade,
        ) as items,
    ):
        durably = f", durably as {items.durable}" if items.durable is not None else ""
        tell(f"subscribed to {items.filter} at {target.url} as {network.name}{durably}")
        if items.partial:
            _tell_partial(items.partial)
        while left is None or left > 0:
            try:
                if left is None or items.durable is None:
                    batch = await items.get_batch(options.timeout)
                else:  # what is not printed must not be taken
                    batch = [await items.get(options.timeout)]
            except TimedOut:
                raise Trouble(f"nothing came for {options.timeout:g} s") from None
            if left is not None:
                batch, left = _first(batch, left)
            await write_beside(sys.stdout, "".join(written(item) for item in batch))
    return 0


def _tell_partial(partial: Sequence[Partition]) -> None:
    tell(f"not at {_places(partial)} yet: what is published there may be missing")


def _tell_upgrade(cleared: tuple[Partition, ...], partial: tuple[Partition, ...]) -> None:
    if not cleared:  # subscribed again, after a broken session
        if partial:
            _tell_partial(partial)
        return
    still = f", and not yet at {_places(partial)}" if partial else ""
    tell(f"subscribed at {_places(cleared)} too{still}")


def _places(partitions: Sequence[Partition]) -> str:
    """Who lies behind some partitions."""
    return listed(list(dict.fromkeys(name for partition in partitions for name in partition.fragment)))


async def write_beside(output: TextIO, text: str) -> None:
    """Write without stopping the loop: a reader may stop for long, and our broker must go on hearing of us.

    In a thread that nobody waits for when we are interrupted, and past the buffers of ``output``: their lock would be
    held by this thread when the interpreter ends.

    :raises OSError: if it cannot be written.
    """
    loop = asyncio.get_running_loop()
    written: asyncio.Future[None] = loop.create_future()

    def tell(error: OSError | None) -> None:
        if written.done():
            return
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)

    def write() -> None:
        left = memoryview(text.encode(output.encoding, output.errors or "strict"))
        error: OSError | None = None
        try:
            while left:
                left = left[os.write(output.fileno(), left) :]
        except OSError as failure:
            error = failure
        with suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            loop.call_soon_threadsafe(tell, error)

    threading.Thread(target=write, name="standard output", daemon=True).start()
    await written


def _first(batch: list[Item], count: int) -> tuple[list[Item], int]:
    """The batch up to its ``count``-th event, and how many are left to come; gaps do not count."""
    for position, item in enumerate(batch, start=1):
        count -= isinstance(item, Event)
        if count == 0:
            return batch[:position], 0
    return batch, count


def json_line(item: Item) -> str:
    """An event or a gap as one line of JSON."""
    if isinstance(item, LoggedEvent):
        place = {"pubend": item.pubend, "incarnation": item.incarnation, "tick": item.tick}
        return f"{event_to_json(item)[:-1]},{dump_json(place)[1:]}\n"
    if isinstance(item, Event):
        return event_to_json(item) + "\n"
    assert isinstance(item, Gap), "silence was not asked for"
    gap = {"pubend": item.pubend, "after": item.after, "upto": item.upto, "reason": item.reason}
    return dump_json({"kind": "gap", **gap}) + "\n"


def _text_line(item: Item) -> str:
    if isinstance(item, Event):
        attributes = " ".join(f"{name}={value!r}" for name, value in item.attributes.items())
        parts: Sequence[str] = (
            f"{item.publisher}#{item.n}",
            item.topic,
            attributes,
            shown_payload(item.payload),
        )
        return "  ".join(plain(part) for part in parts if part) + "\n"
    assert isinstance(item, Gap), "silence was not asked for"
    return plain(f"-- gap: {_missing(item)}") + "\n"


def _missing(gap: Gap) -> str:
    if LOG.fullmatch(gap.pubend) is None:
        numbers = f"events {gap.after + 1} to {gap.upto}"
        what = f"event {gap.upto}" if gap.upto == gap.after + 1 else numbers
        return f"{what} of {gap.pubend} may be missing here: {REASONS.get(gap.reason, gap.reason)}"
    why = listed([REASONS_OF_LOGS.get(part, part) for part in gap.reason.split(", ")])
    since = date_of(gap.after)
    span = (
        f"up to {_second(gap.upto)}" if since is None else f"from {_second(gap.after)} to {_second(gap.upto)}"
    )
    return f"what {gap.pubend} had {span} may be missing here: {why}"


def _second(tick: int) -> str:
    """A tick of a log as a time."""
    at = date_of(tick)
    return "the beginning" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def shown_payload(payload: bytes) -> str:
    """A payload on one line, cut where it is long."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return f"({len(payload)} bytes)"
    return text if len(text) <= PAYLOAD_CHARS_MAX else f"{text[:PAYLOAD_CHARS_MAX]}…"
