"""A network at rest has forgotten its troubles: tables hold what is subscribed to, queues hold nothing [I31].

Judged by the last ``status`` line of every process, so a script must end with ``Status`` after a ``Drain``; that is
all a run of real processes shows. What a leak of state or a subscription that came back would do to later traffic need
not be seen yet; it shows here. The clients of a reliable network are nodes of it, and not clients of a broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["convergence"]


#: Of a node of the overlay: nobody is down or passed by, nothing is queued, no partition is left.
_AT_REST: Final = {
    "down": [],
    "bypassing": [],
    "fragments": [],
    "queued": 0,
    "stalled": {},
    "stalled_subscriptions": [],
    "partitions": [],
    "crossings": [],
}


def convergence(trace: Sequence[TraceLine]) -> list[Violation]:
    """What the last status lines should not say; there must be some."""
    run = trace[0]
    last = {line["node"]: line for line in trace if line["kind"] == "status"}
    clients = {name: line for name, line in last.items() if "broker" in line["connections"]}
    brokers = {name: line for name, line in last.items() if name not in clients}
    assert brokers, "the script ends with Status"
    found: list[Violation] = []
    for line in clients.values():
        found += _differences(
            line, _client_state(line), {"connected": True, "unacknowledged": 0, "unread": 0}
        )
    is_reliable = run["guarantee"] == "reliable"
    everywhere = sum(len(each["tables"]["subscriptions"]) for each in clients.values())
    for name, line in brokers.items():
        beside = [each for each in clients if run["tree"][each] == name]
        hosted = [] if is_reliable else beside
        own = sum(len(clients[each]["tables"]["subscriptions"]) for each in hosted)
        expected = {
            "installed": everywhere if run["routing"] == "filter" or is_reliable else own,
            "pending": 0,
            "own": own,
            "held": 0,
            "neighbours not active": [],
            "clients connected": len(hosted),
            "clients away": 0,
        }
        found += _differences(line, _broker_state(line), expected)
        if is_reliable:
            found += _differences(line, _overlay_state(line), {**_AT_REST, "members": sorted(beside)})
    return found


def _client_state(line: TraceLine) -> Mapping[str, Any]:
    return {"connected": line["connections"]["broker"], **line["queues"]}


def _broker_state(line: TraceLine) -> Mapping[str, Any]:
    connections = line["connections"]
    return {
        **line["tables"]["subscriptions"],
        "held": sum(line["queues"]["held"].values()),
        "neighbours not active": [n for n, state in connections["neighbours"].items() if state != "active"],
        "clients connected": connections["clients"]["connected"],
        "clients away": connections["clients"]["away"],
    }


def _overlay_state(line: TraceLine) -> Mapping[str, Any]:
    overlay = line["connections"]["overlay"]
    return {**overlay, "members": sorted(overlay["members"])}


def _differences(line: TraceLine, state: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Violation]:
    return [
        Violation("diverged", f"{line['node']} has {name} {state.get(name)}, not {wanted}", (line,))
        for name, wanted in expected.items()
        if state.get(name) != wanted
    ]
