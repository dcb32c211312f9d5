"""When something of a network was broken, as its trace tells.

What the script breaks is broken until it repairs it. A broker that is started again is not back for that: a process
takes its time to come to life, and until its neighbours have met it they go on past it. They say so themselves: who
loses a neighbour writes ``disconnect``, and ``reconnect`` when they have met again. Who crashes meanwhile has forgotten
what it lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Final, TypeAlias

from holdfast.scenarios.topology import MASTER
from holdfast.scenarios.trace import TraceLine

__all__ = ["Outage", "left_broken", "outages"]

Outage: TypeAlias = tuple[float, float]  #: from when to when, the end not included

#: What breaks something, and what repairs it.
_BREAKING: Final = {"crash": "restart", "freeze": "unfreeze", "cut": "heal", "disconnect": "reconnect"}


def outages(faults: Sequence[TraceLine]) -> list[Outage]:
    """Of the lines that tell of faults, whoever wrote them: in the order of time, and apart from each other."""
    lines = sorted(faults, key=lambda line: (line["node"], line["i"]))
    found: list[Outage] = []
    for begin, end in sorted([*_by_script(lines), *_by_node(lines)]):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def left_broken(faults: Sequence[TraceLine]) -> list[list[str]]:
    """What the script broke and did not repair: the nodes of each crash, freeze, cut and disconnection."""
    broken: dict[tuple[str, ...], float] = {}
    for _ in _repaired(sorted(faults, key=lambda line: (line["node"], line["i"])), broken):
        pass
    return [nodes for _, *nodes in broken]


def _by_script(lines: Iterable[TraceLine]) -> Iterator[Outage]:
    broken: dict[tuple[str, ...], float] = {}
    yield from _repaired(lines, broken)
    yield from ((begin, inf) for begin in broken.values())


def _repaired(lines: Iterable[TraceLine], broken: dict[tuple[str, ...], float]) -> Iterator[Outage]:
    """What was repaired, when it is; ``broken`` has what is not, yet. What heals a node heals its links."""
    for line in lines:
        if line["node"] != MASTER:
            continue
        if line["kind"] in _BREAKING:
            broken.setdefault((_BREAKING[line["kind"]], *line["nodes"]), line["t"])
        for key in [key for key in broken if key[0] == line["kind"] and {*line["nodes"]} & {*key[1:]}]:
            yield broken.pop(key), line["t"]


def _by_node(lines: Sequence[TraceLine]) -> Iterator[Outage]:
    """Each until the same node has met the same one again, or has crashed."""
    for i, line in enumerate(lines):
        if line["node"] == MASTER or line["kind"] != "disconnect":
            continue
        met = [each["t"] for each in lines[i:] if each["kind"] == "reconnect" and _is_alike(each, line)]
        crashes = [each["t"] for each in lines if each["kind"] == "crash" and line["node"] in each["nodes"]]
        yield line["t"], min([*met[:1], *(t for t in crashes if t >= line["t"])], default=inf)


def _is_alike(line: TraceLine, other: TraceLine) -> bool:
    return bool(line["node"] == other["node"] and line["nodes"] == other["nodes"])
