"""Covering: whether one filter matches every event that another matches.

The normal forms of both are compared: does the special formula imply the general one? What certainly holds of the
special formula becomes *facts*; its ANYs are *alternatives*, of which some branch holds. Goals are the parts of the
general formula. An ALL is proved part by part. Of an ANY, the parts that are single memberships are *denied*: assumed
not to hold (a region has a complement, so this is one more fact for each). It is proved if then

1. the facts contradict themselves, or one of its other parts is proved from them;
2. or the same is true for each branch of one alternative;
3. or one of its other parts is proved with the help of all alternatives;
4. or, splitting into cases, for every combination of branches of several alternatives.

1 to 3 cost about as much as the two sizes multiplied, and find what filters look like when one was made from the
other. 4 finds what is left, in time exponential in the number of alternatives; so all the work of a question is
drawn from one budget, and when that is used up the answer is no. No is always a safe answer: a filter too many is
forwarded and no event is lost. Yes must be right; what that rests on is said in ``facts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.filters.atoms import Atom, Atoms
from holdfast.filters.expression import Filter
from holdfast.filters.facts import Budget, Exhausted, Facts
from holdfast.filters.normal import NEVER, All, Formula, Member, normalise
from holdfast.filters.region import Region

__all__ = ["SPLITS_MAX", "WORK_MAX", "covers", "implies"]

WORK_MAX: Final = 20_000  #: for one question, in the units of ``Budget``
SPLITS_MAX: Final = 12  #: alternatives decided together; two branches each make 4096 combinations


def covers(general: Filter, special: Filter) -> bool:
    """Whether it is certain that ``general`` matches every event that ``special`` matches."""
    formula = normalise(special.condition)
    if formula == NEVER:
        return True
    return general.pattern.covers(special.pattern) and implies(formula, normalise(general.condition))


def implies(special: Formula, general: Formula, *, work: int = WORK_MAX) -> bool:
    """Whether it is certain that ``general`` is true wherever ``special`` is.

    For those who ask often: a formula can be kept, while ``covers`` makes both anew.
    """
    goals = _Goals()
    try:
        case = _Case(Facts(Budget(work))).having(goals.goal(special))
        return _proves(case, goals.goal(general), SPLITS_MAX)
    except Exhausted:
        return False


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    names: frozenset[str]
    atom: Atom
    region: Region


@dataclass(frozen=True, slots=True, eq=False)
class _Every:
    names: frozenset[str]
    parts: tuple[_Goal, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Some:
    names: frozenset[str]
    parts: tuple[_Goal, ...]


#: A formula over atoms; ``names`` are the attributes read anywhere in it. Compared by identity, see ``_Goals``.
_Goal: TypeAlias = _Leaf | _Every | _Some


class _Goals:
    """Rewrites formulas over atoms. What is the same in two formulas becomes the same object."""

    def __init__(self) -> None:
        self._atoms = Atoms()
        self._leaves: dict[tuple[Atom, Region], _Leaf] = {}
        self._joined: dict[tuple[type[_Every] | type[_Some], frozenset[_Goal]], _Every | _Some] = {}

    def goal(self, formula: Formula) -> _Goal:
        """The formula over atoms. Members that stayed apart in it may meet here (``a < b OR a = b``)."""
        if isinstance(formula, Member):
            return self._leaf(*self._atoms.leaf(formula))
        regions: dict[Atom, Region] = {}
        others: list[_Goal] = []
        for part in formula.parts:
            if isinstance(part, Member):
                atom, region = self._atoms.leaf(part)
                if atom in regions:
                    region = regions[atom] & region if isinstance(formula, All) else regions[atom] | region
                regions[atom] = region
            else:
                others.append(self.goal(part))
        leaves = (self._leaf(atom, region) for atom, region in regions.items())
        return self._join(_Every if isinstance(formula, All) else _Some, (*leaves, *others))

    def _leaf(self, atom: Atom, region: Region) -> _Leaf:
        leaf = self._leaves.get((atom, region))
        if leaf is None:
            leaf = self._leaves[atom, region] = _Leaf(atom.names, atom, region)
        return leaf

    def _join(self, kind: type[_Every] | type[_Some], parts: tuple[_Goal, ...]) -> _Goal:
        key = kind, frozenset(parts)
        joined = self._joined.get(key)
        if joined is None:
            names = frozenset[str]().union(*(part.names for part in parts))
            joined = self._joined[key] = kind(names, parts)
        return joined


class _Case:
    """What is assumed: facts, and alternatives, of each of which some branch holds."""

    __slots__ = ("alternatives", "denied", "facts")

    def __init__(
        self, facts: Facts, alternatives: tuple[_Some, ...] = (), denied: tuple[Atom, ...] = ()
    ) -> None:
        self.facts = facts
        self.alternatives = alternatives
        self.denied = denied  #: the columns of the goals that are assumed not to hold

    def having(self, formula: _Goal) -> _Case:
        """The case in which the formula holds too."""
        facts, alternatives = self.facts.copy(), list(self.alternatives)
        queue = [formula]
        while queue:
            part = queue.pop()
            if isinstance(part, _Leaf):
                facts.learn(part.atom, part.region)
            elif isinstance(part, _Every):
                queue.extend(part.parts)
            elif part.parts:
                alternatives.append(part)
            else:
                facts.impossible = True
        return _Case(facts, tuple(alternatives), self.denied)

    def denying(self, leaves: list[_Leaf]) -> _Case:
        """The case in which none of these holds."""
        facts = self.facts.copy()
        for leaf in leaves:
            facts.learn(leaf.atom, ~leaf.region)
        return _Case(facts, self.alternatives, (*self.denied, *(leaf.atom for leaf in leaves)))

    def keeping(self, *alternatives: _Some) -> _Case:
        """The case with no other alternatives than these."""
        return _Case(self.facts, alternatives, self.denied)

    def relevant(self, names: frozenset[str]) -> list[_Some]:
        """The alternatives that speak of what the goal speaks of, those that share most with it first."""
        self.facts.budget.spend(len(self.alternatives))
        shared = [(len(some.names & names), some) for some in self.alternatives]
        return [some for count, some in sorted(shared, key=lambda pair: -pair[0]) if count]


def _proves(case: _Case, goal: _Goal, splits: int) -> bool:
    """Whether the goal holds in the case, if up to so many alternatives may be decided together."""
    if isinstance(goal, _Every):
        return all(_proves(case, part, splits) for part in goal.parts)
    if goal in case.alternatives:
        return True
    parts = goal.parts if isinstance(goal, _Some) else (goal,)
    leaves = [part for part in parts if isinstance(part, _Leaf)]
    if case.facts.impossible or any(case.facts.hold(leaf.atom, leaf.region) for leaf in leaves):
        return True  # as it would turn out below, for less
    others = [part for part in parts if not isinstance(part, _Leaf)]
    return _settles(case.denying(leaves), others, goal.names, splits)


def _settles(case: _Case, goals: Sequence[_Goal], names: frozenset[str], splits: int) -> bool:
    """Whether one of the goals holds, or nothing can be as the case assumes."""
    if case.facts.are_impossible(case.denied):
        return True
    if any(_proves(case.keeping(), goal, 0) for goal in goals):
        return True
    relevant = case.relevant(names)
    if any(_settles_by(some, case, goals, names) for some in relevant):
        return True
    if relevant and any(_proves(case, goal, 0) for goal in goals):
        return True
    if not relevant or not splits:
        return False
    rest = case.keeping(*(some for some in case.alternatives if some is not relevant[0]))
    return all(_settles(rest.having(branch), goals, names, splits - 1) for branch in relevant[0].parts)


def _settles_by(some: _Some, case: _Case, goals: Sequence[_Goal], names: frozenset[str]) -> bool:
    """The same with the help of one alternative, whatever the others are."""
    alone = case.keeping()
    return all(_settles(alone.having(branch), goals, names, 0) for branch in some.parts)
