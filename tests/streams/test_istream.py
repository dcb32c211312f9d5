"""One pubend on one session: B1.1, B1.2, I20, and that no relay turns its ignorance into silence [design.md §3]."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from relays import WHAT, Parts, Step, World, drawn, run

from examples import examples
from holdfast.intervals import Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, Items, Lost, Start
from holdfast.streams.curiosity import Curiosity
from holdfast.streams.istream import Receiver, Sender
from holdfast.streams.knowledge import Knowledge
from holdfast.streams.tick import BadItems

STEPS = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 99), st.integers(0, 99)), max_size=80)
TREES = st.lists(st.integers(0, 5), min_size=1, max_size=5).map(
    lambda drawn: [parent % (i + 1) for i, parent in enumerate(drawn)]
)


@examples(60)
@given(TREES, STEPS)
def test_silence_is_true_and_everything_wanted_arrives(parents: list[int], steps: list[Step]) -> None:
    run(parents, steps, Parts())


@pytest.mark.parametrize("seed", range(40))
def test_silence_is_true_and_everything_wanted_arrives_in_long_histories(seed: int) -> None:
    world = run(*drawn(seed), Parts())
    assert world.tick > 0


# Every rule is needed: without it some history of those ends in a lie, or never.


class LastTickSent(Sender):
    """lo = the last tick sent, whatever was missed in between."""

    def _parts(self, upto: int) -> list[Span]:
        parts = super()._parts(upto)
        return [(self._lo, self._knowledge.edge)] if self._knowledge.edge > self._lo else parts


class AnyVersion(Sender):
    """Silence under whatever version is silence enough."""

    @property
    def covered_by(self) -> int:
        return 0


class SilenceKeptOver(Sender):
    """What was silent for an older version is said under the newer one."""

    def silence(self) -> Items:
        kept = self._lo
        items = super().silence()
        if not self._is_flushing:
            return items
        self._lo = kept
        return Items(self.pubend, self.under, [], [], [])

    _is_flushing = False

    def become_version(self, under: int, covered_by: int) -> tuple[Items, int]:
        self._is_flushing = True
        try:
            return super().become_version(under, covered_by)
        finally:
            self._is_flushing = False


class LatestVersion(Sender):
    """Answers are said under the latest version, not the one they were asked for."""

    def under_of(self, version: int) -> int:
        return self.under


class SilentBase(Receiver):
    """START is taken for silence up to its base."""

    def on_start(self, start: Start) -> None:
        super().on_start(start)
        for after, upto in self._knowledge.holes(0, start.base, 1):
            self._knowledge.add_silence(after, upto, 1)


class NeverAgain(Curiosity):
    """A new way is not asked what the old one was."""

    def become_reopened(self) -> None:
        pass

    def _expire(self, now: int) -> None:
        pass


class EvictedIsSilent(Knowledge):
    """A cache that takes what it lost for silence."""

    def _evict(self, cache_bytes: int) -> None:
        known = [(version, list(self._known[version])) for version in self._versions[:-1]]
        super()._evict(cache_bytes)
        for version, spans in known:
            for span in spans:
                self.add_silence(*span, version)


BROKEN = [
    Parts(sender=LastTickSent),
    Parts(sender=AnyVersion),
    Parts(sender=SilenceKeptOver),
    Parts(receiver=SilentBase),
    Parts(curiosity=NeverAgain),
    Parts(knowledge=EvictedIsSilent),
]


def failures(parts: Parts) -> Iterator[int]:
    for seed in range(400):
        try:
            run(*drawn(seed), parts)
        except (AssertionError, BadItems):
            yield seed


def name_of(parts: Parts) -> str:
    return next(str(each.__name__) for each in vars(parts).values() if each.__module__ == __name__)


@pytest.mark.parametrize("parts", BROKEN, ids=name_of)
def test_a_broken_rule_is_caught(parts: Parts) -> None:
    assert next(failures(parts), None) is not None


def asked_before_and_answered_after(parts: Parts) -> None:
    """A leaf asks for (0, 5], where an event is, then begins to want such events, and then comes the answer."""
    world = World([0, 1], parts)
    root, relay, leaf = world.nodes
    leaf.own = frozenset({0})
    leaf.reconsider()
    world.settle()
    world.publish(1, 5)
    world.say_silence()
    world.connect(relay)  # and nobody has heard of it
    world.settle()
    world.publish(None, 1)
    for _ in range(2):
        world.say_silence()
        world.settle()
    assert [nack.spans for nack in leaf.turn(1)] == [[(0, 5)]]
    world.settle()
    relay.turn(1)
    leaf.own = frozenset({0, 1})
    leaf.reconsider()
    assert relay.above is not None
    assert leaf.above is not None
    relay.on_below(leaf.above, leaf.above.up.popleft())  # the want overtakes the answer
    root.on_below(relay.above, relay.above.up.popleft())
    world.settle()
    world.check()
    world.heal()
    world.check_complete()


def test_b1_2_an_answer_is_said_under_the_version_it_was_asked_for() -> None:
    asked_before_and_answered_after(Parts())
    with pytest.raises(AssertionError, match="node 2 takes 5 for silent under 2"):
        asked_before_and_answered_after(Parts(sender=LatestVersion))


# By hand


def event(tick: int) -> Publication:
    return Publication("p", tick, b"x")


def test_lo_is_the_last_tick_asserted_or_the_highest_unknown() -> None:
    knowledge = Knowledge("P")
    sender = Sender(knowledge)
    sender.become_version(1, 1)
    knowledge.add(Items("P", 1, [0], [5], [event(5)]))
    first = sender.pass_on([5], [event(5)])
    assert (first.los, first.ticks) == ([0], [5])
    knowledge.add(Items("P", 1, [8], [10], [None]))  # (5, 8] is missing
    knowledge.add(Items("P", 1, [10], [15], [event(15)]))
    second = sender.pass_on([15], [event(15)])
    assert (second.los, second.ticks) == ([8], [15])
    knowledge.add(Items("P", 1, [15], [20], [None]))
    assert len(sender.pass_on([], [])) == 0, "silence is kept back"
    knowledge.add(Items("P", 1, [20], [25], [event(25)]))
    third = sender.pass_on([], [])
    assert len(third) == 0, "and so are events that nobody wants"
    said = sender.silence()
    assert (said.los, said.ticks, said.publications) == ([15], [25], [None])
    assert len(sender.silence()) == 0


def test_what_there_is_no_room_for_is_said_later_and_nothing_of_it_is_taken_for_silence() -> None:
    knowledge = Knowledge("P")
    sender = Sender(knowledge)
    sender.become_version(1, 1)
    for tick in (5, 10, 15):
        knowledge.add(Items("P", 1, [tick - 5], [tick], [event(tick)]))
    knowledge.add_lost(20, 30)
    first = sender.pass_on([5], [event(5)], upto=9)
    assert (first.los, first.ticks, list(first.lost)) == ([0], [5], [])
    assert (sender.edge, sender.silence().ticks) == (9, [9])
    rest = sender.pass_on([10, 15], [event(10), event(15)])
    assert (rest.los, rest.ticks, list(rest.lost)) == ([9, 10], [10, 15], [Lost(20, 30, "")])


def test_start_asserts_nothing_and_the_receiver_asks_from_its_horizon_to_the_base() -> None:
    above, below = Knowledge("P"), Knowledge("P")
    above.add(Items("P", ABSOLUTE, [0], [20], [event(20)]))
    sender, receiver = Sender(above), Receiver(below)
    assert receiver.missing(5, 1) == []
    receiver.on_start(sender.start)
    assert receiver.missing(5, 1) == [(5, 20)]
    above.add_silence(20, 30)
    sender.become_version(1, 1)
    assert len(sender.pass_on(*sender.events())) == 0
    receiver.on_items(sender.silence())
    assert receiver.missing(5, 1) == [(5, 20)]
    assert receiver.missing(20, 1) == []


def test_b1_1_the_install_tick_is_what_was_passed_before() -> None:
    knowledge = Knowledge("P")
    sender = Sender(knowledge)
    sender.become_version(1, 1)
    knowledge.add(Items("P", 1, [0], [9], [None]))
    sender.pass_on([], [])
    silence, install_tick = sender.become_version(2, 2)
    assert (silence.under, silence.los, silence.ticks) == (1, [0], [9])
    assert install_tick == 9
    knowledge.add(Items("P", 2, [9], [12], [event(12)]))
    items = sender.pass_on([12], [event(12)])
    assert (items.under, items.los, items.ticks) == (2, [9], [12])


def test_what_is_lost_is_said_to_be_lost() -> None:
    knowledge = Knowledge("P")
    sender = Sender(knowledge)
    sender.become_version(1, 1)
    knowledge.add(Items("P", 1, [0], [4], [None]))
    knowledge.add_lost(4, 6, "age")
    knowledge.add(Items("P", 1, [6], [9], [event(9)]))
    items = sender.pass_on([9], [event(9)])
    assert (items.los, items.ticks, items.lost) == ([0, 6], [4, 9], [Lost(4, 6, "age")])
    received = Knowledge("P")
    receiver = Receiver(received)
    receiver.on_start(Start("P", 0))
    receiver.on_items(items)
    assert list(received.lost) == [(4, 6)]
    assert received.doubt_horizon(0, 1) == 9


@pytest.mark.parametrize("is_started", [False, True])
def test_items_out_of_turn_are_refused(is_started: bool) -> None:
    receiver = Receiver(Knowledge("P"))
    if is_started:
        receiver.on_start(Start("P", 10))
        with pytest.raises(BadItems):
            receiver.on_start(Start("P", 9))
    with pytest.raises(BadItems):
        receiver.on_items(Items("P", 1, [9], [12], [None]))
    receiver.on_items(Items("P", 1, [3], [4], [None], answers=True))


def test_a_relay_that_hears_how_far_the_pubend_has_come_begins_anew_there() -> None:
    """What it kept back is said first; what is unknown between is asked for, and answered, and never said."""
    knowledge = Knowledge("P")
    sender = Sender(knowledge)
    sender.become_version(1, 1)
    received = Knowledge("P")
    receiver = Receiver(received)
    receiver.on_start(sender.start)
    knowledge.add(Items("P", 1, [0], [5], [None]))
    assert not len(sender.pass_on([], []))
    receiver.on_items(sender.come_to(9))
    receiver.on_start(sender.start)
    assert receiver.missing(0, 1) == [(5, 9)]
    knowledge.add(Items("P", 1, [5], [12], [None]))
    sender.pass_on([], [])
    assert (sender.silence().los, sender.edge) == ([9], 12)


def test_answers_are_said_under_the_version_they_are_true_for() -> None:
    sender = Sender(Knowledge("P"))
    for under, covered_by in [(3, 5), (4, 7)]:
        sender.become_version(under, covered_by)
    assert [sender.under_of(version) for version in (4, 5, 6, 7, 9, ABSOLUTE)] == [0, 3, 3, 4, 4, ABSOLUTE]
