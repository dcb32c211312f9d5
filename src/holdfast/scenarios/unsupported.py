"""What the scenario language can say and Holdfast cannot do yet: refused by name, never ignored.

Everything here is read and printed like the rest; whoever builds a part deletes its entry, here and nowhere else.
``Acknowledge`` and ``Refill`` are no entries: best-effort has nothing to acknowledge or refill, so they ask for
nothing that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from holdfast.scenarios.commands import At, ClockShift, Command, Expel, Join, Leave, Reconnect, Subscribe
from holdfast.scenarios.topology import Kind, Process

__all__ = ["refused_command", "refused_process", "refused_setting"]

#: What is wrong, and what to write instead.
Refusal: TypeAlias = tuple[str, str]

#: By field of ``Configuration``: the values that exist, as a test and in words.
SETTINGS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "guarantee": (lambda value: value == "best-effort", "Guarantee best-effort"),
    "ordering": (lambda value: value != "TOTAL", "Ordering NO or FIFO"),
    "delta": (lambda value: value == 0, "Delta 0"),
    "aggregation": (lambda value: value is False, "Aggregation off"),
    "failover_after_ns": (lambda value: value is None, "no FailoverAfter"),
    "retain_ns": (lambda value: value is None, "no Retain"),
    "pubends": (lambda value: value == 1, "Pubends 1"),
}

#: By kind of process.
PROCESSES: Final[Mapping[Kind, str]] = {"archive": "broker, publisher or subscriber"}

#: By type of command: whether this one is missing, what it is called, and what to write instead.
COMMANDS: Final[Mapping[type, tuple[Callable[[Any], bool], str, str]]] = {
    Subscribe: (lambda command: command.durable, "Durable", "a subscription that ends with its connection"),
    Reconnect: (lambda command: command.site is not None, "Reconnect On SITE", "Reconnect to the same site"),
    Join: (lambda command: True, "Join", "all processes in the configuration"),
    Leave: (lambda command: True, "Leave", "Crash, or Disconnect for a subscriber"),
    Expel: (lambda command: True, "Expel", "Crash, or Isolate"),
    ClockShift: (lambda command: True, "Clock", "a script that leaves the clocks alone"),
}


def refused_setting(field: str, value: object) -> str | None:
    """What to write instead of this value, if it does not exist yet."""
    entry = SETTINGS.get(field)
    return None if entry is None or entry[0](value) else entry[1]


def refused_process(process: Process) -> Refusal | None:
    """Why a process is refused, if its kind does not exist yet."""
    instead = PROCESSES.get(process.kind)
    return None if instead is None else (f"processes of the kind {process.kind} do not exist yet", instead)


def refused_command(command: Command) -> Refusal | None:
    """Why a command is refused, if it does not exist yet."""
    if isinstance(command, At):
        return refused_command(command.command)
    entry = COMMANDS.get(type(command))
    if entry is None or not entry[0](command):
        return None
    return f"{entry[1]} does not exist yet", entry[2]
