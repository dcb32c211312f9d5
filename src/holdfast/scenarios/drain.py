"""When a network has drained, the same in both worlds [contracts.md §4].

"Drain ends when all Publish commands are finished and no live, connected process holds undelivered or unacknowledged
items." Which Publish commands run, and whether anything is under way between two processes, each world knows in its own
way. What is left to say is who counts as connected:

- A client that has lost its broker will be connected again as long as that runs and is within reach; it still holds its
  items. Of one whose broker is down, frozen or cut off, or that the script has unplugged, nothing is expected.
- A frozen process cannot say what it holds. It is connected as long as somebody who runs has not given it up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from holdfast.broker.broker import Broker
from holdfast.scenarios.actor import Actor
from holdfast.scenarios.topology import Configuration

__all__ = ["Standing", "is_drained", "standing_of"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a process that runs, neither down nor frozen, stands at one moment."""

    holds: bool = False  #: something undelivered or unacknowledged
    is_connected: bool = True  #: a client: with its broker
    is_unplugged: bool = False  #: a client: by the script, until that says Reconnect
    peers: tuple[str, ...] = ()  #: who has introduced himself in a session that is not over


def standing_of(core: Broker | Actor, peers: Iterable[str]) -> Standing:
    """What a core says of itself, and its driver of its sessions."""
    if isinstance(core, Actor):
        return Standing(not core.quiet, core.is_connected, core.is_unplugged, tuple(peers))
    return Standing(holds=bool(core.holds_undelivered), peers=tuple(peers))


def is_drained(
    configuration: Configuration,
    running: Mapping[str, Standing],
    frozen: Collection[str],
    is_cut: Callable[[str, str], bool],
) -> bool:
    """Whether no live, connected process holds anything; those neither running nor frozen are down."""
    for name, standing in running.items():
        if any(peer in frozen for peer in standing.peers):
            return False
        if standing.holds and (standing.is_connected or _will_connect(configuration, name, running, is_cut)):
            return False
    return True


def _will_connect(
    configuration: Configuration,
    client: str,
    running: Mapping[str, Standing],
    is_cut: Callable[[str, str], bool],
) -> bool:
    broker = configuration.parent_of(client)
    assert broker is not None, f"{client} is a client and has a broker"
    return broker in running and not is_cut(client, broker) and not running[client].is_unplugged
