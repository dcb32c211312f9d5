"""The oracle: it stands where a transcript would, sees every step of every node, and holds the laws [D.1].

It is told nothing by the nodes but what they do: what they hear and say, and how they stand afterwards. Of one thing it
must be told more, which copies a node took for repeats; so it listens to that one question of the data plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.broker.broker import Broker
from holdfast.client.member import MemberCore
from holdfast.clock import SECOND, Instant
from holdfast.identity import EventId
from holdfast.messages.overlay import Relay
from holdfast.messages.session import Heartbeat
from holdfast.node.node import Node
from holdfast.node.plane import PlaneCounters
from holdfast.node.station import Station
from holdfast.overlay.transport import Received, Send, Trace, Wake
from holdfast.scenarios.actor import Actor
from holdfast.scenarios.actor_commands import DoLeave
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.topology import Configuration
from holdfast.simulator import world
from holdfast.simulator.connection import Host
from holdfast.simulator.oracle.annals import Annals, Law, Said, Step, Verdict
from holdfast.simulator.oracle.order import HeadOfLine
from holdfast.simulator.oracle.purges import Purges
from holdfast.simulator.oracle.rest import unrest
from holdfast.simulator.oracle.tables import NoResurrection, TablesFirst, TuplesFirst, WaitedFor
from holdfast.simulator.oracle.verdicts import Verdicts
from holdfast.simulator.oracle.ways import Ways
from holdfast.simulator.transcript import Transcript

__all__ = ["Counts", "Oracle"]


@dataclass(slots=True)
class Counts:
    """What nodes did, over all their lives."""

    suppressed: int = 0  #: by edges
    rejected: int = 0  #: as repeats, by nodes that had not seen them, and rightly
    refilled: int = 0
    resent: int = 0


class Oracle(Transcript):
    """Watches one run. ``broken`` is what it found; each law's word stands before its message."""

    def __init__(self, configuration: Configuration, *, lines_max: int = 0) -> None:
        super().__init__(max(lines_max, 1))
        self._has_lines = lines_max > 0
        self.annals = Annals(configuration)
        self._verdicts_law = Verdicts(self.annals)
        self._laws: tuple[Law, ...] = (
            Ways(self.annals),
            HeadOfLine(self.annals),
            self._verdicts_law,
            TablesFirst(self.annals),
            TuplesFirst(self.annals),
            WaitedFor(self.annals),
            NoResurrection(self.annals),
            Purges(self.annals),
        )
        self.broken: list[Violation] = []
        self._nodes: dict[str, Node] = {}
        self._verdicts: list[Verdict] = []
        self._counters: dict[tuple[str, int], PlaneCounters] = {}
        self._is_over = False

    @property
    def counts(self) -> Counts:
        """So far."""
        law = self._verdicts_law
        lives = self._counters.values()
        refilled, resent = sum(each.refilled for each in lives), sum(each.resent for each in lives)
        return Counts(law.suppressed, law.rejected, refilled, resent)

    # Where a transcript stands

    def note(self, now: Instant, node: str, mark: str, text: str) -> None:
        """A node crashed, or began its next life."""
        if self._has_lines:
            super().note(now, node, mark, text)
        if text == "crashed":
            self.annals.on_crash(node, now)
            self._nodes.pop(node, None)

    def step(self, now: Instant, host: Host, stimulus: Any, effects: Sequence[Any]) -> None:
        """A program has taken a step."""
        if self._has_lines:
            super().step(now, host, stimulus, effects)
        if self._is_over or _is_idle(stimulus, effects):
            return
        node = self._node_of(host)
        if node is None:
            return
        if isinstance(stimulus, DoLeave):
            self._end(now)
            return
        step = Step(now, host.name, node.settings.incarnation, node)
        step.verdicts, self._verdicts = self._verdicts, []
        if isinstance(stimulus, Received):
            step.heard = _said(host, stimulus.connection, stimulus.messages)
        for effect in effects:
            if isinstance(effect, Send):
                step.said += _said(host, effect.connection, effect.messages)
            elif isinstance(effect, Trace) and effect.kind == "publish":
                self.annals.on_published(effect.fields, now)
            elif isinstance(effect, Trace) and effect.kind == "accepted":
                self.annals.accepted.add(EventId(effect.fields["publisher"], effect.fields["n"]))
        if step.heard or step.said:
            self.annals.note(step)
            for law in self._laws:
                for message in law.judge(step):
                    self._accuse(now, message)

    def _end(self, now: Instant) -> None:
        """The script is over: everybody is about to leave."""
        self._is_over = True
        for message in unrest(self._nodes):
            self._accuse(now, message)

    def _accuse(self, now: Instant, message: str) -> None:
        kind, _, text = message.partition(": ")
        self.broken.append(Violation(kind, f"{text} (at {now / SECOND:.6f})"))

    def _node_of(self, host: Host) -> Node | None:
        node = self._nodes.get(host.name)
        if node is None:
            assert isinstance(host, world.Node)
            node = _overlay_of(host.core)
            if node is not None:
                self._nodes[host.name] = node
                self._counters[host.name, node.settings.incarnation] = node.plane.counters
                self._listen(node)
        return node

    def _listen(self, node: Node) -> None:
        """Hear which copies the node takes for new."""
        judge = node.plane.new

        def new(sender: Station, relay: Relay) -> list[int]:
            found = judge(sender, relay)
            self._verdicts.append(Verdict(sender.name, relay, found))
            return found

        node.plane.new = new  # type: ignore[method-assign]


def _is_idle(stimulus: Any, effects: Sequence[Any]) -> bool:
    """Whether a step was heartbeats and nothing else, as most are."""
    if type(stimulus) is Received:
        if any(type(message) is not Heartbeat for message in stimulus.messages):
            return False
    elif type(stimulus) is not Wake:
        return False
    return all(type(effect) is Send and type(effect.messages[0]) is Heartbeat for effect in effects)


def _overlay_of(core: Any) -> Node | None:
    if isinstance(core, Broker):
        return core.node
    if isinstance(core, Actor) and isinstance(core._core, MemberCore):
        return core._core.node
    return None


def _said(host: Host, connection: int, messages: Sequence[Any]) -> list[Said]:
    end = host.ends.get(connection)
    if end is None:
        return []
    peer = end.other.host.name
    return [Said(connection, peer, message) for message in messages if not isinstance(message, Heartbeat)]
