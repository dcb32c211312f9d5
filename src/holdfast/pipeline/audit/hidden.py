"""What a partial confirmation left out: events that are not owed although they match [KJ §3.5, §7].

``subscribed`` names the fragments of the network that could not be reached; nothing is owed from behind one until
``upgraded`` clears it, or an event comes from there with its bar: then nothing of that publisher is missing any more.
A fragment names the nodes on the way from its lead. Who was started, or joined, at one of these while it was cut off
could not be named, and is behind it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple, TypeAlias

from holdfast.pipeline.audit.line import Partition
from holdfast.pipeline.audit.tenure import FOR_EVER, Tenure
from holdfast.pipeline.audit.tree import Tree

__all__ = ["Bars", "Hidden", "hidden_of"]

#: By tenure and publisher, the partitions of its barred events, with the number of the first one.
Bars: TypeAlias = Mapping[tuple[int, str], Mapping[tuple[str, int, int], int]]


class Hidden(NamedTuple):
    """Events of a publisher that are not owed to a tenure: published in (after, upto], numbered up to ``upto_n``."""

    tenure: int
    publisher: str
    after: float
    upto: float
    upto_n: int


def hidden_of(
    tenures: Iterable[Tenure],
    tree: Tree,
    publishers: Sequence[str],
    started: Mapping[str, Sequence[float]],
    bars: Bars,
) -> list[Hidden]:
    """All that is hidden; ``started`` has the times at which publishers were started again, or joined."""
    return [
        Hidden(tenure.number, publisher, max(after, come), upto, _barred(bars, tenure, publisher, partition))
        for tenure in tenures
        for after, upto, partition in _open(tenure)
        for publisher in publishers
        for come in _behind(tree, partition, publisher, started.get(publisher, ()))
        if max(after, come) < upto
    ]


def _open(tenure: Tenure) -> Iterator[tuple[float, float, Partition]]:
    """The partitions of a tenure, each with the times between which it was open."""
    begun: dict[tuple[str, int, int], tuple[float, Partition]] = {}
    confirmed = [line for line in tenure.lines if line.kind == "subscribed"]
    for line in sorted([*confirmed, *tenure.upgrades], key=lambda line: line.i):
        over = [each.name for each in line.cleared or ()]
        for name in list(begun) if line.kind == "subscribed" else over:
            if name in begun:
                after, partition = begun.pop(name)
                yield after, line.t, partition
        for partition in line.partial or ():
            begun.setdefault(partition.name, (line.t, partition))
    for after, partition in begun.values():
        yield after, inf, partition


def _behind(tree: Tree, partition: Partition, publisher: str, started: Sequence[float]) -> Iterator[float]:
    """From when on a publisher is behind a partition, if it is."""
    way = tree.way(partition.lead, publisher)[1:]
    fragment = list(partition.fragment)
    if way[: len(fragment)] == fragment:
        yield -inf
    elif len(way) > 1 and way[-2] in fragment and started:
        yield min(started)


def _barred(bars: Bars, tenure: Tenure, publisher: str, partition: Partition) -> int:
    return bars.get((tenure.number, publisher), {}).get(partition.name, FOR_EVER)
