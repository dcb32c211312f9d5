"""What a subscription's partial confirmation left out, and until when [KJ §3.5, §7].

A subscription may be confirmed before everybody knows it: ``partial`` names the fragments that could not be reached,
and nothing is owed from behind them until ``upgraded`` clears them. A delivery that is tagged with the bar of a
partition is as good: nothing of that publisher is missing after it.

A fragment can name only whom its lead knew. Who came to a node of it since the lead was last in touch is behind it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.scenarios.checkers.tree import Tree
from holdfast.scenarios.trace import TraceLine

__all__ = ["Partition", "Partitions", "partition_of"]


#: Whether a node, at a time, cannot have heard that another had come.
IsStranger = Callable[[str, str, float], bool]


class Partition(NamedTuple):
    """The name of a partition: its lead, the lead's life, and its number."""

    lead: str
    incarnation: int
    seq: int


def partition_of(entry: Mapping[str, Any]) -> Partition:
    """Which partition an entry of ``partial`` or ``cleared``, or a tag, speaks of."""
    return Partition(entry["lead"], entry.get("incarnation", 0), entry["seq"])


class Partitions:
    """The open partitions of one subscription over time, from its ``subscribed`` line to its end."""

    def __init__(
        self, tree: Tree, subscribed: TraceLine, upgraded: Iterable[TraceLine], is_stranger: IsStranger
    ) -> None:
        self._tree = tree
        self._is_stranger = is_stranger
        self._fragments: dict[Partition, tuple[str, ...]] = {}
        self._states: list[tuple[float, int, frozenset[Partition]]] = []
        is_open = self._named(subscribed["partial"])
        self._states.append((subscribed["t"], subscribed["i"], is_open))
        for line in upgraded:
            cleared = {partition_of(entry) for entry in line["cleared"]}
            is_open = (is_open - cleared) | self._named(line.get("partial", ()))
            self._states.append((line["t"], line["i"], is_open))

    def _named(self, entries: Sequence[Mapping[str, Any]]) -> frozenset[Partition]:
        named = {partition_of(entry): tuple(entry["fragment"]) for entry in entries}
        self._fragments.update(named)
        return frozenset(named)

    @property
    def left(self) -> frozenset[Partition]:
        """What was open at the end."""
        return self._states[-1][2]

    def hiding(self, publisher: str, *, at: float) -> list[Partition]:
        """The partitions a publisher was behind when it published."""
        is_open = next((state for t, _, state in reversed(self._states) if t < at), frozenset())
        return [
            each
            for each in sorted(is_open)
            if self._is_behind(publisher, each) or self._is_new_there(publisher, each, at)
        ]

    def tagging(self, publisher: str, *, position: int) -> list[Partition]:
        """The partitions a publisher was behind at a line of the subscriber's own."""
        is_open = next((state for _, i, state in reversed(self._states) if i < position), frozenset())
        return [each for each in sorted(is_open) if self._is_behind(publisher, each)]

    def _is_behind(self, publisher: str, partition: Partition) -> bool:
        """Whether the way from the lead to the publisher begins with the fragment."""
        fragment = self._fragments[partition]
        return self._tree.path(partition.lead, publisher)[1 : len(fragment) + 1] == fragment

    def _is_new_there(self, publisher: str, partition: Partition, at: float) -> bool:
        """Whether a publisher came to a node of the fragment without the lead's knowing it."""
        way = self._tree.path(partition.lead, publisher)
        is_beside = way[-2] in self._fragments[partition] if len(way) > 1 else False
        return is_beside and self._is_stranger(partition.lead, publisher, at)
