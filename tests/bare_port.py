"""A network of nothing but a loop: what is published is accepted, and delivered to every subscription.

A fake for the client's asyncio side, where each effect can be held back, refused or made up; and the least a port can
cost, to measure that side by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.client import effect as effects
from holdfast.client import input as inputs
from holdfast.client.aio import Connecting, Network
from holdfast.client.numbers import Numbers
from holdfast.client.port import Port
from holdfast.client.settings import Settings
from holdfast.errors import HoldfastError
from holdfast.messages.publications import Publication
from holdfast.messages.session import Farewell
from holdfast.overlay.transport import Core

__all__ = ["BarePort"]


class BarePort:
    """Answers every input at once, unless told not to."""

    say: Callable[[Any], None]  #: to the application, once connected
    log: Callable[[str, str, Mapping[str, Any]], None]

    def __init__(self) -> None:
        self.heard: list[Any] = []  #: every input but publications
        self.published: list[Publication] = []
        self.last_number = 0  #: what Ready tells
        self.is_there = True  #: whether Open is answered
        self.accepts = True  #: whether publications are acknowledged
        self.confirms = True  #: whether subscriptions are
        self.refuses: dict[int, tuple[str, str]] = {}  #: numbers: why, and the code of that
        self._subscriptions: list[int] = []

    def connect(
        self, *, numbers: Numbers | None = None, timeout: float | None = 5.0, unacknowledged_max: int = 1000
    ) -> Connecting:
        """A client called ``me`` at this port."""
        settings = Settings("me", 1, "nowhere:1", unacknowledged_max=unacknowledged_max)
        return Connecting(lambda: Network(settings, numbers or Numbers(), self._dial, "bare://"), timeout)

    def _dial(
        self,
        core: Core,
        *,
        application: Callable[[Any], None],
        log: Callable[[str, str, Mapping[str, Any]], None],
    ) -> Port:
        self.say, self.log = application, log
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        return self

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        if not self._stopped.done():
            self._stopped.set_result(None)

    async def wait_stopped(self) -> None:
        await asyncio.shield(self._stopped)

    def fail(self, error: HoldfastError) -> None:
        self._stopped.set_exception(error)

    def submit(self, stimulus: Any) -> None:
        if isinstance(stimulus, inputs.Submit):
            self._on_submit(stimulus.publications)
            return
        self.heard.append(stimulus)
        match stimulus:
            case inputs.Open() if self.is_there:
                self.say(effects.Ready("bare", self.last_number))
            case inputs.AddSubscription(number):
                self._subscriptions.append(number)
                if self.confirms:
                    self.say(effects.Subscribed(number, ()))
            case inputs.EndSubscription(number):
                self._subscriptions.remove(number)
                if self.confirms:
                    self.say(effects.Unsubscribed(number))
            case inputs.Leave():
                self.say(effects.Ended(Farewell.LEAVING, "left"))

    def _on_submit(self, publications: list[Publication]) -> None:
        self.published += publications
        if not self.accepts:
            return
        for publication in publications:
            if publication.n in self.refuses:
                self.say(effects.NotAccepted(publication.n, *self.refuses[publication.n]))
        for number in self._subscriptions:
            self.say(effects.Delivered(number, [*publications], [None] * len(publications)))
        self.say(effects.Acknowledged(publications[-1].n, ()))

    @property
    def consumed(self) -> int:
        return sum(each.count for each in self.heard if isinstance(each, inputs.Consumed))
