"""`holdfast pub [TOPIC]`: publishes what stands on standard input, one event in JSON per line.

Many events are on their way at a time; a line that is wrong, or that the network refuses, is reported with its
number and the others go on. The exit status says whose fault it was: 2 if a line was bad, else 1 if the network would
not have what was good, because a disk is full, say. With ``--json`` every line's receipt is written to standard output:
the pubend and tick under which its event was accepted, or why it was not. An event keeps the number it has (``n``) if
it has no publisher or is ours; what somebody else published is published again under our name, with a number of our own
and the time of now.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, Final

from holdfast.cli.arguments import count, seconds
from holdfast.cli.connection import connected
from holdfast.cli.failure import Failure, decode
from holdfast.cli.match import column_of
from holdfast.cli.targets import Target, add_url_arguments, run_to_end, target_of
from holdfast.client.aio import Network, Publisher, Receipt, Sent
from holdfast.client.errors import BadEvent, Refused, Unknown
from holdfast.errors import HoldfastError, InvalidEvent
from holdfast.events.event import Event, make_event
from holdfast.events.json_form import event_from_json
from holdfast.events.strict_json import dump_json, places, read_object

__all__ = ["add_arguments"]

READ_BYTES: Final = 1 << 18
#: Pieces of input that may wait to be published.
PIECES_MAX: Final = 4
#: The longest line; the largest event in JSON is shorter.
LINE_BYTES_MAX: Final = 16 * 1024 * 1024
#: How long an interrupted publisher waits to hear of what it has sent.
LAST_RECEIPTS_S: Final = 1.0
#: Lines that are reported one by one; of the rest only the number is.
REPORTS_MAX: Final = 1_000

INPUT: Final = "standard input"

#: Takes what became of the event of a line.
Say = Callable[[int, Sent, Receipt | Refused], None]


def add_arguments(commands: Any) -> None:
    """`holdfast pub [TOPIC] [--name NAME] [--json] [--window N] [--timeout S] [--url URL] [--insecure]`."""
    command = commands.add_parser("pub", help="publish events from standard input, JSON Lines")
    command.add_argument("topic", nargs="?", metavar="TOPIC", help="of the events that do not say theirs")
    command.add_argument("--name", metavar="NAME", help="who publishes [a name nobody had before]")
    command.add_argument("--json", action="store_true", help="one JSON object per event: its receipt")
    command.add_argument(
        "--window", type=count, default=512, metavar="N", help="events on their way at a time [512]"
    )
    command.add_argument(
        "--timeout", type=seconds, default=30.0, metavar="S", help="give up on a network that is away [30]"
    )
    add_url_arguments(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Publish, and sum up on standard error; a topic that is none is refused before anybody is asked."""
    if options.topic is not None:
        try:
            make_event(options.topic)
        except InvalidEvent as error:
            raise Failure(str(error)) from error
    return run_to_end(_publish(options, target_of(options)))


async def _publish(options: argparse.Namespace, target: Target) -> int:
    async with connected(target, options.name, options.timeout) as network:
        say = _write_receipt if options.json else None
        publishing = Publishing(network, options.topic, options.window, options.timeout, say)
        started = time.monotonic()
        try:
            async for line, data in _input_lines():
                await publishing.publish_line(line, data)
            await publishing.settle_all()
        except asyncio.CancelledError:
            with suppress(TimeoutError, HoldfastError):
                async with asyncio.timeout(LAST_RECEIPTS_S):
                    await publishing.settle_all()
            raise
        finally:
            with suppress(HoldfastError):  # it is being raised already, or counted
                publishing.settle_known()
            sys.stderr.write(f"holdfast: {publishing.summary(time.monotonic() - started)}\n")
    return 2 if publishing.bad else 1 if publishing.refused else 0


class Publishing:
    """Lines on their way to the network, and what became of them."""

    def __init__(
        self, network: Network, topic: str | None, window: int, timeout: float, say: Say | None = None
    ) -> None:
        self._network = network
        self._topic = topic
        self._with_topic = "" if topic is None else f'{{"topic":{dump_json(topic)},'
        self._say = say
        self._window = window
        self._timeout = timeout
        self._publisher: Publisher = network.publisher(window=window, timeout=timeout)
        self._pending: deque[tuple[int, Sent]] = deque()
        self.accepted = 0
        self.duplicates = 0
        self.bad = 0
        self.refused = 0  #: good lines that the network would not have

    async def publish_line(self, line: int, data: bytes | None) -> None:
        """Send the event of one line; None stands for a line that was too long."""
        text = ""
        try:
            if data is None:
                raise Failure(f"{INPUT}, line {line}: more than {LINE_BYTES_MAX} bytes; expected one event")
            text = decode(data, INPUT, line)
            if text.strip():
                self._pending.append((line, await self._sent(self._event(text))))
        except InvalidEvent as error:
            self.bad += 1
            self._report(f"{INPUT}, line {line}, column {column_of(error, text)}: {error}")
        except Failure as failure:
            self.bad += 1
            self._report(str(failure))
        self.settle_known()

    def _event(self, text: str) -> Event:
        """The event of a line; where it has no topic, ours.

        :raises InvalidEvent: if it is none, or has no topic and neither have we.
        """
        if self._with_topic and text.startswith("{") and '"topic"' not in text and '"kind"' not in text:
            with suppress(InvalidEvent):  # whatever is wrong is said below, of the line as it is
                return event_from_json(self._with_topic + text[1:])
        try:
            return event_from_json(text)
        except InvalidEvent as error:
            members = read_object(text)
            kind = members.get("kind")
            if kind not in (None, "event"):
                raise InvalidEvent("kind", f"is {dump_json(kind)}; expected an event") from error
            if (error.field, error.problem) != ("topic", "is missing"):
                raise
            if self._topic is None:
                raise InvalidEvent(
                    "topic", "is missing, and none was given to `holdfast pub TOPIC`"
                ) from error
            return event_from_json(_with_topic(text, self._topic))

    async def _sent(self, event: Event) -> Sent:
        is_ours = event.publisher in ("", self._network.name)
        while True:
            try:
                return await self._publisher.send(
                    event.topic,
                    event.attributes,
                    event.payload,
                    content_type=event.content_type,
                    n=(event.n or None) if is_ours else None,
                    timeout=self._timeout,
                )
            except Refused:
                # An earlier event was refused, which ends a publisher; the line is reported when it is settled.
                self._publisher = self._network.publisher(window=self._window, timeout=self._timeout)

    async def settle_all(self) -> None:
        """Wait until the fate of every line is known."""
        while self._pending:
            with suppress(HoldfastError):
                await self._pending[0][1].receipt(self._timeout)
            if self._pending[0][1].outcome is None:
                raise Unknown(self._pending[0][1].id, f"no answer for {self._timeout:g} s")
            self.settle_known()

    def settle_known(self) -> None:
        """Count what is known by now.

        :raises HoldfastError: if that is that nothing will be known any more.
        """
        while self._pending and (outcome := self._pending[0][1].outcome) is not None:
            if not isinstance(outcome, Receipt | Refused):
                raise outcome
            line, sent = self._pending.popleft()
            if self._say is not None:
                self._say(line, sent, outcome)
            if isinstance(outcome, Receipt):
                self.accepted += 1
                self.duplicates += outcome.duplicate
            else:
                is_bad = isinstance(outcome, BadEvent)
                self.bad += is_bad
                self.refused += not is_bad
                self._report(f"{INPUT}, line {line}: the network refuses it: {outcome}")

    def _report(self, problem: str) -> None:
        if self.bad + self.refused <= REPORTS_MAX:
            sys.stderr.write(f"holdfast: {problem}\n")

    def summary(self, seconds: float) -> str:
        """What became of everything."""
        rate = self.accepted / max(seconds, 1e-9)
        events = "event" if self.accepted == 1 else "events"
        parts = [f"{self.accepted:,} {events} accepted in {seconds:.2f} s ({rate:,.0f}/s)"]
        if self.duplicates:
            parts.append(f"{self.duplicates:,} of them had been before")
        if self.bad:
            parts.append(f"{self.bad:,} bad line{'s'[: self.bad > 1]}")
        if self.refused:
            parts.append(f"{self.refused:,} refused by the network")
        if self._pending:
            parts.append(f"{len(self._pending):,} not known to be accepted")
        return ", ".join(parts)


def _write_receipt(line: int, sent: Sent, outcome: Receipt | Refused) -> None:
    told: dict[str, object] = {"line": line, "publisher": sent.id.publisher, "n": sent.id.n}
    if isinstance(outcome, Receipt):
        place = {"pubend": outcome.pubend, "tick": outcome.tick, "duplicate": outcome.duplicate}
        told |= {"accepted": True, **place}
    else:
        told |= {"accepted": False, "reason": outcome.reason}
    sys.stdout.write(dump_json(told) + "\n")


def _with_topic(text: str, topic: str) -> str:
    """The text of an object that has no topic, or null for it, with one; the rest stays as it was written."""
    for place in places(text):
        if place.name == "topic":
            return f"{text[: place.value]}{dump_json(topic)}{text[place.end :]}"
    start = text.index("{") + 1
    comma = "," if text[start:].strip() != "}" else ""
    return f'{text[:start]}"topic":{dump_json(topic)}{comma}{text[start:]}'


class LineSplitter:
    """Cuts pieces of input into numbered lines; one that is too long is passed over, as None."""

    def __init__(self) -> None:
        self._rest = b""
        self._line = 0
        self._is_too_long = False

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes | None]]:
        """The lines completed by a piece; an empty piece completes the last."""
        if not data and not self._rest:
            return
        *complete, self._rest = (self._rest + data).split(b"\n") if data else (self._rest, b"")
        for line in complete:
            self._line += 1
            yield self._line, None if self._is_too_long or len(line) > LINE_BYTES_MAX else line
            self._is_too_long = False
        if len(self._rest) > LINE_BYTES_MAX:
            self._is_too_long, self._rest = True, b" "  # something, so that the line is not forgotten


async def _input_lines() -> AsyncIterator[tuple[int, bytes | None]]:
    """The lines of standard input, read by a thread of its own: a read cannot be cancelled, but it can be left."""
    pieces: asyncio.Queue[bytes] = asyncio.Queue(PIECES_MAX)
    loop = asyncio.get_running_loop()

    def read() -> None:
        # Past the buffers of sys.stdin: their lock would be held by this thread when the interpreter ends.
        with suppress(RuntimeError, CancelledError):  # the loop is closed: nobody wants it any more
            while True:
                try:
                    data = os.read(0, READ_BYTES)
                except OSError:  # it was closed
                    data = b""
                asyncio.run_coroutine_threadsafe(pieces.put(data), loop).result()
                if not data:
                    return

    threading.Thread(target=read, name="standard input", daemon=True).start()
    splitter = LineSplitter()
    while True:
        data = await pieces.get()
        for line in splitter.feed(data):
            yield line
        if not data:
            return
