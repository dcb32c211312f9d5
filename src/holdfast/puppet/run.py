"""A scenario with real processes, from beginning to end: the twin of ``simulator.run``."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.puppet.cast import NotDriven
from holdfast.puppet.master import Master
from holdfast.scenarios.script import Script
from holdfast.scenarios.topology import Configuration
from holdfast.scenarios.trace import TraceLine

__all__ = ["Result", "perform"]


@dataclass(frozen=True, slots=True)
class Result:
    """What a run leaves behind, also when it did not come to its end."""

    trace: list[TraceLine]
    drained: bool
    failure: NotDriven | None = None
    is_interrupted: bool = False


def perform(
    configuration: Configuration, script: Script, *, say: Callable[[str], None] = lambda text: None
) -> Result:
    """Run a scenario with real processes, from beginning to end; none is left when this returns.

    ``say`` is told each line when it is run. Ctrl-C, and a process that fails, end the run; the result says so.
    """
    with tempfile.TemporaryDirectory(prefix="holdfast-puppet-") as folder:
        master = Master(configuration, script, Path(folder), say)
        failure: NotDriven | None = None
        is_interrupted = False
        try:
            asyncio.run(master.play())
        except NotDriven as error:
            failure = error
        except KeyboardInterrupt:
            is_interrupted = True
        return Result(master.trace(), master.drained, failure, is_interrupted)
