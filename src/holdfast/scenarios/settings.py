"""The settings of a network: how each directive is spelt, read and written, in one table.

A setting that is not given has the default of its field in ``Configuration``; the canonical text leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

from holdfast.scenarios.language import Line, milliseconds_text
from holdfast.scenarios.topology import Configuration

__all__ = ["SETTINGS", "Setting", "settings_text"]

_DELTA_MAX: Final = 16
_PUBENDS_MAX: Final = 1_024
_SEED_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Setting:
    """One directive: its keyword, the field of ``Configuration`` it sets, its value from and as text."""

    keyword: str
    field: str
    read: Callable[[Line], Any]
    write: Callable[[Any], str] = str


def _one_of(keyword: str, field: str, *choices: str) -> Setting:
    return Setting(keyword, field, lambda line: line.keyword(*choices))


def _switch(keyword: str, field: str) -> Setting:
    return Setting(
        keyword,
        field,
        lambda line: line.keyword("on", "off") == "on",
        lambda value: "on" if value else "off",
    )


def _number(keyword: str, field: str, low: int, high: int) -> Setting:
    return Setting(keyword, field, lambda line: line.integer(keyword, low, high))


def _period(keyword: str, field: str) -> Setting:
    return Setting(keyword, field, lambda line: line.milliseconds(keyword, positive=True), milliseconds_text)


def _period_or_never(keyword: str, field: str) -> Setting:
    def read(line: Line) -> int | None:
        return None if line.take_keyword("never") else line.milliseconds(keyword, positive=True)

    return Setting(keyword, field, read, lambda value: "never" if value is None else milliseconds_text(value))


#: In the order of contracts.md §4, which is also that of the canonical text.
SETTINGS: Final[tuple[Setting, ...]] = (
    _one_of("RoutingPolicy", "routing", "filter", "flooding"),
    _one_of("Ordering", "ordering", "NO", "FIFO", "TOTAL"),
    _one_of("LoggingLevel", "logging", "full", "light"),
    _one_of("Guarantee", "guarantee", "best-effort", "reliable", "durable", "archived"),
    _number("Delta", "delta", 0, _DELTA_MAX),
    _number("Seed", "seed", 0, _SEED_MAX),
    _one_of("Acknowledge", "acknowledge", "dack", "conf", "none"),
    _switch("Refill", "refill"),
    _switch("Aggregation", "aggregation"),
    _period_or_never("FailoverAfter", "failover_after_ns"),
    _period("Heartbeat", "heartbeat_ns"),
    _period("DetectAfter", "detect_after_ns"),
    _period("ProbeEvery", "probe_every_ns"),
    _period("DackEvery", "dack_every_ns"),
    _period_or_never("Retain", "retain_ns"),
    _number("Pubends", "pubends", 1, _PUBENDS_MAX),
)


def settings_text(configuration: Configuration) -> Iterator[str]:
    """The lines for whatever differs from its default."""
    defaults = {field.name: field.default for field in fields(Configuration)}
    for setting in SETTINGS:
        value = getattr(configuration, setting.field)
        if value != defaults[setting.field]:
            yield f"{setting.keyword} {setting.write(value)}"
