"""What the scenario language can say and Holdfast cannot do yet: refused by name, never ignored.

Everything here is read and printed like the rest; whoever builds a part deletes its entry, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from holdfast.scenarios.commands import At, Command, Expel, Join, Leave, Reconnect
from holdfast.scenarios.topology import Configuration, Kind, Process

__all__ = ["refused_command", "refused_process", "refused_setting"]

#: What is wrong, and what to write instead.
Refusal: TypeAlias = tuple[str, str]

#: By field of ``Configuration``: the values that exist, as a test and in words.
SETTINGS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "guarantee": (lambda value: value != "archived", "Guarantee best-effort, reliable or durable"),
    "aggregation": (lambda value: value is False, "Aggregation off"),
    "failover_after_ns": (lambda value: value is None, "no FailoverAfter"),
}

#: By kind of process.
PROCESSES: Final[Mapping[Kind, str]] = {"archive": "broker, publisher or subscriber"}


def _names_broker(command: Leave | Expel, network: Configuration) -> bool:
    return network.process(command.process).kind == "broker"


#: By type of command: whether this one is missing in a network, what it is called, and what to write instead.
COMMANDS: Final[Mapping[type, tuple[Callable[[Any, Configuration], bool], str, str]]] = {
    Reconnect: (
        lambda command, network: command.site is not None and network.guarantee != "durable",
        "Reconnect On SITE in a network that logs nothing",
        "Reconnect to the same site, or Guarantee durable",
    ),
    Join: (lambda command, _: command.process.kind in PROCESSES, "Join of an archive", PROCESSES["archive"]),
    Leave: (_names_broker, "Leave of a broker", "the name of a publisher or subscriber"),
    Expel: (
        lambda command, network: network.guarantee != "reliable" or _names_broker(command, network),
        "Expel of anybody but a client of a reliable network",
        "Leave, or Crash",
    ),
}


def refused_setting(field: str, value: object) -> str | None:
    """What to write instead of this value, if it does not exist yet."""
    entry = SETTINGS.get(field)
    return None if entry is None or entry[0](value) else entry[1]


def refused_process(process: Process) -> Refusal | None:
    """Why a process is refused, if its kind does not exist yet."""
    instead = PROCESSES.get(process.kind)
    return None if instead is None else (f"processes of the kind {process.kind} do not exist yet", instead)


def refused_command(command: Command, network: Configuration) -> Refusal | None:
    """Why a command is refused, if it does not exist yet; ``network`` has everybody who has joined."""
    if isinstance(command, At):
        return refused_command(command.command, network)
    entry = COMMANDS.get(type(command))
    if entry is None or not entry[0](command, network):
        return None
    return f"{entry[1]} does not exist yet", entry[2]
