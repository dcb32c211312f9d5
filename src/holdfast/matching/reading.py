"""Reading one document: the state of each of its elements, and how the branches of a pattern meet in it.

What is active at an element depends on the names above it alone, so a ``State`` is kept for each sequence of names. A
``Reading`` has the states of one document's elements and the values seen there, and answers for patterns with branches
whether their paths, followed up from where their atoms were seen, meet where they part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.events.document import Document
from holdfast.matching.linear_path import TEXT, VALUE, Atom, Fork, Pattern, Site, Tests, TrieNode

__all__ = ["NO_HUBS", "Reading", "State"]

NO_HUBS: Final[frozenset[TrieNode]] = frozenset()


class State:
    """What is active at an element, and what follows from it."""

    __slots__ = (
        "atoms",
        "attributes",
        "candidates",
        "hubs",
        "idle",
        "is_tested",
        "live",
        "moves",
        "other",
        "own_hubs",
        "patterns",
        "texts",
        "values",
    )

    def __init__(self, hubs: frozenset[TrieNode], idle: State | None, nodes: Iterable[TrieNode]) -> None:
        #: all active hubs
        self.hubs = hubs
        #: the state of an element where nothing but these hubs is active; None if it is this one
        self.idle = idle
        #: the hubs that become active here
        self.own_hubs: frozenset[TrieNode] = NO_HUBS
        self.moves: dict[str, State] = {}
        #: where names lead that no pattern mentions; never by name, as documents may invent them without end
        self.other: State | None = None
        live: list[TrieNode] = []
        atoms: list[Atom] = []
        values: list[Tests] = []
        texts: list[Tests] = []
        attributes: list[tuple[str, Tests]] = []
        for node in nodes:
            if not node.is_hub and (node.children or node.star is not None):
                live.append(node)
            if node.reached is not None:
                atoms.append(node.reached)
            for slot, tests in node.tests.items():
                if slot == VALUE:
                    values.append(tests)
                elif slot == TEXT:
                    texts.append(tests)
                else:
                    attributes.append((slot, tests))
        # Tuples, because there are many states and the garbage collector looks at each list for ever.
        #: active nodes that have children and are no hubs
        self.live = tuple(live)
        self.patterns = tuple([number for atom in atoms for number in atom.patterns])
        self.candidates = tuple([pattern for atom in atoms for pattern in atom.candidates])
        #: those that patterns with branches ask for
        self.atoms = tuple([atom.number for atom in atoms if atom.forked])
        self.values = tuple(values)
        self.texts = tuple(texts)
        self.attributes = tuple(attributes)
        is_tested = bool(values or texts or attributes)
        self.is_tested: bool = is_tested if idle is None else is_tested or idle.is_tested

    def see(self, document: Document, number: int, hits: list[Atom]) -> None:
        """Add the atoms that the values of an element in this state make true."""
        if self.idle is not None and self.idle.is_tested:
            self.idle.see(document, number, hits)
        attributes = document.attributes[number]
        if attributes:
            for name, tests in self.attributes:
                value = attributes.get(name)
                if value is not None:
                    tests.see(value, hits)
        if self.texts:
            for text in document.texts[number]:
                for tests in self.texts:
                    tests.see(text, hits)
        if self.values:
            own = document.string_value(number)
            for tests in self.values:
                tests.see(own, hits)


class Reading:
    """What one document showed: the state of each element, and the value atoms seen at it."""

    __slots__ = (
        "branches",
        "document",
        "hit_elements",
        "hit_ends",
        "hits",
        "hub_starts",
        "seen_at",
        "states",
    )

    def __init__(self, document: Document) -> None:
        self.document = document
        self.states: list[State] = []
        self.hits: list[Atom] = []
        #: the hits up to ``hit_ends[i]``, from the end before, are those of ``hit_elements[i]``
        self.hit_elements: list[int] = []
        self.hit_ends: list[int] = []
        # Filled as patterns with branches ask.
        self.seen_at: dict[int, list[int]] = {}
        self.hub_starts: dict[TrieNode, set[int]] = {}
        self.branches: dict[int, set[int]] = {}

    def confirms(self, pattern: Pattern) -> bool:
        """Whether a pattern of which all atoms were seen fits: the paths below each fork meet in an element."""
        forks = pattern.forks
        if not forks:
            return True
        if not self.seen_at:
            self.gather()
        if len(forks) == 1:
            return bool(self.meeting(forks[0], None))
        below: list[set[int] | None] = [None] * len(forks)
        for position in range(len(forks) - 1, -1, -1):
            fork = forks[position]
            elements = self.meeting(fork, below[position])
            if not elements:
                return False
            if fork.parent >= 0:
                above = self.climb(elements, fork.place, forks[fork.parent].place)
                known = below[fork.parent]
                below[fork.parent] = above if known is None else known & above
        return True

    def gather(self) -> None:
        """Note for each atom the elements where it was seen."""
        seen_at = self.seen_at
        for number, state in enumerate(self.states):
            for atom in state.atoms:
                elements = seen_at.get(atom)
                if elements is None:
                    seen_at[atom] = [number]
                else:
                    elements.append(number)
        start = 0
        for i, number in enumerate(self.hit_elements):
            for hit in self.hits[start : self.hit_ends[i]]:
                seen_at.setdefault(hit.number, []).append(number)
            start = self.hit_ends[i]

    def meeting(self, fork: Fork, elements: set[int] | None) -> set[int]:
        """Those of the elements, or of all, from which each branch of a fork leads down to where its atom was seen."""
        for site in fork.sites:
            branch = self.branches.get(site.key)
            if branch is None:
                seen = self.seen_at[site.atom.number]
                if site.levels >= 0:
                    branch = self.ancestors(seen, site.levels)
                else:
                    branch = self.climb(set(seen), site.home, fork.place)
                self.branches[site.key] = branch
            elements = branch if elements is None else elements & branch
        assert elements is not None
        return self.with_one_text(elements, fork.sites) if fork.is_text else elements

    def climb(self, elements: set[int], node: TrieNode, top: TrieNode) -> set[int]:
        """From elements where a path has come to ``node`` up to those where it was at ``top``, a prefix of it."""
        while node is not top:
            if node.is_hub:
                elements = self.selves_and_ancestors(elements) & self.starts_of(node)
            else:
                elements = self.ancestors(list(elements), 1)
            assert node.parent is not None
            node = node.parent
        return elements

    def ancestors(self, elements: list[int], levels: int) -> set[int]:
        """The elements so many levels above these."""
        parents = self.document.parents
        above: set[int] = set()
        for element in elements:
            for _ in range(levels):
                element = parents[element]
            above.add(element)
        return above

    def selves_and_ancestors(self, elements: set[int]) -> set[int]:
        """These elements and all above them."""
        parents = self.document.parents
        above: set[int] = set()
        for element in elements:
            while element >= 0 and element not in above:
                above.add(element)
                element = parents[element]
        return above

    def starts_of(self, hub: TrieNode) -> set[int]:
        """The elements where a hub becomes active."""
        starts = self.hub_starts.get(hub)
        if starts is None:
            starts = set()
            for number, state in enumerate(self.states):
                if hub in state.own_hubs:
                    starts.add(number)
            self.hub_starts[hub] = starts
        return starts

    def with_one_text(self, elements: set[int], sites: list[Site]) -> set[int]:
        """Those elements that have one text node which passes all the tests."""
        texts = self.document.texts
        tests = [site.test for site in sites if site.test is not None]
        return {n for n in elements if any(all(test.holds(text) for test in tests) for text in texts[n])}
