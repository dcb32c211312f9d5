"""When a network has drained, the same in both worlds [contracts.md §4].

"Drain ends when all Publish commands are finished and no live, connected process holds undelivered or unacknowledged
items." Which Publish commands run, and whether anything is under way between two processes, each world knows in its own
way. What is left to say is who counts as connected:

- A client that is not connected will be again as long as its broker runs and is not cut off from it, or, where it is a
  node of the overlay, another broker within its reach; it still holds its items. Of one that nobody can connect, or
  that the script has unplugged, nothing is expected.
- A broker is connected with whoever is there. What it holds for somebody who is down is undelivered, however long that
  lasts: a network has not drained before he is back, or was expelled.
- A frozen process cannot say what it holds. It is connected as long as somebody who runs has not given it up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from holdfast.broker.broker import Broker
from holdfast.scenarios.actor import Actor
from holdfast.scenarios.topology import Configuration
from holdfast.scenarios.vicinity import brokers_in_reach

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
    others: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> bool:
    """Whether no live, connected process holds anything; those neither running nor frozen are down, or have left.

    ``others`` are the brokers a client may go to besides its own.
    """
    for name, standing in running.items():
        if any(peer in frozen for peer in standing.peers):
            return False
        if not standing.holds:
            continue
        brokers = [*brokers_in_reach(configuration, name), *others.get(name, ())]
        if standing.is_connected or _will_connect(brokers, name, running, is_cut):
            return False
    return True


def _will_connect(
    brokers: Sequence[str],
    client: str,
    running: Mapping[str, Standing],
    is_cut: Callable[[str, str], bool],
) -> bool:
    if running[client].is_unplugged:
        return False
    return any(broker in running and not is_cut(client, broker) for broker in brokers)
