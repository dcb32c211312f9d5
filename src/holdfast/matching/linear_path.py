"""What the automaton is made of: linear paths in a trie, value tests at their ends, patterns put together of them.

Equality tests are found by hashing the value, orders by bisection of their literals.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

from holdfast.filters.tree_pattern import ValueTest, number_of
from holdfast.filters.xpath import Path, XPathRelation

__all__ = ["REACHED", "TEXT", "VALUE", "Atom", "Fork", "Pattern", "Site", "Tests", "TrieNode"]

EQ: Final = XPathRelation.EQ
NE: Final = XPathRelation.NE
LT: Final = XPathRelation.LT
GT: Final = XPathRelation.GT
GE: Final = XPathRelation.GE

NAN: Final = float("nan")

# What an atom asks of the element at its trie node; anything else is the name of an attribute.
REACHED: Final = ""
VALUE: Final = "."
TEXT: Final = "text()"


class Atom:
    """A linear path with at most one value test, and what its being seen in a document means."""

    __slots__ = ("candidates", "forked", "number", "patterns", "uses")

    def __init__(self, number: int) -> None:
        self.number = number
        self.uses = 0
        #: so many of the uses are by patterns with branches
        self.forked = 0
        #: patterns that consist of this atom alone
        self.patterns: list[int] = []
        #: patterns with branches whose access atom it is
        self.candidates: list[Pattern] = []


class Thresholds:
    """The atoms of one order relation at one place, sorted by their literals."""

    __slots__ = ("atoms", "numbers", "relation")

    def __init__(self, relation: XPathRelation) -> None:
        self.relation = relation
        self.numbers: list[float] = []
        self.atoms: list[Atom] = []

    def passed(self, value: float) -> list[Atom]:
        """The atoms whose test this number passes; it is not NaN."""
        if self.relation is GT:
            return self.atoms[: bisect_left(self.numbers, value)]
        if self.relation is GE:
            return self.atoms[: bisect_right(self.numbers, value)]
        if self.relation is LT:
            return self.atoms[bisect_right(self.numbers, value) :]
        return self.atoms[bisect_left(self.numbers, value) :]


class Tests:
    """All that patterns ask of one value: an element's own, that of one attribute, or those of its text nodes."""

    __slots__ = ("differs", "equals", "numeric", "orders", "present", "uses")

    def __init__(self) -> None:
        #: the number of its atoms, and of those that compare numbers
        self.uses = 0
        self.numeric = 0
        #: that there is such a value at all
        self.present: Atom | None = None
        self.equals: dict[str | float, Atom] = {}
        self.differs: dict[str | float, Atom] = {}
        self.orders: list[Thresholds] = []

    def see(self, value: str, hits: list[Atom]) -> None:
        """Add the atoms that a value makes true."""
        if self.present is not None:
            hits.append(self.present)
        atom = self.equals.get(value)
        if atom is not None:
            hits.append(atom)
        number = number_of(value) if self.numeric else NAN
        for literal, differing in self.differs.items():
            if literal != (value if isinstance(literal, str) else number):
                hits.append(differing)
        if number == number:
            atom = self.equals.get(number)
            if atom is not None:
                hits.append(atom)
            for thresholds in self.orders:
                hits += thresholds.passed(number)

    def find(self, test: ValueTest | None) -> Atom | None:
        """The atom of a test, if it has one."""
        if test is None:
            return self.present
        if test.relation is EQ or test.relation is NE:
            return (self.equals if test.relation is EQ else self.differs).get(_literal(test))
        thresholds = self.order(test.relation)
        at = bisect_left(thresholds.numbers, test.number)
        if at < len(thresholds.numbers) and thresholds.numbers[at] == test.number:
            return thresholds.atoms[at]
        return None

    def add(self, test: ValueTest | None, atom: Atom) -> None:
        """Take in the atom of a test that has none."""
        self.uses += 1
        self.numeric += test is not None and test.string is None
        if test is None:
            self.present = atom
        elif test.relation is EQ or test.relation is NE:
            (self.equals if test.relation is EQ else self.differs)[_literal(test)] = atom
        else:
            thresholds = self.order(test.relation)
            at = bisect_left(thresholds.numbers, test.number)
            thresholds.numbers.insert(at, test.number)
            thresholds.atoms.insert(at, atom)

    def remove(self, test: ValueTest | None) -> None:
        """Drop the atom of a test."""
        self.uses -= 1
        self.numeric -= test is not None and test.string is None
        if test is None:
            self.present = None
        elif test.relation is EQ or test.relation is NE:
            del (self.equals if test.relation is EQ else self.differs)[_literal(test)]
        else:
            thresholds = self.order(test.relation)
            at = bisect_left(thresholds.numbers, test.number)
            del thresholds.numbers[at]
            del thresholds.atoms[at]

    def order(self, relation: XPathRelation) -> Thresholds:
        """The thresholds of a relation, begun if there were none."""
        for thresholds in self.orders:
            if thresholds.relation is relation:
                return thresholds
        thresholds = Thresholds(relation)
        self.orders.append(thresholds)
        return thresholds


def _literal(test: ValueTest) -> str | float:
    return test.number if test.string is None else test.string


class TrieNode:
    """A prefix of linear paths.

    ``hub`` is where paths go on with ``//``: it is active wherever this node is and everywhere below, and has the
    children and tests that such paths ask for next.
    """

    __slots__ = ("children", "hub", "is_hub", "name", "number", "parent", "reached", "star", "tests", "uses")

    def __init__(self, number: int, parent: TrieNode | None, name: str, is_hub: bool) -> None:
        self.number = number
        self.parent = parent
        self.name = name
        self.is_hub = is_hub
        self.uses = 0
        self.children: dict[str, TrieNode] = {}
        self.star: TrieNode | None = None
        self.hub: TrieNode | None = None
        #: the atom of the path up to here
        self.reached: Atom | None = None
        #: by what they ask for: VALUE, TEXT or an attribute's name
        self.tests: dict[str, Tests] = {}


class Fork:
    """A node where paths of a pattern part, or where several tests are made of one value."""

    __slots__ = ("is_text", "parent", "place", "sites")

    def __init__(self, parent: int, place: TrieNode, is_text: bool) -> None:
        #: position of the next fork above in the pattern's list; -1 for the topmost
        self.parent = parent
        self.place = place
        self.is_text = is_text
        #: the atoms whose paths lead here from below, without another fork between
        self.sites: list[Site] = []


class Site:
    """An atom of a pattern: where it is in the trie, and the branch that leads there from the next fork above."""

    __slots__ = ("atom", "home", "key", "levels", "slot", "test")

    def __init__(self, home: TrieNode, slot: str, test: ValueTest | None, atom: Atom) -> None:
        self.home = home
        self.slot = slot
        self.test = test
        self.atom = atom
        #: the same for all patterns that have this branch
        self.key = 0
        #: the length of the branch; -1 if it has ``//``
        self.levels = 0

    def begin_at(self, fork: Fork) -> None:
        """Make this one of the fork's branches."""
        fork.sites.append(self)
        self.key = fork.place.number << 32 | self.atom.number
        node = self.home
        while node is not fork.place:
            assert node.parent is not None
            self.levels = -1 if node.is_hub or self.levels < 0 else self.levels + 1
            node = node.parent


class Pattern:
    """One registered pattern."""

    __slots__ = ("forks", "number", "path", "required", "sites", "used", "uses")

    def __init__(self, number: int, path: Path) -> None:
        self.number = number
        self.path = path
        self.uses = 1
        #: the trie nodes it keeps, parents first
        self.used: list[TrieNode] = []
        self.sites: list[Site] = []
        # Of a pattern with branches: all its atoms, and its forks below the root element, the upper before the lower.
        self.required: frozenset[int] = frozenset()
        self.forks: list[Fork] = []
