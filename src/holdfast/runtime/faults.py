"""Cuts in the network, made by hand: a control that exists only under the Puppet Master [contracts.md §4].

A connection with a node that is cut off is a black hole, as if somebody had pulled the cable: nothing passes,
nothing is reported, new connections fail. What a driver has to do for that stands in ``link`` and ``driver``; here
is only who is cut.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Faults"]


class Faults:
    """The nodes this one is cut off from, by name."""

    def __init__(self) -> None:
        self._cut: set[str] = set()
        self._names: dict[str, str] = {}  #: who answered at an address: a client dials without knowing

    def cut(self, names: Iterable[str]) -> None:
        """From now on nothing passes to or from these."""
        self._cut.update(names)

    def heal(self, names: Iterable[str]) -> None:
        """These can be reached again."""
        self._cut.difference_update(names)

    def is_cut(self, *names: str | None) -> bool:
        """Whether one of these is cut off; a node may go by several names."""
        return any(name in self._cut for name in names)

    def note(self, address: str, name: str) -> None:
        """Remember who answers at an address."""
        self._names[address] = name

    def at(self, address: str) -> str | None:
        """The node that answered at an address last."""
        return self._names.get(address)
