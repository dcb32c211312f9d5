"""The other end of a durable broker's connections, as bare as it can be: a publisher, and subscribers that check all.

A subscriber knows beforehand which numbers of the one publisher are for it: they go up by the same step. It decodes of
each portion only the ticks and numbers, checks both, gives credit back when half of it is used, and acknowledges as the
client does: one message on its way at a time, saying how far it has come by then.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from operator import lt
from typing import Final

import msgspec

from holdfast.bench.network_sink import ACCEPTED, WITHDRAWN, Published, Receiver
from holdfast.bench.network_wire import ANSWER_SECONDS, HEARTBEAT_NS, BenchFailed
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Acknowledge, Credit
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted, Rejected
from holdfast.messages.session import Hello, Kind
from holdfast.messages.subscriptions import Confirmed, Refused, Resume, Subscribe
from holdfast.wire.frame import encode, header
from holdfast.wire.session import HEARTBEAT

__all__ = ["CREDIT", "SAVED", "Line", "Publisher", "Subscriber"]

CREDIT: Final = 20_000  #: events a subscriber has room for

#: The kinds of frames that come here, as ``wire`` has them.
WELCOME, CONFIRMED, REFUSED, REJECTED, PORTION, SAVED, LOGGED = 2, 17, 18, 34, 104, 107, 110

_decode_portion = msgspec.msgpack.Decoder(
    tuple[int, str, int, int, int, str, list[tuple[int, Published]]]
).decode
_decode_accepted = msgspec.msgpack.Decoder(Accepted).decode
_decode_rejected = msgspec.msgpack.Decoder(Rejected).decode
_decode_confirmed = msgspec.msgpack.Decoder(Confirmed).decode
_decode_refused = msgspec.msgpack.Decoder(Refused).decode


class Line(Receiver):
    """A connection in session with its broker; it blocks until ``start``.

    ``sent_at``, if given, has when each number was sent, in ns; then it notes how long each took to be accepted, or to
    be delivered.
    """

    def __init__(self, port: int, name: str, incarnation: int = 1) -> None:
        connected = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(name, connected, 0)
        self.incarnation = incarnation
        self.sent_at: Mapping[int, int] | None = None
        self.latencies_ns: list[int] = []
        self._sent_frames = 0
        self._is_welcome = False
        self.send(Hello(name, Kind.CLIENT, incarnation, 1, "anonymous", HEARTBEAT_NS))
        self.wait(lambda: self._is_welcome)

    def frame(self, kind: int, body: bytes) -> bytes:
        """The next frame of this connection; whoever makes it sends it, before any other."""
        self._sent_frames += kind != HEARTBEAT
        return header(kind, self._sent_frames, len(body)) + body

    def send(self, *messages: Message) -> None:
        """Send a few small messages, which the socket always takes."""
        self.socket.sendall(b"".join([self.frame(*encode(message)) for message in messages]))

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Read until something has come; only before ``start``."""
        while not is_done():
            self.on_readable()

    def start(self) -> None:
        """Stop blocking."""
        self.socket.setblocking(False)

    def close(self) -> None:
        """Hang up, without a word."""
        self.socket.close()

    def on_frame(self, kind: int, body: memoryview) -> int:
        """Take a welcome."""
        if kind != WELCOME:
            return super().on_frame(kind, body)
        self._is_welcome = True
        return 0


class Publisher(Line):
    """A publisher's end: everything must be accepted, and nothing of it known before."""

    upto = 0  #: everything up to this number is accepted
    commits = 0  #: how often it heard that something is on disk

    def on_frame(self, kind: int, body: memoryview) -> int:
        """Take an acknowledgement."""
        if kind == LOGGED:
            self.commits += 1
            return 0
        if kind == REJECTED:
            rejected = _decode_rejected(body)
            raise BenchFailed(f"{self.name}: {rejected.n} is refused: {rejected.problem}")
        if kind != ACCEPTED:
            return super().on_frame(kind, body)
        accepted = _decode_accepted(body)
        if accepted.duplicates:
            raise BenchFailed(f"{self.name}: {accepted.duplicates} were taken for duplicates")
        if self.sent_at is not None:
            arrived = self._arrived_ns
            first = max(self.upto + 1, next(iter(self.sent_at)))
            self.latencies_ns += [arrived - self.sent_at[n] for n in range(first, accepted.upto + 1)]
        self.upto = accepted.upto
        return 0


class Subscriber(Line):
    """A durable subscriber's end. ``due`` is the next number that must come, and numbers go up by ``step``."""

    def __init__(self, port: int, name: str, due: int, step: int, incarnation: int = 1) -> None:
        self.due = due
        self.received = 0  #: events, on this connection
        self.places: dict[str, int] = {}  #: how far it has come, by pubend
        self.token: dict[str, tuple[int, int]] = {}  #: the same, as it is given to whoever it goes on with
        self.is_finished = False
        self.step = step
        self._is_confirmed = False
        self._owed = 0  #: credit used and not given back
        self._ticket = 0  #: of the last acknowledgement
        self._acknowledged: dict[str, int] = {}
        self._is_acknowledging = False
        super().__init__(port, name, incarnation)

    def subscribe(self, filter: str) -> None:
        """Ask for a durable subscription, or to go on with it; ``wait_confirmed`` waits for the answer."""
        resume = Resume(CREDIT, durable=self.name, token=self.token or None)
        self.send(Subscribe(SubscriptionId(self.name, self.incarnation, 1), filter, (), resume=resume))

    def again(self, port: int) -> Subscriber:
        """The same subscriber in its next life, connected; it has not asked for anything yet."""
        after = Subscriber(port, self.name, self.due, self.step, self.incarnation + 1)
        after.token = dict(self.token)
        after.places = dict(self.places)
        return after

    def wait_confirmed(self) -> None:
        """Wait for the confirmation."""
        self.wait(lambda: self._is_confirmed)

    def on_frame(self, kind: int, body: memoryview) -> int:
        """Compare a portion with what is due; take what else may come."""
        if kind == PORTION:
            return self._on_portion(body)
        if kind == SAVED:
            self._is_acknowledging = False
            self._acknowledge()
        elif kind == CONFIRMED:
            if _decode_confirmed(body).partial:
                raise BenchFailed(f"{self.name}: not everybody can be reached")
            self._is_confirmed = True
        elif kind == REFUSED:
            raise BenchFailed(f"{self.name}: {_decode_refused(body).problem}")
        elif kind == WITHDRAWN:
            self.is_finished = True
        else:
            return super().on_frame(kind, body)
        return 0

    def _on_portion(self, body: memoryview) -> int:
        _, pubend, incarnation, upto, lost_through, reason, rows = _decode_portion(body)
        before = self.places.get(pubend, 0)
        self.places[pubend] = upto
        self.token[pubend] = incarnation, upto
        if lost_through:
            raise BenchFailed(f"{self.name}: lost up to {lost_through}, {reason}")
        if not rows:
            return 0
        ticks, numbers = [row[0] for row in rows], [row[1].n for row in rows]
        if not all(map(lt, [before, *ticks], ticks)) or ticks[-1] > upto:
            raise BenchFailed(f"{self.name}: ticks that do not go up from {before} to {upto}: {ticks}")
        after = self.due + self.step * len(numbers)
        if numbers != list(range(self.due, after, self.step)):
            raise BenchFailed(f"{self.name}: {numbers[0]} … {numbers[-1]} came where {self.due} was due")
        self.due = after
        self.received += len(numbers)
        if self.sent_at is not None:
            arrived = self._arrived_ns
            self.latencies_ns += [arrived - self.sent_at[n] for n in numbers]
        self.on_ticks(pubend, ticks)
        return len(numbers)

    def on_ticks(self, pubend: str, ticks: list[int]) -> None:
        """Events have come: give credit back, and acknowledge, from time to time."""
        self._give_back(len(ticks))

    def _give_back(self, count: int) -> None:
        self._owed += count
        if self._owed >= CREDIT // 2:
            self.send(Credit(1, self._owed))
            self._owed = 0
            self._acknowledge()

    def _acknowledge(self) -> None:
        """Say how far it has come, if that is news and nothing is on its way."""
        if not self._is_acknowledging and self.places != self._acknowledged:
            self._is_acknowledging = True
            self._ticket += 1
            self._acknowledged = dict(self.places)
            self.send(Acknowledge(1, self._acknowledged, self._ticket))
