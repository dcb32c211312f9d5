"""I5, I7, I13, I15: every vector on the wire is legitimate, true, and the way of the tree.

The oracle has seen each number given, for whoever gives one is the first to say it; so it knows whether another node
repeats it rightly.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from holdfast.identity import EventId
from holdfast.messages.overlay import Relay
from holdfast.messages.subscriptions import Subscribe
from holdfast.node.trails import bypassed_in, numbered, vector_length
from holdfast.simulator.oracle.annals import Annals, Law, Said, Step, events_of

__all__ = ["Ways"]


class Ways(Law):
    """Vectors."""

    def __init__(self, annals: Annals) -> None:
        super().__init__(annals)
        self._given: dict[tuple[str, int, int], EventId] = {}

    def judge(self, step: Step) -> Iterator[str]:
        """Of everything that is said."""
        delta, tree = self.annals.delta, self.annals.tree
        for said in step.said:
            if tree.distance(step.name, said.peer) > delta + 1:
                yield f"I5: {step.name} speaks with {said.peer}, {tree.distance(step.name, said.peer)} hops away"
            match said.message:
                case Relay(refill=False) as relay:
                    yield from self._way(step, said, relay)
                    yield from self._numbers(step, relay)
                case Subscribe(vector=vector):
                    nulls = sum(each.counter is None for each in vector[-(2 * delta + 1) :])
                    if nulls > delta:
                        yield f"I5: {step.name} sent {said.peer} a subscription past {nulls} nodes"

    def _way(self, step: Step, said: Said, relay: Relay) -> Iterator[str]:
        annals, steps = self.annals, relay.trail.steps
        names = [each.node for each in steps]
        way = f"{step.name} told {said.peer} of the way {names}"
        nulls = bypassed_in(steps[-(2 * annals.delta + 1) :])
        if nulls > annals.delta:
            yield f"I5: {way}, past {nulls} nodes"
        if len(names) > vector_length(annals.delta):
            yield f"I7: {way}, which is too long"
        if any(not annals.tree.is_edge(a, b) for a, b in pairwise([*names, said.peer])):
            yield f"I7: {way}, which is none of the tree"
        passed = [each for each in steps if each.incarnation is not None]
        if (passed[-1].node, passed[-1].incarnation) != (step.name, step.life):
            yield f"I7: {way}, which does not end with itself"
        if said.peer in names or len(set(names)) < len(names):
            yield f"I15: {way}, which passes a node twice"

    def _numbers(self, step: Step, relay: Relay) -> Iterator[str]:
        events = [event for _, event in events_of(relay)]
        for each, column in numbered(relay.trail):
            assert each.incarnation is not None
            for event, number in zip(events, column, strict=True):
                key = each.node, each.incarnation, number
                known = self._given.get(key)
                if known == event:
                    continue
                if known is None and each.node == step.name and each.incarnation == step.life:
                    self._given[key] = event
                elif each.node == step.name:
                    yield f"I13: {step.name}.{each.incarnation} gave {number} to {event}, and before to {known}"
                else:
                    yield f"I7: {step.name} says {each.node}.{each.incarnation} gave {number} to {event}, not {known}"
