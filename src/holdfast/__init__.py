"""Holdfast: publish/subscribe for events that must not be lost, repeated or reordered.

    import holdfast

    async with holdfast.connect("holdfast://localhost:7000", name="trader-7") as network:
        await network.publish("orders/eu", {"price": 101.5}, b"...")

``holdfast.sync`` is the same without async, ``holdfast.memory`` a network inside the process, for tests. What stands
here is loaded when it is first used: importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = (
    False  # the name is all that type checkers look at; importing typing would take most of our time
)
if TYPE_CHECKING:
    from holdfast.client import sync
    from holdfast.client.aio import Network, Publisher, Receipt, Sent, State, Subscription, connect
    from holdfast.client.errors import (
        Closed,
        GapFound,
        InvalidOption,
        InvalidUrl,
        NetworksFault,
        NotAvailable,
        NotCovered,
        Refused,
        TakenOver,
        TimedOut,
        Unknown,
        Unreachable,
    )
    from holdfast.client.item import Gap, Silence, TaggedEvent
    from holdfast.embedded import network as memory
    from holdfast.errors import CallersFault, FilterError, HoldfastError, InvalidEvent, PeersFault
    from holdfast.events.event import Event
    from holdfast.filters.parse import parse_filter
    from holdfast.identity import EventId

__version__ = "0.1.0"

__all__ = [
    "CallersFault",
    "Closed",
    "Event",
    "EventId",
    "FilterError",
    "Gap",
    "GapFound",
    "HoldfastError",
    "InvalidEvent",
    "InvalidOption",
    "InvalidUrl",
    "Network",
    "NetworksFault",
    "NotAvailable",
    "NotCovered",
    "PeersFault",
    "Publisher",
    "Receipt",
    "Refused",
    "Sent",
    "Silence",
    "State",
    "Subscription",
    "TaggedEvent",
    "TakenOver",
    "TimedOut",
    "Unknown",
    "Unreachable",
    "connect",
    "memory",
    "parse_filter",
    "sync",
]

_MODULES = {"memory": "holdfast.embedded.network", "sync": "holdfast.client.sync"}
_HOMES = {
    "holdfast.client.aio": ("Network", "Publisher", "Receipt", "Sent", "State", "Subscription", "connect"),
    "holdfast.client.errors": (
        "Closed",
        "GapFound",
        "InvalidOption",
        "InvalidUrl",
        "NetworksFault",
        "NotAvailable",
        "NotCovered",
        "Refused",
        "TakenOver",
        "TimedOut",
        "Unknown",
        "Unreachable",
    ),
    "holdfast.client.item": ("Gap", "Silence", "TaggedEvent"),
    "holdfast.errors": ("CallersFault", "FilterError", "HoldfastError", "InvalidEvent", "PeersFault"),
    "holdfast.events.event": ("Event",),
    "holdfast.filters.parse": ("parse_filter",),
    "holdfast.identity": ("EventId",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
