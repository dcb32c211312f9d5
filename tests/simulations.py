"""Scenarios as text, simulated: what the tests of simulation share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.run import Result, simulate

SESDAD = Path(__file__).resolve().parent.parent / "examples" / "sesdad"

#: A chain of three brokers, a publisher at one end, a subscriber at the other and one in the middle.
CHAIN = """
LoggingLevel full
Site s1 Parent none
Site s2 Parent s1
Site s3 Parent s2
Process b1 is broker On s1 URL tcp://localhost:1/b
Process b2 is broker On s2 URL tcp://localhost:2/b
Process b3 is broker On s3 URL tcp://localhost:3/b
Process p is publisher On s1 URL tcp://localhost:4/p
Process u2 is subscriber On s2 URL tcp://localhost:5/u
Process u3 is subscriber On s3 URL tcp://localhost:6/u
"""


def simulated(configuration: str, script: str, **options: Any) -> Result:
    network = parse_configuration(configuration, "configuration")
    return simulate(network, parse_script(script, "script", network), **options)


def of_kind(trace: list[TraceLine], *kinds: str, **fields: Any) -> list[TraceLine]:
    """The lines of these kinds whose fields have these values."""
    return [
        line
        for line in trace
        if line["kind"] in kinds and all(line.get(name) == value for name, value in fields.items())
    ]


def numbers(trace: list[TraceLine], kind: str, **fields: Any) -> list[int]:
    """The numbers of the events that lines speak of, in the order of the trace."""
    return [line["n"] for line in of_kind(trace, kind, **fields)]


def promises_kept(trace: list[TraceLine]) -> bool:
    violations = check_all(trace, grace_seconds=0.5)
    assert not violations, "\n".join(f"{each.kind}: {each.message}" for each in violations)
    return True
