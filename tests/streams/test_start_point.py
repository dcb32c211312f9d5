"""X22, the start point race: PHB - I - SHB, 500 ms a hop, a matching event every 10 ms, no subscriber before."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, Items, Start
from holdfast.streams.constream import Constream
from holdfast.streams.istream import Receiver, Sender
from holdfast.streams.knowledge import Knowledge

STEP = 10_000  # ticks: 10 ms
HOP = 50  # steps
SUBSCRIBED = 100
ME, VERSION = 1, 1


@dataclass(frozen=True)
class Confirmed:
    """The confirmation on its way in, with the highest install tick so far."""

    install_tick: int


class Wire:
    """What is said arrives in order, half a second later."""

    def __init__(self) -> None:
        self.queue: deque[tuple[int, Start | Items | Confirmed]] = deque()

    def say(self, now: int, *said: Start | Items | Confirmed) -> None:
        self.queue.extend((now + HOP, each) for each in said)

    def heard(self, now: int) -> list[Start | Items | Confirmed]:
        heard = []
        while self.queue and self.queue[0][0] <= now:
            heard.append(self.queue.popleft()[1])
        return heard


class Chain:
    """The subscription leaves the SHB at SUBSCRIBED, is installed at the PHB two hops later, then at I, then here."""

    def __init__(self) -> None:
        self.phb, self.relay, self.shb = Knowledge("P"), Knowledge("P"), Knowledge("P")
        self.to_relay, self.to_shb = Wire(), Wire()
        self.from_phb, self.from_relay = Sender(self.phb), Sender(self.relay)
        self.at_relay, self.at_shb = Receiver(self.relay), Receiver(self.shb)
        self.to_relay.say(0, self.from_phb.start)
        self.to_shb.say(0, self.from_relay.start)
        self.constream = Constream(self.shb, 0)
        self.published: list[int] = []
        self.delivered: list[int] = []
        self.installed_at_phb = self.start = 0

    def on_subscribed(self) -> None:
        """The subscriber waits for its confirmation."""

    def on_confirmed(self, install_tick: int) -> None:
        self.install(VERSION, install_tick)

    def install(self, version: int, install_tick: int) -> None:
        self.start = self.constream.install(ME, version, install_tick)
        assert self.constream.attach(ME, self.start) == []

    def run(self, steps: int) -> None:
        for now in range(1, steps):
            self.publish(now)
            if now == SUBSCRIBED:
                self.on_subscribed()
            for said in self.to_relay.heard(now):
                self.hear(said, self.at_relay)
                if isinstance(said, Confirmed):
                    silence, tick = self.from_relay.become_version(VERSION, VERSION)
                    self.to_shb.say(now, silence, Confirmed(max(tick, said.install_tick)))
                else:
                    self.pass_on(self.from_relay, self.to_shb, now)
            for said in self.to_shb.heard(now):
                self.hear(said, self.at_shb)
                if isinstance(said, Confirmed):
                    self.on_confirmed(said.install_tick)
                else:
                    self.hand()

    def publish(self, now: int) -> None:
        tick = now * STEP
        self.published.append(tick)
        self.phb.add(Items("P", ABSOLUTE, [tick - STEP], [tick], [Publication("p", now, b"x")]))
        self.pass_on(self.from_phb, self.to_relay, now)
        if now == SUBSCRIBED + 2 * HOP:
            silence, self.installed_at_phb = self.from_phb.become_version(VERSION, VERSION)
            self.to_relay.say(now, silence, Confirmed(self.installed_at_phb))

    def pass_on(self, sender: Sender, wire: Wire, now: int) -> None:
        ticks, publications = sender.events()
        wire.say(now, sender.pass_on(ticks, publications) if sender.under else sender.pass_on([], []))
        wire.say(now, sender.silence())

    def hear(self, said: Start | Items | Confirmed, receiver: Receiver) -> None:
        if isinstance(said, Start):
            receiver.on_start(said)
        elif isinstance(said, Items):
            receiver.on_items(said)

    def hand(self) -> None:
        stretch = self.constream.next_stretch(1000)
        if stretch is not None:
            handing = self.constream.hand(stretch, [[ME]] * len(stretch.ticks))
            self.delivered += [stretch.ticks[i] for i in handing.deliveries.get(ME, ())]
            self.constream.on_stable(stretch.upto)

    @property
    def owed(self) -> list[int]:
        """Everything above its start that has had the time to arrive."""
        return [tick for tick in self.published if self.start < tick <= self.constream.handed]


def test_x22_the_start_is_not_below_the_install_tick_and_everything_after_it_is_delivered() -> None:
    chain = Chain()
    chain.run(600)
    assert chain.start >= chain.installed_at_phb > 0
    assert len(chain.owed) > 200
    assert chain.delivered == chain.owed
    assert chain.constream.missing(chain.at_shb.edge or 0) == [], "and nobody had to ask for anything"


class AtOnce(Chain):
    """[BZA §4.1] as it is written: CT = latestDelivered, when it comes; and silence is silence."""

    version = 0

    def on_subscribed(self) -> None:
        self.install(self.version, 0)

    def on_confirmed(self, install_tick: int) -> None:
        pass


def test_x22_without_the_install_tick_about_a_hundred_are_lost() -> None:
    chain = AtOnce()
    chain.run(600)
    lost = [tick for tick in chain.owed if tick > SUBSCRIBED * STEP and tick not in chain.delivered]
    assert 90 <= len(lost) <= 110


class AtOnceUnderItsVersion(AtOnce):
    version = VERSION


def test_b1_2_without_the_install_tick_versions_still_keep_it_true() -> None:
    """The silence above its start was said under a version without it: it does not count, and is asked for."""
    chain = AtOnceUnderItsVersion()
    chain.run(600)
    assert chain.delivered == []
    asked = chain.constream.missing(chain.at_shb.edge or 0)
    assert asked == [(VERSION, [(chain.start, chain.installed_at_phb)])]
