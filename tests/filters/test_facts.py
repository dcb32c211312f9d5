"""What is said to be known is so: every region returned holds the value that an event has there.

The event is drawn first and the facts are drawn true of it; so every example tries the claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given

import holdfast.filters.facts as facts_module
from drawn_events import an_event, like_examples
from drawn_filters import (
    Parts,
    Seeded,
    Source,
    a_like,
    a_literal,
    a_path,
    a_test,
    an_attribute,
    an_expression,
    like_text,
    some,
)
from examples import examples
from formulas import column_value, truth
from holdfast.events.value import Value
from holdfast.filters.atoms import Atom, Atoms, Order
from holdfast.filters.evaluate import compile_condition
from holdfast.filters.expression import (
    Arithmetic,
    Attribute,
    Comparison,
    Condition,
    Filter,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Relation,
    Shard,
    XPath,
)
from holdfast.filters.facts import Budget, Exhausted, Facts
from holdfast.filters.like import LikePattern, like_covers
from holdfast.filters.normal import Formula, Member, normalise
from holdfast.filters.parse import parse_filter
from holdfast.filters.region import ABSENT, PRESENT, TRUE_ONLY, Interval, Region, comparison_region
from holdfast.filters.subject import Subject
from holdfast.filters.topic import ANYTHING
from holdfast.filters.tree_pattern import path_covers
from narrowing import narrow_condition
from strategies import drawn

WORK = 1_000_000
DRAWS = 20_000  #: at most; most faults show within a few hundred


@dataclass
class Example:
    """An event, what was learned of it, and a column asked for."""

    subject: Subject
    learned: list[Member]
    asked: Member


def an_example(source: Source) -> Example:
    asked_for = a_computed_test(source)
    # A test much like the one asked for is what tells most about it.
    related = narrow_condition(asked_for, source.pick((True, False)), source, Parts(depth=0))
    near = [Filter(ANYTHING, asked_for), Filter(ANYTHING, related)]
    subject = Subject(an_event(source, near if source.pick((True, False)) else []))
    told = pins(source, subject, asked_for)
    if source.pick((True, False)):
        told += [related, *some(source, 2, lambda: a_test(source))]
    learned = [member for test in told for member in _true_members(test, subject)]
    asked = _members(normalise(asked_for)) or [Member(Attribute("x"), ABSENT)]
    return Example(subject, learned, source.pick(asked))


def a_computed_test(source: Source) -> Condition:
    """A test of something about which other columns tell something."""
    match source.pick((0, 1, 2, 2, 3, 4)):
        case 0:
            operators = tuple(Operator)
            operand = Arithmetic(source.pick(operators), an_attribute(source), an_expression(source, depth=0))
            return Comparison(Relation.EQ, operand, a_literal(source, operand))
        case 1:
            return Comparison(source.pick(tuple(Relation)), an_attribute(source), an_attribute(source))
        case 2:
            return Like(Attribute("s"), like_text(a_like(source), None), None)
        case 3:
            return Shard(an_attribute(source), source.pick((2, 3, 4)), source.pick((0, 1)))
        case _:
            return XPath(a_path(source))


def pins(source: Source, subject: Subject, asked_for: Condition) -> list[Condition]:
    """Tests that leave an attribute little room."""
    tests: list[Condition] = []
    for name, value in subject.attributes.items():
        attribute, other = Attribute(name), a_literal(source, Attribute(name))
        if isinstance(asked_for, Like) and source.pick((True, False)):
            other = Literal(source.pick(list(like_examples(asked_for.pattern, None))))
        same = [Literal(value)] if not isinstance(value, bytes) else []
        if type(value) is int and float(value) == value:
            same.append(Literal(float(value)))
        options: list[Condition] = [Not(IsNull(attribute)), Comparison(Relation.LT, attribute, other)]
        options += [Comparison(Relation.EQ, attribute, literal) for literal in same]
        options += [In(attribute, (literal, other)) for literal in same]
        options += [Comparison(r, attribute, v) for v in (*same, other) for r in (Relation.LE, Relation.GE)]
        tests += [source.pick(options) for _ in range(source.pick((0, 1, 2)))]
    return tests


def _true_members(test: Condition, subject: Subject) -> list[Member]:
    verdict = compile_condition(test)(subject)
    if verdict is None:
        return []
    formula = normalise(test if verdict else Not(test))
    return [member for member in _members(formula) if truth(member, subject)]


def _members(formula: Formula) -> list[Member]:
    if isinstance(formula, Member):
        return [formula]
    return [member for part in formula.parts for member in _members(part)]


def atom_value(atom: Atom, subject: Subject) -> Value | None:
    column = atom.column
    if not isinstance(column, Order):
        return column_value(column, subject)
    below = column_value(Comparison(Relation.LT, column.left, column.right), subject)
    equal = column_value(Comparison(Relation.EQ, column.left, column.right), subject)
    return None if below is None else -1 if below else 0 if equal else 1


def strayed(example: Example) -> str | None:
    """How a region that is said to hold the event's value does not."""
    atoms, facts = Atoms(), Facts(Budget(WORK))
    for member in example.learned:
        facts.learn(*atoms.leaf(member))
    asked, _ = atoms.leaf(example.asked)
    if facts.are_impossible([asked]):
        return "true facts are said to contradict each other"
    for atom in (asked, *facts.regions):
        value = atom_value(atom, example.subject)
        if not facts.known(atom).contains(value):
            return f"{atom.column} is {value!r}, not in {facts.known(atom)}"
    return None


@examples(250)
@given(example=drawn(an_example))
def test_what_is_known_of_a_column_holds_the_value_of_every_event_with_these_facts(example: Example) -> None:
    assert strayed(example) is None, (example.learned, example.subject.event)


# The same question with a fault planted in each rule: the test above would notice.


def _patterns_swapped(general: list[list[str | None]], special: list[list[str | None]]) -> bool:
    return like_covers(special, general)


def _only_as_written(value: bool | int | float | str) -> list[bool | int | float | str]:
    return [value]


def _whole_low_end(low: str, high: object, strings: Region) -> str:
    return low


def _below_where_it_touches(first: Region, second: Region) -> Region:
    sound = ORDER(first, second)
    return sound & comparison_region(Relation.NE, 0) if sound <= comparison_region(Relation.LE, 0) else sound


def _always_settled(pattern: LikePattern, interval: Interval) -> Region:
    return TRUE_ONLY if pattern.matches(interval[0][0]) else LIKE_WITHIN(pattern, interval)


ORDER, LIKE_WITHIN = facts_module._order, facts_module._like_within
FAULTS: dict[str, tuple[str, object]] = {
    "LIKE covers the wrong way round": ("like_covers", _patterns_swapped),
    "paths cover the wrong way round": (
        "path_covers",
        lambda general, special: path_covers(special, general),
    ),
    "5 is never 5.0": ("_spellings", _only_as_written),
    "strings share more than they do": ("_common_prefix", _whole_low_end),
    "<= taken for <": ("_order", _below_where_it_touches),
    "the first string of a range stands for all": ("_like_within", _always_settled),
    "unlike types compare": ("_comparable", lambda first, second: True),
    "bytes compare": ("COMPARABLE", PRESENT),
    "arithmetic always has a value": ("NUMBERS", comparison_region(Relation.GE, 0)),
    "a path is never unknown": ("ABSENT", comparison_region(Relation.EQ, "")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, broken = FAULTS[fault]
    monkeypatch.setattr(facts_module, name, broken)
    source = Seeded(Random(1))
    assert any(strayed(an_example(source)) for _ in range(DRAWS))


# Examples


def told_members(text: str) -> list[Member]:
    return _members(normalise(parse_filter(f"# WHERE {text}").condition))


def facts_of(text: str, atoms: Atoms) -> Facts:
    facts = Facts(Budget(WORK))
    for member in told_members(text):
        facts.learn(*atoms.leaf(member))
    return facts


def test_of_an_attribute_nothing_is_known_that_was_not_learned() -> None:
    atoms = Atoms()
    facts = facts_of("x > 3 AND x < 5", atoms)
    assert facts.known(atoms.atom(Attribute("y"))).is_everything
    expected = comparison_region(Relation.GT, 3) & comparison_region(Relation.LT, 5)
    assert facts.known(atoms.atom(Attribute("x"))) == expected


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("x + 1 > 5", "x IS NOT NULL"),
        ("x + 1 > 5", "x < 0 OR x >= 0"),
        ("s LIKE '%a'", "s >= ''"),
        ("s NOT LIKE '%a'", "s >= ''"),
        ("SHARD(s, 2) = 1", "s IS NOT NULL"),
        ("x < y", "y IS NOT NULL"),
        ("x < y + 1", "x < 0 OR x >= 0"),
        ("x = 4 AND y = 2", "x / y = 2"),
        ("x = 5", "x / 2 >= 2 AND x / 2 <= 2.5"),
        ("x IS NULL", "x + 1 IS NULL"),
        ("x = 'a'", "x + 1 IS NULL"),
        ("x <= 3 AND y >= 3", "x <= y"),
        ("x < 3 AND y >= 3", "x < y"),
        ("x IN (1, 3) AND y IN (2, 4)", "x <> y"),
        ("x = 3 AND y = 3.0", "y = x"),
        ("x < y", "y >= x"),
        ("s = 'abc'", "s LIKE '%b%'"),
        ("s IN ('abc', 'b')", "s LIKE '%b%'"),
        ("s LIKE 'abc%'", "s LIKE '_b%'"),
        ("s LIKE 'b%'", "NOT s LIKE 'a%c'"),
        ("s >= 'abc' AND s < 'abd'", "s LIKE '%c%'"),
        ("s LIKE '%abc%'", "s LIKE '%b%'"),
        ("s NOT LIKE '%b%'", "s NOT LIKE '%abc%'"),
        ("SHARD(s, 12) = 7", "SHARD(s, 4) = 3"),
        ("XPATH '/a/b[c > 3]'", "XPATH '//b[c > 1]'"),
        ("NOT XPATH '//b'", "NOT XPATH '/a/b'"),
        ("XPATH '/a'", "XPATH '/b' OR NOT XPATH '/b'"),
    ],
)
def test_what_follows_is_known(told: str, asked: str) -> None:
    atoms = Atoms()
    facts = facts_of(told, atoms)
    assert all(facts.hold(*atoms.leaf(member)) for member in told_members(asked))
    assert not facts.impossible


def test_facts_that_contradict_each_other_are_noticed() -> None:
    for told in (
        "x = 1 AND x + 1 = 'a'",
        "x = 5 AND x + 1 > 10",
        "s = 'abc' AND s LIKE '%z%'",
        "x < y AND y < x",
    ):
        assert facts_of(told, Atoms()).are_impossible()


def test_a_copy_learns_alone() -> None:
    atoms, facts = Atoms(), Facts(Budget(WORK))
    x, one = atoms.leaf(Member(Attribute("x"), comparison_region(Relation.EQ, 1)))
    copy = facts.copy()
    copy.learn(x, one)
    assert copy.hold(x, one)
    assert not facts.hold(x, one)


def test_work_beyond_the_budget_is_refused() -> None:
    facts = Facts(Budget(6))
    x = Atoms().atom(Attribute("x"))
    facts.learn(x, PRESENT)
    with pytest.raises(Exhausted):
        facts.learn(x, TRUE_ONLY)


def test_one_pattern_is_laid_over_another() -> None:
    def laid(general: str, special: str) -> bool:
        return like_covers(LikePattern(general).parts, LikePattern(special).parts)

    for text in ("% a_%", "a% ab%c", "_b ab", "%b% a%b", "a%b%c a%xb_bc", "a_%_ abc%d"):
        assert laid(*text.split()), text
    for text in ("a_ a%", "_ %", "ab a_", "%b% %", "a%a a", "a%b b%a", "%a%a% %a%", "ab abc"):
        assert not laid(*text.split()), text


def two_patterns(source: Source) -> tuple[str, str]:
    return like_text(a_like(source), None), like_text(a_like(source), None)


@examples(150)
@given(patterns=drawn(two_patterns))
def test_a_pattern_that_covers_another_matches_what_the_other_does(patterns: tuple[str, str]) -> None:
    general, special = map(LikePattern, patterns)
    for text in like_examples(patterns[1], None):
        assert special.matches(text)
        assert general.matches(text) or not like_covers(general.parts, special.parts)
