"""How the index would find a subscription, in words."""

from __future__ import annotations

import math

from holdfast.filters.expression import Arithmetic, Attribute, Filter, Literal, Not, Signed, XPath
from holdfast.filters.normal import Member, ShardOf
from holdfast.filters.region import BOOLEAN, BYTES, NUMBER, STRING, TOP, TRUE_ONLY, Cut, Region
from holdfast.filters.text import condition_text, expression_text, name_text
from holdfast.matching.hashed import HashedIndex
from holdfast.matching.interval import shared_prefix

__all__ = ["indexed_on", "member_text"]


def indexed_on(filter: Filter, index: HashedIndex | None = None) -> list[str]:
    """What a filter is filed under in an index (an empty one unless given): an event must meet one of these."""
    access = (index or HashedIndex()).access_of(filter)
    if access is None:
        return ["nothing: it can never be true"]
    if access:
        return [f"{member_text(member)}  ({_structure(member)})" for member in access]
    if not filter.pattern.levels and filter.pattern.rest:
        return ["nothing: every event is a candidate"]
    if filter.pattern.is_literal:
        return [f"topic = {filter.pattern}  (hash of values)"]
    return [f"topic {filter.pattern}  (trie of patterns)"]


def member_text(member: Member) -> str:
    """A member as a condition of the language, or close to it."""
    match member.column:
        case XPath() as xpath:
            return condition_text(xpath if member.region == TRUE_ONLY else Not(xpath))
        case ShardOf(Attribute(name), count):
            column = f"SHARD({name_text(name)}, {count})"
        case Attribute() | Arithmetic() | Signed() as expression:
            column = expression_text(expression)
        case truth:
            return condition_text(truth if member.region == TRUE_ONLY else Not(truth))
    return _region_text(column, member.region)


def _region_text(column: str, region: Region) -> str:
    if region.families[BYTES]:
        return f"{column} IS NOT NULL"
    points: list[str] = []
    texts = [f"{column} IS NULL"] if region.absent else []
    for family in (NUMBER, STRING):
        for low, high in region.families[family]:
            if low[0] == high[0]:
                points.append(_literal(low))
            else:
                texts.append(_interval_text(column, low, high))
    for low, high in region.families[BOOLEAN]:
        points.extend("TRUE" if truth else "FALSE" for truth in range(low[0], high[0]))
    if points:
        texts.append(f"{column} = {points[0]}" if len(points) == 1 else f"{column} IN ({', '.join(points)})")
    return " OR ".join(texts)


def _interval_text(column: str, low: Cut, high: Cut) -> str:
    bounds: list[str] = []
    if low[0] not in (-math.inf, ""):
        bounds.append(f"{column} {'>' if low[1] else '>='} {_literal(low)}")
    if high[0] not in (math.inf, TOP):
        bounds.append(f"{column} {'<=' if high[1] else '<'} {_literal(high)}")
    return " AND ".join(bounds) or f"{column} has a value of its type"


def _literal(cut: Cut) -> str:
    return expression_text(Literal(cut[0]))


def _structure(member: Member) -> str:
    """Where such a member is looked up."""
    if isinstance(member.column, XPath):
        return "automaton over documents"
    kinds: list[str] = []
    for family in (NUMBER, STRING):
        for low, high in member.region.families[family]:
            if low[0] == high[0]:
                kinds.append("hash of values")
            elif family == STRING:
                kinds.append("hash of prefixes" if shared_prefix(low, high) else "sorted bounds")
            else:
                kinds.append("sorted bounds" if math.inf in (-low[0], high[0]) else "grid of intervals")
    if member.region.families[BOOLEAN]:
        kinds.append("hash of values")
    if member.region.absent:
        kinds.append("events without it")
    if member.region.families[BYTES]:
        kinds = ["events that have it"]
    return " and ".join(dict.fromkeys(kinds))
