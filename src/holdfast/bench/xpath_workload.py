"""Tree patterns and documents as in [XNET §5.1], over a made-up DTD of the size and shape of NITF.

The paper drew subscriptions and documents from the NITF DTD with generators of its own that it does not print. Here
both walk one content model, a graph of element names. Patterns have the paper's parameters: the greatest height h, the
probabilities of ``*``, of ``//`` and of more than one child at a node, the skew θ of the Zipf distribution that picks
the names. Documents grow by adding children at random places until they have the wanted number of tag pairs.

Ours: heights are drawn from 3 to h (shorter patterns match nearly everything), patterns are all distinct, and a part
of them ends in a test of an attribute or of text, which the paper does not mention. The same seed gives the same
workload.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Final, TypeVar

from holdfast.filters.tree_pattern import path_covers
from holdfast.filters.xpath import Kind, Path, Predicate, Step, XPathRelation

__all__ = ["Dtd", "covering_recognised", "documents", "make_dtd", "narrowed", "news_dtd", "patterns"]

T = TypeVar("T")

DTD_SEED: Final = 5
# NITF has some 120 elements: a root, head and body, sections, blocks that nest, inline markup that nests.
LEVELS: Final = (("news", 1), ("part", 2), ("section", 10), ("block", 24), ("item", 38), ("inline", 45))
FANOUT: Final = (8, 24)  # children of an element, from the next level
NESTED_FROM: Final = 3  # the level from which elements may contain their own level
P_NESTED: Final = 0.5
NESTED: Final = 3  # so many of it
HEIGHT_MIN: Final = 3
SKIPPED_MAX: Final = 2  # levels between an element and a descendant

ATTRIBUTES: Final = ("id", "class", "lang", "rank")
NUMERIC: Final = frozenset({"id", "rank"})
WORDS: Final = tuple(f"w{i}" for i in range(40))
NUMBERS: Final = 100
P_ATTRIBUTE: Final = 0.4  # that an attribute which may be there is
P_TEXT: Final = 0.4  # that an element without children has text


@dataclass(frozen=True, slots=True)
class Dtd:
    """A content model: what may stand in an element, the popular first, and which attributes it may have."""

    root: str
    children: dict[str, tuple[str, ...]]
    attributes: dict[str, tuple[str, ...]]


def make_dtd(rng: random.Random) -> Dtd:
    """A content model of 120 elements on six levels."""
    levels = [[f"{name}{i}" for i in range(size)] for name, size in LEVELS]
    children: dict[str, tuple[str, ...]] = {}
    attributes: dict[str, tuple[str, ...]] = {}
    for depth, level in enumerate(levels):
        below = levels[depth + 1] if depth + 1 < len(levels) else []
        for name in level:
            inside = rng.sample(below, min(len(below), rng.randint(*FANOUT)))
            if depth >= NESTED_FROM and rng.random() < P_NESTED:
                inside += rng.sample(level, NESTED)
            rng.shuffle(inside)
            children[name] = tuple(inside)
            attributes[name] = tuple(rng.sample(ATTRIBUTES, rng.randint(0, 2)))
    return Dtd(levels[0][0], children, attributes)


@cache
def news_dtd() -> Dtd:
    """The content model that patterns and documents use unless they are given another one."""
    return make_dtd(random.Random(DTD_SEED))


@cache
def _zipf(count: int, theta: float) -> list[float]:
    """Cumulative weights 1/rank^θ."""
    return list(accumulate((rank + 1) ** -theta for rank in range(count)))


def _pick(rng: random.Random, choices: tuple[T, ...], theta: float) -> T:
    return rng.choices(choices, cum_weights=_zipf(len(choices), theta))[0]


# Patterns


@dataclass(frozen=True, slots=True)
class _PatternMaker:
    rng: random.Random
    dtd: Dtd
    p_star: float
    p_descendant: float
    p_branch: float
    theta: float
    p_value: float

    def path(self, height: int) -> Path:
        rest = self.below((self.dtd.root,), height)
        if self.rng.random() < self.p_value:
            return Path(self.with_value(rest))
        return Path(tuple(step for step, _ in rest))

    def below(self, choices: tuple[str, ...], height: int) -> list[tuple[Step, str]]:
        """Steps down from an element with these children, each with the name it stands for."""
        steps: list[tuple[Step, str]] = []
        while height > 0 and choices:
            name = _pick(self.rng, choices, self.theta)
            descendant = self.rng.random() < self.p_descendant
            if descendant:
                name = self.deeper(name)
            height -= 1
            choices = self.dtd.children[name]
            branches: tuple[Predicate, ...] = ()
            if choices and height > 0 and self.rng.random() < self.p_branch:
                branches = (Predicate(tuple(step for step, _ in self.below(choices, height))),)
            test = "*" if self.rng.random() < self.p_star else name
            steps.append((Step(Kind.ELEMENT, test, descendant, branches), name))
        return steps

    def deeper(self, name: str) -> str:
        for _ in range(self.rng.randint(0, SKIPPED_MAX)):
            inside = self.dtd.children[name]
            name = _pick(self.rng, inside, self.theta) if inside else name
        return name

    def with_value(self, steps: list[tuple[Step, str]]) -> tuple[Step, ...]:
        """The steps with a value test at the last one: of an attribute if it may have one, else of its text."""
        last, name = steps[-1]
        attributes = self.dtd.attributes[name]
        if attributes:
            attribute = self.rng.choice(attributes)
            tested: tuple[Step, ...] = (Step(Kind.ATTRIBUTE, attribute, False),)
            numeric = attribute in NUMERIC
        else:
            tested = self.rng.choice(((), (Step(Kind.TEXT, "", False),)))
            numeric = self.rng.random() < 0.5
        predicate = Predicate(tested, *self.comparison(numeric))
        ending = replace(last, predicates=(*last.predicates, predicate))
        return (*(step for step, _ in steps[:-1]), ending)

    def comparison(self, numeric: bool) -> tuple[XPathRelation, str | float]:
        if not numeric:
            return XPathRelation.EQ, _pick(self.rng, WORDS, 1.0)
        relation = self.rng.choice((XPathRelation.EQ, XPathRelation.LT, XPathRelation.GE, XPathRelation.GT))
        return relation, float(self.rng.randrange(NUMBERS))


def patterns(
    rng: random.Random,
    count: int,
    h: int = 10,
    p_star: float = 0.1,
    p_descendant: float = 0.05,
    p_branch: float = 0.1,
    theta: float = 1.0,
    p_value: float = 0.2,
    dtd: Dtd | None = None,
) -> list[Path]:
    """``count`` different patterns; the defaults are Table 2 of [XNET §5.1]."""
    maker = _PatternMaker(rng, dtd or news_dtd(), p_star, p_descendant, p_branch, theta, p_value)
    made: dict[Path, None] = {}
    while len(made) < count:
        made[maker.path(rng.randint(min(HEIGHT_MIN, h), h))] = None
    return list(made)


# Documents


def documents(rng: random.Random, count: int, tag_pairs: int = 22, dtd: Dtd | None = None) -> list[bytes]:
    """``count`` documents of so many elements."""
    return [_document(rng, dtd or news_dtd(), tag_pairs) for _ in range(count)]


def _document(rng: random.Random, dtd: Dtd, tag_pairs: int) -> bytes:
    names = [dtd.root]
    inside: list[list[int]] = [[]]
    while len(names) < tag_pairs:
        parent = rng.randrange(len(names))
        if dtd.children[names[parent]]:
            inside[parent].append(len(names))
            names.append(rng.choice(dtd.children[names[parent]]))
            inside.append([])
    # Children come after their parents, so from the last to the first every part is ready when it is needed.
    parts = [""] * len(names)
    for number in range(len(names) - 1, -1, -1):
        content = "".join(parts[child] for child in inside[number])
        if not inside[number] and rng.random() < P_TEXT:
            content = _value(rng, numeric=rng.random() < 0.5)
        attributes = "".join(
            f' {name}="{_value(rng, numeric=name in NUMERIC)}"'
            for name in dtd.attributes[names[number]]
            if rng.random() < P_ATTRIBUTE
        )
        parts[number] = f"<{names[number]}{attributes}>{content}</{names[number]}>"
    return parts[0].encode()


def _value(rng: random.Random, *, numeric: bool) -> str:
    return str(rng.randrange(NUMBERS)) if numeric else _pick(rng, WORDS, 1.0)


# Covering: pairs that are narrower by construction, to count how many are recognised


def covering_recognised(rng: random.Random, count: int) -> tuple[int, int]:
    """How many of ``count`` narrowed patterns ``path_covers`` recognises as covered, and how many there were."""
    general = patterns(rng, count)
    recognised = 0
    for path in general:
        special = path
        for _ in range(rng.randint(1, 3)):
            special = narrowed(rng, special)
        recognised += path_covers(path, special)
    return recognised, count


def narrowed(rng: random.Random, path: Path) -> Path:
    """A path that selects something only where this one does, made by one random change."""
    return Path(rng.choice(list(_narrower_steps(path.steps))))


def _narrower_steps(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    for i, step in enumerate(steps):
        for narrower in _narrower_step(step):
            yield (*steps[:i], narrower, *steps[i + 1 :])
    if steps and steps[-1].kind is Kind.ELEMENT:
        yield (*steps, Step(Kind.ELEMENT, "added", False))
        yield (*steps, Step(Kind.ATTRIBUTE, "added", True))


def _narrower_step(step: Step) -> Iterator[Step]:
    if step.descendant:
        yield replace(step, descendant=False)
    if step.kind is Kind.ELEMENT and step.name == "*":
        yield replace(step, name="named")
    if step.kind is Kind.ELEMENT:
        yield replace(step, predicates=(*step.predicates, Predicate((Step(Kind.ELEMENT, "added", False),))))
    yield replace(step, predicates=(*step.predicates, Predicate((), XPathRelation.NE, "added")))
    for i, predicate in enumerate(step.predicates):
        for narrower in _narrower_predicate(predicate):
            yield replace(step, predicates=(*step.predicates[:i], narrower, *step.predicates[i + 1 :]))


def _narrower_predicate(predicate: Predicate) -> Iterator[Predicate]:
    if predicate.relation is None:
        for steps in _narrower_steps(predicate.steps):
            yield replace(predicate, steps=steps)
        yield replace(predicate, relation=XPathRelation.EQ, literal="5")
    elif isinstance(predicate.literal, float) and predicate.relation is not XPathRelation.EQ:
        away = -2.0 if predicate.relation in (XPathRelation.LT, XPathRelation.LE) else 2.0
        yield replace(predicate, literal=predicate.literal + away)
        yield replace(predicate, relation=XPathRelation.EQ, literal=predicate.literal + away)
        # A string under "=" has a number too.
        yield replace(predicate, relation=XPathRelation.EQ, literal=f" {predicate.literal + away:.0f} ")
