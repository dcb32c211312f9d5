"""What goes on in a network some of which has failed: who still hears whom [KJ §3.2, §5.3].

Brokers, and clients that are members of the overlay, bypass whom they cannot reach: up to δ+1 hops far, as
``node.reach`` does. An event is sent on only while at most δ of the last 2δ+1 nodes of its way were bypassed, as
``node.trails`` says. From these two rules follows what a set of failures stops:

- With at most δ failures, every broker that is up hears every other, except those that have both lost the link
  towards each other. These are the two ends of a failed link: nobody lies between them who could be bypassed. And
  they are the outer ends of two failed links around one that is not: either has somebody to speak with on the way,
  who cannot go on, and looks no farther. They hear the rest, and each other when a link is back.
- Beyond δ, two brokers are apart when δ+1 failed ones lie on the way between them, the first at most 2δ nodes before
  the last. If somebody between these is up, what waits there holds up what comes after it in that direction, whoever
  it is from [B0.9].

What is apart waits: events of reliable streams are kept until it is not, and nobody is told that they arrived.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import combinations, pairwise
from typing import NamedTuple

__all__ = ["Apart", "Attachment", "Client", "Failures", "Link", "Survival", "Tree", "link"]

#: Two neighbouring brokers, in the order of their names.
Link = tuple[str, str]


def link(one: str, other: str) -> Link:
    """The link between two neighbours."""
    return (one, other) if one < other else (other, one)


@dataclass(frozen=True, slots=True)
class Failures:
    """What is down."""

    brokers: frozenset[str] = frozenset()
    links: frozenset[Link] = frozenset()

    def __len__(self) -> int:
        return len(self.brokers) + len(self.links)


class Attachment(Enum):
    """How a client hangs on its broker."""

    PLAIN = auto()  #: it speaks with its broker alone, and stops with it
    MEMBER = auto()  #: it is a node of the overlay, and dials whoever is near when its broker is gone
    LISTENING = auto()  #: and others can dial it


class Client(NamedTuple):
    """A client at a broker."""

    broker: str
    attachment: Attachment = Attachment.PLAIN


class Apart(NamedTuple):
    """Brokers that would have to fail together, and the sides of the network that would not hear each other."""

    failed: tuple[str, ...]
    sides: tuple[tuple[str, ...], ...]
    between: tuple[str, ...] = ()  #: who is up between them, and may be held up too

    @property
    def pairs(self) -> int:
        """How many pairs of brokers do not hear each other."""
        return sum(len(one) * len(other) for one, other in combinations(self.sides, 2))


class Tree:
    """The brokers of a network, by their parents."""

    def __init__(self, parents: Mapping[str, str | None]) -> None:
        self.brokers = tuple(parents)
        self._parents = dict(parents)
        self._beside: dict[str, list[str]] = {name: [] for name in parents}
        for name, parent in parents.items():
            if parent is not None:
                self._beside[name].insert(0, parent)
                self._beside[parent].append(name)
        self.links = tuple(link(name, parent) for name, parent in parents.items() if parent is not None)
        self._sides: dict[tuple[str, str], tuple[str, ...]] = {}

    def beside(self, name: str) -> Sequence[str]:
        """The neighbours of a broker."""
        return self._beside[name]

    def path(self, one: str, other: str) -> tuple[str, ...]:
        """The way from one broker to another, both included."""
        up, down = self._ancestry(one), self._ancestry(other)
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
            up.pop()
            down.pop()
        return (*up, *reversed(down[:-1]))

    def _ancestry(self, name: str) -> list[str]:
        found = [name]
        while (parent := self._parents[found[-1]]) is not None:
            found.append(parent)
        return found

    def paths_from(self, name: str, most: int | None = None) -> Iterator[tuple[str, ...]]:
        """The ways from a broker to every other and to itself, shorter ones first, of at most so many brokers."""
        row: list[tuple[str, ...]] = [(name,)]
        for path in row:
            yield path
            if most is None or len(path) < most:
                row += [(*path, each) for each in self._beside[path[-1]] if each not in path[-2:-1]]

    def behind(self, name: str, neighbour: str) -> tuple[str, ...]:
        """The brokers one hears by any other neighbour than this, without itself."""
        if (name, neighbour) not in self._sides:
            found = [name]
            before = {name: neighbour}
            for at in found:
                for each in self._beside[at]:
                    if each != before[at]:
                        before[each] = at
                        found.append(each)
            self._sides[name, neighbour] = tuple(found[1:])
        return self._sides[name, neighbour]


class Survival:
    """A tree of brokers with its δ."""

    def __init__(self, tree: Tree, delta: int) -> None:
        self.tree = tree
        self.delta = delta

    def hears(
        self, publisher: Client, subscriber: Client, down: Failures, *, is_reliable: bool = True
    ) -> bool:
        """Whether what one client publishes reaches the other while all of that is down.

        Beyond δ, with failed links among the failures, a way that could be taken is not always the one that is.
        """
        way = _Way(self, publisher, subscriber, down)
        if not way.has_ends:
            return False
        return way.is_passable() if is_reliable else way.is_walkable()

    def silent_pairs(self, down: Failures) -> list[tuple[str, str]]:
        """The pairs of brokers that are up and whose plain clients do not hear each other."""
        up = [name for name in self.tree.brokers if name not in down.brokers]
        return [
            (one, other)
            for one, other in combinations(up, 2)
            if not self.hears(Client(one), Client(other), down)
        ]

    def first_apart(self) -> Iterator[Apart]:
        """The smallest sets of brokers that stop more than their own clients; each has δ+1."""
        if not self.delta:
            for name in self.tree.brokers:
                sides = [(each, *self.tree.behind(each, name)) for each in self.tree.beside(name)]
                if len(sides) > 1:
                    yield Apart((name,), tuple(sides))
            return
        for path in self._windows():
            one, other = self.tree.behind(path[0], path[1]), self.tree.behind(path[-1], path[-2])
            if one and other:
                for inner in combinations(path[1:-1], self.delta - 1):
                    failed = (path[0], *inner, path[-1])
                    yield Apart(failed, (one, other), tuple(each for each in path if each not in failed))

    def _windows(self) -> Iterator[tuple[str, ...]]:
        """The ways of δ+1 to 2δ+1 brokers, each in one direction."""
        order = {name: i for i, name in enumerate(self.tree.brokers)}
        for name in self.tree.brokers:
            for path in self.tree.paths_from(name, 2 * self.delta + 1):
                if len(path) > self.delta and order[path[0]] <= order[path[-1]]:
                    yield path

    def crossed_links(self) -> Iterator[tuple[Link, Link]]:
        """The pairs of links around a third, whose outer ends do not hear each other when both fail."""
        for one, other in self.tree.links:
            for before in self.tree.beside(one):
                for after in self.tree.beside(other):
                    if before != other and after != one:
                        yield link(before, one), link(other, after)

    def used_near(self, down: Failures) -> dict[str, int]:
        """For every broker, how much of δ is used up near it: the most failures on a way of 2δ+1 nodes through it.

        A failed link counts as one of the two brokers beside it.
        """
        used = dict.fromkeys(self.tree.brokers, 0)
        for name in self.tree.brokers:
            for path in self.tree.paths_from(name, max(2 * self.delta + 1, 2)):
                count = sum(each in down.brokers for each in path)
                count += sum(link(*pair) in down.links for pair in pairwise(path))
                for each in path:
                    used[each] = max(used[each], count)
        return used


class _Way:
    """The way between two clients. A plain client is no node of it; any other is the first, or the last."""

    def __init__(self, survival: Survival, publisher: Client, subscriber: Client, down: Failures) -> None:
        brokers = survival.tree.path(publisher.broker, subscriber.broker)
        self._reach = survival.delta + 1
        self._window = 2 * survival.delta + 1
        self._down = down
        self._first = 0 if publisher.attachment is Attachment.PLAIN else 1
        last = 0 if subscriber.attachment is Attachment.PLAIN else 1
        self._nodes: list[str | None] = [*[None] * self._first, *brokers, *[None] * last]
        self._dialled = [
            *[publisher.attachment is Attachment.LISTENING] * self._first,
            *[True] * len(brokers),
            *[subscriber.attachment is Attachment.LISTENING] * last,
        ]

    @property
    def has_ends(self) -> bool:
        """Whether whoever is first and last on it is up."""
        return self._is_up(0) and self._is_up(len(self._nodes) - 1)

    def _is_up(self, i: int) -> bool:
        return self._nodes[i] not in self._down.brokers

    def _is_cut(self, i: int, j: int) -> bool:
        one, other = self._nodes[i], self._nodes[j]
        is_beside = abs(i - j) == 1 and one is not None and other is not None
        return is_beside and link(one or "", other or "") in self._down.links

    def _is_wanted(self, by: int, j: int) -> bool:
        """Whether a node has given up everybody before another, and can dial it."""
        between = range(min(by, j) + 1, max(by, j))
        return self._dialled[j] and all(not self._is_up(k) or self._is_cut(by, k) for k in between)

    def _has_session(self, i: int, j: int) -> bool:
        """Of two nodes within reach of each other."""
        if not self._is_up(i) or not self._is_up(j) or self._is_cut(i, j):
            return False
        return abs(i - j) == 1 or self._is_wanted(i, j) or self._is_wanted(j, i)

    def is_passable(self) -> bool:
        """Whether there are sessions all the way, along which at most δ of 2δ+1 in a row are bypassed [I5]."""
        row: list[tuple[int, tuple[bool, ...]]] = [(0, ())]  #: where, and which nodes before were passed
        for i, passed in row:
            if i == len(self._nodes) - 1:
                return True
            for j in range(i + 1, min(i + self._reach, len(self._nodes) - 1) + 1):
                trail = (*passed, True, *[False] * (j - i - 1))[-self._window :]
                if self._has_session(i, j) and trail.count(False) < self._reach and (j, trail) not in row:
                    row.append((j, trail))
        return False

    def is_walkable(self) -> bool:
        """Whether best-effort passes it: always to the nearest node there is a session with, and nothing is kept."""
        i = 0
        while i < len(self._nodes) - 1:
            later = range(i + 1, min(i + self._reach, len(self._nodes) - 1) + 1)
            hop = next((j for j in later if self._has_session(i, j)), None)
            if hop is None:
                return False
            i = hop
        return True
