"""What a script can say: one frozen dataclass per command, and ``str()`` gives the line that reads back as it.

``line`` is the line of the file: it is in every error, and it seeds what a Publish draws. Times are nanoseconds.
Names of places (``a``, ``b``) are those of sites or processes; a site stands for its broker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.filters.expression import Filter
from holdfast.scenarios.distributions import Distribution, attribute_text
from holdfast.scenarios.language import milliseconds_text, word_text
from holdfast.scenarios.topology import Link, Process

__all__ = [
    "At",
    "ClockShift",
    "Command",
    "Crash",
    "Cut",
    "Disconnect",
    "Drain",
    "Expel",
    "Freeze",
    "Heal",
    "Isolate",
    "Join",
    "Leave",
    "Publish",
    "Reconnect",
    "Restart",
    "SetLink",
    "Slow",
    "Status",
    "Subscribe",
    "Timed",
    "Unfreeze",
    "Unsubscribe",
    "Wait",
    "names_in",
    "numbered_subscription",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    line: int = 0


# Clients


def numbered_subscription(subscriber: str, k: int) -> str:
    """What the trace calls the k-th subscription of a subscriber when the script gives it no name."""
    return f"{subscriber}#{k}"


@dataclass(frozen=True, slots=True)
class Subscribe(_Written):
    """Subscribe, and wait for the confirmation."""

    subscriber: str
    text: str  #: the filter as given
    filter: Filter
    subscription: str = ""  #: the As name, or ``numbered_subscription``; empty until that is settled
    durable: bool = False

    def __str__(self) -> str:
        has_name = self.subscription and "#" not in self.subscription
        named = f" As {self.subscription}" if has_name else ""
        durable = " Durable" if self.durable else ""
        return f"Subscriber {self.subscriber} Subscribe {word_text(self.text)}{named}{durable}"


@dataclass(frozen=True, slots=True)
class Unsubscribe(_Written):
    """Give a subscription up, and wait for the confirmation."""

    subscriber: str
    target: str  #: its name or its filter, as given
    subscription: str = ""  #: which one that is; empty until that is settled

    def __str__(self) -> str:
        return f"Subscriber {self.subscriber} Unsubscribe {word_text(self.target)}"


@dataclass(frozen=True, slots=True)
class Disconnect(_Written):
    """Close the subscriber's connection, and do not open it again by itself."""

    subscriber: str

    def __str__(self) -> str:
        return f"Subscriber {self.subscriber} Disconnect"


@dataclass(frozen=True, slots=True)
class Reconnect(_Written):
    """Connect again, to the old site or another, and wait until that is done."""

    subscriber: str
    site: str | None = None

    def __str__(self) -> str:
        return f"Subscriber {self.subscriber} Reconnect{'' if self.site is None else f' On {self.site}'}"


@dataclass(frozen=True, slots=True)
class Slow(_Written):
    """From now on the subscriber's application takes so long for each event; 0: no time at all."""

    subscriber: str
    per_event_ns: int

    def __str__(self) -> str:
        return f"Slow {self.subscriber} {milliseconds_text(self.per_event_ns)}"


@dataclass(frozen=True, slots=True)
class Publish(_Written):
    """Publish so many events, one per interval, in the background. ``workload`` draws what is in them."""

    publisher: str
    count: int
    topic: str  #: as given
    interval_ns: int
    attributes: tuple[tuple[str, Distribution], ...] = ()
    payload: int | Literal["xml"] | None = None  #: so many bytes, or a document

    def __str__(self) -> str:
        drawn = "".join(f" {attribute_text(name, given)}" for name, given in self.attributes)
        return (
            f"Publisher {self.publisher} Publish {self.count} Ontopic {word_text(self.topic)}"
            f" Interval {milliseconds_text(self.interval_ns)}"
            + (f" With{drawn}" if drawn else "")
            + ("" if self.payload is None else f" Payload {self.payload}")
        )


# The course of the script


@dataclass(frozen=True, slots=True)
class Wait(_Written):
    """Let time pass."""

    duration_ns: int

    def __str__(self) -> str:
        return f"Wait {milliseconds_text(self.duration_ns)}"


@dataclass(frozen=True, slots=True)
class Status(_Written):
    """Every process says how it is."""

    def __str__(self) -> str:
        return "Status"


@dataclass(frozen=True, slots=True)
class Drain(_Written):
    """Wait until everything published has arrived, this long at most."""

    limit_ns: int

    def __str__(self) -> str:
        return f"Drain {milliseconds_text(self.limit_ns)}"


@dataclass(frozen=True, slots=True)
class At(_Written):
    """Run a command at this time after the start of the script, and wait for nothing."""

    at_ns: int
    command: Timed

    def __str__(self) -> str:
        return f"At {milliseconds_text(self.at_ns)} {self.command}"


# Processes


@dataclass(frozen=True, slots=True)
class Crash(_Written):
    """Kill a process; all its memory is lost."""

    process: str

    def __str__(self) -> str:
        return f"Crash {self.process}"


@dataclass(frozen=True, slots=True)
class Restart(_Written):
    """Start a crashed process again, and wait until it is connected."""

    process: str

    def __str__(self) -> str:
        return f"Restart {self.process}"


@dataclass(frozen=True, slots=True)
class Freeze(_Written):
    """Stop a process without its knowing; its connections stay open."""

    process: str

    def __str__(self) -> str:
        return f"Freeze {self.process}"


@dataclass(frozen=True, slots=True)
class Unfreeze(_Written):
    """Let a frozen process go on."""

    process: str

    def __str__(self) -> str:
        return f"Unfreeze {self.process}"


@dataclass(frozen=True, slots=True)
class Join(_Written):
    """Add a process to the network, and wait until it is connected."""

    process: Process

    def __str__(self) -> str:
        return f"Join {self.process}"


@dataclass(frozen=True, slots=True)
class Leave(_Written):
    """Take a process out of the network in an orderly way."""

    process: str

    def __str__(self) -> str:
        return f"Leave {self.process}"


@dataclass(frozen=True, slots=True)
class Expel(_Written):
    """Take a process out of the network that will not come back."""

    process: str

    def __str__(self) -> str:
        return f"Expel {self.process}"


# Links


@dataclass(frozen=True, slots=True)
class Cut(_Written):
    """Break the connection between two, and keep it broken."""

    a: str
    b: str

    def __str__(self) -> str:
        return f"Cut {self.a} {self.b}"


@dataclass(frozen=True, slots=True)
class Isolate(_Written):
    """Break all connections of one, and keep them broken."""

    a: str

    def __str__(self) -> str:
        return f"Isolate {self.a}"


@dataclass(frozen=True, slots=True)
class Heal(_Written):
    """Undo what Cut and Isolate did between two, or, without ``b``, to one."""

    a: str
    b: str | None = None

    def __str__(self) -> str:
        return f"Heal {self.a}{'' if self.b is None else f' {self.b}'}"


@dataclass(frozen=True, slots=True)
class SetLink(_Written):
    """Change the quality of a link; in the simulator."""

    link: Link

    def __str__(self) -> str:
        return str(self.link)


@dataclass(frozen=True, slots=True)
class ClockShift(_Written):
    """Set the clock of a process forward, or back; in the simulator."""

    process: str
    shift_ns: int

    def __str__(self) -> str:
        return f"Clock {self.process} Shift {milliseconds_text(self.shift_ns)}"


_Clients: TypeAlias = Subscribe | Unsubscribe | Disconnect | Reconnect | Slow | Publish
_Processes: TypeAlias = Crash | Restart | Freeze | Unfreeze | Join | Leave | Expel
_Links: TypeAlias = Cut | Isolate | Heal | SetLink | ClockShift
#: What may stand behind ``At``: whatever does not wait.
Timed: TypeAlias = _Clients | _Processes | _Links | Status
Command: TypeAlias = Timed | Wait | Drain | At


def names_in(command: Command) -> tuple[str, ...]:
    """The sites and processes a line speaks of as being there: a script may name some before they join."""
    match command:
        case Subscribe(name) | Unsubscribe(name) | Disconnect(name) | Reconnect(name) | Slow(name):
            return (name,)
        case Publish(name) | Crash(name) | Restart(name) | Freeze(name) | Unfreeze(name):
            return (name,)
        case Leave(name) | Expel(name) | ClockShift(name) | Isolate(name) | Heal(name, None):
            return (name,)
        case Cut(a, b) | Heal(a, str(b)) | SetLink(Link(a, b)):
            return a, b
        case At(_, timed):
            return names_in(timed)
        case _:
            return ()
