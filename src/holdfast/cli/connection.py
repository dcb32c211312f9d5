"""A client's connection as its user sees it: that it is waited for, and whether the network is away or back.

All of it is said on standard error, so that what a command prints stays its own.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from holdfast.cli.failure import Trouble
from holdfast.cli.targets import Target
from holdfast.cli.words import plain
from holdfast.client.aio import Network, State, connect
from holdfast.client.errors import TimedOut, Unreachable

__all__ = ["connected", "tell"]

#: What takes longer is said to be waited for.
PROMPT_S: Final = 1.0
#: The same warning is not said again before.
WARN_AGAIN_S: Final = 10.0
_LOGGER: Final = logging.getLogger("holdfast.client")


def tell(text: str) -> None:
    """Say something to the user, at once."""
    sys.stderr.write(f"holdfast: {plain(text)}\n")
    sys.stderr.flush()


class _Warnings(logging.Handler):
    """What the client warns of, said as everything else is; not again and again, when many have noticed the same."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said: dict[object, float] = {}  #: when each was last

    def emit(self, record: logging.LogRecord) -> None:
        """One warning: a text and its fields."""
        text, fields = record.args if isinstance(record.args, tuple) else (record.getMessage(), {})
        assert isinstance(fields, Mapping)
        if record.created - self._said.get(text, -WARN_AGAIN_S) < WARN_AGAIN_S:
            return
        self._said[text] = record.created
        more = ", ".join(f"{name} {value}" for name, value in fields.items() if name != "node")
        tell(f"{text} ({more})" if more else str(text))


@asynccontextmanager
async def connected(target: Target, name: str | None, timeout: float) -> AsyncIterator[Network]:
    """A client of the network, under a name or a new one.

    :raises Trouble: if there is no session in time.
    """
    warnings = _Warnings()
    _LOGGER.addHandler(warnings)
    try:
        async with _connected(target, name, timeout) as network:
            yield network
    finally:
        _LOGGER.removeHandler(warnings)


@asynccontextmanager
async def _connected(target: Target, name: str | None, timeout: float) -> AsyncIterator[Network]:
    waiting = f"{target.url} does not answer yet; waiting for it, {timeout:g} s at most"
    prompt = asyncio.get_running_loop().call_later(PROMPT_S, tell, waiting)
    try:
        network = await connect(target.url, name=name, timeout=timeout, insecure=target.insecure)
    except Unreachable as error:
        raise Trouble(f"{error}; is the network up (holdfast up), and is it there (--url)?") from error
    finally:
        prompt.cancel()
    watch = asyncio.create_task(_tell_states(network))
    try:
        yield network
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await network.close()


async def _tell_states(network: Network) -> None:
    """Say when the network goes away, and when it is back. A member that has to go past its broker is away briefly."""
    while not network.closed:  # when it is, who uses it says why
        await network.wait_while(State.READY, None)
        try:
            await network.wait_while(State.AWAY, PROMPT_S)
        except TimedOut:
            tell(f"the network is away ({network.reason}); waiting for it")
            await network.wait_while(State.AWAY, None)
            if not network.closed:
                tell("the network is back")
