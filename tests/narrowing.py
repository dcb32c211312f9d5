"""Making a filter narrower by construction: what it matches afterwards it matched before.

The condition is changed at one place. ``wanted`` says which side of a condition must shrink: the events for which it is
true, or, below a NOT, those for which it is false. (Three-valued, one is not the complement of the other: for both to
be handled by the same rules, each rule is checked against the side it is asked for.)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, TypeAlias

from drawn_events import like_examples
from drawn_filters import (
    ALL,
    ELEMENTS,
    LEVELS,
    NUMBERS,
    SCALARS,
    STRINGS,
    Parts,
    Source,
    a_condition,
    a_predicate,
    some,
)
from holdfast.filters.expression import (
    And,
    Attribute,
    Between,
    Comparison,
    Condition,
    Expression,
    Filter,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Relation,
    Scalar,
    Shard,
    Truth,
    XPath,
    conjunction,
    disjunction,
)
from holdfast.filters.topic import TopicPattern
from holdfast.filters.xpath import Kind, Path, Predicate, Step, XPathRelation


def narrow(filter: Filter, source: Source, parts: Parts = ALL) -> Filter:
    """The filter with one to three changes, each of which narrows it."""
    for _ in range(source.pick((1, 1, 2, 3))):
        filter = _narrow_once(filter, source, parts)
    return filter


def _narrow_once(filter: Filter, source: Source, parts: Parts) -> Filter:
    if source.pick((True, False, False, False)):
        return replace(filter, pattern=narrow_pattern(filter.pattern, source))
    if filter.condition is None:
        return replace(filter, condition=a_condition(source, parts))
    return replace(filter, condition=narrow_condition(filter.condition, True, source, parts))


def narrow_pattern(pattern: TopicPattern, source: Source) -> TopicPattern:
    """``+`` made a level, ``#`` made levels, or the pattern itself if it has neither."""
    wild: list[int] = [i for i, level in enumerate(pattern.levels) if level == "+"]
    if source.pick((True, False)) and wild:
        at = source.pick(wild)
        return replace(pattern, levels=(*pattern.levels[:at], source.pick(LEVELS), *pattern.levels[at + 1 :]))
    if pattern.rest:
        more = tuple(some(source, 2, lambda: source.pick((*LEVELS, "+"))))
        levels = pattern.levels + more
        return TopicPattern(levels, rest=source.pick((True, False)) or not levels)
    return pattern


def narrow_condition(condition: Condition, wanted: bool, source: Source, parts: Parts = ALL) -> Condition:
    """The condition with the side on which it is ``wanted`` made smaller, at one place."""
    if source.pick((True, False, False, False)):
        return _joined([condition, a_condition(source, parts, 1)], wanted, source)
    match condition:
        case Not(IsNull(operand)) if wanted and source.pick((True, False)):
            return source.pick(_tests(operand, source))
        case Not(operand):
            return Not(narrow_condition(operand, not wanted, source, parts))
        case And(operands) | Or(operands):
            shrinks = isinstance(condition, And) is not wanted  # with fewer operands
            if shrinks and source.pick((True, False)):
                kept = list(operands)
                kept.pop(source.pick(range(len(kept))))
            else:
                i = source.pick(range(len(operands)))
                narrower = narrow_condition(operands[i], wanted, source, parts)
                kept = [*operands[:i], narrower, *operands[i + 1 :]]
            return conjunction(kept) if isinstance(condition, And) else disjunction(kept)
        case _:
            changes = _changes(condition, wanted, source)
            if not changes:
                return _joined([condition, a_condition(source, parts, 1)], wanted, source)
            return source.pick(changes)


def _joined(operands: list[Condition], wanted: bool, source: Source) -> Condition:
    ordered = operands if source.pick((True, False)) else operands[::-1]
    return conjunction(ordered) if wanted else disjunction(ordered)


def _changes(test: Condition, wanted: bool, source: Source) -> list[Condition]:
    """Narrower tests in place of one."""
    match test:
        case Comparison(relation, operand, Literal(value)):
            return _comparison_changes(relation, operand, value, wanted)
        case Comparison(relation, Literal(value), operand):
            flipped = _comparison_changes(relation.flipped, operand, value, wanted)
            return [_flipped(change) for change in flipped]
        case Comparison(relation, left, right):
            relations = [r for r in Relation if _is_narrower(r, relation, wanted)]
            return [
                c for r in relations for c in (Comparison(r, left, right), Comparison(r.flipped, right, left))
            ]
        case Between(operand, Literal(low), Literal(high)):
            return _between_changes(operand, low, high, wanted)
        case In(operand, values):
            return _in_changes(operand, values, wanted, source)
        case Like():
            return _like_changes(test, wanted, source)
        case Truth(operand):
            return [
                Comparison(Relation.EQ, operand, Literal(True)),
                Comparison(Relation.NE, operand, Literal(False)),
            ]
        case XPath(path):
            return [XPath(Path(steps)) for steps in _path_changes(path.steps, wanted, source)]
        case Shard(attribute, count, index) if wanted:
            factor = source.pick((2, 3))
            return [Shard(attribute, count * factor, index + count * source.pick(range(factor)))]
        case _:
            return []


def _tests(operand: Expression, source: Source) -> list[Condition]:
    """Tests that are true only of a value that is there."""
    literals = [Literal(source.pick(SCALARS)) for _ in range(3)]
    tests: list[Condition] = [Comparison(relation, operand, literals[0]) for relation in Relation]
    tests += [
        In(operand, tuple(literals)),
        Not(In(operand, tuple(literals[:1]))),
        Between(operand, *literals[:2]),
    ]
    tests += [
        Like(operand, "a%c", None),
        Not(Like(operand, "_", None)),
        Comparison(Relation.LE, operand, operand),
    ]
    if isinstance(operand, Attribute):
        tests += [Truth(operand), Shard(operand, 3, 1), Not(Shard(operand, 3, 1))]
    return tests


# Comparisons

#: Which relations imply which, over the same two values.
_IMPLIES = {
    Relation.LT: {Relation.LT, Relation.LE, Relation.NE},
    Relation.EQ: {Relation.EQ, Relation.LE, Relation.GE},
    Relation.GT: {Relation.GT, Relation.GE, Relation.NE},
    Relation.LE: {Relation.LE},
    Relation.GE: {Relation.GE},
    Relation.NE: {Relation.NE},
}


def _is_narrower(narrow: Relation, wide: Relation, wanted: bool) -> bool:
    if not wanted:
        narrow, wide = narrow.negated, wide.negated
    return wide in _IMPLIES[narrow] and narrow is not wide


def _like_values(value: Scalar) -> Sequence[Any]:
    if isinstance(value, bool):
        return (True, False)
    return STRINGS if isinstance(value, str) else NUMBERS


def _comparison_changes(
    relation: Relation, operand: Expression, value: Scalar, wanted: bool
) -> list[Condition]:
    """Every narrower comparison with a literal of the vocabulary, and ranges and lists within."""
    alike = _like_values(value)
    wide = relation if wanted else relation.negated
    changes: list[Condition] = [
        Comparison(kind, operand, Literal(other))
        for other in alike
        for kind in Relation
        if _lies_inside(kind if wanted else kind.negated, other, wide, value)
    ]
    if wanted:
        inside = [Literal(other) for other in sorted(alike) if _COMPARE[relation](other, value)]
        changes += [In(operand, tuple(inside[i : i + 3])) for i in range(0, len(inside), 3)]
        if relation is not Relation.NE:
            changes += [Between(operand, a, b) for a, b in pairwise(inside)]
    return changes


_COMPARE: Final[dict[Relation, Callable[[Any, Any], bool]]] = {
    Relation.EQ: operator.eq,
    Relation.NE: operator.ne,
    Relation.LT: operator.lt,
    Relation.LE: operator.le,
    Relation.GT: operator.gt,
    Relation.GE: operator.ge,
}


def _lies_inside(narrow: Relation, low: Scalar, wide: Relation, high: Scalar) -> bool:
    """Whether ``v narrow low`` implies ``v wide high`` and is not the same: by the ends of what they leave open."""
    if narrow in (Relation.GT, Relation.GE) and wide in (Relation.GT, Relation.GE, Relation.NE):
        touches = not (narrow is Relation.GE and wide in (Relation.GT, Relation.NE))
        return _COMPARE[Relation.GT](low, high) or (touches and low == high and narrow is not wide)
    if narrow in (Relation.LT, Relation.LE) and wide in (Relation.LT, Relation.LE, Relation.NE):
        touches = not (narrow is Relation.LE and wide in (Relation.LT, Relation.NE))
        return _COMPARE[Relation.LT](low, high) or (touches and low == high and narrow is not wide)
    return narrow is Relation.EQ is not wide and _COMPARE[wide](low, high)


def _flipped(condition: Condition) -> Condition:
    if isinstance(condition, Comparison):
        return Comparison(condition.relation.flipped, condition.right, condition.left)
    return condition


def _between_changes(operand: Expression, low: Scalar, high: Scalar, wanted: bool) -> list[Condition]:
    at_most, at_least = _COMPARE[Relation.LE], _COMPARE[Relation.GE]
    if type(low) is not type(high) and isinstance(low, str | bool) | isinstance(high, str | bool):
        return []  # never true: the ends are of two kinds
    alike = _like_values(low)
    if not wanted:  # a wider range leaves less outside
        lows = [v for v in alike if _COMPARE[Relation.LT](v, low)]
        highs = [v for v in alike if _COMPARE[Relation.GT](v, high)]
        wider: list[Condition] = [Between(operand, Literal(v), Literal(high)) for v in lows]
        return wider + [Between(operand, Literal(low), Literal(v)) for v in highs]
    inside = [v for v in alike if at_least(v, low) and at_most(v, high)]
    changes: list[Condition] = [Comparison(Relation.EQ, operand, Literal(v)) for v in inside]
    changes += [Between(operand, Literal(v), Literal(high)) for v in inside if v != low]
    changes += [Between(operand, Literal(low), Literal(v)) for v in inside if v != high]
    return changes


def _in_changes(
    operand: Expression, values: tuple[Literal, ...], wanted: bool, source: Source
) -> list[Condition]:
    if not wanted:
        return [In(operand, (*values, Literal(source.pick(_like_values(values[0].value)))))]
    changes: list[Condition] = [Comparison(Relation.EQ, operand, value) for value in values]
    if len(values) > 1:
        changes += [In(operand, (*values[:i], *values[i + 1 :])) for i in range(len(values))]
    return changes


# LIKE


def _like_changes(test: Like, wanted: bool, source: Source) -> list[Condition]:
    operand, escape = test.operand, test.escape
    tokens = _like_tokens(test.pattern, escape)
    new = source.pick([char for char in ("b", "_", "c") if char != escape])
    patterns: list[list[str]] = []
    for i, token in enumerate(tokens):
        before, after = tokens[:i], tokens[i + 1 :]
        if not wanted:
            wider = {"%": "", "_": "%"}.get(token, "%_")
            patterns += [[*before, wild, *after] for wild in wider if wild != escape]
        elif token == "%":
            patterns += [[*before, *middle, *after] for middle in ([], [new], [new, "%"], ["%", new])]
        elif token == "_":
            patterns.append([*before, new, *after])
    changes: list[Condition] = [Like(operand, "".join(pattern), escape) for pattern in patterns]
    if wanted:
        examples = tuple(Literal(text) for text in like_examples(test.pattern, escape))
        changes += [Comparison(Relation.EQ, operand, examples[1]), In(operand, examples)]
    return changes


def _like_tokens(pattern: str, escape: str | None) -> list[str]:
    """The characters of a pattern, those that are escaped together with the escape character."""
    tokens: list[str] = []
    at = 0
    while at < len(pattern):
        width = 2 if pattern[at] == escape else 1
        tokens.append(pattern[at : at + width])
        at += width
    return tokens


# XPath

_Steps: TypeAlias = tuple[Step, ...]


def _path_changes(steps: _Steps, wanted: bool, source: Source, *, same_end: bool = False) -> list[_Steps]:
    """The steps with one of them changed, or one put in, or, unless the end must stay the end, one added."""
    changes: list[_Steps] = []
    for i, step in enumerate(steps):
        before, after = steps[:i], steps[i + 1 :]
        changes += [(*before, changed, *after) for changed in _step_changes(step, wanted, source)]
        if wanted and step.descendant:
            between = Step(Kind.ELEMENT, source.pick(ELEMENTS), source.pick((True, False)))
            changes.append((*before, between, step, *after))
    if wanted and not same_end and (not steps or steps[-1].kind is Kind.ELEMENT):
        changes.append(
            (*steps, Step(Kind.ELEMENT, source.pick((*ELEMENTS, "*")), source.pick((True, False))))
        )
    return changes


def _step_changes(step: Step, wanted: bool, source: Source) -> list[Step]:
    changes: list[Step] = []
    if step.descendant is wanted:
        changes.append(replace(step, descendant=not wanted))
    if step.kind is Kind.ELEMENT and (step.name == "*") is wanted:
        changes.append(replace(step, name=source.pick(ELEMENTS) if wanted else "*"))
    if wanted and step.kind is Kind.ELEMENT:
        changes.append(replace(step, predicates=(*step.predicates, a_predicate(source))))
    for i, predicate in enumerate(step.predicates):
        before, after = step.predicates[:i], step.predicates[i + 1 :]
        if not wanted:
            changes.append(replace(step, predicates=(*before, *after)))
        for changed in _predicate_changes(predicate, wanted, source):
            changes.append(replace(step, predicates=(*before, changed, *after)))
    return changes


def _predicate_changes(predicate: Predicate, wanted: bool, source: Source) -> list[Predicate]:
    tested = predicate.relation is not None
    paths = _path_changes(predicate.steps, wanted, source, same_end=tested)
    changes = [replace(predicate, steps=steps) for steps in paths]
    if tested and not wanted:
        changes.append(Predicate(predicate.steps))
    elif wanted:
        changes += [
            Predicate(predicate.steps, relation, literal) for relation, literal in _value_tests(predicate)
        ]
    return changes


def _value_tests(predicate: Predicate) -> list[tuple[XPathRelation, str | float]]:
    """Narrower tests of a value; where strings are compared there are none."""
    number, relation = predicate.literal, predicate.relation
    if relation is None:
        return [(relation, literal) for relation in XPathRelation for literal in (1.0, "x")]
    if not isinstance(number, float):
        return []
    match relation:
        case XPathRelation.LT | XPathRelation.LE:
            return [(relation, number - 1), (XPathRelation.EQ, number - 2), (XPathRelation.LT, number)]
        case XPathRelation.GT | XPathRelation.GE:
            return [(relation, number + 0.5), (XPathRelation.EQ, number + 3), (XPathRelation.GT, number)]
        case XPathRelation.NE:
            return [(XPathRelation.EQ, number + 1), (XPathRelation.LT, number), (XPathRelation.GT, number)]
        case XPathRelation.EQ:
            return []
