"""Commits of a durable subscription: each is answered when it is on its broker's disk; or they are made by the way.

Automatic commits are of what the application must be done with: what it had taken before it asked for more. They go out
at most every 250 ms [R1.30], and once more when the subscription is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from holdfast.messages.ticks import Tick

__all__ = ["AutoCommits", "Commits"]

#: Between two automatic commits.
EVERY_SECONDS: Final = 0.25


class Commits:
    """``submit`` is given places, by pubend, and a ticket; ``on_committed`` brings it back."""

    def __init__(self, submit: Callable[[Mapping[str, Tick], int], None]) -> None:
        self._submit = submit
        self._ticket = 0  #: of the last one
        self._committed = 0

    def start(self, places: Mapping[str, Tick]) -> int:
        """Commit these places, if any; the ticket to wait for."""
        if places:
            self._ticket += 1
            self._submit(places, self._ticket)
        return self._ticket

    def is_done(self, ticket: int) -> bool:
        """Whether what was committed under a ticket, and before, is on disk."""
        return self._committed >= ticket

    def on_committed(self, ticket: int) -> None:
        """Everything up to a ticket is on disk."""
        self._committed = ticket


class AutoCommits:
    """What the application is done with, until it is committed."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self._done: dict[str, Tick] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, places: Mapping[str, Tick]) -> None:
        """The application is done with what it took up to here."""
        self._done.update(places)
        if self._done and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(EVERY_SECONDS, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> int:
        """Commit it now; the ticket to wait for."""
        done, self._done = self._done, {}
        return self._commits.start(done)

    def stop(self) -> None:
        """Nothing more is committed by the way."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._done.clear()
