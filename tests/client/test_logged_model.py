"""A client's core against a log that is nothing but a list, through any interleaving of everything [I16].

The broker here is as careless as the protocol allows: it forgets where a subscriber stood, repeats what it sent before
a break, releases what it likes, and counts credit. The claims are those of [BZA §2]: every tick is told once, as an
event, a silence or a gap, and what is told is true.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from portions import portion, said

from answered import Answered
from examples import examples
from holdfast.client import ledger
from holdfast.client.effect import Stretch
from holdfast.client.input import AddSubscription, Consumed
from holdfast.client.item import Gap, Silence
from holdfast.client.reading import Reading
from holdfast.messages.durable import Credit, Portion
from holdfast.messages.message import Message
from holdfast.messages.subscriptions import Confirmed, Resume, Subscribe

PUBENDS = ("s@a/1", "s@b/1", "s@b/2")
BUFFER = 6


class Wrong(Exception):
    """A claim does not hold."""


class CarelessBroker:
    """One subscriber's broker: by pubend a log of ticks, each an event (True) or nothing, and what it has released."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.log: dict[str, list[bool]] = {pubend: [] for pubend in PUBENDS}
        self.released = dict.fromkeys(PUBENDS, 0)
        self.sent = dict.fromkeys(PUBENDS, 0)
        self.credit = 0

    def hear(self, messages: list[Message]) -> Confirmed | None:
        answer = None
        for message in messages:
            match message:
                case Credit(_, count):
                    self.credit += count
                case Subscribe(resume=resume) as subscribe:
                    assert resume is not None
                    self.credit = resume.credit
                    for pubend in PUBENDS:
                        received = (resume.token or {}).get(pubend, (1, 0))[1]
                        back = self.draw.randrange(3) if self.draw.random() < 0.5 else 0
                        self.sent[pubend] = max(0, received - back)
                    token = {pubend: (1, sent) for pubend, sent in self.sent.items() if sent}
                    answer = Confirmed(subscribe.subscription, (), token)
        return answer

    def publish(self) -> None:
        pubend = self.draw.choice(PUBENDS)
        self.log[pubend] += [self.draw.random() < 0.6 for _ in range(self.draw.randint(1, 4))]

    def release(self) -> None:
        pubend = self.draw.choice(PUBENDS)
        self.released[pubend] = self.draw.randint(self.released[pubend], len(self.log[pubend]))

    def send(self) -> Portion | None:
        """As much as there is credit for, or less."""
        pubend = self.draw.choice(PUBENDS)
        after = self.sent[pubend]
        lost = self.released[pubend] if self.released[pubend] > after else 0
        ticks: list[int] = []
        upto = max(after, lost)
        end = self.draw.randint(upto, len(self.log[pubend]))
        while upto < end and (len(ticks) < self.credit or not self.log[pubend][upto]):
            upto += 1
            ticks += [upto] if self.log[pubend][upto - 1] else []
        if upto == after:
            return None
        self.sent[pubend] = upto
        self.credit -= len(ticks)
        return portion(*ticks, upto=upto, lost=lost, reason="released", pubend=pubend)


class Run:
    """The claims, checked at every step."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.broker = CarelessBroker(self.draw)
        self.world = Answered()
        self.position = dict.fromkeys(PUBENDS, 0)
        self.waiting = 0
        self.world.open()
        self.step(AddSubscription(1, "#", BUFFER, start=0))

    def step(self, stimulus: Any) -> None:
        self.take(self.world.step(stimulus))

    def take(self, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Stretch):
                self.check(effect)
        if self.world.connection:
            heard, self.world.said = self.world.said, []
            confirmed = self.broker.hear(heard)
            if confirmed is not None:
                self.take(self.world.say(confirmed))

    def check(self, stretch: Stretch) -> None:
        log, released = self.broker.log[stretch.pubend], self.broker.released[stretch.pubend]
        for item in said([stretch]):
            position = self.position[stretch.pubend]
            match item:
                case Gap(_, after, upto):
                    _claim(after == position and upto <= released, f"{item} at {position}")
                case Silence(_, after, upto):
                    _claim(after == position and not any(log[after:upto]), f"{item} at {position}")
                case _:
                    upto = item
                    _claim(upto > position and log[upto - 1], f"an event at {upto}, after {position}")
                    _claim(not any(log[position : upto - 1]), f"something is missing before {upto}")
                    self.waiting += 1
            self.position[stretch.pubend] = upto
        _claim(self.waiting <= BUFFER, f"{self.waiting} wait")

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self.any_step()
        self.settle()

    def any_step(self) -> None:
        match self.draw.choice(["publish", "publish", "send", "send", "send", "consume", "lose", "release"]):
            case "publish":
                self.broker.publish()
            case "release" if self.draw.random() < 0.2:
                self.broker.release()
            case "send" if self.world.connection:
                self.send()
            case "consume":
                self.consume(self.draw.randint(0, self.waiting))
            case "lose" if self.world.connection and self.draw.random() < 0.3:
                self.world.lose()
            case _ if not self.world.connection:
                self.reconnect()

    def send(self) -> None:
        message = self.broker.send()
        if message is not None:
            self.take(self.world.say(message))

    def consume(self, count: int) -> None:
        self.waiting -= count
        self.step(Consumed(1, 0, count))

    def reconnect(self) -> None:
        self.take(self.world.reconnect())

    def settle(self) -> None:
        """In the end everything is told, if the application consumes."""
        if not self.world.connection:
            self.reconnect()
        for _ in range(500):
            self.send()
            self.consume(self.waiting)
        lengths = {pubend: len(log) for pubend, log in self.broker.log.items()}
        _claim(self.position == lengths, f"told up to {self.position}, there is {lengths}")
        _claim(
            2 * self.broker.credit >= BUFFER, f"only {self.broker.credit} may be sent, though nothing waits"
        )


def _claim(holds: bool, what: str) -> None:
    if not holds:
        raise Wrong(what)


@examples(60)
@given(st.integers(0, 2**32))
def test_i16_every_tick_is_told_once_and_truly(seed: int) -> None:
    Run(seed).go(150)


# A core that is broken is caught


class Forgetful(Reading):
    """Takes whatever it is sent."""

    def take(self, portion: Portion) -> Stretch | None:
        self._places.pop(portion.pubend, None)
        return super().take(portion)


class Greedy(Reading):
    """Asks for a whole buffer after each interruption, whatever waits."""

    def resume(self, consumed: Mapping[str, int]) -> Resume:
        self._room, room = 0, self._room
        resume = super().resume(consumed)
        self._room = room
        return resume


class Stingy(Reading):
    """Does not give back the credit of what it turned away."""

    def take(self, portion: Portion) -> Stretch | None:
        owed = self._owed
        stretch = super().take(portion)
        self._owed = owed
        return stretch


class Quiet(Reading):
    """Goes over what is lost without a word."""

    def take(self, portion: Portion) -> Stretch | None:
        if portion.lost_through:
            self._advance(portion.pubend, 1, portion.lost_through)
        return super().take(portion)


class Hasty(Reading):
    """Presents itself farther than it has come."""

    def resume(self, consumed: Mapping[str, int]) -> Resume:
        for pubend, place in list(self._places.items()):
            self._places[pubend] = place._replace(tick=place.tick + 1)
        return super().resume(consumed)


@pytest.mark.parametrize("broken", [Forgetful, Greedy, Stingy, Quiet, Hasty])
def test_a_broken_reading_is_caught(broken: type[Reading], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "Reading", broken)

    def fails(seed: int) -> bool:
        try:
            Run(seed).go(150)
        except (Wrong, AssertionError):
            return True
        return False

    assert any(fails(seed) for seed in range(60))
