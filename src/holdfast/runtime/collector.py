"""Python's garbage collector, kept from stopping a broker for long.

A full collection looks at every object there is: measured, 8 ms for what a broker imports, and half a second with
100,000 subscriptions, which is as long as its neighbours wait before they give it up. So whatever survives a full
collection that took long is *frozen*: no later one looks at it again.

The price: of what is frozen, cycles are never freed when they die. Almost everything here dies by its reference
count; what does not is some two kilobytes of asyncio per connection, and the patterns of XPath filters. Freezing only
happens when very much has survived, and an object is frozen once, so that stays small.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.clock import MILLISECOND, Instant
from holdfast.runtime import clock

__all__ = ["PAUSE_MAX_NS", "freeze_after_long_pauses"]

#: A full collection that takes longer is the last for what survived it; a tenth of the time between heartbeats.
PAUSE_MAX_NS: Final = 10 * MILLISECOND


def freeze_after_long_pauses(pause_max_ns: int = PAUSE_MAX_NS) -> Callable[[], None]:
    """Freeze what there is now, and from now on whatever a long collection has passed over; returns the way back."""
    began: Instant = 0

    def on_collection(phase: str, info: Mapping[str, Any]) -> None:
        nonlocal began
        if info["generation"] < 2:
            return
        if phase == "start":
            began = clock.now()
        elif clock.now() - began > pause_max_ns:
            gc.freeze()

    def undo() -> None:
        gc.callbacks.remove(on_collection)
        gc.unfreeze()

    gc.freeze()
    gc.callbacks.append(on_collection)
    return undo
