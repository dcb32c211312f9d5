"""Every key of ``network.toml``: what may stand there, what is meant when nothing does, and what it sets.

The defaults are those of the code they set, read from there. What a stream or network cannot do yet is known by
name here, so that it is refused as missing and not as a slip of the pen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from holdfast.broker.settings import Routing, Settings, Stream
from holdfast.clock import MILLISECOND
from holdfast.errors import FilterError
from holdfast.events.event import Limits
from holdfast.filters.topic import parse_pattern
from holdfast.messages.streams import Guarantee, Order
from holdfast.node.settings import Acknowledge
from holdfast.runtime.declarations import BadDeclaration, declared_in
from holdfast.runtime.network_units import bytes_in, span_in

__all__ = ["BROKER", "OF_LOGS", "REQUIRED", "STREAM", "TABLES", "Key", "Kind", "Unfit", "defaults", "written"]

REQUIRED: Final = object()
DAY_MS: Final = 86_400_000
COUNT_MAX: Final = 2**53  #: what every reader of TOML and JSON agrees on
TOPICS_MAX: Final = 1_000  #: patterns of one stream
PUBENDS_MAX: Final = 64  #: of one stream at one broker: each has a log of its own
RETAIN_BYTES_LEAST: Final = 1 << 20
#: Unless another size is said: a log must not fill a disk without anybody having decided so.
RETAIN_BYTES: Final = "10GiB"
DELTA_MAX: Final = 16  #: an event names the 3δ+1 nodes it passed last, and messages have room for those
#: What is held is let go so much later than it could be. Scenarios wait a second, as their traces are read by people;
#: a network that carries traffic would hold a second's worth of it in every queue.
DACK_EVERY_MS: Final = 100
#: A small write to each broker's disk; so long a window of `holdfast derive` stays open on an idle stream.
VOUCH_EVERY_MS: Final = 5_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Unfit(Exception):
    """A value that will not do: what is wrong with it, and what would be right."""

    def __init__(self, problem: str, expected: str) -> None:
        super().__init__(f"{problem}; expected {expected}")


def written(value: object) -> str:
    """A value as it might stand in the file, cut where it is long."""
    if isinstance(value, dict):
        return "a table"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True, slots=True)
class Kind:
    """What values a key takes: ``check`` turns one into what the code uses or raises ``Unfit``.

    ``from_text`` reads the text of an environment variable or flag; what it cannot read it passes on as text, which
    ``check`` then refuses.
    """

    check: Callable[[object], Any]
    from_text: Callable[[str], object] = str


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table."""

    kind: Kind
    default: object = REQUIRED  #: as it would stand in the file; None: absent
    sets: str = ""  #: the field of broker.settings.Settings, or of its Limits


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _name(value: object) -> str:
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise Unfit(f"is {written(value)}", "a name of 1 to 100 letters, digits, '.', '_' and '-'")


def _text(value: object) -> str:
    if isinstance(value, str) and value and value.isprintable():
        return value
    raise Unfit(f"is {written(value)}", "text")


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise Unfit(f"is {written(value)}", "true or false")


def _whole(least: int, most: int, unit: str = "", scale: int = 1) -> Kind:
    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value * scale
        raise Unfit(f"is {written(value)}", f"a whole number{unit} from {least} to {most}")

    return Kind(check, _json_or_text)


def _choice(offered: Mapping[str, object], to_come: tuple[str, ...] = ()) -> Kind:
    def check(value: object) -> object:
        expected = " or ".join(json.dumps(one) for one in offered)
        if isinstance(value, str) and value in offered:
            return offered[value]
        if value in to_come:
            raise Unfit(f"is {written(value)}, which does not exist yet", expected)
        raise Unfit(f"is {written(value)}", expected)

    return Kind(check)


def _span(without: str) -> Kind:
    """A time, or a word for none, which is None."""

    def check(value: object) -> int | None:
        span = span_in(value) if isinstance(value, str) else None
        if span is None and value != without:
            expected = f'a time such as "90s", "12h" or "7d", or {written(without)}'
            raise Unfit(f"is {written(value)}", expected)
        return span

    return Kind(check)


def _size(without: str, least: int) -> Kind:
    """A number of bytes with its unit, or a word for none, which is None."""

    def check(value: object) -> int | None:
        size = bytes_in(value) if isinstance(value, str) else None
        if value != without and (size is None or size < least):
            expected = f'a size such as "500MB" or "10GiB", from {least:,} bytes, or {written(without)}'
            raise Unfit(f"is {written(value)}", expected)
        return size

    return Kind(check)


def _topics(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise Unfit(f"is {written(value)}", 'an array of topic patterns, such as ["orders/#"]')
    if len(value) > TOPICS_MAX:
        raise Unfit(f"has {len(value)} patterns", f"at most {TOPICS_MAX}")
    for pattern in value:
        try:
            if any(character.isspace() for character in pattern):
                raise Unfit(f"has the pattern {written(pattern)} with a space in it", "topic patterns alone")
            parse_pattern(pattern)
        except FilterError as error:
            raise Unfit(
                f"has the pattern {written(pattern)}: {error.problem}", error.expected or "a pattern"
            ) from error
    return tuple(value)


def _declarations(value: object) -> Mapping[str, str]:
    if not isinstance(value, str):
        raise Unfit(f"is {written(value)}", 'text such as "price DOUBLE, sym STRING"')
    try:
        return declared_in(value) if value else {}
    except BadDeclaration as error:
        raise Unfit(f"is {written(value)}: {error.problem}", error.expected or "each name once") from error


def _default(owner: type, field: str) -> Any:
    return next(one.default for one in fields(owner) if one.name == field)


def _duration(sets: str) -> Key:
    kind = _whole(1, DAY_MS, " of milliseconds", MILLISECOND)
    return Key(kind, _default(Settings, sets) // MILLISECOND, sets)


def _limit(owner: type, sets: str) -> Key:
    return Key(_whole(1, COUNT_MAX), _default(owner, sets), sets)


#: The tables that stand once; "" is the top of the file.
TABLES: Final[dict[str, dict[str, Key]]] = {
    "": {
        "name": Key(Kind(_name)),
        "delta": Key(_whole(0, DELTA_MAX), _default(Settings, "delta"), "delta"),
        "routing": Key(
            _choice({one.value: one for one in Routing}), _default(Settings, "routing").value, "routing"
        ),
        "insecure": Key(Kind(_flag, _json_or_text), False),
    },
    "overlay": {
        "acknowledge": Key(
            _choice({one.value: one for one in (Acknowledge.DACK, Acknowledge.CONF)}),
            _default(Settings, "acknowledge").value,
            "acknowledge",
        ),
        "dack_every_ms": Key(
            _whole(1, DAY_MS, " of milliseconds", MILLISECOND), DACK_EVERY_MS, "dack_every_ns"
        ),
        "refill": Key(Kind(_flag, _json_or_text), _default(Settings, "refill"), "refill"),
    },
    "neighbours": {
        "heartbeat_ms": _duration("heartbeat_ns"),
        "detect_after_ms": _duration("detect_after_ns"),
        "probe_every_ms": _duration("probe_every_ns"),
    },
    "clients": {
        "heartbeat_ms": _duration("client_heartbeat_ns"),
        "grace_ms": _duration("client_grace_ns"),
        "member_grace_ms": _duration("member_grace_ns"),
    },
    "durable": {
        "expire_after": Key(_span("never"), "never", "expire_after_ns"),
        "staged_keep": Key(_span("forever"), "1d", "staged_keep_ns"),
        "cache_bytes": _limit(Settings, "cache_bytes"),
        "logging_bytes": _limit(Settings, "logging_bytes"),
        "report_every_ms": _duration("report_every_ns"),
        "silence_every_ms": _duration("silence_every_ns"),
        "vouch_every_ms": Key(
            _whole(1, DAY_MS, " of milliseconds", MILLISECOND), VOUCH_EVERY_MS, "vouch_every_ns"
        ),
    },
    "lake": {"path": Key(Kind(_text), "lake")},
    "limits": {
        **{one.name: _limit(Settings, one.name) for one in fields(Settings) if one.name.endswith("_max")},
        **{one.name: _limit(Limits, one.name) for one in fields(Limits)},
    },
}

#: The tables that stand once for each broker and each stream.
BROKER: Final[dict[str, Key]] = {
    "name": Key(Kind(_name)),
    "parent": Key(Kind(_name), None),
    "listen": Key(Kind(_text)),
    "address": Key(Kind(_text), None),
    "admin": Key(Kind(_text), None),
    "reader": Key(Kind(_text), None),
    "data": Key(Kind(_text), None),
}
STREAM: Final[dict[str, Key]] = {
    "name": Key(Kind(_name)),
    "topics": Key(Kind(_topics, _json_or_text)),
    "guarantee": Key(_choice({one.value: one for one in Guarantee}, ("archived",)), Guarantee.DURABLE.value),
    "order": Key(_choice({one.value: one for one in Order}), Order.FIFO.value),
    "sequencer": Key(Kind(_name), None),
    "pubends": Key(_whole(1, PUBENDS_MAX), _default(Stream, "pubends")),
    "retain": Key(_span("forever"), "forever"),
    "retain_bytes": Key(_size("unlimited", RETAIN_BYTES_LEAST), RETAIN_BYTES),
    "expires": Key(Kind(_text), None),
    "attributes": Key(Kind(_declarations), ""),
    "lake": Key(Kind(_flag, _json_or_text), _default(Stream, "lake")),
}
#: Those that only a stream has that is logged.
OF_LOGS: Final = ("sequencer", "pubends", "retain", "retain_bytes", "expires", "attributes", "lake")


def defaults(keys: Mapping[str, Key]) -> dict[str, Any]:
    """What is meant where nothing is said, as the code uses it."""
    return {
        name: None if key.default is None else key.kind.check(key.default)
        for name, key in keys.items()
        if key.default is not REQUIRED
    }
