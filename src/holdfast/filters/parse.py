"""From text to tree: recursive descent, one token ahead, never backing up.

    filter     = pattern [ WHERE or ]
    or         = and { OR and }
    and        = not { AND not }
    not        = NOT not | predicate
    predicate  = XPATH string | SHARD "(" name "," integer ")" "=" integer | sum [ comparison ]
    comparison = relation sum | [ NOT ] BETWEEN sum AND sum | [ NOT ] IN "(" literal { "," literal } ")"
               | [ NOT ] LIKE string [ ESCAPE string ] | IS [ NOT ] NULL
    sum        = product { ( "+" | "-" ) product }
    product    = sign { ( "*" | "/" ) sign }
    sign       = ( "+" | "-" ) sign | literal | name | "(" or ")"

A parenthesis may hold a condition or a value and only what follows it tells which; so both travel through the same
rules, and each operator checks that its operands are of the kind it needs.

Every error names the place and what was expected there. Size, nesting and cost are capped before anything is
built that could be large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn

from holdfast.errors import FilterError
from holdfast.events.value import kind_of, shown
from holdfast.filters.cost import filter_cost
from holdfast.filters.expression import (
    Arithmetic,
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
    Operator,
    Relation,
    Shard,
    Signed,
    Truth,
    XPath,
    conjunction,
    disjunction,
)
from holdfast.filters.lexer import WHITESPACE, Token, TokenKind, tokens
from holdfast.filters.like import BadEscape, LikePattern
from holdfast.filters.limits import DEFAULT_LIMITS, FilterLimits
from holdfast.filters.topic import parse_pattern, refuse_odd_space
from holdfast.filters.xpath import parse_xpath

__all__ = ["parse_filter"]

_INT_MAX: Final = 2**63 - 1
_GROWTH_MAX: Final = 8  # canonical text is at most so many times longer: 1e15 prints as 1000000000000000.0
_A_VALUE: Final = "an attribute or a literal"
_A_CONDITION: Final = "a condition"
_A_LITERAL: Final = "a string, a number, TRUE or FALSE"


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A piece of tree with the place where it began and how deep its arithmetic is."""

    node: Condition | Expression
    offset: int
    height: int = 0


def parse_filter(text: str, limits: FilterLimits = DEFAULT_LIMITS) -> Filter:
    """Parse one filter.

    :raises FilterError: if it is malformed, outside the language or over a cap; nothing else is ever raised.
    """
    if not isinstance(text, str):
        raise FilterError(f"the filter is {kind_of(text)}", text="", offset=0, expected="text")
    if len(text) > limits.text_chars:
        problem = f"the filter has {len(text)} characters"
        raise FilterError(
            problem, text=text, offset=limits.text_chars, expected=f"at most {limits.text_chars}"
        )
    for at, char in enumerate(text):
        if "\ud800" <= char <= "\udfff" or char == "\0":
            raise FilterError(f"character U+{ord(char):04X} is not allowed", text=text, offset=at)
    start = len(text) - len(text.lstrip(WHITESPACE))
    end = start
    while end < len(text) and text[end] not in WHITESPACE:
        end += 1
    pattern = parse_pattern(text, start, end, limits)
    filter = Filter(pattern, _Parser(text, end, limits).where(start, end))
    cost = filter_cost(filter)
    if cost > limits.cost:
        expected = f"at most {limits.cost}"
        raise FilterError(f"the filter costs {cost}", text=text, offset=start, expected=expected)
    # What one broker accepts it passes on as canonical text, which must not be too long for the next one.
    if len(text) * _GROWTH_MAX > limits.text_chars and len(str(filter)) > limits.text_chars:
        problem = f"the canonical text of the filter has {len(str(filter))} characters"
        raise FilterError(problem, text=text, offset=start, expected=f"at most {limits.text_chars}")
    return filter


class _Parser:
    def __init__(self, text: str, start: int, limits: FilterLimits) -> None:
        self.text = text
        self.limits = limits
        self.tokens = tokens(text, start)
        self.at = 0
        self.depth = 0
        self.opening = -1  #: the token, by number, where a condition and not only a value may begin

    # Looking ahead and moving on

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def is_at_end(self) -> bool:
        return self.token.kind is TokenKind.END

    def advance(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def is_at(self, value: str, kind: TokenKind = TokenKind.SYMBOL) -> bool:
        return self.token.kind is kind and self.token.value == value

    def is_at_keyword(self, keyword: str) -> bool:
        return self.is_at(keyword, TokenKind.KEYWORD)

    def take(self, value: str, kind: TokenKind = TokenKind.SYMBOL) -> bool:
        found = self.is_at(value, kind)
        self.at += found
        return found

    def take_keyword(self, keyword: str) -> bool:
        return self.take(keyword, TokenKind.KEYWORD)

    def require(self, value: str, kind: TokenKind = TokenKind.SYMBOL) -> None:
        if not self.take(value, kind):
            self.unexpected(f"'{value}'" if kind is TokenKind.SYMBOL else value)

    def require_kind(self, kind: TokenKind, expected: str) -> Token:
        if self.token.kind is not kind:
            self.unexpected(expected)
        return self.advance()

    def unexpected(self, expected: str) -> NoReturn:
        self.fail(f"unexpected {self.token}", expected)

    def expect_condition(self) -> None:
        self.opening = self.at

    def fail(self, problem: str, expected: str | None, offset: int | None = None) -> NoReturn:
        where = self.token.offset if offset is None else offset
        raise FilterError(problem, text=self.text, offset=where, expected=expected)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > self.limits.nesting:
            self.fail("nested too deeply", f"at most {self.limits.nesting} levels")

    # Conditions

    def where(self, start: int, end: int) -> Condition | None:
        """The condition, if there is one, of the pattern at ``text[start:end]``."""
        if self.is_at_end():
            return None
        if not self.take_keyword("WHERE"):
            if self.text[start:end].upper() == "WHERE":
                expected = "one before WHERE ('#' stands for every topic)"
                self.fail("the topic pattern is missing", expected, start)
            refuse_odd_space(self.text, start, end)
            self.unexpected("WHERE or the end of the filter")
        self.expect_condition()
        condition = self.condition(self.disjunction())
        if not self.is_at_end():
            self.unexpected("AND, OR or the end of the filter")
        return condition

    def condition(self, parsed: _Parsed) -> Condition:
        match parsed.node:
            case Attribute() | Literal(bool()) as operand:
                return Truth(operand)
            case Literal() | Signed() | Arithmetic():
                self.fail("a value stands where a condition must", "a comparison", parsed.offset)
            case condition:
                return condition

    def expression(self, parsed: _Parsed) -> Expression:
        match parsed.node:
            case Attribute() | Literal() | Signed() | Arithmetic() as expression:
                return expression
            case _:
                self.fail("a condition stands where a value must", _A_VALUE, parsed.offset)

    def disjunction(self) -> _Parsed:
        first = self.conjunction()
        if not self.is_at_keyword("OR"):
            return first
        operands = [self.condition(first)]
        while self.take_keyword("OR"):
            self.expect_condition()
            operands.append(self.condition(self.conjunction()))
        return _Parsed(disjunction(operands), first.offset)

    def conjunction(self) -> _Parsed:
        first = self.negation()
        if not self.is_at_keyword("AND"):
            return first
        operands = [self.condition(first)]
        while self.take_keyword("AND"):
            self.expect_condition()
            operands.append(self.condition(self.negation()))
        return _Parsed(conjunction(operands), first.offset)

    def negation(self) -> _Parsed:
        offset = self.token.offset
        if not self.take_keyword("NOT"):
            return self.predicate()
        self.deeper()
        self.expect_condition()
        operand = self.condition(self.negation())
        self.depth -= 1
        return _Parsed(Not(operand), offset)

    def predicate(self) -> _Parsed:
        first = self.token
        offset = first.offset
        if self.take_keyword("XPATH"):
            return _Parsed(self.xpath(first), offset)
        if self.take_keyword("SHARD"):
            return _Parsed(self.shard(first), offset)
        left = self.sum()
        if self.token.kind is TokenKind.SYMBOL and self.token.value in _RELATIONS:
            operand = self.expression(left)
            relation = _RELATIONS[self.advance().value]
            return _Parsed(Comparison(relation, operand, self.expression(self.sum())), offset)
        if self.take_keyword("IS"):
            operand = self.expression(left)
            negated = self.take_keyword("NOT")
            if not self.take_keyword("NULL"):
                self.unexpected("NULL" if negated else "NULL or NOT NULL")
            return self.maybe_not(negated, IsNull(operand), offset)
        negated = self.take_keyword("NOT")
        for keyword, rule in (("BETWEEN", self.between), ("IN", self.in_list), ("LIKE", self.like)):
            if self.take_keyword(keyword):
                return self.maybe_not(negated, rule(self.expression(left)), offset)
        if negated:
            self.unexpected("BETWEEN, IN or LIKE (and IS NOT for NULL)")
        if isinstance(left.node, Expression) and not self.may_end_condition():
            self.unexpected("an operator, AND, OR or the end")
        return left

    def may_end_condition(self) -> bool:
        return self.is_at_end() or self.is_at(")") or self.is_at_keyword("AND") or self.is_at_keyword("OR")

    def maybe_not(self, negated: bool, condition: Condition, offset: int) -> _Parsed:
        return _Parsed(Not(condition) if negated else condition, offset)

    def between(self, operand: Expression) -> Condition:
        low = self.expression(self.sum())
        self.require("AND", TokenKind.KEYWORD)
        return Between(operand, low, self.expression(self.sum()))

    def in_list(self, operand: Expression) -> Condition:
        self.require("(")
        values = [self.signed_literal()]
        while self.take(","):
            values.append(self.signed_literal())
        if not self.take(")"):
            self.unexpected("',' or ')'")
        return In(operand, tuple(values))

    def signed_literal(self) -> Literal:
        offset = self.token.offset
        if self.is_at_end() or self.is_at(")") or self.is_at(","):
            self.unexpected(_A_LITERAL)
        parsed = self.sign()
        if not isinstance(parsed.node, Literal):
            self.fail("IN takes literals only", _A_LITERAL, offset)
        return parsed.node

    def like(self, operand: Expression) -> Condition:
        pattern = self.require_kind(TokenKind.STRING, "a pattern in single quotes")
        escape: str | None = None
        if self.take_keyword("ESCAPE"):
            token = self.require_kind(TokenKind.STRING, "a character in single quotes")
            if len(token.value) != 1:
                self.fail(f"ESCAPE has {len(token.value)} characters", "one character", token.offset)
            escape = token.value
        try:
            LikePattern(pattern.value, escape)
        except BadEscape as error:
            char = shown(pattern.value[error.at])
            problem = f"the escape character '{char}' escapes nothing"
            self.fail(problem, f"'%', '_' or '{char}' after it", _inner_places(pattern)[error.at])
        return Like(operand, pattern.value, escape)

    def xpath(self, keyword: Token) -> Condition:
        token = self.require_kind(TokenKind.STRING, f"a path in single quotes{self.as_name(keyword)}")
        return XPath(parse_xpath(token.value, self.text, _inner_places(token)))

    def as_name(self, keyword: Token) -> str:
        """A hint, if what follows XPATH or SHARD would follow the name of an attribute."""
        follows = self.token.kind is TokenKind.KEYWORD or self.token.value in _RELATIONS
        return _naming(keyword) if follows else ""

    def shard(self, keyword: Token) -> Condition:
        if not self.take("("):
            self.unexpected(f"'('{self.as_name(keyword)}")
        name = self.require_kind(TokenKind.NAME, f"an attribute's name{_naming(self.token)}").value
        self.require(",")
        count = self.whole_number("a number of shards", 1, self.limits.shards)
        self.require(")")
        self.require("=")
        return Shard(Attribute(name), count, self.whole_number("a shard", 0, count - 1))

    def whole_number(self, what: str, low: int, high: int) -> int:
        expected = f"{what} from {low} to {high}"
        token = self.require_kind(TokenKind.INTEGER, expected)
        # Comparing lengths first keeps int() off a literal of a million digits.
        digits = token.value.lstrip("0")
        if len(digits) > len(str(high)) or not low <= int(digits or "0") <= high:
            self.fail(f"{token} is out of range", expected, token.offset)
        return int(digits or "0")

    # Expressions

    def sum(self) -> _Parsed:
        return self.chain("+-", self.product)

    def product(self) -> _Parsed:
        return self.chain("*/", self.sign)

    def chain(self, symbols: str, rule: Callable[[], _Parsed]) -> _Parsed:
        left = rule()
        while self.token.kind is TokenKind.SYMBOL and self.token.value in symbols:
            offset = self.token.offset
            operator = Operator(self.advance().value)
            right = rule()
            height = 1 + max(left.height, right.height)
            if height > self.limits.nesting:
                self.fail("nested too deeply", f"at most {self.limits.nesting} operators deep", offset)
            node = Arithmetic(operator, self.expression(left), self.expression(right))
            left = _Parsed(node, left.offset, height)
        return left

    def sign(self) -> _Parsed:
        offset = self.token.offset
        for symbol in ("-", "+"):
            if self.take(symbol):
                return self.signed(symbol == "-", offset)
        return self.primary()

    def signed(self, negative: bool, offset: int) -> _Parsed:
        token = self.token
        if negative and token.kind is TokenKind.INTEGER and token.value.lstrip("0") == str(_INT_MAX + 1):
            self.advance()  # the one integer whose positive twin does not fit
            return _Parsed(Literal(-_INT_MAX - 1), offset)
        self.deeper()
        operand = self.sign()
        self.depth -= 1
        expression = self.expression(operand)
        if isinstance(expression, Literal):
            value = expression.value
            if type(value) is float or (type(value) is int and -value <= _INT_MAX):
                return _Parsed(Literal(-value if negative else value), offset)
        height = operand.height + 1
        if height > self.limits.nesting:
            self.fail("nested too deeply", f"at most {self.limits.nesting} operators deep", offset)
        return _Parsed(Signed(negative, expression), offset, height)

    def primary(self) -> _Parsed:
        token = self.token
        match token.kind, token.value:
            case TokenKind.NAME, name:
                self.advance()
                if self.is_at("("):
                    problem = f"there is no function '{shown(name)}'"
                    self.fail(problem, "an operator after the attribute", token.offset)
                return _Parsed(Attribute(name), token.offset)
            case ((TokenKind.STRING | TokenKind.INTEGER | TokenKind.FLOAT), _):
                return _Parsed(self.constant(), token.offset)
            case TokenKind.KEYWORD, "TRUE" | "FALSE":
                self.advance()
                return _Parsed(Literal(token.value == "TRUE"), token.offset)
            case TokenKind.SYMBOL, "(":
                return self.group()
            case TokenKind.KEYWORD, "NULL":
                hint = f"{_A_VALUE} (absence is tested with IS NULL)"
                self.fail("NULL stands where a value must", hint)
            case TokenKind.KEYWORD, "XPATH" | "SHARD":
                self.fail("a condition stands where a value must", f"{_A_VALUE}{_naming(token)}")
            case _:
                wanted = _A_CONDITION if self.at == self.opening else _A_VALUE
                self.unexpected(f"{wanted}{_naming(token)}")

    def group(self) -> _Parsed:
        is_opening = self.at == self.opening
        opened = self.advance()
        if is_opening:
            self.expect_condition()
        self.deeper()
        inner = self.disjunction()
        self.depth -= 1
        if not self.take(")"):
            if self.is_at_end():
                self.fail("the parenthesis is not closed", "')'", opened.offset)
            self.unexpected("')'" if isinstance(inner.node, Expression) else "AND, OR or ')'")
        return _Parsed(inner.node, opened.offset, inner.height)

    def constant(self) -> Literal:
        token = self.advance()
        if token.kind is TokenKind.STRING:
            return Literal(token.value)
        if token.kind is TokenKind.INTEGER:
            digits = token.value.lstrip("0") or "0"
            if len(digits) > 19 or int(digits) > _INT_MAX:
                expected = f"an integer from {-_INT_MAX - 1} to {_INT_MAX}"
                self.fail(f"{token} does not fit in 64 bits", expected, token.offset)
            return Literal(int(digits))
        value = float(token.value)
        if math.isinf(value):
            self.fail(f"{token} is too large", "a finite number", token.offset)
        return Literal(value)


_RELATIONS: Final = {relation.value: relation for relation in Relation}


def _naming(token: Token) -> str:
    """What to do if a reserved word was meant as a name; empty for what is none, and for AND and OR."""
    if token.kind is not TokenKind.KEYWORD or token.value in ("AND", "OR", "NULL"):
        return ""
    return f' (to name an attribute so, write "{token.shown}")'


def _inner_places(token: Token) -> list[int]:
    """Where each character of a quoted token stands in the filter, and where the token ends."""
    places: list[int] = []
    quote, at = token.shown[0], token.offset + 1
    for char in token.value:
        places.append(at)
        at += 2 if char == quote else 1
    return [*places, at]
