"""The consolidated stream: R1.12, R1.18-R1.22, B1.1, B1.5, B1.10, B1.13, I16, I17; against a log and sets of labels."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from holdfast.intervals import Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, Items
from holdfast.streams.constream import UNSTABLE_MAX, Constream
from holdfast.streams.knowledge import Knowledge
from holdfast.streams.tick import Stretch, laid_out

Step = tuple[str, int, int]
WHAT = (
    *("publish",) * 6,
    *("hand",) * 4,
    *("stable", "install", "connect", "connect", "disconnect", "silence", "acknowledge", "answer", "restart"),
    *("fall behind", "catch up", "catch up"),
)


def event(tick: int, label: int) -> Publication:
    return Publication("p", tick, bytes([label]))


class Subscriber:
    """What one subscriber was told, and what it must have been."""

    def __init__(self, labels: set[int], version: int, start: int) -> None:
        self.labels = labels
        self.version = version
        self.start = self.position = self.acknowledged = start
        self.events: list[int] = []
        self.is_connected = self.is_attached = False

    def tell(self, ticks: Sequence[int], upto: int) -> None:
        for tick in ticks:
            assert tick > self.position, "ticks increase (I16)"
            self.position = tick
            self.events.append(tick)
        self.position = max(self.position, upto)


class Host:
    """An SHB without a network: what comes from upstream is lost or not; the filtering log is a dict."""

    def __init__(self, kind: type[Constream]) -> None:
        self.kind = kind
        self.log: dict[int, Publication] = {}
        self.tick = 0
        self.subscribers: dict[int, Subscriber] = {}
        self.matches: dict[int, list[int]] = {}  #: on disk
        self.unsynced: dict[int, list[int]] = {}
        self.saved = 0
        self.released = 0
        self.begin()

    def begin(self) -> None:
        self.knowledge = Knowledge("P")
        self.constream = self.kind(self.knowledge, self.saved)
        self.unsynced = {}

    def wanted(self, version: int) -> set[int]:
        """What upstream filters by."""
        return {
            label for each in self.subscribers.values() if each.version <= version for label in each.labels
        }

    def tell(self, after: int, upto: int, version: int) -> None:
        """Upstream says what is in a range, under a version."""
        wanted = self.wanted(version)
        ticks = [t for t in self.log if after < t <= upto and self.log[t].event[0] in wanted]
        columns = laid_out([(after, upto)], ticks, [self.log[t] for t in ticks])
        self.knowledge.add(Items("P", version, *columns))

    @property
    def version(self) -> int:
        return len(self.subscribers)

    def happen(self, step: Step) -> None:
        what, a, b = step
        number = a % self.version if self.version else -1
        subscriber = self.subscribers.get(number)
        match what:
            case "publish":
                before, self.tick = self.tick, self.tick + 1 + a % 3
                self.log[self.tick] = event(self.tick, a % 4)
                if b % 3:
                    self.tell(before, self.tick, self.version)
            case "answer":
                for version, spans in self.constream.missing(self.tick):
                    for span in spans:
                        self.tell(*span, version)
            case "hand":
                self.hand(1 + b % 3)
            case "stable":
                self.sync()
            case "install":
                self.install({b % 4, b // 4 % 4})
            case "connect" if subscriber is not None and not subscriber.is_connected:
                self.connect(number, subscriber)
            case "disconnect" if subscriber is not None:
                subscriber.is_connected = subscriber.is_attached = False
                self.constream.detach(number)
            case "fall behind" if subscriber is not None and subscriber.is_connected:
                subscriber.is_attached = False
                self.constream.fall_behind(number, subscriber.position)
            case "catch up" if (
                subscriber is not None and subscriber.is_connected and not subscriber.is_attached
            ):
                self.catch_up(number, subscriber, b % 3)
            case "silence":
                for each, after, upto in self.constream.next_silences(b % 5):
                    assert after == self.subscribers[each].position
                    self.subscribers[each].tell([], upto)
            case "acknowledge" if subscriber is not None:
                self.acknowledge(number, subscriber, b % 3 == 0)
            case "restart":
                self.restart()
        self.check()

    def install(self, labels: set[int]) -> None:
        """The subscription is confirmed: upstream filters for it above the present tick (X22)."""
        number = self.version
        self.subscribers[number] = Subscriber(labels, number + 1, 0)
        start = self.constream.install(number, number + 1, self.tick)
        assert start >= self.tick, "B1.1"
        self.subscribers[number] = Subscriber(labels, number + 1, start)

    def hand(self, limit: int) -> None:
        stretch = self.constream.next_stretch(limit)
        if stretch is None:
            return
        found = [
            [n for n, each in self.subscribers.items() if publication.event[0] in each.labels]
            for publication in stretch.publications
        ]
        handing = self.constream.hand(stretch, found)
        for number, at in handing.deliveries.items():
            assert self.subscribers[number].is_attached
            self.subscribers[number].tell([stretch.ticks[i] for i in at], 0)
        for tick, numbers in handing.records:
            if tick not in self.matches:  # B1.5
                self.unsynced[tick] = list(numbers)

    def sync(self) -> None:
        self.matches |= self.unsynced
        self.unsynced = {}
        self.constream.on_stable(self.constream.handed)

    def connect(self, number: int, subscriber: Subscriber) -> None:
        """It goes on behind what is known to be silence, with the others at once, or by catching up."""
        subscriber.is_connected = True
        subscriber.tell([], self.constream.skip(number, subscriber.position))
        self.constream.on_told(number, subscriber.position)
        if not self.attach(number, subscriber):
            self.constream.fall_behind(number, subscriber.position)

    def attach(self, number: int, subscriber: Subscriber) -> bool:
        stretches = self.constream.attach(number, subscriber.position)
        for stretch in stretches or ():
            assert stretch.after == subscriber.position
            subscriber.tell(stretch.ticks, stretch.upto)
        subscriber.is_attached = stretches is not None
        return subscriber.is_attached

    def catch_up(self, number: int, subscriber: Subscriber, limit: int) -> None:
        """So many matches from the filtering log; then go on with the others in the same step, if that was all."""
        upto = self.constream.latest_delivered
        missed = [t for t, found in sorted(self.matches.items()) if number in found]
        missed = [t for t in missed if subscriber.position < t <= upto]
        subscriber.tell(missed[:limit], 0)
        if len(missed) <= limit:
            subscriber.tell([], upto)
        self.constream.on_told(number, subscriber.position)
        is_attached = self.attach(number, subscriber)
        assert is_attached == (len(missed) <= limit), "R1.12: when it has caught up, and not before"

    def acknowledge(self, number: int, subscriber: Subscriber, is_false: bool) -> None:
        if is_false:
            assert not self.constream.acknowledge(number, subscriber.position + 1000), "B1.10"
        elif self.constream.acknowledge(number, subscriber.position):
            subscriber.acknowledged = subscriber.position

    def restart(self) -> None:
        """What was saved is latest_delivered, and what each has released (R1.21)."""
        self.saved = self.constream.latest_delivered
        released = {number: self.constream.released_by(number) for number in self.subscribers}
        self.begin()
        for number, subscriber in self.subscribers.items():
            subscriber.is_connected = subscriber.is_attached = False
            matched = max([t for t, found in self.matches.items() if number in found], default=0)
            self.constream.restore(
                number,
                subscriber.version,
                subscriber.start,
                released[number],
                acknowledged=subscriber.acknowledged,
                matched=matched,
            )

    def check(self) -> None:
        constream = self.constream
        assert constream.latest_delivered <= constream.handed <= constream.horizon
        for number, each in self.subscribers.items():
            if each.is_attached:
                assert each.events == self.owed(each, max(each.position, constream.handed))
            assert each.events == self.owed(each, each.position), f"{number} at {each.position}"
        for tick in range(1, constream.latest_delivered + 1):
            label = self.log[tick].event[0] if tick in self.log else -1
            found = [n for n, each in self.subscribers.items() if label in each.labels and each.start < tick]
            assert self.matches.get(tick, []) == found, "the filtering log is precise (I21)"
        here = [each.position for each in self.subscribers.values() if each.is_connected]
        needed = [each.acknowledged for each in self.subscribers.values() if not self.is_done(each)]
        least = min([constream.latest_delivered, *here, *needed])
        most = min([constream.latest_delivered, *here])
        assert least <= constream.released <= most, "nobody's token is older, of those who are here"
        for each in self.subscribers.values():
            unread = [t for t in self.owed(each, constream.handed) if t > each.acknowledged]
            assert not unread or constream.released < unread[0], (
                "what somebody has not acknowledged is kept (I17)"
            )
        assert constream.released >= self.released, "it only grows, over restarts as well (I17)"
        self.released = constream.released

    def is_done(self, each: Subscriber) -> bool:
        """Whether somebody has acknowledged all that was for it."""
        last = max([each.start, *self.owed(each, self.constream.handed)])
        return each.acknowledged >= last

    def owed(self, each: Subscriber, upto: int) -> list[int]:
        return [t for t in self.log if each.start < t <= upto and self.log[t].event[0] in each.labels]


STEPS = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 99), st.integers(0, 99)), max_size=60)


def run(steps: Sequence[Step], kind: type[Constream] = Constream) -> None:
    host = Host(kind)
    for step in steps:
        host.happen(step)
    for what in ("answer", *("hand",) * len(host.log), "stable", "answer"):
        host.happen((what, 0, 99))
    assert host.constream.latest_delivered == host.tick, "nothing holds it up for ever"


@examples(200)
@given(STEPS)
def test_i16_everybody_is_told_everything_once_and_the_log_of_matches_is_exact(steps: list[Step]) -> None:
    run(steps)


def drawn(seed: int) -> list[Step]:
    random = Random(seed)
    return [
        (random.choice(WHAT), random.randrange(100), random.randrange(100))
        for _ in range(random.randint(20, 150))
    ]


@pytest.mark.parametrize("seed", range(30))
def test_i16_in_long_histories(seed: int) -> None:
    run(drawn(seed))


# Every rule is needed


class Early(Constream):
    """latest_delivered moves when something is enqueued, not when it is on disk (against R1.19)."""

    def hand(self, stretch: Stretch, matches: Sequence[Sequence[int]]):  # type: ignore[no-untyped-def]
        handing = super().hand(stretch, matches)
        self.latest_delivered = self.handed
        return handing


class Racing(Constream):
    """What was handed out while somebody caught up is not told to it (against B1.13)."""

    def attach(self, subscriber: int, position: int) -> list[Stretch] | None:
        stretches = super().attach(subscriber, position)
        return None if stretches is None else []


class FromLatestDelivered(Constream):
    """A new subscription starts where the others are, whenever it was installed upstream (against B1.1)."""

    def install(self, subscriber: int, version: int, install_tick: int) -> int:  # type: ignore[override]
        super().install(subscriber, version, 0)
        return install_tick


class AnySilence(Constream):
    """Silence under an older version is taken for the new subscription's too (against B1.2)."""

    def _wanted(self, upto: int) -> list[tuple[int, int]]:
        return [(0, upto)]


class Credulous(Constream):
    """Believes whatever is acknowledged (against B1.10)."""

    def acknowledge(self, subscriber: int, tick: int, had: int = ABSOLUTE) -> bool:
        self._subscribers[subscriber].told = tick
        return super().acknowledge(subscriber, tick, had)


class Gone(Constream):
    """Whoever falls behind is as good as away, and pins no silence."""

    def fall_behind(self, subscriber: int, position: int) -> None:
        self.detach(subscriber)


@pytest.mark.parametrize("kind", [Early, Racing, FromLatestDelivered, AnySilence, Credulous, Gone])
def test_a_broken_rule_is_caught(kind: type[Constream]) -> None:
    def fails(seed: int) -> bool:
        try:
            run(drawn(seed), kind)
        except AssertionError:
            return True
        return False

    assert any(fails(seed) for seed in range(200))


# By hand


def told(*spans: Span, under: int = ABSOLUTE) -> Knowledge:
    knowledge = Knowledge("P")
    for span in spans:
        knowledge.add_silence(*span, under)
    return knowledge


def test_figure_1_the_constream_delivers_up_to_its_doubt_horizon() -> None:
    """[BZA Fig 1], R1.16: latestDelivered 104, DH 106: D3 at 105 or 106 goes out, and what is behind the Q waits.

    It goes to those who are current and to the filtering log.
    """
    knowledge = told((100, 105), (107, 110))
    knowledge.add_events([106], [event(106, 0)])
    constream = Constream(knowledge, 104)
    constream.install(1, 1, 0)
    constream.attach(1, 104)
    assert constream.horizon == 106
    stretch = constream.next_stretch(10)
    assert stretch is not None
    handing = constream.hand(stretch, [[1]])
    assert handing.deliveries == {1: [0]}
    assert handing.records == [(106, [1])]
    assert (constream.handed, constream.latest_delivered) == (106, 104)
    constream.on_stable(106)
    assert constream.latest_delivered == 106
    assert constream.missing(110) == [(1, [(106, 107)])]


def test_r1_20_whoever_had_no_match_for_a_while_is_told_silence_and_only_then() -> None:
    knowledge = told((0, 50))
    constream = Constream(knowledge, 0)
    constream.install(1, 1, 0)
    constream.attach(1, 0)
    stretch = constream.next_stretch(10)
    assert stretch is not None
    constream.hand(stretch, [])
    assert constream.next_silences(lag=50) == []
    assert constream.next_silences(lag=49) == [(1, 0, 50)]
    assert constream.next_silences(lag=0) == []
    assert constream.acknowledge(1, 50), "so that its token does not lag"


def test_silence_that_is_acknowledged_is_released_and_stays_known_as_silence() -> None:
    constream = Constream(told((0, 50)), 0)
    constream.install(1, 1, 0)
    constream.on_told(1, 50)
    for tick, had, stand in [(20, 10, (0, 10, 20)), (30, 10, (0, 10, 30)), (50, 40, (0, 40, 50))]:
        assert constream.acknowledge(1, tick, had)
        assert constream.stand(1) == stand


def test_silence_is_released_when_those_who_are_here_were_told_it() -> None:
    """If this broker dies now they go elsewhere with their tokens, and nobody there knows that nothing was for them."""
    knowledge = told((0, 50))
    constream = Constream(knowledge, 0)
    for number in (1, 2):
        constream.install(number, 1, 0)
    constream.attach(1, 0)
    stretch = constream.next_stretch(10)
    assert stretch is not None
    constream.hand(stretch, [])
    constream.on_stable(50)
    assert (constream.released, constream.latest_delivered) == (0, 50)
    constream.next_silences(lag=0)
    assert constream.released == 50, "who is away pins no silence"


def test_a_disk_that_stands_still_holds_up_the_stream() -> None:
    knowledge = Knowledge("P")
    constream = Constream(knowledge, 0)
    for tick in range(1, UNSTABLE_MAX + 2):
        knowledge.add_silence(tick - 1, tick)
        stretch = constream.next_stretch(10)
        assert (stretch is None) == (tick > UNSTABLE_MAX)
        if stretch is not None:
            constream.hand(stretch, [])
    constream.on_stable(1)
    assert constream.next_stretch(10) is not None


def test_a_broker_that_was_given_up_tells_its_gap_to_everybody() -> None:
    """B1.8: whoever is taken out of the minima and comes back has lost what was released meanwhile."""
    knowledge = Knowledge("P")
    constream = Constream(knowledge, 10)
    for subscriber in (1, 2, 3):
        constream.install(subscriber, 1, 0)
    constream.attach(1, 10)
    knowledge.add_lost(0, 20)
    knowledge.add_silence(20, 24)
    knowledge.add_events([25], [event(25, 0)])
    stretch = constream.next_stretch(10)
    assert stretch is not None
    assert (stretch.after, stretch.lost_through, stretch.upto) == (10, 20, 25)
    handing = constream.hand(stretch, [[1, 2]])
    assert handing.gaps == [(1, 10)]
    assert handing.records == [(11, [1, 2, 3]), (25, [1, 2])], "whoever is away will ask there, and be told"
    assert constream.attach(2, 10) is not None, "nothing is stable yet: all of it is still here"
    knowledge.add_lost(25, 30)
    stretch = constream.next_stretch(10)
    assert stretch is not None
    assert (stretch.after, stretch.lost_through, stretch.upto) == (25, 30, 30)


def test_who_is_attached_between_two_stretches_is_told_the_gap_too() -> None:
    knowledge = Knowledge("P")
    constream = Constream(knowledge, 10)
    constream.install(1, 1, 0)
    knowledge.add_lost(0, 20)
    knowledge.add_events([21], [event(21, 0)])
    stretch = constream.next_stretch(10)
    assert stretch is not None
    constream.hand(stretch, [[1]])
    stretches = constream.attach(1, 10)
    assert stretches is not None
    assert [(each.after, each.lost_through, each.ticks, each.upto) for each in stretches] == [
        (10, 20, [21], 21)
    ]


def test_a_token_ahead_of_what_was_saved_is_not_told_again() -> None:
    """R1.21: delivery is complete on enqueue, so after a crash a subscriber may be further than the broker."""
    knowledge = told((0, 4), (5, 9))
    knowledge.add_events([5, 10], [event(5, 0), event(10, 0)])
    constream = Constream(knowledge, 0)
    constream.restore(1, 1, start=0, released=0)
    assert constream.attach(1, 7) == []
    stretch = constream.next_stretch(10)
    assert stretch is not None
    handing = constream.hand(stretch, [[1], [1]])
    assert handing.deliveries == {1: [1]}


def test_subscriptions_that_are_not_durable_are_not_logged_and_pin_nothing() -> None:
    knowledge = told((0, 4))
    knowledge.add_events([5], [event(5, 0)])
    constream = Constream(knowledge, 0)
    constream.install(1, 1, 0, is_durable=False)
    constream.attach(1, 0)
    stretch = constream.next_stretch(10)
    assert stretch is not None
    handing = constream.hand(stretch, [[1, 7]])
    assert (handing.deliveries, handing.records) == ({1: [0]}, [])
    constream.on_stable(5)
    assert constream.released == 5
    constream.remove(1)
    assert not constream.acknowledge(1, 5)
