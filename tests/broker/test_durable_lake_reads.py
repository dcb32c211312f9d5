"""Where a log ends and the lake behind it begins, while the log is chopped: no hole between them (issue 6, part 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from durable_desk import ORDERS, OWN, UNHEARD_NS, Desk

from by_hand import publish
from holdfast.broker.durable.own import KEEP
from holdfast.clock import SECOND
from holdfast.intervals import Intervals
from holdfast.messages.durable import Report
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Follow, Items, Lost, Nack, Tick, Wants
from holdfast.streams.storing import ChopEvents, LakeRead, ReadEvents, ReadLake

Logged = list[tuple[Tick, Publication]]


def told(items: Sequence[Items]) -> Logged:
    pairs = [pair for each in items for pair in zip(each.ticks, each.publications, strict=True)]
    return [(tick, publication) for tick, publication in pairs if publication is not None]


def lost(items: Sequence[Items]) -> list[Lost]:
    return [piece for each in items for piece in each.lost]


class Fed:
    """A broker whose pubend has three events, of which nothing is in memory; ``left`` follows it, and reports."""

    def __init__(self, *, lake: bool = True) -> None:
        self.desk = desk = Desk(["left"], [replace(ORDERS, lake=lake)], cache_bytes=1)
        self.left = desk.meet("left", filters=["a"])
        self.publisher = desk.publisher("p", 1, 2, 3)
        desk.wait(UNHEARD_NS)
        self.created, self.last = desk.own.core.created, desk.own.core.stable
        desk.say(self.left, Wants(1), Follow(OWN))
        self.logged = told(self.ask())
        assert [publication.n for _, publication in self.logged] == [1, 2, 3]

    def ask(self) -> Sequence[Items]:
        """What left hears at once when it asks for everything."""
        before = len(self.desk.said(self.left, Items))
        self.desk.say(self.left, Nack(OWN, 1, [(self.created, self.last)]))
        return self.desk.said(self.left, Items)[before:]

    def give_up(self) -> None:
        """Everybody has acknowledged everything, and the log forgets it."""
        self.desk.say(self.left, Report("b", "left", OWN, 1, self.last, self.last))
        self.desk.wait(1_000 * KEEP + SECOND)
        assert [each.through for each in self.desk.done_of(ChopEvents)][-1] >= self.last

    def answer(self, *found: tuple[Tick, Publication], gone: Sequence[Lost] = ()) -> Sequence[Items]:
        """What left hears when the lake has this, whatever of it is asked for, and as often."""
        before = len(self.desk.said(self.left, Items))
        while waiting := self.desk.take(ReadLake):
            [asked] = waiting
            wanted = Intervals(asked.spans)
            here = [each for each in found if each[0] in wanted]
            ticks, publications = [tick for tick, _ in here], [publication for _, publication in here]
            missing = [piece for piece in gone if piece.upto in wanted]
            self.desk.step(LakeRead(OWN, asked.spans, ticks, publications, missing))
        return self.desk.said(self.left, Items)[before:]

    def fail(self) -> None:
        """The lake cannot be read."""
        [_] = self.desk.take(ReadLake)
        self.desk.step(LakeRead(OWN, problem="gone fishing"))


def test_a_log_that_was_chopped_between_question_and_answer_has_not_lost_what_the_lake_has() -> None:
    fed = Fed()
    fed.desk.hold(ReadEvents, ReadLake)
    assert not told(fed.ask())
    fed.give_up()
    before = len(fed.desk.said(fed.left, Items))
    fed.desk.hold(ReadLake)  # now the log is read, and has nothing
    assert not lost(fed.desk.said(fed.left, Items)[before:])
    assert told(fed.answer(*fed.logged)) == fed.logged
    assert not lost(fed.desk.said(fed.left, Items))


def test_without_a_lake_the_same_is_lost() -> None:
    fed = Fed(lake=False)
    fed.desk.hold(ReadEvents)
    fed.ask()
    fed.give_up()
    fed.desk.hold()
    assert {piece.reason for piece in lost(fed.desk.said(fed.left, Items))} == {"acknowledged"}


def test_the_next_life_asks_the_lake_too() -> None:
    fed = Fed()
    fed.give_up()
    fed.desk.restart()
    fed.left = fed.desk.meet("left", filters=["a"])
    fed.desk.hold(ReadLake)
    fed.desk.say(fed.left, Wants(1), Follow(OWN))
    assert not lost(fed.ask())
    assert told(fed.answer(*fed.logged)) == fed.logged


def test_each_is_read_by_itself_and_what_is_in_neither_is_lost() -> None:
    """The log goes on while the lake takes its time."""
    fed = Fed()
    fed.give_up()
    fed.desk.say(fed.publisher, publish("p", 4, topic="a"))
    end = fed.desk.own.core.stable
    fed.desk.hold(ReadLake)
    before = len(fed.desk.said(fed.left, Items))
    fed.desk.say(fed.left, Nack(OWN, 1, [(fed.created, end)]))
    assert [publication.n for _, publication in told(fed.desk.said(fed.left, Items)[before:])] == [4]
    gone = Lost(fed.logged[0][0], fed.logged[1][0], "damaged")
    heard = fed.answer(fed.logged[0], fed.logged[2], gone=[gone])
    assert told(heard) == [fed.logged[0], fed.logged[2]]
    assert lost(heard) == [gone]


def test_a_lake_that_cannot_be_read_is_asked_again_later_and_told_of_once() -> None:
    fed = Fed()
    fed.give_up()
    fed.desk.hold(ReadLake)
    fed.ask()
    fed.fail()
    assert not fed.desk.take(ReadLake), "not at once"
    fed.desk.wait(6 * SECOND)
    fed.fail()
    fed.desk.wait(6 * SECOND)
    assert told(fed.answer(*fed.logged)) == fed.logged
    assert [each.text for each in fed.desk.logs if "lake" in each.text] == [
        "the lake cannot be read",
        "the lake can be read again",
    ]


@pytest.mark.parametrize("is_silent", [False, True])
def test_what_is_known_stays_whatever_the_lake_says(is_silent: bool) -> None:
    """A table of another network under the same names must not end the broker."""
    fed = Fed()
    fed.give_up()
    fed.desk.hold(ReadLake)
    fed.ask()
    [asked] = fed.desk.take(ReadLake)
    tick, known = fed.logged[0]
    fed.desk.course().knowledge.add_events([tick], [known])
    other = Publication("q", 9, known.event)
    ticks, publications = ([], []) if is_silent else ([tick], [other])
    fed.desk.step(LakeRead(OWN, asked.spans, ticks, publications))
    assert told(fed.desk.said(fed.left, Items))[-1] == (tick, known)
