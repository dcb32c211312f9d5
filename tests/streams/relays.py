"""A naive world for durable streams: a log, a tree of relays, sessions that break, and filters that are sets.

Every node has the real knowledge, curiosity, sender and receiver; what they must agree with is a dictionary of ticks to
labels. Whoever wants a label wants it of all time, so that in the end every leaf must know the whole log for what it
wants by then. Nodes install what their children want at once, without waiting for those above them, and forget it when
the session breaks: the hardest way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, Items, Lost, Nack, Start
from holdfast.streams.curiosity import Curiosity
from holdfast.streams.istream import Receiver, Sender
from holdfast.streams.knowledge import Knowledge
from holdfast.streams.tick import laid_out

LABELS = 4
REPEAT = 10  #: turns until a nack is repeated
CACHE_BYTES = 3
Step = tuple[str, int, int]


@dataclass(frozen=True)
class Want:
    """What the sender of this wants, and which of its versions that is."""

    version: int
    labels: frozenset[int]


@dataclass(eq=False)
class Session:
    upper: Node
    lower: Node
    down: deque[Start | Items] = field(default_factory=deque)
    up: deque[Want | Nack] = field(default_factory=deque)
    labels: frozenset[int] = frozenset()  #: as the upper one knows them


@dataclass(frozen=True)
class Parts:
    """The parts under test; a broken one can take its place."""

    sender: type[Sender] = Sender
    receiver: type[Receiver] = Receiver
    curiosity: type[Curiosity] = Curiosity
    knowledge: type[Knowledge] = Knowledge


class Node:
    def __init__(self, name: int, parts: Parts) -> None:
        self.name = name
        self.parts = parts
        self.own: frozenset[int] = frozenset()
        self.above: Session | None = None
        self.is_up = True
        self.become_empty()

    def become_empty(self) -> None:
        """Begin a life: nothing is known, and nobody is heard."""
        self.knowledge = self.parts.knowledge("P")
        self.curiosity = self.parts.curiosity("P", window=2, repeat_ns=REPEAT)
        self.version = 0
        self.since: dict[int, int] = {}  #: what is wanted, here or beyond, and since which version
        self.below: dict[Session, Sender] = {}
        self.receiver = self.parts.receiver(self.knowledge)
        self.reconsider()

    @property
    def want(self) -> Want:
        return Want(self.version, frozenset(self.since))

    def reconsider(self) -> None:
        """Something else may be wanted here, or beyond: then that is a new version."""
        labels = self.own.union(*(session.labels for session in self.below))
        if labels != self.since.keys():
            self.version += 1
            self.since = {label: self.since.get(label, self.version) for label in sorted(labels)}
            if self.above is not None:
                self.above.up.append(self.want)

    # What comes from below

    def on_below(self, session: Session, said: Want | Nack) -> None:
        sender = self.below[session]
        if isinstance(said, Want):
            session.labels = said.labels
            self.reconsider()
            silence, _ = sender.become_version(said.version, self.version)
            self.say(session, silence)
        else:
            version = ABSOLUTE if said.version == ABSOLUTE else sender.covered_by
            self.curiosity.ask(session, said.spans, version)
            self.answer(None)

    def say(self, session: Session, items: Items) -> None:
        if items.ticks or items.lost:
            session.down.append(items)

    # What comes from above

    def on_above(self, said: Start | Items) -> None:
        if isinstance(said, Start):
            self.receiver.on_start(said)
        else:
            self.receiver.on_items(said)
            self.learned(said)

    def learned(self, items: Items) -> None:
        self.curiosity.on_items(items)
        for session, sender in self.below.items():
            ticks, publications = sender.events()
            at = [i for i, each in enumerate(publications) if each.event[0] in session.labels]
            self.say(session, sender.pass_on([ticks[i] for i in at], [publications[i] for i in at]))
        self.answer(items)

    def answer(self, news: Items | None) -> None:
        for (session, version), answer in self.curiosity.answers(self.knowledge, 2, news):
            if isinstance(session, Session):
                labels = range(LABELS) if version == ABSOLUTE else session.labels
                at = [i for i, each in enumerate(answer.publications) if each.event[0] in labels]
                under = self.below[session].under_of(version)
                self.say(session, answer.items(under, at))

    def turn(self, now: int) -> list[Nack]:
        """Ask for what is missing; a leaf wants the whole log, for all it wants by now."""
        if self.own:
            self.curiosity.ask(None, self.receiver.missing(0, self.version), self.version)
        self.answer(None)
        nacks = self.curiosity.next_nacks(self.knowledge, now)
        if self.above is not None:
            self.above.up.extend(nacks)
        if not self.own:
            self.knowledge.trim(CACHE_BYTES)
        return nacks


class World:
    """Node 0 has the log; ``parents[i]`` is the parent of node i + 1. Leaves want labels, others only relay."""

    def __init__(self, parents: Sequence[int], parts: Parts) -> None:
        self.parents = [0, *parents]
        self.nodes = [Node(i, parts) for i in range(len(self.parents))]
        self.root = self.nodes[0]
        self.log: dict[int, Publication] = {}
        self.tick = 0
        self.lost = 0
        self.now = 0
        self.leaves = [node for node in self.nodes[1:] if node.name not in self.parents]
        for node in self.nodes[1:]:
            self.connect(node)

    # Sessions

    def disconnect(self, session: Session | None) -> None:
        if session is not None:
            session.lower.above = None
            session.upper.below.pop(session, None)
            session.upper.curiosity.withdraw(session)
            session.upper.reconsider()

    def connect(self, node: Node, is_bypassing: bool = False) -> None:
        """With the parent, or past it."""
        self.disconnect(node.above)
        upper = self.nodes[self.parents[node.name]]
        if is_bypassing:
            upper = self.nodes[self.parents[upper.name]]
        if upper.is_up and node.is_up:
            session = Session(upper, node)
            node.above = session
            sender = upper.below[session] = upper.parts.sender(upper.knowledge)
            session.down.append(sender.start)
            session.up.append(node.want)
            node.receiver = node.parts.receiver(node.knowledge)
            node.curiosity.become_reopened()

    # What can happen

    def happen(self, step: Step) -> None:
        what, a, b = step
        node = self.nodes[1 + a % (len(self.nodes) - 1)]
        match what:
            case "publish":
                self.publish(a % LABELS, 1 + b % 3)
            case "silence":
                self.publish(None, 1 + b % 3)
            case "say silence":
                self.say_silence()
            case "deliver":
                self.deliver(node, b)
            case "turn":
                self.turn(node)
            case "reset":
                self.connect(node)
            case "bypass":
                self.connect(node, is_bypassing=True)
            case "crash":
                self.crash(node)
            case "recover":
                self.recover(node)
            case "subscribe":
                leaf = self.leaves[a % len(self.leaves)]
                leaf.own |= {b % LABELS}
                leaf.reconsider()
            case "unsubscribe":
                leaf = self.leaves[a % len(self.leaves)]
                leaf.own -= {b % LABELS}
                leaf.reconsider()
            case "release":
                self.lost = max(self.lost, min(self.tick, b % 6))
                self.log = {tick: event for tick, event in self.log.items() if tick > self.lost}
        self.check()

    def publish(self, label: int | None, distance: int) -> None:
        """An event some ticks further on, or silence up to there."""
        before, self.tick = self.tick, self.tick + distance
        event = None
        if label is not None:
            event = self.log[self.tick] = Publication("p", self.tick, bytes([label]))
        items = Items("P", ABSOLUTE, [before], [self.tick], [event])
        self.root.knowledge.add(items)
        self.root.learned(items)

    def say_silence(self) -> None:
        for node in self.nodes:
            for session, sender in node.below.items():
                node.say(session, sender.silence())

    def crash(self, node: Node) -> None:
        for session in [node.above, *node.below]:
            self.disconnect(session)
        node.is_up = False

    def recover(self, node: Node) -> None:
        """Come back without any memory; children that had gone past it return."""
        if not node.is_up:
            node.is_up = True
            node.become_empty()
            for each in self.nodes[1:]:
                if each is node or self.parents[each.name] == node.name:
                    self.connect(each)

    def deliver(self, node: Node, count: int) -> None:
        """Some of what is on the way between a node and whoever is above it arrives."""
        session = node.above
        if session is None:
            return
        for _ in range(1 + count % 4):
            if session.up and count % 2:
                session.upper.on_below(session, session.up.popleft())
            elif session.down:
                node.on_above(session.down.popleft())
            count += 1

    def turn(self, node: Node) -> None:
        self.now += 1
        node.turn(self.now)
        for nack in self.root.turn(self.now):
            self.read_log(nack)

    def read_log(self, nack: Nack) -> None:
        """The root asks the log."""
        lost = [Lost(after, min(upto, self.lost), "gone") for after, upto in nack.spans if after < self.lost]
        parts = [(max(after, self.lost), upto) for after, upto in nack.spans if upto > self.lost]
        ticks = [tick for tick in self.log if any(after < tick <= upto for after, upto in parts)]
        columns = laid_out(parts, ticks, [self.log[tick] for tick in ticks])
        items = Items("P", ABSOLUTE, *columns, lost, answers=True)
        self.root.knowledge.add(items)
        self.root.learned(items)

    # Claims

    def check(self) -> None:
        """Nobody takes anything for silent that it wants: in any version, for what was wanted in it, and still is."""
        for node in self.nodes:
            knowledge = node.knowledge
            ticks, publications = knowledge.events(0, self.tick)
            events = dict(zip(ticks, publications, strict=True))
            for tick, event in self.log.items():
                assert events.get(tick, event) == event
                assert tick not in knowledge.lost, f"{tick} is not lost"
                if tick not in events:
                    for version in knowledge._versions:
                        assert version <= node.version or version == ABSOLUTE
                        is_wanted = version == ABSOLUTE or node.since.get(event.event[0], ABSOLUTE) <= version
                        assert tick not in knowledge.known(version) or not is_wanted, (
                            f"node {node.name} takes {tick} for silent under {version}"
                        )
            assert events.keys() - {*range(self.lost + 1)} <= self.log.keys()

    def settle(self) -> None:
        """All that is on the way arrives."""
        while [node for node in self.nodes if node.above is not None and (node.above.up or node.above.down)]:
            for node in self.nodes:
                self.deliver(node, 1)
                self.deliver(node, 0)

    def heal(self) -> None:
        """All is well again, and stays so until nothing more happens."""
        for node in self.nodes[1:]:
            self.recover(node)
        for node in self.nodes[1:]:
            self.connect(node)
        self.publish(None, 1)
        for _ in range(60):
            self.say_silence()
            self.settle()
            for node in reversed(self.nodes[1:]):
                self.turn(node)
        self.check()

    def check_complete(self) -> None:
        """Every leaf knows the whole log, for what it wants; what was released first may be lost to it."""
        for leaf in self.leaves:
            if leaf.own:
                assert leaf.knowledge.doubt_horizon(0, leaf.version) >= self.tick, f"leaf {leaf.name}"
                ticks = leaf.knowledge.events(self.lost, self.tick)[0]
                wanted = [tick for tick in self.log if self.log[tick].event[0] in leaf.own]
                assert set(wanted) <= set(ticks)


WHAT = (
    *("publish",) * 6,
    *("deliver",) * 8,
    *("turn",) * 3,
    *(
        "silence",
        "say silence",
        "subscribe",
        "subscribe",
        "unsubscribe",
        "reset",
        "bypass",
        "crash",
        "recover",
        "recover",
    ),
    "release",
)


def drawn(seed: int) -> tuple[list[int], list[Step]]:
    """A tree and what happens in it."""
    random = Random(seed)
    parents = [random.randrange(max(0, i - 1), i + 1) for i in range(random.randint(1, 5))]
    steps = [
        (random.choice(WHAT), random.randrange(100), random.randrange(100))
        for _ in range(random.randint(10, 120))
    ]
    return parents, steps


def run(parents: Sequence[int], steps: Sequence[Step], parts: Parts) -> World:
    """Let it all happen, and heal."""
    world = World(parents, parts)
    for step in steps:
        world.happen(step)
    world.heal()
    world.check_complete()
    return world
