"""What traces of durable networks cannot show, held where everything can be seen: logs, release and knowledge.

It stands where a transcript would and is told nothing by the nodes but what they do:

- I17: without early release no pubend forgets an event that matches a durable subscription that stands and has not
  acknowledged it.
- I18: no event becomes stable at two ticks.
- I19: no event gets a tick of which anybody was told before that it is past.
- I20: whoever tells of a tick tells of the same event, and nobody calls it silent for all.
- I21: filtering logs name what matched and nothing else, whenever a broker has crashed, every second, and at last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.clock import SECOND, Instant
from holdfast.identity import EventId
from holdfast.messages.durable import Acknowledge, Portion
from holdfast.messages.message import Message
from holdfast.messages.publications import Publication
from holdfast.messages.subscriptions import Confirmed, Resume, Subscribe, Unsubscribe
from holdfast.messages.ticks import ABSOLUTE, Items
from holdfast.overlay.transport import Received, Send
from holdfast.scenarios.checkers.violation import Violation
from holdfast.simulator.connection import Host
from holdfast.simulator.oracle.matches import gone_from, imprecise
from holdfast.simulator.oracle.pubends import KnownPubend
from holdfast.simulator.transcript import Transcript
from holdfast.simulator.world import Node
from holdfast.streams.storing import AppendEvents, ChopEvents, EventsRefused, EventsStable

__all__ = ["DurableOracle"]

#: So often filtering logs are looked into.
LOOK_EVERY_NS: Final = SECOND


@dataclass(slots=True)
class _Kept:
    """A durable subscription that its subscriber knows to stand."""

    filter: str
    start: dict[str, int] | None  #: by pubend; None: not all pubends were reached
    acknowledged: dict[str, int] = field(default_factory=dict)

    def place(self, pubend: str) -> int | None:
        """Behind which tick everything is to be kept for it; None: nobody can tell."""
        if self.start is None and pubend not in self.acknowledged:
            return None
        begin = 0 if self.start is None else self.start.get(pubend, 0)
        return max(begin, self.acknowledged.get(pubend, 0))


class DurableOracle(Transcript):
    """Watches one run of a durable network."""

    def __init__(self, *, lines_max: int = 0) -> None:
        super().__init__(max(lines_max, 1))
        self._has_lines = lines_max > 0
        self._pubends: defaultdict[str, KnownPubend] = defaultdict(KnownPubend)
        self._stable: dict[EventId, tuple[str, int]] = {}
        #: durable name and filter, by subscriber and number
        self._asked: dict[tuple[str, int], tuple[str, str]] = {}
        self._kept: dict[str, _Kept] = {}
        self._found: list[Violation] = []
        self._nodes: dict[str, Node] = {}  #: those that have a store
        self._look_at: Instant = 0
        self._said: set[str] = set()  #: of filtering logs, each once

    @property
    def events(self) -> int:
        """How many became stable: payloads written, once each [I18]."""
        return len(self._stable)

    def forgotten(self, pubend: str) -> int:
        """How many events a pubend has let go."""
        known = self._pubends[pubend]
        return bisect_right(known.ticks, known.chopped)

    def broken(self, *, releases_early: bool) -> list[Violation]:
        """What was found; who may release early may forget what somebody has not acknowledged."""
        self._look(self._nodes.values(), "in the end")
        return [each for each in self._found if not (releases_early and each.kind == "I17")]

    # Where a transcript stands

    def note(self, now: Instant, node: str, mark: str, text: str) -> None:
        """A node crashed, or began its next life."""
        if self._has_lines:
            super().note(now, node, mark, text)
        if text == "crashed":
            for name, pubend in self._pubends.items():
                if name.partition("@")[2].rpartition("/")[0] == node:
                    pubend.pending.clear()
            if node in self._nodes:
                self._look([self._nodes[node]], f"as it crashed at {now / SECOND:.6f}")

    def step(self, now: Instant, host: Host, stimulus: Any, effects: Sequence[Any]) -> None:
        """A program has taken a step."""
        if self._has_lines:
            super().step(now, host, stimulus, effects)
        for message in [*self._on_stimulus(host, stimulus), *self._on_effects(host, effects)]:
            kind, _, text = message.partition(": ")
            self._found.append(Violation(kind, f"{text} (at {now / SECOND:.6f})"))
        if isinstance(host, Node) and host.store is not None:
            self._nodes[host.name] = host
            if now >= self._look_at:
                self._look_at = now + LOOK_EVERY_NS
                self._look(self._nodes.values(), f"at {now / SECOND:.6f}")

    def _on_stimulus(self, host: Host, stimulus: Any) -> Iterable[str]:
        match stimulus:
            case EventsStable(pubend, appends):
                return self._on_stable(pubend, appends)
            case EventsRefused(pubend):
                self._pubends[pubend].pending.clear()
            case Received(_, messages):
                for message in messages:
                    if isinstance(message, Confirmed) and message.token is not None:
                        self._on_confirmed(host.name, message)
        return ()

    def _on_effects(self, host: Host, effects: Sequence[Any]) -> Iterable[str]:
        for effect in effects:
            match effect:
                case Send(_, messages):
                    for message in messages:
                        yield from self._on_said(host.name, message)
                case AppendEvents():
                    yield from self._on_append(effect)
                case ChopEvents(pubend, through):
                    yield from self._on_chop(pubend, through)

    # Filtering logs

    def _look(self, nodes: Iterable[Node], when: str) -> None:
        gone = gone_from(self._nodes.values())
        for node in nodes:
            for text in imprecise(node, self._pubends, gone):
                if text not in self._said:
                    self._said.add(text)
                    self._found.append(Violation("I21", f"{text} ({when})"))

    # Logs

    def _on_append(self, append: AppendEvents) -> Iterable[str]:
        pubend = self._pubends[append.pubend]
        records = list(zip(append.ticks, append.publications, strict=True))
        pubend.append(records)
        for tick, event in records:
            if tick <= pubend.asserted:
                yield f"I19: {_id(event)} gets tick {tick} of {append.pubend}, and {pubend.asserted} was past"

    def _on_stable(self, name: str, appends: int) -> Iterable[str]:
        pubend = self._pubends[name]
        done, pubend.pending = pubend.pending[:appends], pubend.pending[appends:]
        for tick, event in (record for records in done for record in records):
            place = self._stable.setdefault(_id(event), (name, tick))
            if place != (name, tick):
                yield f"I18: {_id(event)} is stable at {name} {tick} and at {place[0]} {place[1]}"
            yield from self._on_event(name, tick, event)

    def _on_event(self, name: str, tick: int, event: Publication) -> Iterable[str]:
        known = _id(self._pubends[name].note(tick, event))
        if known != _id(event):
            yield f"I20: {_id(event)} at tick {tick} of {name}, where {known} stands"

    # Release

    def _on_confirmed(self, subscriber: str, message: Confirmed) -> None:
        name, filter = self._asked.get((subscriber, message.subscription.number), ("", ""))
        if name and name not in self._kept:
            token = message.token or {}
            start = {pubend: tick for pubend, (_, tick) in token.items()}
            self._kept[name] = _Kept(filter, None if message.partial else start)

    def _on_acknowledged(self, subscriber: str, number: int, places: Mapping[str, int]) -> None:
        kept = self._kept.get(self._asked.get((subscriber, number), ("", ""))[0])
        if kept is not None:
            for pubend, tick in places.items():
                kept.acknowledged[pubend] = max(tick, kept.acknowledged.get(pubend, 0))

    def _on_chop(self, pubend: str, through: int) -> Iterable[str]:
        known = self._pubends[pubend]
        known.chopped = max(known.chopped, through)
        for name, kept in self._kept.items():
            place = kept.place(pubend)
            lost = () if place is None else known.within(place, through + 1)
            if any(known.is_for(kept.filter, tick) for tick in lost):
                yield f"I17: {pubend} forgets up to {through}, and {name} has acknowledged {place}"

    # What is said

    def _on_said(self, node: str, message: Message) -> Iterable[str]:
        match message:
            case Subscribe(subscription, filter, resume=Resume() as resume):
                self._asked[node, subscription.number] = resume.durable or "", filter
                self._on_acknowledged(node, subscription.number, _consumed(resume))
            case Unsubscribe(subscription) if subscription.subscriber == node:
                self._kept.pop(self._asked.pop((node, subscription.number), ("", ""))[0], None)
            case Acknowledge(number, places):
                self._on_acknowledged(node, number, places)
            case Portion():
                told = self._pubends[message.pubend]
                told.asserted = max(told.asserted, message.upto)
                for i in message.at:
                    yield from self._on_event(message.pubend, message.ticks[i], message.batch.publications[i])
            case Items():
                yield from self._on_items(message)

    def _on_items(self, items: Items) -> Iterable[str]:
        pubend = self._pubends[items.pubend]
        for lo, tick, event in zip(items.los, items.ticks, items.publications, strict=True):
            pubend.asserted = max(pubend.asserted, tick)
            if event is not None:
                yield from self._on_event(items.pubend, tick, event)
            if items.under == ABSOLUTE and pubend.within(lo, tick + (event is None)):
                yield f"I20: {items.pubend} is called silent in ({lo}, {tick}), where something stands"


def _consumed(resume: Resume) -> dict[str, int]:
    """What whoever comes back has acknowledged by that."""
    consumed = resume.consumed or {}
    return {
        pubend: min(tick, consumed.get(pubend, tick)) for pubend, (_, tick) in (resume.token or {}).items()
    }


def _id(event: Publication) -> EventId:
    return EventId(event.publisher, event.n)
