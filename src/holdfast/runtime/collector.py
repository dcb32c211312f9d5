"""Python's garbage collector, kept from stopping a broker at the wrong time, and for long.

By itself it comes when so many objects were made, in the midst of whatever makes them: that is an event on its way, of
which others wait for the answer. So it is asked to come between turns, when nothing waits (``rest``), and by itself it
only comes if that does not happen for long. At 800 events a second it came 25 times a second, for a tenth of a
millisecond, and twice for more than one.

A full collection looks at every object there is: measured, 8 ms for what a broker imports, and half a second with
100,000 subscriptions, which is as long as its neighbours wait before they give it up. So whatever survives a full
collection that took long is *frozen*: no later one looks at it again.

The price: of what is frozen, cycles are never freed when they die. Almost everything here dies by its reference
count; what does not is some two kilobytes of asyncio per connection, and the patterns of XPath filters. Freezing only
happens when very much has survived, and an object is frozen once, so that stays small.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any, Final, Self

from holdfast.clock import MILLISECOND, SECOND, Instant
from holdfast.runtime import clock

__all__ = ["PAUSE_MAX_NS", "Collector"]

#: A full collection that takes longer is the last for what survived it; a tenth of the time between heartbeats.
PAUSE_MAX_NS: Final = 10 * MILLISECOND

YOUNG_OBJECTS: Final = 1_000  #: so many more than before are worth a look between turns
YOUNG_OBJECTS_MAX: Final = 20_000  #: and so many are looked at whenever it is
OLDER_AFTER: Final = 10  #: collections of a generation come between two of the next, as Python has it
FULL_EVERY_NS: Final = 30 * SECOND  #: a full collection does not come sooner than so long after the last


class Collector:
    """From ``start``, which freezes what there is, to ``stop``, which leaves the collector as it was."""

    def __init__(self, pause_max_ns: int = PAUSE_MAX_NS) -> None:
        self._pause_max_ns = pause_max_ns
        self._thresholds = gc.get_threshold()
        self._began: Instant = 0
        self._full_at: Instant = 0

    def start(self) -> Self:
        """From now on it comes between turns, and freezes what a long collection has passed over."""
        gc.freeze()
        gc.callbacks.append(self._on_collection)
        gc.set_threshold(YOUNG_OBJECTS_MAX, OLDER_AFTER, OLDER_AFTER)
        self._full_at = clock.now()
        return self

    def stop(self) -> None:
        """The way back."""
        gc.set_threshold(*self._thresholds)
        gc.callbacks.remove(self._on_collection)
        gc.unfreeze()

    def rest(self) -> None:
        """Nothing waits: collect what is worth it."""
        young, middle, old = gc.get_count()
        if young < YOUNG_OBJECTS:
            return
        if middle <= OLDER_AFTER:
            gc.collect(0)
        elif old <= OLDER_AFTER or clock.now() - self._full_at < FULL_EVERY_NS:
            gc.collect(1)
        else:
            gc.collect(2)

    def _on_collection(self, phase: str, info: Mapping[str, Any]) -> None:
        if info["generation"] < 2:
            return
        now = clock.now()
        if phase == "start":
            self._began = now
            return
        self._full_at = now
        if now - self._began > self._pause_max_ns:
            gc.freeze()
