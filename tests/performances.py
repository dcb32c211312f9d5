"""Scenarios as text, performed by real processes on free ports: what the tests of the Puppet Master share."""

from __future__ import annotations

import re

from holdfast.puppet.run import Result, perform
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script

#: Two brokers, a publisher at one, subscribers at both; a crash or a cut is noticed soon.
PAIR = """
LoggingLevel full
Heartbeat 50
DetectAfter 300
ProbeEvery 50
Site s1 Parent none
Site s2 Parent s1
Process b1 is broker On s1 URL tcp://localhost:0/b
Process b2 is broker On s2 URL tcp://localhost:0/b
Process p is publisher On s1 URL tcp://localhost:0/p
Process u1 is subscriber On s1 URL tcp://localhost:0/u
Process u2 is subscriber On s2 URL tcp://localhost:0/u
"""


def on_free_ports(configuration: str) -> str:
    """The same network, listening wherever there is room."""
    return re.sub(r"(tcp://[^:/\s]+):\d+", r"\1:0", configuration)


def performed(configuration: str, script: str) -> Result:
    """Run a scenario to its end."""
    network = parse_configuration(configuration, "configuration")
    result = perform(network, parse_script(script, "script", network))
    assert result.failure is None, str(result.failure)
    return result
