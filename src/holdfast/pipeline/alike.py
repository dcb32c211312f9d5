"""Records of a log by columns, read straight from their bytes: no object is made of an event.

Events of a stream mostly come in a few kinds, each with the same names in the same order, and the same types. Those of
one kind are ``Alike``, and are read together (``cursors``). What is left over is packed in a way of its own, or is of a
kind with few events, or there are too many kinds: it has to be looked at event by event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.pipeline.cursors import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    NIL,
    ODD,
    TEXT,
    Cursors,
    Messages,
    Spans,
    Unlike,
)

__all__ = ["ARROW", "Alike", "divided"]

KINDS_MAX: Final = 16  #: in a batch
EVENTS_MIN: Final = 32  #: of one kind, to be worth the calls; alone in a batch any number is
TRIES_MAX: Final = (
    2 * KINDS_MAX
)  #: to read a part of a batch: with a kind for each event there is no end of dividing

ARROW: Final[dict[type, Any]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
}

#: What arrays begin with: the record (publisher, number, event), and the event (``events.packed``).
_RECORD, _EVENT = b"\x93", b"\x96"


class Alike(NamedTuple):
    """Events with the same names and types."""

    which: Any  #: where they stand among all
    publishers: Any  #: this and what follows are arrays of Arrow, but for the spans
    numbers: Any
    topics: Any
    kinds: dict[str, type]  #: of the attributes, in their order
    attributes: dict[str, Any]
    content_types: Any
    payloads: Spans
    times: Any | None  #: of numpy, in nanoseconds; None if they have none


def divided(messages: Messages) -> tuple[list[Alike], list[int]]:
    """Those records that could be read together, and the numbers of all others, ascending."""
    waiting = [np.arange(len(messages))]
    found: list[Alike] = []
    left: list[Any] = []
    tries = 0
    while waiting:
        which = waiting.pop()
        is_few = len(which) < EVENTS_MIN and len(which) < len(messages)
        if is_few or len(found) == KINDS_MAX or tries == TRIES_MAX:
            left.append(which)
            continue
        tries += 1
        try:
            found.append(_read(messages, which))
        except Unlike as unlike:
            kinds = np.unique(unlike.kinds)
            for kind in kinds:
                is_hopeless = kind == ODD or len(kinds) == 1
                (left if is_hopeless else waiting).append(which[unlike.kinds == kind])
        except (UnicodeDecodeError, pa.ArrowInvalid):  # no UTF-8
            left.append(which)
    return found, sorted(np.concatenate(left).tolist()) if left else []


def _read(messages: Messages, which: Any) -> Alike:
    """All of them.

    :raises Unlike: if they have to be divided.
    :raises UnicodeDecodeError, ArrowInvalid: if a text is none.
    """
    cursors = Cursors(messages, which)
    cursors.skip(_RECORD)
    publishers = _texts(cursors)
    numbers = pa.array(cursors.integers())
    cursors.enter(cursors.binaries())
    cursors.skip(_EVENT)
    topics = _texts(cursors)
    kinds: dict[str, type] = {}
    attributes: dict[str, Any] = {}
    for _ in range(cursors.size()):
        name = _new_name(cursors, kinds)
        kind = cursors.peek()
        if kind not in _SCALARS:
            cursors.refuse()
        kinds[name], column = _SCALARS[kind]
        attributes[name] = column(cursors)
    for _ in range(cursors.size()):
        name = _new_name(cursors, kinds)
        kinds[name], attributes[name] = bytes, cursors.binaries().array()
    content_types = _texts(cursors)
    payloads = cursors.binaries()
    times = None
    if cursors.peek() == NIL:
        cursors.nils()
    else:
        times = cursors.integers()
    cursors.finish()
    return Alike(which, publishers, numbers, topics, kinds, attributes, content_types, payloads, times)


def _new_name(cursors: Cursors, names: dict[str, type]) -> str:
    """The next name, if it did not come before: then the last value counts, or the bytes do."""
    name = cursors.name()
    if name in names:
        cursors.refuse()
    return name


def _texts(cursors: Cursors) -> Any:
    return cursors.texts().array().cast(pa.string())


_SCALARS: Final[dict[int, tuple[type, Callable[[Cursors], Any]]]] = {
    BOOLEAN: (bool, lambda cursors: pa.array(cursors.booleans())),
    INTEGER: (int, lambda cursors: pa.array(cursors.integers())),
    FLOAT: (float, lambda cursors: pa.array(cursors.floats())),
    TEXT: (str, _texts),
}
