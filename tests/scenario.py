"""Tests that are coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec

__all__ = ["run_scenario", "scenario"]

SCENARIO_SECONDS = 30.0
Arguments = ParamSpec("Arguments")


def run_scenario(coroutine: Awaitable[None]) -> None:
    """Run it, not for ever, and see that it leaves no task behind."""

    async def watched() -> None:
        async with asyncio.timeout(SCENARIO_SECONDS):
            await coroutine
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left

    asyncio.run(watched())


def scenario(test: Callable[Arguments, Awaitable[None]]) -> Callable[Arguments, None]:
    """A test that is a coroutine."""

    @wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        run_scenario(test(*args, **kwargs))

    return run
