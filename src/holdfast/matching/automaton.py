"""All XPath patterns of all subscriptions in one automaton.

A tree pattern is taken apart into its *linear paths*, from the root to each leaf and to each value test. The linear
paths of all patterns share one trie, which read as a nondeterministic automaton walks down a document: a node of the
trie is active at an element if the names from the root to the element spell the path to that node. A path reached,
with its value test if it has one, is an *atom*. Most patterns are one atom and match when it is seen. A pattern with
branches is looked at only if one chosen atom of it, its *access atom*, is seen, and then

- it fails if another one of its atoms was not seen;
- otherwise its paths are followed up from where their atoms were seen to the elements where they part, and it holds
  if at each fork they meet in one element.

So the cost of a document follows from what it contains, and patterns that have nothing to do with it cost nothing.

What is active at an element depends on the names above it alone. It is kept, with all patterns that match there, as
the *state* of this sequence of names, so that for a sequence seen before an element costs one dictionary lookup: a
deterministic automaton that is built as documents ask for it. Making a state costs little more than the step of the
nondeterministic automaton it stands for, so that documents unlike all others are no worse off, nor is a document that
follows a change of the patterns, when all states are forgotten. Nodes from which paths go on with ``//`` (*hubs*) stay
active all the way down; they are looked up by the name they wait for. Equality tests are found by hashing the value,
orders by bisection of their literals.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from holdfast.events.document import Document
from holdfast.filters.tree_pattern import PatternNode, ValueTest, number_of, tree_pattern
from holdfast.filters.xpath import Kind, Path, XPathRelation

__all__ = ["MEMBERS_MAX", "PatternAutomaton"]

#: nodes and patterns in all states together; when a document begins with more, the states are forgotten
MEMBERS_MAX: Final = 2_000_000
STATE_MEMBERS: Final = 32  #: what a state counts for beside its members

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


class PatternAutomaton:
    """Many patterns, one walk over a document.

    A pattern has one number however often it is acquired; a number may be given again after its last release.
    """

    def __init__(self, members_max: int = MEMBERS_MAX) -> None:
        self.members_max = members_max
        self._numbers: dict[Path, int] = {}
        self._patterns: list[Pattern | None] = []
        self._free: list[int] = []
        self._atoms = 0
        self._free_atoms: list[int] = []
        self._nodes = 1
        self._root = TrieNode(0, None, "", False)
        #: how many trie nodes have a name, and which hubs have a child of it
        self._names: dict[str, int] = {}
        self._waiting: dict[str, set[TrieNode]] = {}
        self._start: State | None = None
        self._members = 0

    def __len__(self) -> int:
        return len(self._numbers)

    # Matching

    def match(self, document: Document) -> set[int]:
        """The numbers of all patterns that select something in the document."""
        reading = self._read(document)
        states, hits = reading.states, reading.hits
        found: set[int] = set()
        found.update(*[state.patterns for state in states])
        found.update(*[atom.patterns for atom in hits])
        candidates: set[Pattern] = set()
        candidates.update(*[state.candidates for state in states])
        candidates.update(*[atom.candidates for atom in hits])
        if candidates:
            seen: set[int] = set()
            seen.update(*[state.atoms for state in states])
            seen.update([atom.number for atom in hits])
            for pattern in candidates:
                if pattern.required <= seen and reading.confirms(pattern):
                    found.add(pattern.number)
        return found

    def _read(self, document: Document) -> Reading:
        """Walk the elements, parents first."""
        start = self._start_state()
        reading = Reading(document)
        states, hits = reading.states, reading.hits
        parents = document.parents
        for number, name in enumerate(document.names):
            parent = parents[number]
            above = states[parent] if parent >= 0 else start
            state = above.moves.get(name)
            if state is None:
                state = self._move(above, name)
            states.append(state)
            if state.is_tested:
                before = len(hits)
                state.see(document, number, hits)
                if len(hits) > before:
                    reading.hit_elements.append(number)
                    reading.hit_ends.append(len(hits))
        return reading

    def _start_state(self) -> State:
        """The state of the document itself, above the root element."""
        if self._start is None or self._members > self.members_max:
            self._members = 0
            hub = self._root.hub
            idle = self._idle(NO_HUBS if hub is None else frozenset([hub]))
            self._start = State(idle.hubs, idle, [self._root])
        return self._start

    def _move(self, above: State, name: str) -> State:
        if name in self._names:
            state = self._step(above, name)
            above.moves[name] = state
            return state
        if above.other is None:
            above.other = self._step(above, "")
        return above.other

    def _step(self, above: State, name: str) -> State:
        """The state of an element of this name below one in that state."""
        entered: list[TrieNode] = []
        for node in above.live:
            child = node.children.get(name)
            if child is not None:
                entered.append(child)
            if node.star is not None:
                entered.append(node.star)
        for hub in self._hubs_waiting(above.hubs, name):
            entered.append(hub.children[name])
        for hub in self._hubs_waiting(above.hubs, "*"):
            if hub.star is not None:
                entered.append(hub.star)
        idle = above if above.idle is None else above.idle
        if not entered:
            return idle
        own = frozenset([node.hub for node in entered if node.hub is not None])
        if not own <= above.hubs:
            idle = self._idle(above.hubs | own)
        state = State(idle.hubs, idle, entered)
        state.own_hubs = own
        self._members += STATE_MEMBERS + len(entered) + len(state.patterns) + len(state.candidates)
        return state

    def _hubs_waiting(self, hubs: frozenset[TrieNode], name: str) -> frozenset[TrieNode]:
        waiting = self._waiting.get(name)
        return hubs.intersection(waiting) if waiting else NO_HUBS

    def _idle(self, hubs: frozenset[TrieNode]) -> State:
        self._members += STATE_MEMBERS + len(hubs)
        return State(hubs, None, hubs)

    # Registering

    def acquire(self, path: Path) -> int:
        """Register a pattern, or count one more user of it, and give its number."""
        known = self._numbers.get(path)
        if known is not None:
            pattern = self._patterns[known]
            assert pattern is not None
            pattern.uses += 1
            return known
        number = self._free.pop() if self._free else len(self._patterns)
        pattern = Pattern(number, path)
        if number == len(self._patterns):
            self._patterns.append(pattern)
        else:
            self._patterns[number] = pattern
        self._numbers[path] = number
        nodes = tree_pattern(path)
        if nodes is not None:
            self._insert(pattern, nodes)
        return number

    def _insert(self, pattern: Pattern, nodes: list[PatternNode]) -> None:
        """Lay the nodes of a pattern into the trie, and find its forks and atoms."""
        places = [self._root]
        forks = [-1]  # by position in the pattern, the fork at or above it
        for position in range(1, len(nodes)):
            node = nodes[position]
            home = self._place(pattern, node, places[node.parent])
            places.append(home)
            fork = forks[node.parent]
            # There is but one root element: paths that part there always meet.
            is_root = node.kind is Kind.ELEMENT and home.parent is self._root
            if len(node.children) + len(node.tests) > 1 and not is_root:
                pattern.forks.append(Fork(fork, home, node.kind is Kind.TEXT))
                fork = len(pattern.forks) - 1
            forks.append(fork)
            for site in self._sites(node, home):
                pattern.sites.append(site)
                if fork >= 0:
                    site.begin_at(pattern.forks[fork])
        self._offer(pattern)

    def _place(self, pattern: Pattern, node: PatternNode, home: TrieNode) -> TrieNode:
        """The trie node of an element, or the one to whose element the attribute or text belongs."""
        if node.descendant:
            home = self._hub(home)
            pattern.used.append(home)
        if node.kind is Kind.ELEMENT:
            home = self._child(home, node.name)
            pattern.used.append(home)
        return home

    def _sites(self, node: PatternNode, home: TrieNode) -> list[Site]:
        """One for each test, or one for a leaf without."""
        if node.tests:
            slot = VALUE if node.kind is Kind.ELEMENT else TEXT if node.kind is Kind.TEXT else node.name
            return [self._site(home, slot, test) for test in node.tests]
        if node.children:
            return []
        slot = REACHED if node.kind is Kind.ELEMENT else TEXT if node.kind is Kind.TEXT else node.name
        return [self._site(home, slot, None)]

    def _offer(self, pattern: Pattern) -> None:
        """Let the right atom lead to the pattern."""
        if len(pattern.sites) == 1:
            pattern.sites[0].atom.patterns.append(pattern.number)
            self._changed(pattern.sites[0])
            return
        pattern.required = frozenset([site.atom.number for site in pattern.sites])
        _access(pattern.sites).atom.candidates.append(pattern)
        for site in pattern.sites:
            site.atom.forked += 1
            self._changed(site)

    def _changed(self, site: Site) -> None:
        """What an atom leads to has changed; of a path reached, states have a copy."""
        if site.slot == REACHED:
            self._start = None

    def _hub(self, node: TrieNode) -> TrieNode:
        if node.hub is None:
            node.hub = self._node(node, "", is_hub=True)
        node.hub.uses += 1
        return node.hub

    def _child(self, node: TrieNode, name: str) -> TrieNode:
        child = node.star if name == "*" else node.children.get(name)
        if child is None:
            child = self._node(node, name, is_hub=False)
            if name == "*":
                node.star = child
            else:
                node.children[name] = child
            self._names[name] = self._names.get(name, 0) + 1
            if node.is_hub:
                self._waiting.setdefault(name, set()).add(node)
        child.uses += 1
        return child

    def _node(self, parent: TrieNode, name: str, *, is_hub: bool) -> TrieNode:
        self._start = None
        self._nodes += 1
        return TrieNode(self._nodes - 1, parent, name, is_hub)

    def _site(self, home: TrieNode, slot: str, test: ValueTest | None) -> Site:
        if slot == REACHED:
            atom = home.reached
            if atom is None:
                atom = self._new_atom()
                home.reached = atom
        else:
            tests = home.tests.get(slot)
            if tests is None:
                tests = Tests()
                home.tests[slot] = tests
                self._start = None
            atom = tests.find(test)
            if atom is None:
                atom = self._new_atom()
                tests.add(test, atom)
        atom.uses += 1
        return Site(home, slot, test, atom)

    def _new_atom(self) -> Atom:
        if self._free_atoms:
            return Atom(self._free_atoms.pop())
        self._atoms += 1
        return Atom(self._atoms - 1)

    def release(self, pattern: int) -> None:
        """One user less; with the last one the pattern is gone. Release only what was acquired."""
        entry = self._patterns[pattern]
        assert entry is not None
        entry.uses -= 1
        if entry.uses:
            return
        if entry.sites:
            self._withdraw(entry)
        for site in entry.sites:
            self._leave(site)
        for node in reversed(entry.used):
            node.uses -= 1
            if not node.uses:
                self._detach(node)
        del self._numbers[entry.path]
        self._patterns[pattern] = None
        self._free.append(pattern)

    def _withdraw(self, pattern: Pattern) -> None:
        """The reverse of ``_offer``."""
        if len(pattern.sites) == 1:
            pattern.sites[0].atom.patterns.remove(pattern.number)
            self._changed(pattern.sites[0])
            return
        for site in pattern.sites:
            site.atom.forked -= 1
            if pattern in site.atom.candidates:
                site.atom.candidates.remove(pattern)
            self._changed(site)

    def _leave(self, site: Site) -> None:
        atom, home = site.atom, site.home
        atom.uses -= 1
        if atom.uses:
            return
        self._free_atoms.append(atom.number)
        if site.slot == REACHED:
            home.reached = None
            return
        tests = home.tests[site.slot]
        tests.remove(site.test)
        if not tests.uses:
            del home.tests[site.slot]
            self._start = None

    def _detach(self, node: TrieNode) -> None:
        """Take a node that no pattern needs out of the trie."""
        self._start = None
        parent = node.parent
        assert parent is not None
        if node.is_hub:
            parent.hub = None
            return
        if node.name == "*":
            parent.star = None
        else:
            del parent.children[node.name]
        self._names[node.name] -= 1
        if not self._names[node.name]:
            del self._names[node.name]
        if parent.is_hub:
            self._waiting[node.name].remove(parent)
            if not self._waiting[node.name]:
                del self._waiting[node.name]


def _access(sites: list[Site]) -> Site:
    """The atom that is probably absent: an equality, a long path with many names, and not what all patterns have."""
    return max(sites, key=_rarity)


def _rarity(site: Site) -> int:
    """A guess; the weights gave the fewest candidates for the workload of [XNET §5.1].

    The more candidates an atom has already, the less it says: patterns that differ only in their literals must not
    all be tried wherever their common path is found.
    """
    rarity = -len(site.atom.candidates).bit_length()
    if site.test is not None and site.test.relation is not NE:
        rarity += 18 if site.test.relation is EQ else 1
    node = site.home
    while node.parent is not None:
        if not node.is_hub:
            rarity += 1 if node.name == "*" else 6
        node = node.parent
    return rarity
