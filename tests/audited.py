"""Clean traces of whole networks for the audit, and faults to plant in them: one promise broken each.

The traces are those of real runs in the simulator. A planted fault changes the trace as a broken network would have
written it; it returns the kinds that may be found besides, since one fault may break two promises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from typing import Any, TypeAlias

from holdfast.pipeline.audit.line import Line, decode
from holdfast.pipeline.audit.local import audit_lines
from holdfast.pipeline.audit.verdict import Verdict
from holdfast.scenarios.trace import TraceLine, encode_line
from holdfast.scenarios.trace_fields import COMMON
from simulations import simulated

Trace: TypeAlias = list[dict[str, Any]]

_SITES = """LoggingLevel full
Site s1 Parent none
Site s2 Parent s1
Site s3 Parent s1
Process b1 is broker On s1 URL tcp://localhost:1/b
Process b2 is broker On s2 URL tcp://localhost:2/b
Process b3 is broker On s3 URL tcp://localhost:3/b
Process p is publisher On s1 URL tcp://localhost:4/p
Process q is publisher On s3 URL tcp://localhost:5/q
Process u is subscriber On s2 URL tcp://localhost:6/u
Process v is subscriber On s1 URL tcp://localhost:7/v
"""
_SCRIPT = """Subscriber u Subscribe a WHERE x > 3 As dear{durable}
Subscriber v Subscribe # As all{durable}
Subscriber v Subscribe b As brief
Publisher p Publish 20 Ontopic a Interval 10 With x=randint(1,9)
Publisher q Publish 20 Ontopic b Interval 10 With x=randint(1,9)
{trouble}
Subscriber v Unsubscribe brief
Wait 9000
Publisher p Publish 20 Ontopic a Interval 10 With x=randint(1,9)
Publisher q Publish 10 Ontopic a Interval 20 With x=randint(1,9)
Wait 300
Publisher q Publish 10 Ontopic b Interval 10
Wait 3000
"""
_AWAY = """Wait 50
Subscriber u Disconnect
Wait 300
Crash v
Wait 200
Subscriber u Reconnect On s3
Restart v
Wait 2000"""
_FALLEN = """Wait 50
Crash b1
Wait 1200
Restart b1
Wait 3000"""

#: What is promised, and what goes wrong: nothing, or what the guarantee bears.
NETWORKS: dict[str, tuple[str, str]] = {
    "best-effort": ("", _SCRIPT.format(durable="", trouble="Wait 500")),
    "reliable": ("Guarantee reliable\nDelta 1\n", _SCRIPT.format(durable="", trouble=_FALLEN)),
    "durable": ("Guarantee durable\nPubends 2\n", _SCRIPT.format(durable=" Durable", trouble=_AWAY)),
    "total": ("Guarantee durable\nOrdering TOTAL\n", _SCRIPT.format(durable=" Durable", trouble=_AWAY)),
}


@cache
def _clean(network: str) -> tuple[TraceLine, ...]:
    settings, script = NETWORKS[network]
    return tuple(simulated(_SITES + settings, script).trace)


def clean(network: str) -> Trace:
    """The trace of a network in which all is well; the caller's own."""
    return deepcopy([dict(line) for line in _clean(network)])


def encoded(trace: Sequence[TraceLine]) -> list[bytes]:
    """A trace as its file has it; a field ``run`` may stand beside those of the kind."""
    return [_encoded(line) for line in trace]


def _encoded(line: TraceLine) -> bytes:
    fields = {name: value for name, value in line.items() if name not in COMMON and name != "run"}
    data = encode_line(line["t"], line["i"], line["node"], line["kind"], fields)
    return json.dumps({"run": line["run"], **json.loads(data)}).encode() + b"\n" if "run" in line else data


def lines_of(trace: Sequence[TraceLine], run: str = "run") -> list[tuple[str, Line]]:
    """A trace as the audit reads it."""
    return [(run, decode(data)) for data in encoded(trace)]


def verdict_on(trace: Sequence[TraceLine], **options: Any) -> Verdict:
    """What the local engine says."""
    return audit_lines(lines_of(trace), **options)


# Planting


def find(trace: Trace, kind: str, **fields: Any) -> list[dict[str, Any]]:
    return [
        line
        for line in trace
        if line["kind"] == kind and all(line.get(name) == value for name, value in fields.items())
    ]


def add_to(trace: Trace, like: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """One line more of a node, behind all others of it; just before the end of the run."""
    node = fields.get("node", like["node"])
    line = {**like, "i": 1 + max((each["i"] for each in trace if each["node"] == node), default=0), **fields}
    trace.insert(len(trace) - 1, line)
    return line


def plant_lost(trace: Trace) -> str:
    line = find(trace, "deliver", subscription="all")[5]
    trace.remove(line)
    return "lost unexplained"  # what follows on a logged stream begins where nobody had been


def plant_lost_at_the_end(trace: Trace) -> str:
    trace.remove(find(trace, "deliver", subscription="dear")[-1])
    return "lost unexplained"


def plant_duplicate(trace: Trace) -> str:
    add_to(trace, find(trace, "deliver", subscription="dear")[2], t=trace[-1]["t"])
    return "duplicate"


def plant_repeated_line(trace: Trace) -> str:
    line = find(trace, "deliver", subscription="all")[2]
    trace.insert(trace.index(line), dict(line))
    return "duplicate"


def plant_used_number(trace: Trace) -> str:
    line = find(trace, "publish", publisher="p")[3]
    add_to(trace, line, t=line["t"] + 0.5)
    return "duplicate"


def plant_misorder(trace: Trace) -> str:
    first = find(trace, "deliver", subscription="all", publisher="q")[-1]
    second = find(trace, "deliver", subscription="all", publisher="q", pubend=first["pubend"])[-2]
    for name in ("n", "tick", "topic"):
        first[name], second[name] = second[name], first[name]
    return "misorder total-order wrong unexplained"


def plant_wrong(trace: Trace) -> str:
    """u asked for x > 3."""
    dull = next(line for line in find(trace, "publish", publisher="p") if line["attributes"]["x"] <= 3)
    like = find(trace, "deliver", subscription="dear")[0]
    receipt = find(trace, "accepted", publisher="p", n=dull["n"])[0]
    told = {name: receipt[name] for name in ("publisher", "n", "pubend", "tick")}
    add_to(trace, like, t=trace[-1]["t"], topic=dull["topic"], **told)
    return "wrong misorder total-order"


def plant_unpublished(trace: Trace) -> str:
    like = find(trace, "deliver", subscription="all", publisher="p")[-1]
    is_logged = trace[0]["guarantee"] == "durable"
    last = max(line["tick"] for line in find(trace, "deliver"))
    add_to(trace, like, t=trace[-1]["t"], n=999, tick=last + 10**9 if is_logged else 999)
    return "wrong"


def plant_late(trace: Trace) -> str:
    """brief has ended, and gets one more."""
    event = find(trace, "deliver", subscription="all", publisher="q", topic="b")[-1]
    add_to(trace, event, t=trace[-1]["t"], subscription="brief")
    return "late"


def plant_unexplained(trace: Trace) -> str:
    silence = find(trace, "silence", subscription="dear")[-1]
    silence["after"] += 1
    return "unexplained"


def plant_lagging(trace: Trace) -> str:
    """After its last event the subscription is never told how far nothing matched."""
    last = find(trace, "deliver", subscription="dear")[-1]
    for line in find(trace, "silence", subscription="dear"):
        if line["i"] > last["i"]:
            trace.remove(line)
    return "unexplained"


def plant_total_order(trace: Trace) -> str:
    """v gets two events the other way round, and their ticks are said to be so."""
    first, second = find(trace, "deliver", subscription="all")[-2:]
    for name in ("publisher", "n", "topic"):
        first[name], second[name] = second[name], first[name]
    return "total-order"


def plant_no_interest(trace: Trace) -> str:
    """Nobody in the south asks for what is cheap."""
    event = [line for line in find(trace, "publish", publisher="p") if line["attributes"]["x"] <= 3][-1]
    like = find(trace, "forward")[0]
    copy = {"from": "b1", "to": "b3", "publisher": "p", "n": event["n"]}
    add_to(trace, like, t=event["t"] + 0.1, node="b1", **copy)
    return "no-interest"


def plant_unaccepted(trace: Trace) -> str:
    trace.remove(find(trace, "accepted")[7])
    return "unaccepted"


EVERYWHERE = tuple(NETWORKS)
LOGGED = ("durable", "total")

#: The kind that must be found, what plants it, and in which networks that can be.
PLANTED: tuple[tuple[str, Callable[[Trace], str], tuple[str, ...]], ...] = (
    ("lost", plant_lost, EVERYWHERE),
    ("lost", plant_lost_at_the_end, EVERYWHERE),
    ("duplicate", plant_duplicate, EVERYWHERE),
    ("duplicate", plant_repeated_line, EVERYWHERE),
    ("duplicate", plant_used_number, EVERYWHERE),
    ("misorder", plant_misorder, ("best-effort", "reliable", "durable")),
    ("total-order", plant_misorder, ("total",)),
    ("wrong", plant_wrong, EVERYWHERE),
    ("wrong", plant_unpublished, EVERYWHERE),
    ("late", plant_late, EVERYWHERE),
    ("unexplained", plant_unexplained, LOGGED),
    ("unexplained", plant_lagging, LOGGED),
    ("total-order", plant_total_order, ("total",)),
    ("no-interest", plant_no_interest, EVERYWHERE),
    ("unaccepted", plant_unaccepted, EVERYWHERE),
)
