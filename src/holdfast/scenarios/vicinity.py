"""Which brokers are near a process in the tree: those it knows, and those that can stand in for its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.scenarios.topology import Configuration

__all__ = ["Near", "brokers_in_reach", "brokers_near"]


class Near(NamedTuple):
    """A broker, and the process beside it on the way there."""

    name: str
    beside: str
    distance: int  #: hops


def brokers_near(configuration: Configuration, name: str) -> Iterator[Near]:
    """The brokers within δ+1 hops of a process, nearer ones first [R0.4]."""
    seen = {name}
    here = [name]
    for distance in range(1, configuration.delta + 2):
        farther: list[str] = []
        for beside in here:
            for other in configuration.neighbours(beside):
                if other not in seen and configuration.process(other).kind == "broker":
                    seen.add(other)
                    farther.append(other)
                    yield Near(other, beside, distance)
        here = farther


def brokers_in_reach(configuration: Configuration, client: str) -> list[str]:
    """Through whom a client can be connected, its own broker first: only a node of the overlay has others besides."""
    near = [each.name for each in brokers_near(configuration, client)]
    return near if configuration.guarantee == "reliable" else near[:1]
