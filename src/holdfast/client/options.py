"""How to subscribe: the options of ``subscribe``, checked at once, and as the core wants them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from sys import float_info
from typing import Final, Literal

from holdfast.client.errors import InvalidOption
from holdfast.errors import InvalidEvent
from holdfast.events.event import make_event
from holdfast.messages.subscriptions import Partition
from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.streams.checkpoint_token import Token

__all__ = [
    "BUFFER_MAX",
    "Acknowledging",
    "OnGap",
    "OnUpgrade",
    "Options",
    "Start",
    "check_name",
    "check_timeout",
]

BUFFER_MAX: Final = 1_000_000

OnGap = Literal["item", "raise"]
Acknowledging = Literal["manual", "auto"]

#: Where to begin in the streams that are logged.
Start = Literal["now", "earliest"] | datetime | Token

#: Called when partitions are over: with those, and those that are left.
OnUpgrade = Callable[[tuple[Partition, ...], tuple[Partition, ...]], None]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Options:
    """What a subscription is to be like.

    :raises InvalidOption: when made, naming the first that can never work.
    """

    buffer: int = 1000
    on_gap: OnGap = "item"
    silence: bool = False
    durable: str | None = None
    start: Start = "now"
    acknowledge: Acknowledging = "manual"
    whole: bool = False
    on_upgrade: OnUpgrade | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.on_gap not in ("item", "raise"):
            raise InvalidOption("on_gap", f"is {self.on_gap!r}; expected 'item' or 'raise'")
        if not isinstance(self.buffer, int) or not 1 <= self.buffer <= BUFFER_MAX:
            raise InvalidOption(
                "buffer", f"is {self.buffer!r}; expected a number of items from 1 to {BUFFER_MAX}"
            )
        if self.durable is not None:
            check_name("durable", self.durable)
        if self.acknowledge not in ("manual", "auto"):
            raise InvalidOption("acknowledge", f"is {self.acknowledge!r}; expected 'manual' or 'auto'")
        if self.acknowledge == "auto" and self.durable is None:
            raise InvalidOption("acknowledge", "'auto' is for durable subscriptions; give it a name")
        _ = self.start_tick  # which refuses what is no start
        if self.on_upgrade is not None and not callable(self.on_upgrade):
            raise InvalidOption("on_upgrade", f"is {self.on_upgrade!r}; expected something to call")
        check_timeout(self.timeout)

    @property
    def start_tick(self) -> Tick | None:
        """Behind which tick to begin, where no token says so; None: now. A tick is a microsecond."""
        match self.start:
            case "now" | Token():
                return None
            case "earliest":
                return ORIGIN
            case datetime(tzinfo=None):
                raise InvalidOption("start", f"is {self.start}, without a time zone")
            case datetime():
                return max(ORIGIN, (self.start - _EPOCH) // timedelta(microseconds=1) - 1)
            case _:
                raise InvalidOption(
                    "start", f"is {self.start!r}; expected 'now', 'earliest', a datetime or a Token"
                )

    @property
    def token(self) -> Token | None:
        """From which places to go on."""
        return self.start if isinstance(self.start, Token) else None


def check_name(option: str, name: str) -> None:
    """See that something can be known by a name.

    :raises InvalidOption: saying why not.
    """
    try:
        made = make_event("name", publisher=name)
    except InvalidEvent as error:
        raise InvalidOption(option, error.problem) from None
    if not made.publisher:
        raise InvalidOption(option, "is empty")


def check_timeout(timeout: object) -> None:
    """See that something can be waited for so long.

    :raises InvalidOption: if that is no time.
    """
    if timeout is None:
        return
    if not isinstance(timeout, int | float) or not (abs(timeout) <= float_info.max or abs(timeout) == inf):
        raise InvalidOption("timeout", f"is {timeout!r}; expected seconds, or None to wait for ever")
