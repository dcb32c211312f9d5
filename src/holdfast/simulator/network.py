"""The simulated network: TCP as a program meets it, over links that delay, lose, repeat, reorder and fail.

- A connection takes one round trip; it is refused while the program at the other side is down.
- Frames are numbered when they are sent. Loss, duplication and reordering act below the numbers, so they show
  as a hole or a repeat, which ends the connection at both ends. Jitter alone never reorders.
- On a cut link everything vanishes silently, both ways. Connections stay open until somebody gives up; after
  the link is healed the numbers show what is missing.
- A crash is silence: what was in flight from or to the program is lost, and its peers learn nothing, until they
  say something to a host whose program is up again and does not know the connection; then it is reset.
- Heartbeats take no time and have no number of their own, but tell that of the last frame before them, so that
  a hole shows even when nothing follows.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from holdfast.clock import Instant
from holdfast.errors import MalformedFrame
from holdfast.messages.message import Message
from holdfast.messages.session import Heartbeat
from holdfast.overlay.transport import Connected, ConnectFailed
from holdfast.scenarios.topology import LinkQuality
from holdfast.simulator.arrivals import Arrivals
from holdfast.simulator.clock import VirtualClock
from holdfast.simulator.connection import End, Flight, Host, State
from holdfast.simulator.links import Link, Links
from holdfast.wire.frame import FrameReader, encode_parted, header

__all__ = ["Network"]

_HEARTBEAT = Heartbeat()


class Network(Links):
    """All hosts, links and connections of a world; ``take`` is that of ``Arrivals``."""

    def __init__(
        self, clock: VirtualClock, random: Random, take: Callable[[Any, Any], None], *, wire: bool = False
    ) -> None:
        super().__init__()
        self._clock = clock
        self.arrivals = Arrivals(clock, take)
        self._random = random
        self._wire = wire  #: whether messages travel as bytes
        self._hosts: dict[str, Host] = {}  #: by address
        self._connections = 0
        self.in_flight = 0  #: flights of frames that have not landed; heartbeats are not counted

    # Hosts

    def add_host(self, host: Host, address: str) -> None:
        """Give a host its address."""
        assert address not in self._hosts, f"two hosts at {address}"
        self._hosts[address] = host

    def remove_host(self, host: Host, address: str) -> None:
        """Take a host away, and every link to and from it."""
        self.crash(host)
        del self._hosts[address]
        self.forget(host.name)

    def holds_unread(self, host: Host) -> bool:
        """Whether anything but heartbeats lies unread at a connection of this host."""
        return any(type(message) is not Heartbeat for end in host.ends.values() for message in end.unread)

    def peers_of(self, host: Host) -> list[str]:
        """Who has said something on a connection that is open on this host's side."""
        ends = host.ends.values()
        return [end.other.host.name for end in ends if end.state is State.OPEN and end.numbers.last]

    def crash(self, host: Host) -> None:
        """The program is gone, with its connections and whatever it had not read."""
        host.is_up = host.is_frozen = False
        host.life += 1
        for end in host.ends.values():
            end.state = State.DEAD
        host.ends.clear()
        host.backlog.clear()

    # Connecting

    def connect(self, host: Host, peer: str, address: str) -> None:
        """Dial; the host's program hears ``Connected`` or ``ConnectFailed``."""
        target = self._hosts.get(address)
        if target is None:
            self._clock.at(self._clock.now, self._fail, (host, host.life, peer, f"no host at {address}"))
            return
        delay = self.link(host.name, target.name).draw_delay(self._random)
        self._clock.at(self._clock.now + delay, self._knock, (host, host.life, target, peer))

    def _knock(self, attempt: tuple[Host, int, Host, str]) -> None:
        host, life, target, peer = attempt
        back = self.link(target.name, host.name)
        there = self.link(host.name, target.name)
        if there.is_cut or back.is_cut:
            self._fail((host, life, peer, "unreachable"))
            return
        arrival = self._clock.now + back.draw_delay(self._random)
        if not target.is_up:
            self._clock.at(arrival, self._fail, (host, life, peer, "refused"))
            return
        ours = self._end(host, there, State.OPENING if host.life == life else State.DEAD)
        theirs = self._end(target, back, State.OPEN)
        ours.other, theirs.other = theirs, ours
        theirs.last_arrival = arrival  # nothing they say arrives before the dialler knows of the connection
        self._clock.at(arrival, self._establish, (ours, peer))
        self.arrivals.stimulus(target, Connected(theirs.id, None))

    def _end(self, host: Host, outward: Link, state: State) -> End:
        self._connections += 1
        end = End(self._connections, host, outward, state, FrameReader() if self._wire else None)
        if state is not State.DEAD:
            host.ends[end.id] = end
        return end

    def _establish(self, opened: tuple[End, str]) -> None:
        end, peer = opened
        if end.state is not State.OPENING:
            return  # the dialler crashed
        end.state = State.OPEN
        self.arrivals.stimulus(end.host, Connected(end.id, peer))

    def _fail(self, failed: tuple[Host, int, str, str]) -> None:
        host, life, peer, reason = failed
        if host.life == life:
            self.arrivals.stimulus(host, ConnectFailed(peer, reason))

    # Sending

    def send(self, host: Host, connection: int, messages: list[Message]) -> None:
        """Send messages on a connection the program believes open."""
        end = host.ends[connection]
        cargo: list[Any] = [message for message in messages if type(message) is not Heartbeat]
        if len(cargo) != len(messages):
            self._clock.at(self._clock.now, self._beat, (end, end.sent))
        if not cargo or end.state is not State.OPEN:
            return
        first = end.sent + 1
        end.sent += len(cargo)
        link = end.outward
        if link.is_cut:
            return
        if self._wire:
            cargo = [_frames(end, message) for message in cargo]
        quality = link.quality
        if quality.loss or quality.duplicate or quality.reorder:
            for number, item in enumerate(cargo, start=first):
                self._send_over_bad_link(end, quality, number, item)
        else:
            self._take_off(end, first, cargo, self._next_arrival(end))

    def _next_arrival(self, end: End) -> Instant:
        arrival = self._clock.now + end.outward.draw_delay(self._random)
        end.last_arrival = max(arrival, end.last_arrival)
        return end.last_arrival

    def _take_off(self, end: End, first: int, cargo: list[Any], arrival: Instant) -> None:
        """What arrives at the same instant as the flight before it goes with that one."""
        flight = end.flight
        if flight is not None and flight.arrival == arrival and flight.first + len(flight.cargo) == first:
            flight.cargo += cargo
            return
        end.flight = flight = Flight(end.other, arrival, first, cargo)
        self.in_flight += 1
        self._clock.at(arrival, self._land, flight)

    def _send_over_bad_link(self, end: End, quality: LinkQuality, number: int, item: Any) -> None:
        draw = self._random.random
        lost, twice, late = draw() < quality.loss, draw() < quality.duplicate, draw() < quality.reorder
        if lost:
            return
        if late:  # beside the queue, by up to one more delay
            delay = quality.delay_ns + quality.jitter_ns + 1
            arrivals = [self._clock.now + delay + self._random.randint(0, delay)]
        else:
            arrivals = [self._next_arrival(end)]
        if twice:
            arrivals.append(self._next_arrival(end))
        for arrival in arrivals:
            self.in_flight += 1
            self._clock.at(arrival, self._land, Flight(end.other, arrival, number, [item]))

    def close(self, host: Host, connection: int, reason: str) -> None:
        """The program closes a connection; the peer learns it after what was sent before."""
        end = host.ends.pop(connection)
        if end.state is State.OPEN:
            self._clock.at(self._next_arrival(end), self._end_arrives, (end, f"closed by the peer: {reason}"))
        end.state = State.CLOSED

    # Arriving

    def _beat(self, beat: tuple[End, int]) -> None:
        end, _ = beat
        to = end.other
        if end.outward.is_cut or end.state is State.DEAD or to.state is State.OPENING:
            return
        if to.state is not State.OPEN:
            self._reset(to, "reset: the connection is not known")
        elif to.is_ending is None:
            self.arrivals.messages(to, [_HEARTBEAT])
            if to.numbers.last < end.sent:
                self._clock.at(end.last_arrival, self._check_tail, beat)

    def _check_tail(self, beat: tuple[End, int]) -> None:
        """A heartbeat tells how many frames went before it: once what is on its way has landed, none is missing."""
        end, sent = beat
        to = end.other
        if (
            to.state is State.OPEN
            and end.state is not State.DEAD
            and to.is_ending is None
            and to.numbers.last < sent
        ):
            self._break(to, f"a heartbeat after frame {sent}, frame {to.numbers.last} was the last: a hole")

    def _land(self, flight: Flight) -> None:
        self.in_flight -= 1
        to = flight.to
        sender = to.other
        if sender.flight is flight:
            sender.flight = None
        if sender.outward.is_cut or sender.state is State.DEAD:
            return
        if to.state is not State.OPEN:
            self._reset(to, "reset: the connection is not known")
        elif to.is_ending is None:
            try:
                messages = _received(to, flight)
            except MalformedFrame as error:
                self._break(to, str(error))
            else:
                self.arrivals.messages(to, messages)

    def _end_arrives(self, ended: tuple[End, str]) -> None:
        sender, reason = ended
        end = sender.other
        if sender.outward.is_cut or sender.state is State.DEAD or end.state is not State.OPEN:
            return
        self.arrivals.ended(end, reason)

    # Breaking

    def _reset(self, end: End, reason: str) -> None:
        """Answer what came to a connection that is no more, if there is somebody to answer."""
        if end.host.is_up and end.state is not State.LINGERING and end.other.state is State.OPEN:
            delay = end.outward.draw_delay(self._random)
            self._clock.at(self._clock.now + delay, self._reset_arrives, (end, reason))

    def _reset_arrives(self, reset: tuple[End, str]) -> None:
        end, reason = reset
        if not end.outward.is_cut and end.other.state is State.OPEN:
            self.arrivals.lose(end.other, reason)

    def _break(self, end: End, reason: str) -> None:
        """The session cannot go on: this end knows now, the other after the delay."""
        self.arrivals.lose(end, reason)
        end.state = State.CLOSED
        self._reset(end, f"broken at the other end: {reason}")


def _frames(end: End, message: Message) -> bytes:
    """A message as bytes: one frame, or several if it is large; they share the message's fate."""
    parts: list[bytes] = []
    for kind, body in encode_parted(message):
        end.frames_sent += 1
        parts += (header(kind, end.frames_sent, len(body)), body)
    return b"".join(parts)


def _received(end: End, flight: Flight) -> list[Message]:
    """The messages of a flight, their numbers checked.

    :raises MalformedFrame: if they are not the next ones.
    """
    if flight.first != end.numbers.last + 1:
        end.numbers.check(flight.first)
    end.numbers.last += len(flight.cargo)
    if end.reader is None:
        return flight.cargo
    return [message for frames in flight.cargo for message in end.reader.feed(frames)]
