"""The process of a performer: ``python -m holdfast.puppet.process FOLDER NAME``, started by the Puppet Master.

Orders come on standard input, answers go to standard output, standard error is the log. When the orders end, the master
is gone, and the process with it: nothing may be left behind of a run. Status 0 when told to stop, 1 when it failed.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast.puppet import control
from holdfast.puppet.control import Failed, Listen, Listening, Order, Start, Stop
from holdfast.puppet.performer import Performer
from holdfast.runtime import logs
from holdfast.runtime.addresses import BadAddress
from holdfast.runtime.driver import DriverFailed
from holdfast.runtime.loop import run

__all__ = ["main"]

#: The longest order: a Start with the lines of all subscriptions.
ORDER_BYTES_MAX: Final = 1 << 22

_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>


async def _live(performer: Performer) -> int:
    orders = asyncio.StreamReader(limit=ORDER_BYTES_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin.buffer)
    first = await _next_order(orders)
    assert isinstance(first, Listen)
    try:
        performer.answer(Listening(await performer.listen(first)))
    except (OSError, BadAddress) as error:
        performer.answer(Failed(str(error)))
        return 1
    second = await _next_order(orders)
    assert isinstance(second, Start)
    await performer.start(second)
    obeying = asyncio.create_task(_obey(performer, orders))
    failing = asyncio.create_task(performer.driver.wait_stopped())
    await asyncio.wait((obeying, failing), return_when=asyncio.FIRST_COMPLETED)
    if obeying.done():
        obeying.result()
    try:
        await failing
    except DriverFailed:
        return 1  # it is in the log, with its traceback
    return 0


async def _obey(performer: Performer, orders: asyncio.StreamReader) -> None:
    while not isinstance(order := await _next_order(orders), Stop):
        performer.obey(order)
    await performer.stop()


async def _next_order(orders: asyncio.StreamReader) -> Order:
    line = await orders.readline()
    if not line:
        os._exit(0)  # the master is gone, and with it whoever cared
    return control.decode_order(line)


def main() -> int:
    """Live one life, and return its exit status."""
    with suppress(OSError, AttributeError):  # where there is no prctl, the closed pipe must do
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logs.write_to(sys.stderr, form="text")
    folder, name = sys.argv[1:]
    return run(_live(Performer(Path(folder), name)))


if __name__ == "__main__":
    sys.exit(main())
