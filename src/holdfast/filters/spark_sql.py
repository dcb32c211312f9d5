"""A filter as the text of a Spark SQL condition over the rows of `contracts.md` §7.

**The guarantee.** On a row of kind ``event`` the text is TRUE exactly when the filter matches the event; otherwise it
is FALSE or NULL. It never raises, with Spark's ANSI mode on (the default) or off. It is built from the normal form, in
which nothing stands under a NOT that could be unknown, so FALSE and NULL need not be told apart anywhere.

**What the rows must hold.** ``topic`` is the canonical topic. ``attributes`` is a VARIANT object with one field per
attribute, of the type that ``schema_of_variant`` calls BIGINT (any width of integer), DOUBLE, STRING, BOOLEAN or
BINARY; an absent attribute has no field, not a variant null. Its fields stand in the order of Java's strings, by UTF-16
code units: from 32 fields on Spark looks them up by bisection. ``parse_json`` must not make it: it turns ``1.5`` into
a DECIMAL and knows no bytes. The session keeps ``spark.sql.parser.escapedStringLiterals`` off, as it is by default.

**What must be registered**, only for filters that use XPATH or SHARD, as functions that return NULL for NULL:

- ``holdfast_xpath(content_type STRING, payload BINARY, path STRING) -> BOOLEAN``: the truth of XPATH, NULL for
  unknown. Spark's own ``xpath_boolean`` raises on what is no XML and knows no limits.
- ``holdfast_float_text(value DOUBLE) -> STRING``: ``canonical_text`` of a float. Java writes floats differently, and up
  to version 18 not always with the fewest digits, which SQL cannot mend.

**How it is done.** A VARIANT casts itself to anything (``'12'`` to 12, TRUE to 1), so each use of an attribute stands
beside a test of its type. Int and float compare by exact value: bounds that a double might blur (from 2**53) are
written once per type. Arithmetic and comparisons of two values name what they need (``i`` an int, ``f`` a float, ``d``
either as a double, ``s`` a string, ``b`` a boolean) in ``exists(array(struct(…)), v -> …)``, which is SQL's way of
saying "let v be". ``x % infinity`` is x, but NaN if x is not finite, and ``nanvl(…, NULL)`` makes NULL of NaN: so x is
mentioned once, where a test would mention it twice, and nested ones exponentially often. LIKE is used only where it
cannot backtrack.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from holdfast.errors import FilterError
from holdfast.events.value import INT_MAX, INT_MIN, lone_surrogate
from holdfast.filters.expression import (
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    Filter,
    Like,
    Literal,
    Operator,
    Relation,
    Scalar,
    Signed,
    XPath,
    attributes_of,
)
from holdfast.filters.like import LikePattern, Parts
from holdfast.filters.normal import All, Any, Column, Formula, Member, ShardOf, normalise
from holdfast.filters.region import (
    NUMBER,
    PRESENT,
    TOP,
    Cut,
    Interval,
    Region,
    after_prefix,
    prefix_region,
)
from holdfast.filters.topic import TopicPattern

__all__ = ["FLOAT_TEXT_FUNCTION", "XPATH_FUNCTION", "spark_sql"]

XPATH_FUNCTION: Final = "holdfast_xpath"
FLOAT_TEXT_FUNCTION: Final = "holdfast_float_text"

_Intervals: TypeAlias = tuple[Interval, ...]

# How tightly SQL binds: conditions, and in the same places numbers.
_OR, _AND, _NOT, _ATOM = range(4)
_SUM, _PRODUCT, _SIGN = range(3)


@dataclass(frozen=True, slots=True)
class _Sql:
    """A piece of SQL and how tightly it binds."""

    text: str
    binding: int = _ATOM

    def within(self, binding: int) -> str:
        """The text as an operand where everything that binds at least so tightly can stand."""
        return self.text if self.binding >= binding else f"({self.text})"


_TRUE: Final = _Sql("TRUE")
_FALSE: Final = _Sql("FALSE")


def spark_sql(filter: Filter) -> str:
    """The condition that is TRUE on exactly the events the filter matches.

    :raises FilterError: if it holds a lone surrogate, which no parsed filter does and no SQL text can.
    """
    text = str(filter)
    at = lone_surrogate(text)
    if at is not None:
        raise FilterError(f"character U+{ord(text[at]):04X} is not allowed", text=text, offset=at)
    return _all([_topic(filter.pattern), _formula(normalise(filter.condition))]).text


def _all(parts: Iterable[_Sql]) -> _Sql:
    return _joined(list(parts), " AND ", _AND, neutral=_TRUE, absorbing=_FALSE)


def _any(parts: Iterable[_Sql]) -> _Sql:
    return _joined(list(parts), " OR ", _OR, neutral=_FALSE, absorbing=_TRUE)


def _joined(parts: list[_Sql], word: str, binding: int, *, neutral: _Sql, absorbing: _Sql) -> _Sql:
    if absorbing in parts:
        return absorbing
    parts = [part for part in parts if part != neutral]
    if len(parts) <= 1:
        return parts[0] if parts else neutral
    return _Sql(word.join(part.within(binding) for part in parts), binding)


def _not(part: _Sql) -> _Sql:
    return _Sql(f"NOT {part.within(_ATOM)}", _NOT)


def _formula(formula: Formula) -> _Sql:
    match formula:
        case Member():
            return _member(formula)
        case All(parts):
            return _all(map(_formula, _without_implied(parts)))
        case Any(parts):
            return _any(map(_formula, parts))
        case _:
            assert_never(formula)


def _without_implied(parts: tuple[Formula, ...]) -> list[Formula]:
    """The parts less the prefix that the normal form adds beside a LIKE for the index's sake."""
    prefixes: dict[Column, Region] = {}
    for part in parts:
        match part:
            case Member(Like(Attribute() as operand, pattern, escape), region) if not region.contains(False):
                prefixes[operand] = prefix_region(LikePattern(pattern, escape).prefix, inside=True)
    return [part for part in parts if not _is_implied(part, prefixes)]


def _is_implied(part: Formula, known: dict[Column, Region]) -> bool:
    return isinstance(part, Member) and part.column in known and known[part.column] <= part.region


def _member(member: Member) -> _Sql:
    column, region = member.column, member.region
    match column:
        case Attribute(name):
            return _attribute_test(name, region)
        case Signed() | Arithmetic():
            return _number_test(column, region)
        case ShardOf():
            return _shard_test(column, region)
        case Comparison(relation, left, right):
            relations = [r for r, t in ((relation, True), (relation.negated, False)) if region.contains(t)]
            return _any(_comparison(r, left, right) for r in relations)
        case Like(Attribute(name), pattern, escape):
            like = _like(_cast(name, "STRING"), LikePattern(pattern, escape).parts)
            return _all([_is_type(name, "STRING"), _truth_test(like, region)])
        case Like():
            return _FALSE  # of a number
        case XPath(path):
            call = f"{XPATH_FUNCTION}(content_type, payload, {_string(str(path))})"
            test = _truth_test(_Sql(call), region)
            return _Sql(f"{call} IS NOT NULL") if test == _TRUE else test
        case _:
            assert_never(column)


def _truth_test(truth: _Sql, region: Region) -> _Sql:
    """Whether a truth lies in the region; TRUE, also of NULL, if both do."""
    if region.contains(True):
        return _TRUE if region.contains(False) else truth
    return _not(truth)


# Topics


def _topic(pattern: TopicPattern) -> _Sql:
    if "+" in pattern.levels:
        return _topic_with_wildcards(pattern)
    if not pattern.levels:
        return _TRUE
    topic = str(TopicPattern(pattern.levels))  # canonical, as the column is
    exact = _Sql(f"topic = {_string(topic)}")
    return _any([exact, _Sql(f"startswith(topic, {_string(topic + '/')})")]) if pattern.rest else exact


def _topic_with_wildcards(pattern: TopicPattern) -> _Sql:
    """A regular expression in which every repetition ends where the next thing must begin: it never backtracks."""
    if pattern.rest and len(pattern.levels) == 1:
        return _TRUE  # every topic has a level
    levels = "/".join("[^/]*+" if level == "+" else _quoted(level) for level in pattern.levels)
    # A canonical topic begins with a slash only if its first level is empty, and then that slash is no separator.
    lead = {"+": "/?+", "": "/"}.get(pattern.levels[0], "")
    end = r"(/|\z)" if pattern.rest else r"\z"  # not $, which lets a final line feed pass
    return _Sql(f"topic RLIKE {_string('^' + lead + levels + end)}")


# One attribute and constants

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _field(name: str) -> str:
    """An attribute as a VARIANT, NULL if absent."""
    if _PLAIN_NAME.fullmatch(name):
        return f"attributes:{name}"
    quote = "'" if '"' in name else '"'
    if quote not in name:
        return f"variant_get(attributes, {_string(f'$[{quote}{name}{quote}]')})"
    return f"try_cast(attributes AS MAP<STRING, VARIANT>)[{_string(name)}]"  # paths cannot escape a quote


def _is_type(name: str, *types: str) -> _Sql:
    return _equals(f"schema_of_variant({_field(name)})", [f"'{sql_type}'" for sql_type in types])


def _cast(name: str, sql_type: str) -> str:
    return f"try_cast({_field(name)} AS {sql_type})"


def _attribute_test(name: str, region: Region) -> _Sql:
    if region.families == PRESENT.families:
        return _TRUE if region.absent else _Sql(f"{_field(name)} IS NOT NULL")
    numbers, strings, booleans, binaries = region.families
    parts = [_Sql(f"{_field(name)} IS NULL")] if region.absent else []
    if numbers:
        parts.append(_number_attribute_test(name, numbers))
    if strings:
        encodable = tuple((_encodable(low), _encodable(high)) for low, high in strings)
        parts.append(_all([_is_type(name, "STRING"), _interval_test(_cast(name, "STRING"), encodable)]))
    if booleans:
        parts.append(_all([_is_type(name, "BOOLEAN"), _truth_test(_Sql(_cast(name, "BOOLEAN")), region)]))
    if binaries:
        parts.append(_is_type(name, "BINARY"))
    return _any(parts)


def _number_attribute_test(name: str, intervals: _Intervals) -> _Sql:
    if all(math.isinf(value) or abs(value) < 2**53 for interval in intervals for value, _ in interval):
        # Rounding to a double keeps the order, and every int up to 2**53: one test does for both types.
        return _all([_is_type(name, "BIGINT", "DOUBLE"), _interval_test(_cast(name, "DOUBLE"), intervals)])
    whole = _all([_is_type(name, "BIGINT"), _interval_test(_cast(name, "BIGINT"), _among_ints(intervals))])
    real = _all([_is_type(name, "DOUBLE"), _interval_test(_cast(name, "DOUBLE"), _among_doubles(intervals))])
    return _any([whole, real])


def _shard_test(shard: ShardOf, region: Region) -> _Sql:
    field, text = _field(shard.attribute.name), _cast(shard.attribute.name, "STRING")
    canonical_text = (
        f"CASE schema_of_variant({field}) WHEN 'STRING' THEN {text} WHEN 'BIGINT' THEN {text}"
        f" WHEN 'BOOLEAN' THEN upper({text}) WHEN 'DOUBLE' THEN {FLOAT_TEXT_FUNCTION}(try_cast({field} AS DOUBLE)) END"
    )
    value = f"crc32(CAST({canonical_text} AS BINARY)) % {shard.count}"
    return _known_interval_test(value, _among_ints(region.families[NUMBER]))


def _like(value: str, parts: Parts) -> _Sql:
    """A LIKE pattern of the shape ``GENERAL``."""
    match parts:
        case [[], ending] if None not in ending:
            return _Sql(f"endswith({value}, {_string(_characters(ending))})")
        case [[], inner, []] if None not in inner:
            return _Sql(f"contains({value}, {_string(_characters(inner))})")
        case [_] | [_, _] | [[], _, []]:
            pattern = "%".join(_characters(part, "_", "!%_", "!") for part in parts)
            return _Sql(f"{value} LIKE {_string(pattern)} ESCAPE '!'")
    # With more segments Spark's LIKE tries every place for each: seconds for four segments and 300 characters. An
    # atomic group (?>…) takes the leftmost place and never another, which is enough, as like.py explains.
    first, *middles, last = (_characters(part, ".", _REGEX_SPECIAL, "\\") for part in parts)
    groups = "".join(f"(?>.*?{middle})" for middle in middles)
    end = rf".*{last}\z" if last else ""
    return _Sql(f"{value} RLIKE {_string('(?s)^' + first + groups + end)}")


_REGEX_SPECIAL: Final = "\\^$.|?*+()[]{}"


def _characters(part: Iterable[str | None], any_one: str = "", special: str = "", escape: str = "") -> str:
    """The segment of a pattern, with something for ``_`` and an escape before what would be special."""
    return "".join(any_one if char is None else escape + char if char in special else char for char in part)


def _quoted(text: str) -> str:
    return _characters(text, "", _REGEX_SPECIAL, "\\")


# Intervals


def _interval_test(value: str, intervals: _Intervals) -> _Sql:
    """Whether a value lies in one of the intervals; TRUE, also of NULL, if they are everything."""
    points = [_literal(low[0]) for low, high in intervals if _is_point(low, high)]
    ranges = [_range_test(value, *wide) for wide in _joined_over_holes(intervals)]
    return _any([_equals(value, points), *ranges] if points else ranges)


def _known_interval_test(value: str, intervals: _Intervals) -> _Sql:
    """The same, but never TRUE of NULL."""
    test = _interval_test(value, intervals)
    return _Sql(f"{value} IS NOT NULL") if test == _TRUE else test


def _joined_over_holes(intervals: _Intervals) -> list[tuple[Cut, Cut, list[Interval]]]:
    """The intervals that are no points; those with only a point or a prefix between them as one, with holes."""
    wide: list[tuple[Cut, Cut, list[Interval]]] = []
    for low, high in intervals:
        if _is_point(low, high):
            continue
        if wide and not _is_prefix(low, high) and not _is_prefix(*wide[-1][:2]):
            start, end, holes = wide[-1]
            if _is_point(end, low) or _is_prefix(end, low):
                holes.append((end, low))
                wide[-1] = (start, high, holes)
                continue
        wide.append((low, high, []))
    return wide


def _range_test(value: str, low: Cut, high: Cut, holes: list[Interval]) -> _Sql:
    parts = [_prefix_test(value, low)] if _is_prefix(low, high) else _bounds(value, low, high)
    points = [_literal(start[0]) for start, end in holes if _is_point(start, end)]
    if points:
        parts.append(_equals(value, points, negated=True))
    parts.extend(_not(_prefix_test(value, start)) for start, end in holes if _is_prefix(start, end))
    return _all(parts)


def _bounds(value: str, low: Cut, high: Cut) -> list[_Sql]:
    if (low[1], high[1]) == (0, 1) and low not in _ENDS and high not in _ENDS:
        return [_Sql(f"{value} BETWEEN {_literal(low[0])} AND {_literal(high[0])}")]
    above = [] if low in _ENDS else [_Sql(f"{value} {'>' if low[1] else '>='} {_literal(low[0])}")]
    below = [] if high in _ENDS else [_Sql(f"{value} {'<=' if high[1] else '<'} {_literal(high[0])}")]
    return above + below


_ENDS: Final[tuple[Cut, ...]] = ((-math.inf, 0), (math.inf, 1), ("", 0), (TOP, 0))


def _is_point(low: Cut, high: Cut) -> bool:
    return low == (high[0], 0) and high[1] == 1


def _is_prefix(low: Cut, high: Cut) -> bool:
    return (
        isinstance(low[0], str)
        and low not in _ENDS
        and low[1] == 0
        and high == _encodable(after_prefix(low[0]))
    )


def _prefix_test(value: str, low: Cut) -> _Sql:
    return _Sql(f"startswith({value}, {_literal(low[0])})")


def _equals(value: str, literals: list[str], *, negated: bool = False) -> _Sql:
    if len(literals) == 1:
        return _Sql(f"{value} {'<>' if negated else '='} {literals[0]}")
    return _Sql(f"{value} {'NOT IN' if negated else 'IN'} ({', '.join(literals)})")


def _among_ints(intervals: _Intervals) -> _Intervals:
    """The same 64-bit integers, between cuts beside integers."""
    found: list[Interval] = []
    for low, high in intervals:
        if _next_int(low) >= _next_int(high):
            continue
        if found and _next_int(found[-1][1]) == _next_int(low):
            low = found.pop()[0]
        found.append((_whole_cut(low), _whole_cut(high)))
    return tuple(found)


def _next_int(cut: Cut) -> int:
    """The first 64-bit integer after the cut, or one more than the last."""
    value, side = cut
    if math.isinf(value):
        return INT_MIN if value < 0 else INT_MAX + 1
    following: int = math.floor(value) + 1 if side else math.ceil(value)
    return max(INT_MIN, min(following, INT_MAX + 1))


def _whole_cut(cut: Cut) -> Cut:
    if isinstance(cut[0], int):
        return cut
    following = _next_int(cut)
    if following == INT_MIN:
        return -math.inf, 0
    if following == INT_MAX + 1:
        return math.inf, 1
    return (following - 1, 1) if cut[1] else (following, 0)


def _among_doubles(intervals: _Intervals) -> _Intervals:
    """The same doubles, between cuts beside doubles."""
    found: list[Interval] = []
    for interval in intervals:
        low, high = map(_real_cut, interval)
        if found and found[-1][1] == low:
            low = found.pop()[0]
        if low < high:
            found.append((low, high))
    return tuple(found)


def _real_cut(cut: Cut) -> Cut:
    """The cut itself, or, between two doubles, the cut below the upper one."""
    value, _ = cut
    nearest = float(value)
    if nearest == value:
        return cut
    return (nearest if nearest > value else math.nextafter(nearest, math.inf)), 0


# Arithmetic and comparisons of two values

#: How attributes are read: the types of value that are taken, and the type that is given.
_READINGS: Final = {
    "i": (("BIGINT",), "BIGINT"),
    "f": (("DOUBLE",), "DOUBLE"),
    "d": (("BIGINT", "DOUBLE"), "DOUBLE"),
    "s": (("STRING",), "STRING"),
    "b": (("BOOLEAN",), "BOOLEAN"),
}
_INFINITY: Final = "double('infinity')"


class _Let:
    """Values that are worked out once, and named, for one condition."""

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._numbers: dict[Expression, int] = {}
        self._values: dict[tuple[int, str], str] = {}

    def name(self, kind: str, expression: Expression, value: str) -> str:
        """The name of the value, of one kind or another, of an expression."""
        number = self._numbers.setdefault(expression, len(self._numbers) + 1)
        self._values[number, kind] = value
        return f"{self._variable}.{kind}{number}"

    def condition(self, body: _Sql) -> _Sql:
        """The body where the names are known."""
        if not self._values or body in (_TRUE, _FALSE):
            return body
        fields = [f"{value} AS {kind}{number}" for (number, kind), value in sorted(self._values.items())]
        return _Sql(f"exists(array(struct({', '.join(fields)})), {self._variable} -> {body.text})")


class _Values:
    """The values of expressions in one condition: attributes are named under ``v``, results under ``w``.

    A number is an int if everything in it is an int, and otherwise a float. So each expression is written twice:
    ``_whole`` is right if all its attributes are ints, ``_real`` if not all are.
    """

    def __init__(self) -> None:
        self._attributes, self._results = _Let("v"), _Let("w")

    def condition(self, parts: Iterable[_Sql]) -> _Sql:
        """Any of the parts, where the names in them are known."""
        return self._attributes.condition(self._results.condition(_any(parts)))

    def read(self, reading: str, name: str) -> str:
        """The attribute in one of its readings, NULL if it is of another type."""
        types, sql_type = _READINGS[reading]
        value = f"CASE WHEN {_is_type(name, *types).text} THEN {_cast(name, sql_type)} END"
        return self._attributes.name(reading, Attribute(name), value)

    def number(self, expression: Expression) -> tuple[str | None, str]:
        """The value as a BIGINT, if it may be one, and as a DOUBLE: at most one of them is not NULL."""
        if isinstance(expression, Attribute):
            return self.read("i", expression.name), self.read("f", expression.name)
        real = self._real(expression)
        value = (
            f"nanvl({real.within(_PRODUCT)} % {_INFINITY}, NULL)" if _may_overflow(expression) else real.text
        )
        if not _may_be_whole(expression):
            return None, self._results.name("f", expression, value)
        value = f"CASE WHEN {self._is_real(expression)} THEN {value} END"
        whole = self._results.name("i", expression, self._whole(expression))
        return whole, self._results.name("f", expression, value)

    def _is_real(self, expression: Expression) -> str:
        """Whether not all its attributes are ints."""
        names = dict.fromkeys(attributes_of(expression))
        return " OR ".join(f"{self.read('i', name)} IS NULL" for name in names)

    def _whole(self, expression: Expression) -> str:
        match expression:
            case Attribute(name):
                return self.read("i", name)
            case Literal(value):
                return str(value)
            case Signed(negative, operand):
                return f"try_subtract(0, {self._whole(operand)})" if negative else self._whole(operand)
            case Arithmetic(Operator.DIVIDE, left, Literal(int() as constant)) if constant not in (0, -1):
                return f"{self._whole(left)} div {constant}"
            case Arithmetic(Operator.DIVIDE, left, right):
                # There is no try_div. The 19 decimals of this quotient do not round it up to an integer: it is at
                # least 2**-63 below the next one, and that is more than 10**-19 / 2. The cast truncates.
                dividend, divisor = (f"CAST({self._whole(e)} AS DECIMAL(19, 0))" for e in (left, right))
                return f"try_cast(try_divide({dividend}, {divisor}) AS BIGINT)"
            case Arithmetic(operator, left, right):
                return f"{_TRY[operator]}({self._whole(left)}, {self._whole(right)})"
            case _:
                assert_never(expression)

    def _real(self, expression: Expression) -> _Sql:
        """A DOUBLE; infinite, NaN or NULL if there is no value."""
        match expression:
            case Attribute(name):
                return _Sql(self.read("d", name))
            case Literal(value):
                text = _literal(float(value))
                return _Sql(text, _SIGN if text.startswith("-") else _ATOM)
            case Signed(negative, operand):
                inner = self._real(operand)
                return _Sql(f"-{inner.within(_ATOM)}", _SIGN) if negative else inner
            case Arithmetic(Operator.DIVIDE, left, right):
                # What is not finite stays so whatever is done to it, except that a finite number over it is 0.
                guard = f" % {_INFINITY}" if _may_overflow(right) else ""
                return _Sql(
                    f"try_divide({self._either(left).text}, {self._either(right).within(_PRODUCT)}{guard})"
                )
            case Arithmetic(operator, left, right):
                binding = _PRODUCT if operator is Operator.MULTIPLY else _SUM
                first, second = self._either(left).within(binding), self._either(right).within(binding + 1)
                return _Sql(f"{first} {operator.value} {second}", binding)
            case _:
                assert_never(expression)

    def _either(self, expression: Expression) -> _Sql:
        """The operand of a float: an int below it is still worked out as one."""
        real = self._real(expression)
        if isinstance(expression, Attribute | Literal) or not _may_be_whole(expression):
            return real
        whole = f"CAST({self._whole(expression)} AS DOUBLE)"
        return _Sql(f"CASE WHEN {self._is_real(expression)} THEN {real.text} ELSE {whole} END")


_TRY: Final = {
    Operator.ADD: "try_add",
    Operator.SUBTRACT: "try_subtract",
    Operator.MULTIPLY: "try_multiply",
}


def _number_test(expression: Signed | Arithmetic, region: Region) -> _Sql:
    """Whether the value of an arithmetic expression, or its absence, lies in the region."""
    numbers = region.families[NUMBER]
    if not _is_number(expression) or (region.absent and numbers == PRESENT.families[NUMBER]):
        return _TRUE if region.absent else _FALSE
    values = _Values()
    whole, real = values.number(expression)
    parts = [_known_interval_test(whole, _among_ints(numbers))] if whole else []
    parts.append(_known_interval_test(real, _among_doubles(numbers)))
    if region.absent:
        parts.insert(0, _all(_Sql(f"{value} IS NULL") for value in (whole, real) if value))
    return values.condition(parts)


def _comparison(relation: Relation, left: Expression, right: Expression) -> _Sql:
    """Whether two values of like types stand in a relation."""
    values = _Values()
    parts: list[_Sql] = []
    if _is_number(left) and _is_number(right):
        (whole, real), (other_whole, other_real) = values.number(left), values.number(right)
        if whole and other_whole:
            parts.append(_Sql(f"{whole} {relation.value} {other_whole}"))
        parts.append(_Sql(f"{real} {relation.value} {other_real}"))
        if whole:
            parts.append(_mixed_comparison(relation, whole, other_real))
        if other_whole:
            parts.append(_mixed_comparison(relation.flipped, other_whole, real))
    if isinstance(left, Attribute) and isinstance(right, Attribute):
        for reading in "sb":
            first, second = values.read(reading, left.name), values.read(reading, right.name)
            parts.append(_Sql(f"{first} {relation.value} {second}"))
    return values.condition(parts)


def _mixed_comparison(relation: Relation, whole: str, real: str) -> _Sql:
    """How an int compares with a float, by exact value.

    If the int as a double differs from the float, it does so in the same direction. If not, the float is a whole
    number from -2**63 to 2**63 and can be compared as an int; but 2**63, above every int, is cast to 2**63 - 1.
    """
    rounded, top = f"CAST({whole} AS DOUBLE)", _literal(2.0**63)
    same = _Sql(f"{whole} {relation.value} try_cast({real} AS BIGINT)")
    match relation:
        case Relation.NE | Relation.LT:
            same = _any([same, _Sql(f"{real} >= {top}")])
        case Relation.EQ | Relation.GE:
            same = _all([same, _Sql(f"{real} < {top}")])
    tie = _all([_Sql(f"{rounded} = {real}"), same])
    apart = relation.value.rstrip("=")  # the strict part of the relation; of = there is none
    return _any([_Sql(f"{rounded} {apart} {real}"), tie]) if apart else tie


def _constants(expression: Expression) -> Iterator[Scalar]:
    match expression:
        case Literal(value):
            yield value
        case Signed(_, operand):
            yield from _constants(operand)
        case Arithmetic(_, left, right):
            yield from _constants(left)
            yield from _constants(right)


def _is_number(expression: Expression) -> bool:
    """Whether it can have a value, once its attributes are numbers."""
    return all(type(value) is int or type(value) is float for value in _constants(expression))


def _may_be_whole(expression: Expression) -> bool:
    """Whether it is an int, once its attributes are ints."""
    return all(type(value) is int for value in _constants(expression))


def _may_overflow(expression: Expression) -> bool:
    """Whether the SQL of its float can be infinite or NaN; attributes and constants never are."""
    match expression:
        case Signed(_, operand):
            return _may_overflow(operand)
        case _:
            return isinstance(expression, Arithmetic)


# Literals


def _literal(value: Scalar) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float):
        return f"{value!r}D"
    return str(value)


def _string(text: str) -> str:
    """A string literal that reads the same on any terminal, and in which Spark substitutes no ``${variable}``."""
    return "'" + text.translate(_Escapes()).replace("${", "\\u0024{") + "'"


class _Escapes(dict[int, str]):
    """For ``str.translate``: what stands for each character in a string literal."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char in "\\'":
            char = "\\" + char
        elif not char.isprintable():
            char = f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        self[code] = char
        return char


def _encodable(cut: Cut) -> Cut:
    """The same place among strings without surrogates: one can come from raising U+D7FF, the end of a prefix."""
    at = lone_surrogate(cut[0]) if isinstance(cut[0], str) else None
    return cut if at is None else (cut[0][:at] + "\ue000", 0)
