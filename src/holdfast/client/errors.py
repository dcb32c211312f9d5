"""What the client raises, beside ``FilterError`` and ``InvalidEvent``; each says what is certain.

::

    HoldfastError
    ├── CallersFault
    │   ├── InvalidUrl         no address of a network
    │   ├── InvalidOption      an argument that can never work
    │   └── Closed             the network, publisher or subscription was closed here
    └── NetworksFault
        ├── NotCovered         parts of the network cannot be reached, and all of it was wanted
        ├── Refused            certainly not accepted, and never will be
        │   ├── BadEvent       an event that is at fault itself: too large, of no stream, under a number that has passed
        │   └── OtherFilter    a durable subscription of this name is there, with another filter
        ├── Unknown            an event that may or may not be accepted; publish it again with the same number
        ├── TokenAhead         a token of what the network has never seen, or has lost
        ├── TakenOver          another client came under the same name, or reads the durable subscription
        ├── Unreachable        no broker to be had
        ├── TimedOut           what was waited for did not come in time
        └── GapFound           something is missing here, for those who asked to be told so by an exception
"""

from __future__ import annotations

from holdfast.client.item import Gap
from holdfast.errors import CallersFault, EnvironmentsFault
from holdfast.identity import EventId
from holdfast.messages.subscriptions import Partition

__all__ = [
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
]


class InvalidUrl(CallersFault):
    """Not the address of a network."""

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(f"{url!r}: {problem}; expected holdfast://HOST:PORT or memory://NAME")
        self.url = url
        self.problem = problem


class InvalidOption(CallersFault, ValueError):
    """An argument of a call that can never work."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"{option}: {problem}")
        self.option = option
        self.problem = problem


class Closed(CallersFault):
    """The network, publisher or subscription was closed, by the caller's own doing."""


class NetworksFault(EnvironmentsFault):
    """The network did not do what was asked."""


class Refused(NetworksFault):
    """Certainly not accepted, whether an event (then it has an ``id``), a subscription or the client itself."""

    def __init__(self, reason: str, *, event: EventId | None = None) -> None:
        super().__init__(f"{event}: {reason}" if event else reason)
        self.reason = reason
        self.id = event


class BadEvent(Refused):
    """The event itself is at fault, and would be refused again; in any other refusal the network is."""


class OtherFilter(Refused):
    """There is a durable subscription of this name, and it has another filter; end it first, or take another name."""


class TokenAhead(NetworksFault):
    """A token names places that the network has not come to: it is another network's, or a log was restored."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unknown(NetworksFault):
    """The event may or may not be accepted. Publishing it again with ``n=error.id.n`` makes it certain."""

    def __init__(self, event: EventId, reason: str) -> None:
        super().__init__(f"{event}: not known whether it was accepted: {reason}; retry with n={event.n}")
        self.id = event
        self.reason = reason


class NotCovered(NetworksFault):
    """The subscription was confirmed without what lies behind these partitions, and all was wanted."""

    def __init__(self, filter: str, partitions: tuple[Partition, ...]) -> None:
        lost = ", ".join(f"{'-'.join(each.fragment)} (from {each.lead})" for each in partitions)
        super().__init__(f"{filter!r}: not reached: {lost}")
        self.partitions = partitions


class TakenOver(NetworksFault):
    """Another client connected under the same name, and this one is over; or it reads the durable subscription.

    Then only that is over here, and ``durable`` is its name. Or it is a checkpoint that another program has loaded.
    """

    def __init__(self, name: str, *, durable: str | None = None, reason: str = "") -> None:
        if durable is not None:
            text = f"the durable subscription {durable!r}: {reason}"
        else:
            text = f"{name!r}: {reason}" if reason else f"another client connected as {name!r}"
        super().__init__(text)
        self.name = name
        self.durable = durable


class Unreachable(NetworksFault, ConnectionError):
    """No broker to be had at this address."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason


class TimedOut(NetworksFault, TimeoutError):
    """What was waited for did not come in time; nothing is lost by asking again."""


class GapFound(NetworksFault):
    """Something may have matched here and is gone; the subscription goes on after it."""

    def __init__(self, gap: Gap) -> None:
        super().__init__(f"({gap.after}..{gap.upto}] of {gap.pubend}: {gap.reason}")
        self.gap = gap
