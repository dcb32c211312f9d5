"""I12: nobody discards a publication before enough others have it [KJ §8, B0.15].

When a node discards its copy for a target beyond which somebody waits for it, on the way there every node must have
received it, in the life it is in or in one that ended so lately that its failure need not be known yet; or one of them
must have discarded it, rightly, itself. What a client receives is delivered, and nobody holds more. How many
hold it then is counted in ``holders``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from holdfast.clock import Instant
from holdfast.identity import EventId
from holdfast.messages.overlay import Confirmations, DepthAck, Leave, Relay
from holdfast.messages.subscriptions import Lore
from holdfast.node.segment import Segment, Share
from holdfast.node.station import Station
from holdfast.node.topology import Path
from holdfast.simulator.oracle.annals import Annals, Law, Step, events_of
from holdfast.simulator.oracle.holders import Holders

__all__ = ["Purges"]

_DISCARDING = (DepthAck, Confirmations)
_LEAVING = (Leave, Lore)


class Purges(Law):
    """By node and life the copies it holds, target by target; and by node what it has discarded, in any life."""

    def __init__(self, annals: Annals) -> None:
        super().__init__(annals)
        self._held: dict[tuple[str, int], dict[int, tuple[Segment, dict[Station, Share]]]] = {}
        self._received: dict[str, dict[EventId, int]] = {}  #: by node, the last life in which it came
        self._discarded: dict[str, set[EventId]] = {}
        self._wanted: dict[str, dict[EventId, set[str]]] = {}  #: by node, towards which neighbours
        self._holders = Holders(annals)
        self._born: dict[tuple[str, int], Instant] = {}
        self._recovered: set[tuple[str, int]] = set()
        configuration = annals.configuration
        #: A report of a life that is over may be believed for so long: it is noticed, and told from node to node.
        self._believed_ns: Instant = (
            2 * (configuration.detect_after_ns + configuration.heartbeat_ns)
            + (annals.delta + 2) * configuration.dack_every_ns
        )

    def judge(self, step: Step) -> Iterator[str]:
        """Of what a node has discarded in this step."""
        held = self._held.setdefault((step.name, step.life), {})
        queue = step.node.plane.queue
        self._note_received(step)
        queued: set[EventId] = set()
        for segment in reversed(queue.values()):
            if segment.first in held:
                break
            held[segment.first] = segment, dict(segment.shares)
            self._note_wanted(step.name, segment)
            self._holders.take(step, segment)
            queued.update(publication.id for publication in segment.batch.publications)
        if step.verdicts:
            self._note_unwanted(step, queued)
        yield from self._is_refilled(step)
        kinds = {type(each.message) for each in step.heard}
        is_judged = kinds.isdisjoint(_LEAVING)  # who leaves is not waited for
        if kinds.isdisjoint(_DISCARDING) and is_judged and len(held) == len(queue):
            return
        for first, (segment, shares) in list(held.items()):
            for target in [each for each in shares if each not in segment.shares or first not in queue]:
                share = shares.pop(target)
                self._holders.drop(step.name, segment, target, share)
                if is_judged:
                    yield from self._is_safe(step, segment, target, share)
            if first not in queue:
                del held[first]
                gone = self._discarded.setdefault(step.name, set())
                gone.update(publication.id for publication in segment.batch.publications)

    def _is_refilled(self, step: Step) -> Iterator[str]:
        """Whether a node that has come back has got back what its last life held."""
        life = step.name, step.life
        born = self._born.setdefault(life, step.now)
        if life in self._recovered or not step.node.is_recovered:
            return
        self._recovered.add(life)
        lives = [each for each in self._held if each[0] == step.name and each[1] < step.life]
        if not lives or not self.annals.configuration.refill:
            return
        for segment, shares in self._held[max(lives)].values():
            for target, share in shares.items():
                for event in (segment.batch.publications[i].id for i in share.at):
                    for subscriber in self._waiting(step.name, target.name, event):
                        yield from self._holders.not_given_back(step, event, subscriber, born=born)

    def _note_wanted(self, name: str, segment: Segment) -> None:
        wanted = self._wanted.setdefault(name, {})
        for target, share in segment.shares.items():
            for i in share.at:
                wanted.setdefault(segment.batch.publications[i].id, set()).add(target.direction)

    def _note_received(self, step: Step) -> None:
        received = self._received.setdefault(step.name, {})
        for verdict in step.verdicts:
            new = set(verdict.new)
            for place, event in events_of(verdict.relay):
                if place in new:
                    received[event] = step.life
        for said in step.heard:
            if isinstance(said.message, Relay) and said.message.refill:
                received.update((event, step.life) for _, event in events_of(said.message))

    def _note_unwanted(self, step: Step, queued: set[EventId]) -> None:
        """What nobody beyond wants is gone at once; and so is, to a client, what it delivers."""
        gone = self._discarded.setdefault(step.name, set())
        for verdict in step.verdicts:
            new = set(verdict.new)
            gone.update(e for place, e in events_of(verdict.relay) if place in new and e not in queued)

    def _is_safe(self, step: Step, segment: Segment, target: Station, share: Share) -> Iterator[str]:
        for i in share.at:
            event = segment.batch.publications[i].id
            waiting = self._waiting(step.name, target.name, event)
            if not waiting or self._ended(target.path, event):
                continue
            for subscriber in waiting:
                yield from self._holders.too_few(event, subscriber)
            if any(event in self._discarded.get(name, ()) for name in target.path):
                continue
            without = [name for name in target.path if not self._has(name, event, step.now)]
            if without:
                yield f"I12: {step.name} discarded {event} for {target.name}, and {', '.join(without)} never had it"

    def _waiting(self, name: str, target: str, event: EventId) -> list[str]:
        """The subscribers at a target or beyond it that are owed an event, and have not got it."""
        annals = self.annals
        owed = dict.fromkeys(each.subscription.subscriber for each in annals.owed(event))
        return [
            subscriber
            for subscriber in owed
            if target in annals.tree.path(name, subscriber)
            and event not in annals.arrived.get(subscriber, ())
        ]

    def _ended(self, path: Path, event: EventId) -> bool:
        """Whether somebody on a way took it and found that nobody farther on it wants it any more."""
        return any(
            event in self._received.get(name, {}) and farther not in self._wanted.get(name, {}).get(event, ())
            for name, farther in pairwise(path)
        )

    def _has(self, name: str, event: EventId, now: Instant) -> bool:
        life = self._received.get(name, {}).get(event)
        if life is None:
            return False
        crashed_at = self.annals.crashed_at.get(name)
        is_current = life == self.annals.lives[name] and not self.annals.is_down(name)
        return is_current or (crashed_at is not None and now - crashed_at <= self._believed_ns)
