"""I8, and the edge's half of I2: what is called a duplicate is one, and what is one is called so.

Lemma 1 is claimed only where nobody lost its memory since the publication [B0.8]. A node that never saw a publication
may reject it if everybody beyond has it: it was purged upstream with proof, and this is a late copy. An edge that
suppresses what is owed to it, and what it never delivered, is about to lose it.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.identity import EventId
from holdfast.messages.overlay import Role
from holdfast.simulator.oracle.annals import Annals, Law, Step, Verdict, events_of

__all__ = ["Verdicts"]


class Verdicts(Law):
    """By node and life what has come to it."""

    def __init__(self, annals: Annals) -> None:
        super().__init__(annals)
        self._seen: dict[tuple[str, int], set[EventId]] = {}
        #: by subscriber and life, by publisher the highest
        self._admitted: dict[tuple[str, int], dict[str, int]] = {}
        self._delivered: dict[tuple[str, int], set[EventId]] = {}
        self.suppressed = 0  #: by an edge
        self.rejected = 0  #: by nodes that had not seen them, rightly

    def judge(self, step: Step) -> Iterator[str]:
        """Of what was judged."""
        for verdict in step.verdicts:
            yield from self._duplicates(step, verdict)
            if step.node.settings.role is Role.SUBSCRIBER:
                yield from self._edge(step, verdict)

    def _duplicates(self, step: Step, verdict: Verdict) -> Iterator[str]:
        seen = self._seen.setdefault((step.name, step.life), set())
        new = set(verdict.new)
        for place, event in events_of(verdict.relay):
            if place in new:
                published_at = self.annals.published_at.get(event, 0)  # a mark's is not known
                if event in seen and self.annals.last_crash < published_at:
                    yield f"I8: {step.name} took {event} from {verdict.sender} for new, and has seen it"
            elif event not in seen:
                yield from self._rejection(step, verdict, event)
            seen.add(event)

    def _rejection(self, step: Step, verdict: Verdict, event: EventId) -> Iterator[str]:
        annals = self.annals
        for standing in annals.owed(event):
            subscriber = standing.subscription.subscriber
            is_beyond = step.name in annals.tree.path(event.publisher, subscriber)
            if is_beyond and event not in annals.arrived.get(subscriber, ()):
                yield (
                    f"I8: {step.name} took {event} from {verdict.sender} for a repeat, and has never seen it,"
                    f" nor has {subscriber}"
                )
                return
        self.rejected += 1

    def _edge(self, step: Step, verdict: Verdict) -> Iterator[str]:
        """What an edge of numbers per publisher makes of what is new to the node."""
        life = step.name, step.life
        highest = self._admitted.setdefault(life, {})
        delivered = self._delivered.setdefault(life, set())
        new = set(verdict.new)
        for place, event in events_of(verdict.relay):
            if place not in new:
                continue
            if event.n > highest.get(event.publisher, 0):
                highest[event.publisher] = event.n
                delivered.add(event)
            else:
                self.suppressed += 1
                if event not in delivered and self._is_owed(step.name, event):
                    after = highest[event.publisher]
                    yield f"I2: {step.name} suppressed {event} after #{after}, and never delivered it"

    def _is_owed(self, subscriber: str, event: EventId) -> bool:
        return any(standing.subscription.subscriber == subscriber for standing in self.annals.owed(event))
