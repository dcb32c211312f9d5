from __future__ import annotations

import asyncio

import pytest

from holdfast.client.aio_waiting import Waiters
from holdfast.client.errors import TimedOut
from scenario import scenario


@scenario
async def test_everybody_looks_again_when_something_changes() -> None:
    waiters = Waiters()
    level = 0
    waiting = [asyncio.create_task(waiters.wait_until(lambda k=k: level >= k, None)) for k in (1, 2)]  # type: ignore[misc]
    await asyncio.sleep(0)
    level = 1
    waiters.wake()
    await waiting[0]
    assert not waiting[1].done()
    level = 2
    waiters.wake()
    await waiting[1]


@scenario
async def test_those_who_gave_up_are_forgotten() -> None:
    waiters = Waiters()
    for _ in range(100):
        with pytest.raises(TimedOut, match="nothing within 0 s, since it rains"):
            await waiters.wait_until(lambda: False, 0, lambda: ", since it rains")
    cancelled = asyncio.create_task(waiters.wait_until(lambda: False, None))
    await asyncio.sleep(0)
    assert waiters.count == 1
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert waiters.count == 0


@scenario
async def test_what_holds_already_is_not_waited_for_and_what_holds_at_the_last_moment_counts() -> None:
    waiters = Waiters()
    await waiters.wait_until(lambda: True, 0)
    looks = iter([False, False, True])
    await waiters.wait_until(lambda: next(looks), 0)
