"""What broke in a run, from when to when, as its trace tells.

The script breaks something and repairs it: a crash is over with the restart, a cut with the heal of either end. Nodes
notice for themselves whom they have lost: that is over when the same two have met again, or when the one who noticed
has crashed and forgotten. ``inf`` is what was never repaired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from math import inf
from typing import Final, NamedTuple

from holdfast.pipeline.audit.line import Line
from holdfast.pipeline.audit.tree import Tree

__all__ = ["MASTER", "Trouble", "away_since", "exceeds", "troubles_of"]

#: The node that writes of what the script does.
MASTER: Final = "master"
_REPAIRS: Final = {
    "crash": ("restart",),
    "freeze": ("unfreeze",),
    "cut": ("heal",),
    "disconnect": ("reconnect",),
    "leave": ("restart", "join"),
}
#: So long after its repair a broker may still be meeting its neighbours and getting back what it held.
SETTLE_SECONDS: Final = 1.5


class Trouble(NamedTuple):
    """Something that was broken, and who was concerned."""

    begin: float
    end: float
    kind: str
    nodes: tuple[str, ...]
    by_script: bool


def troubles_of(faults: Iterable[Line]) -> list[Trouble]:
    """All that was broken, in the order of time."""
    lines = sorted(faults, key=lambda line: (line.t, line.node, line.i))
    script = [line for line in lines if line.node == MASTER]
    noticed = [line for line in lines if line.node != MASTER]
    return sorted([*_broken(script), *_lost(noticed, script)])


def _broken(lines: Sequence[Line]) -> Iterator[Trouble]:
    broken: list[Trouble] = []
    for line in lines:
        nodes = line.nodes or ()
        for each in [one for one in broken if line.kind in _REPAIRS[one.kind] and {*nodes} & {*one.nodes}]:
            broken.remove(each)
            yield each._replace(end=line.t)
        is_known = any(one.kind == line.kind and one.nodes == nodes for one in broken)
        if line.kind in _REPAIRS and not is_known:
            broken.append(Trouble(line.t, inf, line.kind, nodes, by_script=True))
    yield from broken


def _lost(noticed: Sequence[Line], script: Sequence[Line]) -> Iterator[Trouble]:
    lost: dict[tuple[str, tuple[str, ...]], Trouble] = {}
    crashes = [line for line in script if line.kind == "crash"]
    for line in sorted([*noticed, *crashes], key=lambda line: (line.t, line.node, line.i)):
        nodes = line.nodes or ()
        over = [(line.node, nodes)] if line.kind == "reconnect" else []
        if line.kind == "crash":
            over = [key for key in lost if key[0] in nodes]
        for key in over:
            if key in lost:
                yield lost.pop(key)._replace(end=line.t)
        if line.kind == "disconnect" and line.node != MASTER:
            lost.setdefault((line.node, nodes), Trouble(line.t, inf, line.kind, nodes, by_script=False))
    yield from lost.values()


def away_since(troubles: Iterable[Trouble], client: str) -> float:
    """When a client went away for good; infinity if it was there at the end."""
    left = [each for each in troubles if each.end == inf and client in each.nodes]
    return min((each.begin for each in left if each.by_script or each.nodes == (client,)), default=inf)


def exceeds(troubles: Sequence[Trouble], delta: int, tree: Tree, clients: Set[str]) -> bool:
    """Whether more than ``delta`` brokers or connections may have been down at a time.

    It is meant to err on that side: who is repaired counts for a while longer. A session that a node lost is what the
    script broke, where that is of the same nodes. A client that is down holds nothing for others.
    """
    changes: list[tuple[float, int, frozenset[str]]] = []
    for each in troubles:
        nodes = frozenset(each.nodes)
        if each.by_script and each.kind != "cut" and nodes <= clients:
            continue
        if not each.by_script and len(nodes) == 1:  # a client that has lost its broker
            nodes |= {tree.above.get(each.nodes[0]) or each.nodes[0]}
        changes += [(each.begin, 1, nodes), (each.end + SETTLE_SECONDS, 0, nodes)]
    down: list[frozenset[str]] = []
    for _, begins, nodes in sorted(changes, key=lambda change: change[:2]):
        if not begins:
            down.remove(nodes)
        else:
            down.append(nodes)
            if _causes(down) > delta:
                return True
    return False


def _causes(down: Sequence[frozenset[str]]) -> int:
    """How many single nodes are down, and connections of none of these."""
    single = {node for nodes in down if len(nodes) == 1 for node in nodes}
    return len(single) + len({nodes for nodes in down if len(nodes) > 1 and not nodes & single})
