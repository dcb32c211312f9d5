"""What stands on a line of a trace, by its kind: the table of contracts.md §5, in its order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Final, NamedTuple

from holdfast.events.value import INT_MAX, INT_MIN, value_problem

__all__ = ["COMMON", "FAULTS", "FIELDS", "Form"]


class Form(NamedTuple):
    """What a field must be: a test, and in words."""

    fits: Callable[[object], bool]
    expected: str


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and INT_MIN <= value <= INT_MAX


def _is_position(value: object) -> bool:
    return isinstance(value, int) and _is_int(value) and value >= 1


def _is_seconds(value: object) -> bool:
    return isfinite(value) if isinstance(value, float) else _is_int(value)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_tree(value: object) -> bool:
    return isinstance(value, dict) and all(
        above is None or isinstance(above, str) for above in value.values()
    )


def _is_attributes(value: object) -> bool:
    return isinstance(value, dict) and all(value_problem(one) is None for one in value.values())


_TEXT: Final = Form(lambda value: isinstance(value, str), "text")
_INT: Final = Form(_is_int, "a whole number")
_FLAG: Final = Form(lambda value: isinstance(value, bool), "true or false")
_NAMES: Final = Form(_is_names, "a list of names")
_TREE: Final = Form(_is_tree, "an object: every process with the one above it, or null")
_ATTRIBUTES: Final = Form(_is_attributes, "an object of attributes")
_LIST: Final = Form(lambda value: isinstance(value, list), "a list")
_ANY: Final = Form(lambda value: True, "anything")
_SECONDS: Final = Form(_is_seconds, "seconds")
_POSITION: Final = Form(_is_position, "a whole number from 1")

_SUBSCRIPTION: Final = {"subscriber": _TEXT, "subscription": _TEXT}
_ASKED: Final = {**_SUBSCRIPTION, "filter": _TEXT, "durable": _FLAG}
_RANGE: Final = {**_SUBSCRIPTION, "pubend": _TEXT, "after": _INT, "upto": _INT}
_EVENT: Final = {"publisher": _TEXT, "n": _INT}

#: What happens to processes and connections. Best-effort promises less in a run that has any of these.
FAULTS: Final = (
    "crash",
    "restart",
    "freeze",
    "unfreeze",
    "cut",
    "heal",
    "disconnect",
    "reconnect",
    "bypass",
    "recovered",
    "failover",
    "join",
    "leave",
)

#: On every line, before the fields of its kind.
COMMON: Final[Mapping[str, Form]] = {"t": _SECONDS, "i": _POSITION, "node": _TEXT, "kind": _TEXT}

FIELDS: Final[Mapping[str, Mapping[str, Form]]] = {
    "run": {
        "guarantee": _TEXT,
        "order": _TEXT,
        "delta": _INT,
        "routing": _TEXT,
        "seed": _INT,
        "world": _TEXT,
        "tree": _TREE,
    },
    "publish": {**_EVENT, "topic": _TEXT, "attributes": _ATTRIBUTES},
    "accepted": {**_EVENT, "pubend": _TEXT, "tick": _INT},
    "subscribe": _ASKED,
    "subscribed": {**_ASKED, "partial": _LIST},
    "unsubscribe": _ASKED,
    "unsubscribed": _ASKED,
    "upgraded": {**_SUBSCRIPTION, "cleared": _LIST, "partial": _LIST},
    "deliver": {**_SUBSCRIPTION, **_EVENT, "topic": _TEXT, "pubend": _TEXT, "tick": _INT, "tags": _LIST},
    "silence": _RANGE,
    "gap": {**_RANGE, "reason": _TEXT},
    "forward": {"from": _TEXT, "to": _TEXT, **_EVENT, "again": _FLAG},
    **{kind: {"nodes": _NAMES} for kind in FAULTS},
    "status": {"tables": _ANY, "queues": _ANY, "connections": _ANY},
    "end": {"drained": _FLAG},
}
