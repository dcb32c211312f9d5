"""A bare port with streams that are logged."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from portions import portion

from bare_port import BarePort
from holdfast.client import effect as effects
from holdfast.client import input as inputs
from holdfast.client.reading import Reading
from holdfast.streams.checkpoint_token import Place, Token

__all__ = ["BEGIN", "PUBEND", "LoggedPort", "turns"]

PUBEND = "s@b/1"
BEGIN = Token({PUBEND: Place(1, 100)})


class LoggedPort(BarePort):
    """Says where a subscription begins, and gives it portions; saves what is committed when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.saves = True
        self._readings: dict[int, Reading] = {}

    def submit(self, stimulus: object) -> None:
        match stimulus:
            case inputs.AddSubscription(number, _, buffer):
                self.heard.append(stimulus)
                self._readings[number] = Reading(buffer)
                self._readings[number].begin(number, {PUBEND: (1, 100)})
                if self.confirms:
                    self.say(effects.Subscribed(number, (), BEGIN))
            case inputs.EndSubscription(number):
                self.heard.append(stimulus)
                if self.confirms:
                    self.say(effects.Unsubscribed(number))
            case inputs.Commit(number, _, ticket) if self.saves:
                self.heard.append(stimulus)
                self.say(effects.Committed(number, ticket))
            case _:
                super().submit(stimulus)

    def give(self, *ticks: int, upto: int = 0, number: int = 1) -> None:
        stretch = self._readings[number].take(portion(*ticks, upto=upto, number=number))
        assert stretch is not None
        self.say(stretch)

    @property
    def commits(self) -> list[Mapping[str, int]]:
        return [each.places for each in self.heard if isinstance(each, inputs.Commit)]

    @property
    def logged_consumed(self) -> int:
        return sum(each.logged for each in self.heard if isinstance(each, inputs.Consumed))


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
