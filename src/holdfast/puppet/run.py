"""A scenario with real processes, from beginning to end: the twin of ``simulator.run``."""

from __future__ import annotations

import asyncio
import signal
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

    ``say`` is told each line when it is run. Ctrl-C, SIGTERM and a process that fails end the run; the result says so.
    To be called in the main thread, which hears the signals.
    """
    with tempfile.TemporaryDirectory(prefix="holdfast-puppet-") as folder:
        master = Master(configuration, script, Path(folder), say)
        failure: NotDriven | None = None
        is_interrupted = False
        try:
            asyncio.run(_until_stopped(master))
        except NotDriven as error:
            failure = error
        except (KeyboardInterrupt, asyncio.CancelledError):
            is_interrupted = True
        return Result(master.trace(), master.drained, failure, is_interrupted)


async def _until_stopped(master: Master) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await master.play()
