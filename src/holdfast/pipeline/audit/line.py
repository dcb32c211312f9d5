"""One line of a trace, of whatever kind: the table of contracts.md §5 as one wide row.

A field has the same type in every kind that has it, so a trace is also one flat table, which is how Parquet and Spark
see it. Fields the audit does not ask about are ignored: a trace may carry more.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Final, TypeAlias

import msgspec

__all__ = [
    "ASKING",
    "CONTROL",
    "FAULTS",
    "REQUIRED",
    "BadLine",
    "Line",
    "Partition",
    "Tag",
    "checked",
    "decode",
    "decoded_attributes",
    "in_words",
]


#: What fits a column.
Int: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class BadLine(Exception):
    """What is wrong with a line, in words."""


class Partition(msgspec.Struct, frozen=True, gc=False):
    """A fragment that a confirmation does not reach behind: the lead that found it, and the lead's number for it."""

    lead: str
    seq: int
    incarnation: int = 0
    fragment: tuple[str, ...] = ()

    @property
    def name(self) -> tuple[str, int, int]:
        """Which one it is."""
        return self.lead, self.incarnation, self.seq


class Tag(msgspec.Struct, frozen=True, gc=False):
    """On a delivery: it comes from behind a partition; with the bar, nothing is missing after it."""

    lead: str
    seq: int
    bar: bool
    incarnation: int = 0

    @property
    def name(self) -> tuple[str, int, int]:
        """Which partition it speaks of."""
        return self.lead, self.incarnation, self.seq


class Line(msgspec.Struct, kw_only=True, gc=False, rename={"source": "from"}):
    """A line; what its kind does not have is None."""

    kind: str
    t: float
    i: Int
    node: str
    run: str | int | None = None
    publisher: str | None = None
    n: Int | None = None
    topic: str | None = None
    attributes: dict[str, Any] | None = None
    pubend: str | None = None
    tick: Int | None = None
    subscriber: str | None = None
    subscription: str | None = None
    filter: str | None = None
    durable: bool | None = None
    partial: tuple[Partition, ...] | None = None
    cleared: tuple[Partition, ...] | None = None
    tags: tuple[Tag, ...] | None = None
    after: Int | None = None
    upto: Int | None = None
    reason: str | None = None
    source: str | None = None
    to: str | None = None
    nodes: tuple[str, ...] | None = None
    drained: bool | None = None
    guarantee: str | None = None
    order: str | None = None
    delta: Int | None = None
    routing: str | None = None
    tree: dict[str, str | None] | None = None


#: Asking for a subscription, in the order in which it happens.
ASKING: Final = ("subscribe", "subscribed", "unsubscribe", "unsubscribed")
#: What happens to processes and connections. Best-effort owes no delivery in a run that has any of these.
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
#: Lines that there are few of, and that decide what is owed.
CONTROL: Final = ("run", "end", "upgraded", "gap", *ASKING, *FAULTS)

_EVENT: Final = ("publisher", "n")
_SUBSCRIPTION: Final = ("subscriber", "subscription")
_ASKED: Final = (*_SUBSCRIPTION, "filter", "durable")
_RANGE: Final = (*_SUBSCRIPTION, "pubend", "after", "upto")

#: What the audit needs of a line, by its kind.
REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "run": ("guarantee", "order", "delta", "routing", "tree"),
    "publish": (*_EVENT, "topic", "attributes"),
    "accepted": (*_EVENT, "pubend", "tick"),
    "subscribe": _ASKED,
    "subscribed": (*_ASKED, "partial"),
    "unsubscribe": _ASKED,
    "unsubscribed": _ASKED,
    "upgraded": (*_SUBSCRIPTION, "cleared"),
    "deliver": (*_SUBSCRIPTION, *_EVENT, "topic", "pubend", "tick", "tags"),
    "silence": _RANGE,
    "gap": (*_RANGE, "reason"),
    "forward": ("source", "to", *_EVENT),
    **dict.fromkeys(FAULTS, ("nodes",)),
    "status": (),
    "end": ("drained",),
}

_GUARANTEES: Final = ("best-effort", "reliable", "durable", "archived")
_ORDERS: Final = ("NO", "FIFO", "TOTAL")

_decoder: Final = msgspec.json.Decoder(Line)


def decode(text: bytes) -> Line:
    """A line of JSON.

    :raises BadLine: if it is none, or is not complete.
    """
    try:
        line = _decoder.decode(text)
    except msgspec.ValidationError as error:
        raise BadLine(in_words(str(error))) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadLine(f"not JSON: {error}") from None
    return checked(line)


def checked(line: Line) -> Line:
    """The line, with real bytes among its attributes.

    :raises BadLine: if something of its kind is missing, or is nothing the audit knows.
    """
    required = REQUIRED.get(line.kind)
    if required is None:
        raise BadLine(f"kind is {line.kind!r}; expected one of {', '.join(REQUIRED)}")
    for name in required:
        if getattr(line, name) is None:
            shown = "from" if name == "source" else name
            raise BadLine(f"{line.kind} has no {shown}")
    if line.attributes is not None:
        line.attributes = decoded_attributes(line.attributes)
    if line.kind == "run":
        _check_word("guarantee", line.guarantee, _GUARANTEES)
        _check_word("order", line.order, _ORDERS)
    return line


def in_words(error: str) -> str:
    """Without the words of whoever wrote the decoder."""
    for theirs, ours in (
        ("Object missing required field", "the line has no field"),
        (" | null", ""),
        ("$.", ""),
    ):
        error = error.replace(theirs, ours)
    return error


def _check_word(name: str, word: str | None, words: tuple[str, ...]) -> None:
    if word not in words:
        raise BadLine(f"{name} of run is {word!r}; expected one of {', '.join(words)}")


def decoded_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes with real bytes.

    :raises BadLine: if one is nested.
    """
    return {name: _value(name, value) for name, value in attributes.items()}


def _value(name: str, value: object) -> object:
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error:
            pass
    raise BadLine(f"the attribute {name!r} is nested; expected a boolean, a number, text or base64")
