"""Who is alike among the records of a batch: they are divided until those that are left together are of one kind.

Events of a stream mostly come in a few kinds. What is left over is packed in a way of its own, or is of a kind with few
events, or there are too many kinds: it has to be looked at event by event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from holdfast.pipeline.alike import Alike, Engine
from holdfast.pipeline.alike_pure import PureRecords
from holdfast.storage.records import Records

__all__ = ["divided", "engines", "new_engine"]

KINDS_MAX: Final = 16  #: in a batch
EVENTS_MIN: Final = 32  #: of one kind, to be worth the calls; alone in a batch any number is
#: To read a part of a batch: with a kind for each event there is no end of dividing.
TRIES_MAX: Final = 2 * KINDS_MAX

_NewEngine = Callable[[Sequence[Records]], Engine]


def engines() -> dict[str, _NewEngine]:
    """The engines there are, by name: always ``pure``, and ``compiled`` if it was built."""
    found: dict[str, _NewEngine] = {"pure": PureRecords}
    try:
        module = import_module("holdfast.pipeline.alike_compiled")
    except ImportError:
        return found
    found["compiled"] = module.CompiledRecords
    return found


#: The fastest there is, for records in these pieces of memory.
new_engine: _NewEngine = next(reversed(engines().values()))


def divided(records: Engine) -> tuple[list[Alike], list[int]]:
    """Those records that could be read together, and the numbers of all others, ascending."""
    waiting: list[Any] = [np.arange(len(records))]
    found: list[Alike] = []
    left: list[Any] = []
    tries = 0
    while waiting:
        which = waiting.pop()
        is_few = len(which) < EVENTS_MIN and len(which) < len(records)
        if is_few or len(found) == KINDS_MAX or tries == TRIES_MAX:
            left.append(which)
            continue
        tries += 1
        alike, others, odd = records.read(which)
        waiting += others
        left.append(odd)
        if alike is not None:
            found.append(alike)
    return found, sorted(np.concatenate(left).tolist())
