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

from typing import Final

from holdfast.events.document import Document
from holdfast.filters.tree_pattern import PatternNode, ValueTest, tree_pattern
from holdfast.filters.xpath import Kind, Path, XPathRelation
from holdfast.matching.linear_path import REACHED, TEXT, VALUE, Atom, Fork, Pattern, Site, Tests, TrieNode
from holdfast.matching.reading import NO_HUBS, Reading, State

__all__ = ["MEMBERS_MAX", "PatternAutomaton"]

#: nodes and patterns in all states together; when a document begins with more, the states are forgotten
MEMBERS_MAX: Final = 2_000_000
STATE_MEMBERS: Final = 32  #: what a state counts for beside its members


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
    if site.test is not None and site.test.relation is not XPathRelation.NE:
        rarity += 18 if site.test.relation is XPathRelation.EQ else 1
    node = site.home
    while node.parent is not None:
        if not node.is_hub:
            rarity += 1 if node.name == "*" else 6
        node = node.parent
    return rarity
