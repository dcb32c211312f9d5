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
    from holdfast.client.checkpoints import PostgresCheckpoint, SqliteCheckpoint
    from holdfast.client.errors import (
        BadEvent,
        Closed,
        GapFound,
        InvalidOption,
        InvalidUrl,
        NetworksFault,
        NotCovered,
        OtherFilter,
        Refused,
        TakenOver,
        TimedOut,
        TokenAhead,
        Unknown,
        Unreachable,
    )
    from holdfast.client.item import Gap, Item, LoggedEvent, Silence, TaggedEvent
    from holdfast.client.outbox_table import PostgresOutbox, SqliteOutbox
    from holdfast.embedded import network as memory
    from holdfast.errors import CallersFault, FilterError, HoldfastError, InvalidEvent, PeersFault
    from holdfast.events.event import Event
    from holdfast.filters.parse import parse_filter
    from holdfast.identity import EventId
    from holdfast.pipeline.history import history
    from holdfast.streams.checkpoint_token import InvalidToken, Token

__version__ = "0.1.0"

__all__ = [
    "BadEvent",
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
    "InvalidToken",
    "InvalidUrl",
    "Item",
    "LoggedEvent",
    "Network",
    "NetworksFault",
    "NotCovered",
    "OtherFilter",
    "PeersFault",
    "PostgresCheckpoint",
    "PostgresOutbox",
    "Publisher",
    "Receipt",
    "Refused",
    "Sent",
    "Silence",
    "SqliteCheckpoint",
    "SqliteOutbox",
    "State",
    "Subscription",
    "TaggedEvent",
    "TakenOver",
    "TimedOut",
    "Token",
    "TokenAhead",
    "Unknown",
    "Unreachable",
    "connect",
    "history",
    "memory",
    "parse_filter",
    "sync",
]

_MODULES = {"memory": "holdfast.embedded.network", "sync": "holdfast.client.sync"}
_HOMES = {
    "holdfast.client.aio": ("Network", "Publisher", "Receipt", "Sent", "State", "Subscription", "connect"),
    "holdfast.client.errors": (
        "BadEvent",
        "Closed",
        "GapFound",
        "InvalidOption",
        "InvalidUrl",
        "NetworksFault",
        "NotCovered",
        "OtherFilter",
        "Refused",
        "TakenOver",
        "TimedOut",
        "TokenAhead",
        "Unknown",
        "Unreachable",
    ),
    "holdfast.client.checkpoints": ("PostgresCheckpoint", "SqliteCheckpoint"),
    "holdfast.client.item": ("Gap", "Item", "LoggedEvent", "Silence", "TaggedEvent"),
    "holdfast.client.outbox_table": ("PostgresOutbox", "SqliteOutbox"),
    "holdfast.errors": ("CallersFault", "FilterError", "HoldfastError", "InvalidEvent", "PeersFault"),
    "holdfast.events.event": ("Event",),
    "holdfast.filters.parse": ("parse_filter",),
    "holdfast.identity": ("EventId",),
    "holdfast.pipeline.history": ("history",),
    "holdfast.streams.checkpoint_token": ("InvalidToken", "Token"),
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
