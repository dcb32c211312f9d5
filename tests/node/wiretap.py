"""Everything nodes say to each other in a simulated world, and what must be true of it whatever happens.

The laws are those of the wire: they hold at all times, beyond δ too, and for nodes of any life.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from harness import Net

from holdfast.clock import Instant
from holdfast.identity import EventId
from holdfast.messages.message import Message
from holdfast.messages.overlay import Ready, Relay, Told
from holdfast.messages.session import Heartbeat
from holdfast.messages.subscriptions import Subscribe
from holdfast.node.trails import bypassed_in, numbered, vector_length
from holdfast.overlay.transport import Received, Send
from holdfast.simulator.connection import Host
from holdfast.simulator.transcript import Transcript

__all__ = ["Frame", "Wiretap"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One message, as it was said or heard at one end of a connection."""

    at: Instant
    node: str
    peer: str
    connection: int  #: the number at this end; every connection has two, and none is used twice
    is_sent: bool
    message: Message


class Wiretap(Transcript):
    """Stands where a transcript would, and keeps the messages themselves."""

    def __init__(self) -> None:
        super().__init__(lines_max=1)
        self.frames: list[Frame] = []

    def step(self, now: Instant, host: Host, stimulus: Any, effects: Sequence[Any]) -> None:
        if isinstance(stimulus, Received):
            self._keep(now, host, stimulus.connection, False, stimulus.messages)
        for effect in effects:
            if isinstance(effect, Send):
                self._keep(now, host, effect.connection, True, effect.messages)

    def _keep(
        self, now: Instant, host: Host, connection: int, is_sent: bool, messages: Sequence[Message]
    ) -> None:
        end = host.ends.get(connection)
        if end is not None:
            self.frames += [
                Frame(now, host.name, end.other.host.name, connection, is_sent, message)
                for message in messages
                if not isinstance(message, Heartbeat)
            ]

    def sent(self, kind: type[Any], node: str | None = None, peer: str | None = None) -> list[Frame]:
        return [
            frame
            for frame in self.frames
            if frame.is_sent
            and isinstance(frame.message, kind)
            and node in (None, frame.node)
            and peer in (None, frame.peer)
        ]

    def relays(self, *, refill: bool = False) -> Iterator[tuple[Frame, Relay]]:
        for frame in self.frames:
            if frame.is_sent and isinstance(frame.message, Relay) and frame.message.refill is refill:
                yield frame, frame.message

    def copies_of(self, event: str) -> list[tuple[str, str]]:
        """Who sent an event to whom, in order."""
        return [
            (frame.node, frame.peer)
            for frame, relay in self.relays()
            if event in (str(relay.batch.publications[i].id) for i in relay.at)
        ]

    # Laws

    def broken_laws(self, net: Net) -> list[str]:
        """What was said that must not be."""
        return [*self.illegitimate(net), *self.untrue(net), *self.overtaking(), *self.before_tables()]

    def illegitimate(self, net: Net) -> Iterator[str]:
        """I5: too many bypassed, or a connection that is too long."""
        window = 2 * net.delta + 1
        hops = cache(lambda a, b: len(net.path(a, b)) - 1)
        for frame in self.frames:
            if not frame.is_sent:
                continue
            if hops(frame.node, frame.peer) > net.delta + 1:
                yield f"I5: {frame.node} and {frame.peer} are too far from each other"
            match frame.message:
                case Relay(refill=False, trail=trail):
                    nulls = bypassed_in(trail.steps[-window:])
                case Subscribe(vector=vector):
                    nulls = sum(each.counter is None for each in vector[-window:])
                case _:
                    continue
            if nulls > net.delta:
                yield f"I5: {frame.node} sent {frame.peer} {frame.message} past {nulls} nodes"

    def untrue(self, net: Net) -> Iterator[str]:
        """I7, I13: vectors that are not the way of the tree, or numbers given twice."""
        given: dict[tuple[str, int | None, int], EventId] = {}
        for frame, relay in self.relays():
            names = [step.node for step in relay.trail.steps]
            if (
                any(b not in net.edges[a] for a, b in pairwise(names))
                or names[-1] not in net.edges[frame.peer]
            ):
                yield f"I7: {frame.node} told {frame.peer} of a way {names}"
            if len(names) > vector_length(net.delta):
                yield f"I7: {frame.node} told {frame.peer} of {len(names)} nodes"
            for step, column in numbered(relay.trail):
                for i, number in zip(relay.at, column, strict=True):
                    event = relay.batch.publications[i].id
                    if given.setdefault((step.node, step.incarnation, number), event) != event:
                        yield f"I13: {step.node}.{step.incarnation} gave {number} to {event} too"

    def overtaking(self) -> Iterator[str]:
        """I6: in a session what is sent for the first time comes in the order of the sender's numbers."""
        last: dict[int, int] = {}
        for frame, relay in self.relays():
            column = next(c for step, c in numbered(relay.trail) if step.node == frame.node)
            if not relay.again and column[0] <= last.get(frame.connection, 0):
                yield f"I6: {frame.node} sent {frame.peer} its {column[0]} after {last[frame.connection]}"
            last[frame.connection] = max(last.get(frame.connection, 0), column[-1])

    def before_tables(self) -> Iterator[str]:
        """I9: publications on a connection before both have told what they know."""
        told: set[int] = set()
        ready: set[int] = set()
        for frame in self.frames:
            match frame.message:
                case Told() if frame.is_sent:
                    told.add(frame.connection)
                case Ready() if not frame.is_sent:
                    ready.add(frame.connection)
                case Relay(refill=True) if frame.is_sent and frame.connection in told:
                    yield f"B0.16: {frame.node} gave back to {frame.peer} after the handshake"
                case Relay(refill=False) if frame.is_sent and frame.connection not in told & ready:
                    yield f"I9: {frame.node} sent publications to {frame.peer} too early"
