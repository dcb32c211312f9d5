"""What need not be read: rows that a filter cannot match, told from the zones of their columns.

The normal form of a filter is ALL and ANY over "this value lies in that region" (``filters.normal``), so the question
is whether a region and a zone have something in common. What is not known may match: an attribute without a column, or
without a zone because some value of it has another type. Pruning never changes an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.filters.expression import Attribute, Filter
from holdfast.filters.normal import All, Any, Formula, Member, normalise
from holdfast.filters.region import NUMBER, STRING, Region
from holdfast.filters.topic import TopicPattern
from holdfast.pipeline.lake.files import Zone

__all__ = ["Pruner"]

_EVENT: Final = "event"


class Pruner:
    """Of one filter, whether it may match something in a zone."""

    def __init__(self, wanted: Filter) -> None:
        self._topic = _prefix(wanted.pattern)
        self._formula = normalise(wanted.condition)

    def may_match(self, zones: Mapping[str, Zone]) -> bool:
        """Whether an event of these zones may; rows that are no events are always wanted."""
        kind, topic = zones.get("kind"), zones.get("topic")
        if kind is None or kind.greatest != _EVENT:
            return True
        if topic is not None and topic.least is not None:
            prefix = self._topic
            if topic.greatest < prefix or topic.least[: len(prefix)] > prefix:
                return False
        return _may(self._formula, zones)


def _prefix(pattern: TopicPattern) -> str:
    """What every topic begins with that a pattern matches."""
    levels = pattern.levels
    if levels[:1] == ("",):
        return ""  # such topics are written with one more '/'
    if "+" in levels:
        levels = levels[: levels.index("+")]
        return "/".join((*levels, "")) if levels else ""
    return "/".join(levels)


def _may(formula: Formula, zones: Mapping[str, Zone]) -> bool:
    match formula:
        case All(parts):
            return all(_may(part, zones) for part in parts)
        case Any(parts):
            return any(_may(part, zones) for part in parts)
        case Member(Attribute(name), region):
            zone = zones.get(f"a.{name}")
            return zone is None or _meets(region, zone)
        case _:
            return True


def _meets(region: Region, zone: Zone) -> bool:
    """Whether some value of a zone, or its absence, may lie in a region."""
    if region.absent and zone.nulls:
        return True
    if zone.least is None or type(zone.least) not in (int, float, str):
        return zone.least is not None
    family = STRING if isinstance(zone.least, str) else NUMBER
    return any(low <= (zone.greatest, 0) and (zone.least, 0) < high for low, high in region.families[family])
