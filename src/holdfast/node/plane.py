"""The reliable data plane of one node [KJ §2.2, §5, §8].

A publication that is new here gets the node's next number, is matched once, and is queued with a share for every
target. Everybody who is next on the way of a target is sent it, in the order of the numbers. Who becomes next later
is sent everything that is not known to be safe, from the head of the queue. The copies on the way are the storage.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.events.event import Content
from holdfast.identity import EventId
from holdfast.messages.marks import is_mark
from holdfast.messages.overlay import Confirmations, DepthAck, Holding, Relay, Role, Step, Trail
from holdfast.messages.publications import Batch, Publication, Tag
from holdfast.node.entrusted import Entrusted
from holdfast.node.flight import ACKNOWLEDGE_PARTS, CLIENT_PART, Flight
from holdfast.node.holdings import Holdings
from holdfast.node.marks import Marks
from holdfast.node.reach import Reach
from holdfast.node.segment import Segment, Share
from holdfast.node.settings import Acknowledge, NodeSettings
from holdfast.node.station import Station
from holdfast.node.trails import extended, is_legitimate, picked
from holdfast.node.waiting import LowestNumbers, Rows
from holdfast.overlay.transport import Send, Trace, TransportEffect
from holdfast.routing.port import Port

__all__ = ["RETELL_EVERY", "Plane", "PlaneCounters"]

#: What has not changed is told again every so many times.
RETELL_EVERY: Final = 8

#: So many holdings or confirmations go into one message.
HOLDINGS_MAX: Final = 10_000

#: Gives every port its share of a batch; the ports that have one.
Gather = Callable[[Sequence[Content]], list[Port]]

#: The same for so many marks, which are for everybody.
Everybody = Callable[[int], list[Port]]


@dataclass(slots=True)
class PlaneCounters:
    """Each only grows."""

    accepted: int = 0  #: publications that were new here
    originated: int = 0  #: of these, those that began here
    forwarded: int = 0  #: copies sent
    resent: int = 0  #: of these, those sent again
    duplicates: int = 0  #: copies that had come before
    refilled: int = 0  #: publications given back after a restart
    unwanted: int = 0  #: publications nobody beyond wants


class Plane:
    """Numbers, queues, sends and purges."""

    def __init__(
        self,
        settings: NodeSettings,
        reach: Reach,
        gather: Gather,
        everybody: Everybody,
        on_local: Callable[[Port, str, Batch, Share, tuple[Tag, ...]], list[TransportEffect]],
        on_accepted: Callable[[list[Publication]], None],
        tags_here: Callable[[str, tuple[Tag, ...]], tuple[Tag, ...]],
    ) -> None:
        self._me = settings.name
        self._delta = settings.delta
        self._step = Step(settings.name, settings.incarnation)
        self._acknowledge = settings.acknowledge
        self._trace_forwards = settings.trace_forwards
        self._reach = reach
        self._gather = gather
        self._everybody = everybody
        self._on_local = on_local  #: for somebody at this node itself
        self._on_accepted = on_accepted  #: what began here is accepted
        self._tags_here = tags_here  #: what of a publisher's tags is for somebody at this node itself
        self.marks = Marks()
        self.holdings = Holdings(reach.topology, settings.incarnation, relays=settings.role is Role.BROKER)
        self.counters = PlaneCounters()
        self.queue: dict[int, Segment] = {}  #: by first number, in order
        self._depth_acks = 0  #: how often we have acknowledged
        self._rows, self._kept_rows = Rows(), Rows()
        self._lowest = LowestNumbers(reach.topology.reach)
        self._entrusted: Entrusted | None = None  #: of a broker that hears what others hold
        if settings.role is Role.BROKER and settings.acknowledge is not Acknowledge.CONF:
            self._entrusted = Entrusted(settings.delta, self.holdings)
        self._by_id: dict[EventId, int] | None = None
        self._is_by_id_used = False
        self.kept: dict[int, Segment] = {}  #: beyond the queue: safe, but not for good
        self._kept_bytes = 0
        self._kept_bytes_max = settings.replay_bytes_max
        self._role = settings.role
        self._flight_bytes_max = settings.relayed_bytes  #: between brokers
        self.stalled: dict[str, int] = {}  #: by direction, the number at which nothing legitimate can be sent
        self._last = 0  #: our last number
        self._endpoints: list[Station] = []
        self._local: list[TransportEffect] = []

    @property
    def held(self) -> int:
        """How many publications are in the queue."""
        return sum(len(segment.batch) for segment in self.queue.values())

    # In

    def originate(
        self, stream: str, batch: Batch, events: Sequence[Content] | None, tags: tuple[Tag, ...]
    ) -> list[TransportEffect]:
        """Publications begin here; ``events`` are their contents, None of marks. The tags are for others."""
        self.counters.originated += len(batch)
        segment = self._enter(stream, batch, events, Trail((), []), (), None)
        if segment is None:
            self._on_accepted(batch.publications)
            return self._take_local()
        segment.tags = tags
        if self._entrusted is not None:
            self._entrusted.add(segment)
        return self._take_local() + self._send_new(segment)

    def _take_local(self) -> list[TransportEffect]:
        local, self._local = self._local, []
        return local

    def new(self, sender: Station, relay: Relay) -> list[int]:
        """Which of a relay's publications are new here, by place in ``relay.at``.

        :raises ValueError: if its trail cannot be.
        """
        self._check(sender, relay.trail)
        new = self.marks.new(relay.trail, len(relay.at))
        if len(new) < len(relay.at):
            self.counters.duplicates += len(relay.at) - len(new)
            self._note_repeats(relay, new)
        return new

    def _check(self, sender: Station, trail: Trail) -> None:
        """The way must be that of the tree: it ends with who lies between, bypassed, after the sender itself."""
        names = (sender.name, *reversed(sender.path[:-1]))
        tail = trail.steps[-len(names) :]
        is_bypassing = all(step.incarnation is None for step in tail[1:])
        if tuple(step.node for step in tail) != names:
            raise ValueError(f"a way that does not lead from {sender.name} here")
        if tail[0].incarnation != sender.incarnation or not is_bypassing:
            raise ValueError(f"a way from {sender.name} that did not begin with it")
        if not is_legitimate(trail, self._delta):
            raise ValueError("a way that is not legitimate")
        if len(trail.numbers) != sum(step.incarnation is not None for step in trail.steps):
            raise ValueError("a way with too many or too few numbers")

    def _note_repeats(self, relay: Relay, new: list[int]) -> None:
        """Repeats of what is still queued count among its numbers [B0.11]."""
        fresh = set(new)
        places: dict[int, list[int]] = {}
        for place, i in enumerate(relay.at):
            if (
                place not in fresh
                and (first := self._queued().get(relay.batch.publications[i].id)) is not None
            ):
                places.setdefault(first, []).append(place)
        for first, found in places.items():
            segment = self.queue[first]
            for life, lowest in segment.add_alias(relay.trail, found):
                if self._acknowledge is not Acknowledge.CONF:
                    self._lowest.add_number(life, lowest, segment)

    def _queued(self) -> dict[EventId, int]:
        """Where publications are queued. Kept only while repeats come."""
        if self._by_id is None:
            self._by_id = {
                publication.id: first
                for first, segment in self.queue.items()
                for publication in segment.batch.publications
            }
        self._is_by_id_used = True
        return self._by_id

    def take(
        self,
        relay: Relay,
        new: list[int],
        events: Sequence[Content] | None,
        tags: tuple[Tag, ...],
        sender: Station,
    ) -> list[TransportEffect]:
        """Queue what is new of a relay and send it on; ``events`` are the contents of what is new, None of marks."""
        batch = relay.batch.picked([relay.at[place] for place in new])
        trail = relay.trail if len(new) == len(relay.at) else picked(relay.trail, new)
        segment = self._enter(
            relay.stream, batch, events, trail, tags, trail.steps[-1].node, is_returned=relay.returned
        )
        if segment is None:
            return self._take_local() + self.confirm(sender, trail.numbers[-1])
        if self._acknowledge is Acknowledge.CONF:
            segment.senders[sender.name] = list(trail.numbers[-1])
        return self._take_local() + self._send_new(segment)

    def _enter(
        self,
        stream: str,
        batch: Batch,
        events: Sequence[Content] | None,
        trail: Trail,
        tags: tuple[Tag, ...],
        upstream: str | None,
        only: Station | None = None,
        *,
        is_returned: bool = False,
    ) -> Segment | None:
        """Number and match a batch; None if nobody beyond wants any of it."""
        first = self._last + 1
        self._last += len(batch)
        self.counters.accepted += len(batch)
        shares: dict[Station, Share] = {}
        tags_here = self._tags_here(batch.publications[0].publisher, tags)
        for port in self._everybody(len(batch)) if events is None else self._gather(events):
            at, subscriptions = port.take_share()
            share = Share(at, subscriptions)
            if not isinstance(port, Station):
                if only is None:
                    self._local += self._on_local(port, stream, batch, share, tags_here)
            elif port.direction != upstream and (only is None or port.path[: only.distance] == only.path):
                shares[port] = share
        if not shares:
            self.counters.unwanted += len(batch)
            return None
        caps = {step.node: self.marks.latest(step.node) for step in trail.steps if step.incarnation is None}
        segment = Segment(stream, batch, first, trail, tags, upstream, shares, caps, is_returned)
        self.queue[first] = segment
        if self._acknowledge is not Acknowledge.CONF:  # who is asked by depth-acknowledgements only
            self._lowest.add(segment)
            for target in shares:
                self._rows.add(target, segment)
        if self._by_id is not None:
            self._by_id.update({publication.id: first for publication in batch.publications})
        return segment

    # Out

    def _send_new(self, segment: Segment) -> list[TransportEffect]:
        effects: list[TransportEffect] = []
        for direction in dict.fromkeys(target.direction for target in segment.shares):
            if direction not in self.stalled:
                effects += self._send_in(direction, [segment])
        return effects

    def _send_in(self, direction: str, segments: Sequence[Segment]) -> list[TransportEffect]:
        """Send segments in one direction, in order, until one cannot be sent legitimately; none overtakes it [B0.9].

        Nor does any overtake one for which there is no room on the way to its station (``flight``).
        """
        effects: list[TransportEffect] = []
        endpoints = [each for each in self._endpoints if each.direction == direction]
        for segment in segments:
            copies = []
            for endpoint in endpoints:
                if (
                    endpoint.flight.is_held_up
                    or endpoint.cursor >= segment.last
                    or (share := segment.take_for(endpoint, replays=endpoint.replays)) is None
                ):
                    continue
                if endpoint.flight.size >= self._room(endpoint):
                    endpoint.flight.is_held_up = True
                    continue
                bypassed = endpoint.path[:-1]
                steps = extended(Trail(segment.trail.steps, []), self._step, [], bypassed, self._delta)
                if not is_legitimate(steps, self._delta):
                    self.stalled[direction] = segment.first
                    return effects
                copies.append((endpoint, share))
            for endpoint, share in copies:
                effects += self._copy(segment, endpoint, share)
            for endpoint in endpoints:
                if not endpoint.flight.is_held_up:
                    endpoint.cursor = max(endpoint.cursor, segment.last)
        return effects

    def _copy(self, segment: Segment, endpoint: Station, share: Share) -> list[TransportEffect]:
        assert endpoint.connection is not None
        again = endpoint.name in segment.sent
        segment.sent.add(endpoint.name)
        numbers = [segment.first + i for i in share.at]
        whole = len(share.at) == len(segment.batch)
        trail = segment.trail if whole else picked(segment.trail, share.at)
        relay = Relay(
            segment.stream,
            segment.batch,
            share.at,
            extended(trail, self._step, numbers, endpoint.path[:-1], self._delta),
            segment.tags,
            share.subscriptions or None,
            again,
            returned=segment.is_returned,
        )
        if self._acknowledge is Acknowledge.DACK:  # nobody else says what has arrived
            publications = segment.batch.publications
            size = segment.size if whole else sum([len(publications[i].event) for i in share.at])
            endpoint.flight.send(numbers[-1], size)
        self.counters.forwarded += len(share.at)
        self.counters.resent += len(share.at) if again else 0
        send = Send(endpoint.connection, [relay])
        if not self._trace_forwards or is_mark(segment.batch.publications[0]):
            return [send]
        return [*(self._line(segment, i, endpoint, again) for i in share.at), send]

    def _line(self, segment: Segment, i: int, endpoint: Station, again: bool) -> Trace:
        publisher, n = segment.batch.publications[i].id
        fields = {"from": self._me, "to": endpoint.name, "publisher": publisher, "n": n, "again": again}
        return Trace("forward", fields)

    # Ways

    def rewire(self) -> list[TransportEffect]:
        """Who is next on which way has changed: newcomers are served from the head of the queue [KJ §4.3, B0.28]."""
        endpoints = self._reach.endpoints()
        current = set(endpoints)
        changed: dict[str, None] = {}
        for station in self._endpoints:
            if station not in current:
                station.is_endpoint = False
                changed[station.direction] = None
        for station in endpoints:
            if not station.is_endpoint:
                station.is_endpoint = True
                station.cursor = 0
                station.flight = Flight()
                station.replays = station.is_restarted or self.holdings.counted_on_earlier_life(station)
                changed[station.direction] = None
        self._endpoints = endpoints
        effects: list[TransportEffect] = []
        for direction in changed:
            effects += self._serve(direction)
        return effects

    def _serve(self, direction: str) -> list[TransportEffect]:
        self.stalled.pop(direction, None)
        effects = self._send_in(direction, self._in_order(direction))
        self._end_replay(direction)
        return effects

    def _end_replay(self, direction: str) -> None:
        for station in self._endpoints:
            is_served = station.direction == direction and not station.flight.is_held_up
            station.replays = station.replays and not is_served

    def _room(self, station: Station) -> int:
        """How much may be on its way to a station, and from it; it goes by the same."""
        are_brokers = self._role is station.place.role is Role.BROKER
        return self._flight_bytes_max if are_brokers else self._flight_bytes_max // CLIENT_PART

    def _go_on(self) -> list[TransportEffect]:
        """Send more to those for whom there was no room, and is by now."""
        effects: list[TransportEffect] = []
        for station in self._endpoints:
            flight = station.flight
            if flight.size:
                flight.arrive(self.holdings.arrived(station.name))
            if flight.is_held_up and flight.size <= self._room(station) // 2:
                flight.is_held_up = False
                if (direction := station.direction) not in self.stalled:
                    effects += self._send_in(direction, self._in_order(direction))
                    self._end_replay(direction)
        return effects

    def _in_order(self, direction: str) -> list[Segment]:
        """The queue; and what is kept beyond it, where somebody has lost its memory."""
        if not any(each.replays and each.direction == direction for each in self._endpoints):
            return list(self.queue.values())
        return [segment for _, segment in sorted({**self.kept, **self.queue}.items())]

    # Refill

    def refill_for(self, station: Station) -> list[TransportEffect]:
        """What a restarted station has lost and we still hold of it, given back [B0.16]."""
        assert station.connection is not None
        effects: list[TransportEffect] = []
        for segment in self.queue.values():
            place = next((i for i, step in enumerate(segment.trail.steps) if step.node == station.name), None)
            if place is None:
                continue
            steps = segment.trail.steps[:place]
            passed = sum(step.incarnation is not None for step in steps)
            trail = Trail(steps, segment.trail.numbers[:passed])
            at = range(len(segment.batch))
            relay = Relay(
                segment.stream,
                segment.batch,
                at,
                trail,
                segment.tags,
                again=True,
                refill=True,
                returned=segment.is_returned,
            )
            effects.append(Send(station.connection, [relay]))
        return effects

    def take_back(self, relay: Relay, events: Sequence[Content] | None, sender: Station) -> None:
        """Keep what a station gives back to us, for those beyond it only."""
        batch = relay.batch.picked(relay.at)
        steps = relay.trail.steps
        upstream = steps[-1].node if steps else None
        self.counters.refilled += len(batch)
        is_returned = relay.returned or batch.publications[0].publisher == self._me
        self._enter(
            relay.stream, batch, events, relay.trail, relay.tags, upstream, sender, is_returned=is_returned
        )

    # Acknowledgements

    def depth_acks(self, stations: Sequence[Station]) -> list[TransportEffect]:
        """DACK, to everybody in session [R0.60]."""
        self._settle_entrusted()
        if not self._is_by_id_used:
            self._by_id = None
        self._is_by_id_used = False
        self._depth_acks += 1
        if self._depth_acks % RETELL_EVERY == 0:
            self.holdings.retell()
        own = self._own_holdings()
        return [effect for station in stations for effect in self._acknowledge_to(station, own)]

    def _acknowledge_to(self, station: Station, own: dict[str, Holding]) -> list[TransportEffect]:
        assert station.connection is not None
        news = self.holdings.news_for(station, own)
        return [
            Send(station.connection, [DepthAck(tuple(news[start : start + HOLDINGS_MAX]))])
            for start in range(0, len(news), HOLDINGS_MAX)
        ]

    def acknowledge_much(self, sender: Station, relay: Relay) -> list[TransportEffect]:
        """Tell a station at once what we hold, if much has come from it: there may be more than there was room for."""
        if self._acknowledge is not Acknowledge.DACK or not sender.is_told:
            return []
        flight, publications = sender.flight, relay.batch.publications
        flight.heard += sum([len(publications[i].event) for i in relay.at])
        if flight.heard < self._room(sender) // ACKNOWLEDGE_PARTS:
            return []
        flight.heard = 0
        return self._acknowledge_to(sender, self._own_holdings())

    def _own_holdings(self) -> dict[str, Holding]:
        me, incarnation = self._me, self._step.incarnation
        assert incarnation is not None
        own: dict[str, Holding] = {}
        for place in self._reach.topology:
            name = place.name
            life, highest = self.marks.latest(name)
            if highest:
                discarded = self._discarded(name, life, highest)
                own[name] = Holding(me, incarnation, name, life, highest, discarded)
        return own

    def _discarded(self, node: str, life: int, highest: int) -> int:
        """Up to which number everything that came of a life of a node has been discarded [B0.12, B0.38]."""
        lowest = self._lowest.of(node, life, self.queue)
        discarded = highest if lowest is None else lowest - 1
        cap = self._lowest.cap(node, self.queue)
        if cap is None:
            return discarded
        return min(discarded, cap[1] if cap[0] == life else 0)

    def on_depth_ack(self, sender: Station, message: DepthAck) -> list[TransportEffect]:
        """Others have told what they hold."""
        open_names = {name for name, each in self._reach.stations.items() if each.connection is not None}
        self.holdings.hear(sender, message.holdings, open_names)
        self._settle_entrusted()
        return self._purge() + self._go_on()

    def _settle_entrusted(self) -> None:
        if self._entrusted is not None:
            self._on_accepted(self._entrusted.settle())

    def _purge(self) -> list[TransportEffect]:
        """Let go what is safe; keep some of what is not so for good, in case more fail than δ [B0.16]."""
        done: dict[int, Segment] = {}
        for target in self._rows.targets():
            safe, final = self.holdings.safe(target.path)
            for segment in self._rows.take(target, safe):
                share = segment.shares.pop(target)
                if segment.first + share.at[-1] > final:
                    segment.kept[target] = share
                    self._kept_rows.add(target, segment)
                done[segment.first] = segment
        effects = [effect for segment in done.values() for effect in self._discard_if_safe(segment)]
        self._let_go()
        return effects

    def _let_go(self) -> None:
        """Of what is kept beyond the queue, whatever is safe for good by now, and the oldest of what is too much."""
        for target in self._kept_rows.targets():
            final = self.holdings.safe(target.path)[1]
            for segment in self._kept_rows.take(target, final, kept=True):
                del segment.kept[target]
                if not segment.kept:
                    self._drop_kept(segment.first)
        while self._kept_bytes > self._kept_bytes_max:
            self._drop_kept(next(iter(self.kept)))

    def _drop_kept(self, first: int) -> None:
        segment = self.kept.pop(first, None)
        if segment is not None:
            segment.kept.clear()
            self._kept_bytes -= segment.size

    def _discard_if_safe(self, segment: Segment) -> list[TransportEffect]:
        if segment.shares or segment.first not in self.queue:
            return []
        del self.queue[segment.first]
        if self._by_id is not None:
            for publication in segment.batch.publications:
                if self._by_id.get(publication.id) == segment.first:
                    del self._by_id[publication.id]
        if segment.kept:
            self.kept[segment.first] = segment
            self._kept_bytes += segment.size
        if segment.upstream is None:
            self._on_accepted(segment.batch.publications)
        effects: list[TransportEffect] = []
        for name, numbers in segment.senders.items():
            station = self._reach.get(name)
            if station is not None:
                effects += self.confirm(station, numbers)
        for direction in [each for each, first in self.stalled.items() if first == segment.first]:
            effects += self._serve(direction)
        return effects

    # Confirmations, instead of depth-acknowledgements

    def confirm(self, sender: Station, numbers: list[int]) -> list[TransportEffect]:
        """PCONF, to who sent them, by its own numbers."""
        if self._acknowledge is not Acknowledge.CONF or sender.connection is None:
            return []
        return [
            Send(sender.connection, [Confirmations(numbers[start : start + HOLDINGS_MAX])])
            for start in range(0, len(numbers), HOLDINGS_MAX)
        ]

    def confirm_repeats(self, sender: Station, relay: Relay, new: list[int]) -> list[TransportEffect]:
        """A repeat of what is gone from here is confirmed again; of what is still queued, later [B0.29]."""
        if self._acknowledge is not Acknowledge.CONF:
            return []
        fresh = set(new)
        gone: list[int] = []
        for place, i in enumerate(relay.at):
            if place in fresh:
                continue
            number = relay.trail.numbers[-1][place]
            first = self._queued().get(relay.batch.publications[i].id)
            if first is None:
                gone.append(number)
            else:
                numbers = self.queue[first].senders.setdefault(sender.name, [])
                if number not in numbers:
                    numbers.append(number)
        return self.confirm(sender, gone)

    def on_confirmations(self, sender: Station, message: Confirmations) -> list[TransportEffect]:
        """Everybody beyond a station has these."""
        known: dict[int, Segment] = {}
        firsts = list(self.queue)
        for number in message.numbers:
            place = bisect_right(firsts, number) - 1
            segment = self.queue[firsts[place]] if place >= 0 else None
            if segment is not None and number <= segment.last:
                segment.confirmed.setdefault(sender.name, set()).add(number)
                known[segment.first] = segment
        effects: list[TransportEffect] = []
        for segment in known.values():
            confirmed = segment.confirmed[sender.name]
            for target, share in list(segment.shares.items()):
                beyond = target.path[: sender.distance] == sender.path
                if beyond and all(segment.first + i in confirmed for i in share.at):
                    del segment.shares[target]
            effects += self._discard_if_safe(segment)
        return effects

    def on_lost(self, station: Station) -> None:
        """A session is over: it is not waiting for confirmations any more, and its copies do not count.

        Unless somebody nearer on the way there is open: he would say so.
        """
        if self._reach.next_hop(station.path) is None:
            self.holdings.doubt(station)
        for segment in self.queue.values():
            segment.senders.pop(station.name, None)

    # Leaving

    def forget(self, station: Station) -> list[TransportEffect]:
        """A node has left: nobody waits for it."""
        effects: list[TransportEffect] = []
        self.marks.forget(station.name)
        self.holdings.forget(station.name)
        if self._entrusted is not None:
            self._on_accepted(self._entrusted.forget(station))
        self._rows.forget(station)
        self._kept_rows.forget(station)
        for segment in list(self.queue.values()):
            segment.kept.pop(station, None)
            if segment.shares.pop(station, None) is not None:
                effects += self._discard_if_safe(segment)
        for segment in list(self.kept.values()):
            segment.kept.pop(station, None)
            if not segment.kept:
                self._drop_kept(segment.first)
        return effects
