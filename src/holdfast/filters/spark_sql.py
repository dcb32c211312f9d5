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
from collections.abc import Iterable
from typing import Final, assert_never

from holdfast.errors import FilterError
from holdfast.events.value import lone_surrogate
from holdfast.filters.expression import Arithmetic, Attribute, Comparison, Filter, Like, Signed, XPath
from holdfast.filters.like import LikePattern, Parts
from holdfast.filters.normal import All, Any, Column, Formula, Member, ShardOf, normalise
from holdfast.filters.region import NUMBER, PRESENT, Region, prefix_region
from holdfast.filters.spark_intervals import (
    Intervals,
    among_doubles,
    among_ints,
    interval_test,
    known_interval_test,
)
from holdfast.filters.spark_text import (
    FALSE_SQL,
    TRUE_SQL,
    Sql,
    all_of,
    any_of,
    cast_sql,
    encodable_cut,
    field_sql,
    negation,
    string_sql,
    type_test,
)
from holdfast.filters.spark_values import comparison_test, number_test
from holdfast.filters.topic import TopicPattern

__all__ = ["FLOAT_TEXT_FUNCTION", "XPATH_FUNCTION", "spark_sql"]


XPATH_FUNCTION: Final = "holdfast_xpath"
FLOAT_TEXT_FUNCTION: Final = "holdfast_float_text"


def spark_sql(filter: Filter) -> str:
    """The condition that is TRUE on exactly the events the filter matches.

    :raises FilterError: if it holds a lone surrogate, which no parsed filter does and no SQL text can.
    """
    text = str(filter)
    at = lone_surrogate(text)
    if at is not None:
        raise FilterError(f"character U+{ord(text[at]):04X} is not allowed", text=text, offset=at)
    return all_of([_topic(filter.pattern), _formula(normalise(filter.condition))]).text


def _formula(formula: Formula) -> Sql:
    match formula:
        case Member():
            return _member(formula)
        case All(parts):
            return all_of(map(_formula, _without_implied(parts)))
        case Any(parts):
            return any_of(map(_formula, parts))
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


def _member(member: Member) -> Sql:
    column, region = member.column, member.region
    match column:
        case Attribute(name):
            return _attribute_test(name, region)
        case Signed() | Arithmetic():
            return number_test(column, region)
        case ShardOf():
            return _shard_test(column, region)
        case Comparison(relation, left, right):
            relations = [r for r, t in ((relation, True), (relation.negated, False)) if region.contains(t)]
            return any_of(comparison_test(r, left, right) for r in relations)
        case Like(Attribute(name), pattern, escape):
            like = _like(cast_sql(name, "STRING"), LikePattern(pattern, escape).parts)
            return all_of([type_test(name, "STRING"), _truth_test(like, region)])
        case Like():
            return FALSE_SQL  # of a number
        case XPath(path):
            call = f"{XPATH_FUNCTION}(content_type, payload, {string_sql(str(path))})"
            test = _truth_test(Sql(call), region)
            return Sql(f"{call} IS NOT NULL") if test == TRUE_SQL else test
        case _:
            assert_never(column)


def _truth_test(truth: Sql, region: Region) -> Sql:
    """Whether a truth lies in the region; TRUE, also of NULL, if both do."""
    if region.contains(True):
        return TRUE_SQL if region.contains(False) else truth
    return negation(truth)


# Topics


def _topic(pattern: TopicPattern) -> Sql:
    if "+" in pattern.levels:
        return _topic_with_wildcards(pattern)
    if not pattern.levels:
        return TRUE_SQL
    topic = str(TopicPattern(pattern.levels))  # canonical, as the column is
    exact = Sql(f"topic = {string_sql(topic)}")
    return any_of([exact, Sql(f"startswith(topic, {string_sql(topic + '/')})")]) if pattern.rest else exact


def _topic_with_wildcards(pattern: TopicPattern) -> Sql:
    """A regular expression in which every repetition ends where the next thing must begin: it never backtracks."""
    if pattern.rest and len(pattern.levels) == 1:
        return TRUE_SQL  # every topic has a level
    levels = "/".join("[^/]*+" if level == "+" else _quoted(level) for level in pattern.levels)
    # A canonical topic begins with a slash only if its first level is empty, and then that slash is no separator.
    lead = {"+": "/?+", "": "/"}.get(pattern.levels[0], "")
    end = r"(/|\z)" if pattern.rest else r"\z"  # not $, which lets a final line feed pass
    return Sql(f"topic RLIKE {string_sql('^' + lead + levels + end)}")


# One attribute and constants


def _attribute_test(name: str, region: Region) -> Sql:
    if region.families == PRESENT.families:
        return TRUE_SQL if region.absent else Sql(f"{field_sql(name)} IS NOT NULL")
    numbers, strings, booleans, binaries = region.families
    parts = [Sql(f"{field_sql(name)} IS NULL")] if region.absent else []
    if numbers:
        parts.append(_number_attribute_test(name, numbers))
    if strings:
        encodable = tuple((encodable_cut(low), encodable_cut(high)) for low, high in strings)
        parts.append(all_of([type_test(name, "STRING"), interval_test(cast_sql(name, "STRING"), encodable)]))
    if booleans:
        parts.append(
            all_of([type_test(name, "BOOLEAN"), _truth_test(Sql(cast_sql(name, "BOOLEAN")), region)])
        )
    if binaries:
        parts.append(type_test(name, "BINARY"))
    return any_of(parts)


def _number_attribute_test(name: str, intervals: Intervals) -> Sql:
    if all(math.isinf(value) or abs(value) < 2**53 for interval in intervals for value, _ in interval):
        # Rounding to a double keeps the order, and every int up to 2**53: one test does for both types.
        return all_of(
            [type_test(name, "BIGINT", "DOUBLE"), interval_test(cast_sql(name, "DOUBLE"), intervals)]
        )
    whole = all_of(
        [type_test(name, "BIGINT"), interval_test(cast_sql(name, "BIGINT"), among_ints(intervals))]
    )
    real = all_of(
        [type_test(name, "DOUBLE"), interval_test(cast_sql(name, "DOUBLE"), among_doubles(intervals))]
    )
    return any_of([whole, real])


def _shard_test(shard: ShardOf, region: Region) -> Sql:
    field, text = field_sql(shard.attribute.name), cast_sql(shard.attribute.name, "STRING")
    canonical_text = (
        f"CASE schema_of_variant({field}) WHEN 'STRING' THEN {text} WHEN 'BIGINT' THEN {text}"
        f" WHEN 'BOOLEAN' THEN upper({text}) WHEN 'DOUBLE' THEN {FLOAT_TEXT_FUNCTION}(try_cast({field} AS DOUBLE)) END"
    )
    value = f"crc32(CAST({canonical_text} AS BINARY)) % {shard.count}"
    return known_interval_test(value, among_ints(region.families[NUMBER]))


def _like(value: str, parts: Parts) -> Sql:
    """A LIKE pattern of the shape ``GENERAL``."""
    match parts:
        case [[], ending] if None not in ending:
            return Sql(f"endswith({value}, {string_sql(_characters(ending))})")
        case [[], inner, []] if None not in inner:
            return Sql(f"contains({value}, {string_sql(_characters(inner))})")
        case [_] | [_, _] | [[], _, []]:
            pattern = "%".join(_characters(part, "_", "!%_", "!") for part in parts)
            return Sql(f"{value} LIKE {string_sql(pattern)} ESCAPE '!'")
    # With more segments Spark's LIKE tries every place for each: seconds for four segments and 300 characters. An
    # atomic group (?>…) takes the leftmost place and never another, which is enough, as like.py explains.
    first, *middles, last = (_characters(part, ".", _REGEX_SPECIAL, "\\") for part in parts)
    groups = "".join(f"(?>.*?{middle})" for middle in middles)
    end = rf".*{last}\z" if last else ""
    return Sql(f"{value} RLIKE {string_sql('(?s)^' + first + groups + end)}")


_REGEX_SPECIAL: Final = "\\^$.|?*+()[]{}"


def _characters(part: Iterable[str | None], any_one: str = "", special: str = "", escape: str = "") -> str:
    """The segment of a pattern, with something for ``_`` and an escape before what would be special."""
    return "".join(any_one if char is None else escape + char if char in special else char for char in part)


def _quoted(text: str) -> str:
    return _characters(text, "", _REGEX_SPECIAL, "\\")
