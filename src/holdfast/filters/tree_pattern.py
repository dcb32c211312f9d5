"""What a path means: whether it selects anything in a document, and whether one path covers another.

Both questions are asked of the *tree pattern* of a path: one node for each step, its predicates and the rest of the
path as branches, ``[. op literal]`` as a test of the node's own value [XNET §3]. The nodes stand in one list, parents
first, so that everything here is a loop over nodes and none of it recursion over the depth of a document.

``selects`` is the reference that faster matching must agree with. It works from the leaves of the pattern to its
root and marks, for each node, the elements where the node and all below it fit; its cost is nodes times elements,
whatever the document. The meaning is that of XPath 1.0 and not of libxml2, which reads more than XPath's numbers.

``path_covers`` looks for a homomorphism: a map from the nodes of the general pattern to nodes of the special one
that keeps names, edges and tests. If there is one, then wherever the special pattern fits the general one does. The
converse fails where ``*`` and ``//`` meet (``/a/*//b`` and ``/a//*/b`` mean the same): covering is sound, and not
complete, which for routing costs a table entry and never an event.
"""

from __future__ import annotations

import re
from typing import Final

from holdfast.events.document import Document
from holdfast.filters.xpath import Kind, Path, Step, XPathRelation

__all__ = ["PatternNode", "ValueTest", "number_of", "path_covers", "selects", "tree_pattern"]

NAN: Final = float("nan")

# XPath 1.0 §4.4: white space, an optional minus sign, a Number, white space. No plus sign, no exponent.
_NUMBER: Final = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")


def number_of(text: str) -> float:
    """XPath's ``number()`` of a string; NaN if it is no number."""
    if text.isascii() and text.isdigit():
        return float(text)  # the usual case, without the cost of a regular expression
    match = _NUMBER.fullmatch(text)
    return float(match[1]) if match else NAN


class ValueTest:
    """``value op literal``, as XPath 1.0 compares a node with a literal.

    ``string`` is set if strings are compared; otherwise both sides are numbers and ``number`` is the literal's.
    """

    __slots__ = ("number", "relation", "string")

    def __init__(self, relation: XPathRelation, literal: str | float) -> None:
        self.relation = relation
        self.string: str | None = None
        self.number = NAN
        if isinstance(literal, float):
            self.number = literal
        elif relation is XPathRelation.EQ or relation is XPathRelation.NE:
            self.string = literal
        else:
            self.number = number_of(literal)

    def holds(self, value: str) -> bool:
        """Whether a node of this value passes."""
        if self.string is not None:
            return (value == self.string) is (self.relation is XPathRelation.EQ)
        return self.holds_of_number(number_of(value))

    def holds_of_number(self, value: float) -> bool:
        """Whether a node whose value is this number passes a comparison of numbers."""
        match self.relation:
            case XPathRelation.EQ:
                return value == self.number
            case XPathRelation.NE:
                return value != self.number
            case XPathRelation.LT:
                return value < self.number
            case XPathRelation.LE:
                return value <= self.number
            case XPathRelation.GT:
                return value > self.number
            case XPathRelation.GE:
                return value >= self.number

    def is_void(self) -> bool:
        """Whether nothing passes: an order compared with what is no number."""
        ordered = self.relation is not XPathRelation.EQ and self.relation is not XPathRelation.NE
        return ordered and self.number != self.number

    def implies(self, other: ValueTest) -> bool:
        """Whether every value that passes this test passes the other one too."""
        if self.string is not None:
            if self.relation is XPathRelation.EQ:
                return other.holds(self.string)
            return other.relation is XPathRelation.NE and other.string == self.string
        if other.string is not None:
            # Our values are known as numbers only: they differ from a string if its number does not pass.
            return other.relation is XPathRelation.NE and not self.holds_of_number(number_of(other.string))
        if self.relation is XPathRelation.NE:
            return other.relation is XPathRelation.NE and other.number == self.number
        return self._interval_inside(other)

    def _interval_inside(self, other: ValueTest) -> bool:
        """``implies`` for an interval of numbers; only ``other`` may be ``!=``, which leaves out one point."""
        mine, number = self.relation, other.number
        match other.relation:
            case XPathRelation.NE:
                return not self.holds_of_number(number)
            case XPathRelation.EQ:
                return mine is XPathRelation.EQ and self.number == number
            case XPathRelation.LT | XPathRelation.LE:
                downward = mine in (XPathRelation.EQ, XPathRelation.LT, XPathRelation.LE)
                beyond = self.number < number
            case XPathRelation.GT | XPathRelation.GE:
                downward = mine in (XPathRelation.EQ, XPathRelation.GT, XPathRelation.GE)
                beyond = self.number > number
        if not downward:
            return False
        # Ends that touch: (7, ∞) lies in (7, ∞) and in [7, ∞), but [7, ∞) not in (7, ∞).
        touching = self.number == number and (mine is other.relation or other.holds_of_number(number))
        return beyond or touching


class PatternNode:
    """One node of a tree pattern; ``parent`` and ``children`` are positions in the pattern's list."""

    __slots__ = ("children", "descendant", "kind", "name", "parent", "tests")

    def __init__(self, step: Step | None, parent: int) -> None:
        self.kind: Kind | None = step.kind if step else None
        self.name = step.name if step else ""
        self.descendant = bool(step and step.descendant)
        self.parent = parent
        self.children: list[int] = []
        self.tests: list[ValueTest] = []

    def is_void(self) -> bool:
        """Whether nothing can fit: the document node and leaves have no attributes, text or children."""
        leaf = self.kind is Kind.ATTRIBUTE or self.kind is Kind.TEXT
        nowhere = leaf and (bool(self.children) or (self.parent == 0 and not self.descendant))
        return nowhere or any(test.is_void() for test in self.tests)


def tree_pattern(path: Path) -> list[PatternNode] | None:
    """The nodes of the pattern, parents first; node 0 is the document. None if it can fit nowhere."""
    nodes = [PatternNode(None, -1)]
    _add_branch(nodes, 0, path.steps)
    return None if any(node.is_void() for node in nodes) else nodes


def _add_branch(nodes: list[PatternNode], context: int, steps: tuple[Step, ...]) -> int:
    for step in steps:
        nodes.append(PatternNode(step, context))
        nodes[context].children.append(len(nodes) - 1)
        context = len(nodes) - 1
        for predicate in step.predicates:
            end = _add_branch(nodes, context, predicate.steps)
            if predicate.relation is not None and predicate.literal is not None:
                nodes[end].tests.append(ValueTest(predicate.relation, predicate.literal))
    return context


# Whether a path selects anything. A *context* is where a branch begins: 0 is the document, n + 1 is element n.


def selects(path: Path, document: Document) -> bool:
    """Whether the path selects any node of the document."""
    nodes = tree_pattern(path)
    if nodes is None:
        return False
    contexts: dict[int, bytearray] = {}
    for position in range(len(nodes) - 1, 0, -1):
        node = nodes[position]
        branches = [contexts.pop(child) for child in node.children]
        if node.kind is Kind.ELEMENT:
            begins = _contexts_of_element(document, node, branches)
        else:
            begins = _contexts_of_leaf(document, node)
        if 1 not in begins:
            return False  # every node of the pattern is needed
        contexts[position] = begins
    return all(contexts[child][0] for child in nodes[0].children)


def _contexts_of_element(document: Document, node: PatternNode, branches: list[bytearray]) -> bytearray:
    """Which contexts have a child (or descendant) that fits the node with all its branches."""
    names, parents, any_name = document.names, document.parents, node.name == "*"
    begins = bytearray(len(document) + 1)
    for number in range(len(document) - 1, -1, -1):
        fits = (
            (any_name or names[number] == node.name)
            and all(branch[number + 1] for branch in branches)
            and (not node.tests or _passes(node, document.string_value(number)))
        )
        if fits or (node.descendant and begins[number + 1]):
            begins[parents[number] + 1] = 1
    return begins


def _contexts_of_leaf(document: Document, node: PatternNode) -> bytearray:
    """Which contexts have such an attribute or text node, or an element below them that has."""
    begins = bytearray(len(document) + 1)
    for number in range(len(document) - 1, -1, -1):
        if any(_passes(node, value) for value in _leaf_values(document, node, number)):
            begins[number + 1] = 1
        if node.descendant and begins[number + 1]:
            begins[document.parents[number] + 1] = 1
    return begins


def _leaf_values(document: Document, node: PatternNode, number: int) -> list[str]:
    if node.kind is Kind.TEXT:
        return document.texts[number]
    value = document.attributes[number].get(node.name)
    return [] if value is None else [value]


def _passes(node: PatternNode, value: str) -> bool:
    return all(test.holds(value) for test in node.tests)


def path_covers(general: Path, special: Path) -> bool:
    """Whether it is certain that ``general`` selects something wherever ``special`` does."""
    below, above = tree_pattern(special), tree_pattern(general)
    if below is None:
        return True  # it selects nothing anywhere
    return above is not None and _maps_into(above, below)


def _maps_into(general: list[PatternNode], special: list[PatternNode]) -> bool:
    """Whether there is a homomorphism that takes document to document; from the leaves of both to their roots.

    ``begins[g][s]``: node g of the general pattern can be mapped to where it stands as a branch of node s.
    """
    begins: dict[int, bytearray] = {}
    for position in range(len(general) - 1, 0, -1):
        node = general[position]
        branches = [begins.pop(child) for child in node.children]
        begins[position] = _places(node, branches, special)
    return all(begins[child][0] for child in general[0].children)


def _places(node: PatternNode, branches: list[bytearray], special: list[PatternNode]) -> bytearray:
    places = bytearray(len(special))
    for position in range(len(special) - 1, 0, -1):
        target = special[position]
        fits = _generalises(node, target) and all(branch[position] for branch in branches)
        if node.descendant:
            # ``//@a`` of an element includes its own attribute, and the same holds of text.
            if fits or places[position]:
                places[target.parent] = 1
        elif fits and not target.descendant:
            places[target.parent] = 1
    return places


def _generalises(node: PatternNode, target: PatternNode) -> bool:
    return (
        node.kind is target.kind
        and (node.name == target.name or (node.kind is Kind.ELEMENT and node.name == "*"))
        and all(any(known.implies(test) for known in target.tests) for test in node.tests)
    )
