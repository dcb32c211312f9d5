"""Staging and committing epochs: what was named is visible, once, together, and nothing else is [contracts.md §7]."""

from __future__ import annotations

import pytest
from durable_desk import OWN, TOTAL
from sink_desk import APP, SinkDesk, event

from holdfast.broker.settings import Stream
from holdfast.clock import SECOND
from holdfast.messages.durable import Portion
from holdfast.messages.publications import Accepted
from holdfast.messages.staging import Commit, Committed, Discarded, Epoch, Share, Stage, Staged
from holdfast.messages.streams import Guarantee
from holdfast.streams.epochs import VERSION_MAX, first_number, home_of
from holdfast.streams.storing import (
    STAGED,
    AppendEvents,
    ChopEvents,
    EventsRead,
    EventsRefused,
    EventsStable,
    ReadEvents,
)


def test_what_is_staged_is_said_to_be_when_it_is_on_disk_and_nobody_sees_it() -> None:
    desk = SinkDesk()
    desk.hold(AppendEvents)
    assert desk.stage("t0", 0, "a", "b") == []
    desk.hold()
    assert desk.said(desk.spark, Staged) == [Staged("t0", 2)]
    assert desk.marks() == []


def test_an_epoch_is_the_attempts_its_commit_names_in_that_order_and_no_others() -> None:
    desk = SinkDesk()
    desk.stage("t1", 0, "c")
    desk.stage("zombie", 0, "x", "y")
    desk.stage("t0", 0, "a")
    desk.stage("t0", 0, "b", first=1)
    assert desk.commit(0, ("t0", 2), ("t1", 1)) == Committed(Epoch("orders", APP, 0), 3, is_repeat=False)
    assert desk.marks() == ["a", "b", "c"]
    assert desk.staged == [], "what was not named went with it"
    assert [each.n for each in desk.log()] == [first_number(0) + i for i in range(3)]


def test_an_epoch_is_one_append_and_a_reader_hears_of_nothing_before_it_is_on_disk() -> None:
    desk = SinkDesk()
    for i in range(5):
        desk.stage(f"t{i}", 0, *"abc")
    desk.commit(0)  # the pubend is there from now on; what was staged is not
    for i in range(5):
        desk.stage(f"v{i}", 1, *"abc")
    desk.hold(AppendEvents)
    assert desk.commit(1, *((f"v{i}", 3) for i in range(5))) is None
    assert [len(each.ticks) for each in desk.queue if isinstance(each, AppendEvents)] == [15]
    assert desk.events(desk.keeper) == []
    desk.hold()
    assert desk.said(desk.spark, Committed)[-1].events == 15
    assert len(desk.events(desk.keeper)) == 15


def test_a_commit_that_comes_again_finds_its_epoch_done_whatever_attempts_it_names() -> None:
    """A replay computes other rows under other attempts; so does one after a restart of the broker."""
    desk = SinkDesk()
    desk.stage("t0", 7, "a")
    desk.commit(7, ("t0", 1))
    desk.stage("r0", 7, "other")
    answer = desk.commit(7, ("r0", 1))
    assert answer == Committed(Epoch("orders", APP, 7), 0, is_repeat=True)
    desk.again()
    desk.wait(SECOND)
    desk.stage("s0", 7, "another")
    desk.stage("s1", 6, "earlier")
    assert [desk.commit(7, ("s0", 1)), desk.commit(6, ("s1", 1))] == [
        Committed(Epoch("orders", APP, version), 0, is_repeat=True) for version in (7, 6)
    ]
    assert desk.marks() == ["a"]
    assert desk.staged == []


def test_who_asks_for_an_epoch_that_is_under_way_is_answered_with_it() -> None:
    """The driver's session broke, or another driver came: one append, two answers."""
    desk = SinkDesk()
    desk.commit(0)
    desk.stage("t0", 1, "a")
    desk.stage("r0", 1, "other")
    desk.hold(AppendEvents)
    assert desk.commit(1, ("t0", 1)) is None
    other = desk.client("spark2")
    desk.say(other, Commit(Epoch("orders", APP, 1), (Share("r0", 1),)))
    desk.hold()
    assert [each.events for each in desk.said(other, Committed)] == [1]
    assert desk.marks() == ["a"]


def test_two_versions_of_one_application_are_not_committed_at_once() -> None:
    desk = SinkDesk()
    desk.commit(0)
    desk.stage("t0", 1, "a")
    desk.stage("t1", 2, "b")
    desk.hold(AppendEvents)
    desk.commit(1, ("t0", 1))
    answer = desk.commit(2, ("t1", 1))
    assert answer is not None
    assert "two drivers" in answer.problem
    desk.hold()
    answer = desk.commit(2, ("t1", 1))
    assert answer is not None
    assert answer.events == 1
    assert desk.marks() == ["a", "b"]


def test_an_empty_epoch_changes_nothing() -> None:
    desk = SinkDesk()
    assert desk.commit(0, ("t0", 0)) == Committed(Epoch("orders", APP, 0), 0, is_repeat=False)
    assert desk.commit(0) == Committed(Epoch("orders", APP, 0), 0, is_repeat=False)
    assert desk.marks() == []


def test_what_is_sent_again_is_staged_once() -> None:
    desk = SinkDesk()
    desk.stage("t0", 0, "a", "b")
    assert desk.stage("t0", 0, "a", "b")[-1] == Staged("t0", 2)
    assert desk.stage("t0", 0, "b", "c", first=1)[-1] == Staged("t0", 3)
    desk.commit(0, ("t0", 3))
    assert desk.marks() == ["a", "b", "c"]


def test_an_attempt_of_which_something_is_missing_is_not_committed() -> None:
    desk = SinkDesk()
    desk.stage("t0", 0, "a")
    desk.stage("t1", 1, "b")
    for shares in ([("t0", 2)], [("gone", 1)], [("t1", 1)], [("t0", 1), ("t0", 1)]):
        answer = desk.commit(0, *shares)
        assert answer is not None
        assert answer.problem, shares
    assert desk.marks() == []
    assert desk.staged == ["t0", "t1"], "the driver may have asked for the wrong one"


def test_attempts_that_are_discarded_are_gone_and_so_are_those_of_earlier_versions() -> None:
    desk = SinkDesk()
    desk.stage("t0", 0, "a")
    desk.discard("t0", "never")
    assert desk.said(desk.spark, Discarded) == [Discarded()]
    assert desk.staged == []
    desk.stage("orphan", 3, "b")
    desk.stage("t1", 4, "c")
    desk.stage("later", 5, "d")
    desk.commit(4, ("t1", 1))
    assert desk.staged == ["later"]
    assert desk.done_of(ChopEvents)[-1].pubend == STAGED


def test_what_nobody_commits_is_swept_in_time_and_counted() -> None:
    desk = SinkDesk(staged_keep_ns=20 * SECOND)
    desk.stage("t0", 0, "a")
    desk.wait(10 * SECOND)
    desk.again()  # how old it is outlives the broker
    desk.stage("t1", 0, "b")
    desk.wait(12 * SECOND)
    assert desk.staged == ["t1"]
    status = desk.broker.status()["durable"]["staged"]
    assert (status["attempts"], status["swept"], status["events"]) == (1, 1, 1)
    assert status["oldest"] > 0
    answer = desk.commit(0, ("t0", 1))
    assert answer is not None
    assert "given up" in answer.problem


def test_what_was_staged_before_a_crash_can_be_committed_after_it_and_the_log_of_it_is_chopped() -> None:
    desk = SinkDesk()
    desk.stage("gone", 0, "x")
    desk.stage("t0", 0, "a")
    desk.stage("t0", 0, "b", first=1)
    desk.again()
    assert desk.staged == ["gone", "t0"]
    desk.stage("t0", 0, "c", first=2)
    desk.commit(0, ("t0", 3))
    assert desk.marks() == ["a", "b", "c"]
    desk.again()
    assert desk.staged == []


# What is refused


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (Stage("t", Epoch("other", APP, 0), 0, (event("a"),)), "no durable stream 'other'"),
        (Stage("t", Epoch("fast", APP, 0), 0, (event("a"),)), "no durable stream 'fast'"),
        (Stage("t", Epoch("orders", "", 0), 0, (event("a"),)), "1 to 256 bytes"),
        (Stage("t", Epoch("orders", "x" * 257, 0), 0, (event("a"),)), "1 to 256 bytes"),
        (Stage("t", Epoch("orders", APP, VERSION_MAX + 1), 0, (event("a"),)), "above"),
        (Stage("t", Epoch("orders", APP, 0), 0, (event("a"), b"\x00")), ""),
        (Stage("t", Epoch("orders", APP, 0), 0, (event("a", "fast/x"),)), "it is of the stream fast"),
        (Stage("t", Epoch("orders", APP, 0), 5, (event("a"),)), "not known here"),
    ],
)
def test_what_cannot_be_staged_is_refused_with_the_reason_and_nothing_of_it_remains(
    message: Stage, problem: str
) -> None:
    orders = Stream("orders", ("a", "b/#"), guarantee=Guarantee.DURABLE)
    desk = SinkDesk(streams=(orders, Stream("fast", ("fast/#",))))
    if not message.first and message.epoch.app == APP:
        desk.stage("t", 0, "first")
    (answer,) = [each for each in desk.say(desk.spark, message) if isinstance(each, Staged)]
    assert problem in answer.problem
    assert answer.problem
    assert desk.staged == []


def test_an_epoch_is_committed_at_the_home_of_its_application_and_nowhere_else() -> None:
    brokers = ("b", "left", "right")
    apps = [f"app{i}" for i in range(30)]
    homes = {app: home_of(app, brokers) for app in apps}
    assert {home_of(app, (*brokers, "new")) for app in apps if homes[app] == "b"} <= {"b", "new"}
    assert set(homes.values()) == set(brokers)
    desk = SinkDesk(brokers=brokers)
    for app in apps:
        desk.say(desk.spark, Commit(Epoch("orders", app, 0), ()))
        assert bool(desk.said(desk.spark, Committed)[-1].problem) == (homes[app] != "b"), app
    sequenced = SinkDesk(streams=(TOTAL,), brokers=brokers)
    for app in apps:
        sequenced.say(sequenced.spark, Commit(Epoch("orders", app, 0), ()))
    assert not any(each.problem for each in sequenced.said(sequenced.spark, Committed))


def test_more_than_a_broker_keeps_is_not_staged_and_a_larger_epoch_than_one_append_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = SinkDesk(staged_bytes_max=1_000)
    desk.stage("t0", 0, *"abcdefgh")
    (answer,) = desk.stage("t1", 0, *"abcdefgh")
    assert "staged_bytes_max = 1000" in answer.problem
    assert desk.staged == ["t0"]
    monkeypatch.setattr("holdfast.broker.durable.committing.EPOCH_BYTES_MAX", 100)
    refused = desk.commit(0, ("t0", 8))
    assert refused is not None
    assert "more than 100" in refused.problem
    assert "maxEventsPerTrigger" in refused.problem
    monkeypatch.setattr("holdfast.broker.durable.committing.EPOCH_EVENTS_MAX", 7)
    refused = desk.commit(0, ("t0", 8))
    assert refused is not None
    assert "8 events, more than 7" in refused.problem


# The disk


def test_a_full_disk_ends_the_attempts_it_would_not_take_and_others_go_on() -> None:
    desk = SinkDesk()
    desk.stage("t0", 0, "a")
    desk.hold(AppendEvents)
    desk.stage("t1", 0, "b")
    desk.take(AppendEvents)
    desk.step(EventsRefused(STAGED, "no space left", is_final=False))
    assert desk.said(desk.spark, Staged)[-1] == Staged("t1", 0, "no space left")
    assert desk.staged == ["t0"]
    desk.hold()
    desk.commit(0, ("t0", 1))
    assert desk.marks() == ["a"]


def test_an_epoch_the_disk_would_not_take_may_be_committed_again() -> None:
    desk = SinkDesk()
    desk.commit(0)
    desk.stage("t0", 1, "a")
    desk.hold(AppendEvents)
    desk.commit(1, ("t0", 1))
    desk.take(AppendEvents)
    desk.step(EventsRefused(OWN, "no space left", is_final=False))
    assert desk.said(desk.spark, Committed)[-1].problem == "no space left"
    desk._store._events._refusals[OWN] = 1  # as the store that refused it would know
    desk.hold()
    refused = desk.commit(1, ("t0", 1))
    assert refused is not None
    assert refused.problem == "no space left", "for a while, whether or not there is room"
    desk.wait(2 * SECOND)
    answer = desk.commit(1, ("t0", 1))
    assert answer is not None
    assert answer.events == 1
    assert desk.marks() == ["a"]


def test_a_disk_that_failed_refuses_everything_from_then_on() -> None:
    desk = SinkDesk()
    desk.commit(0)
    desk.stage("t0", 1, "a")
    desk.hold(AppendEvents)
    desk.stage("t1", 1, "b")
    desk.commit(1, ("t0", 1))
    desk.take(AppendEvents)
    desk.step(EventsRefused(STAGED, "sync failed", is_final=True))
    desk.step(EventsRefused(OWN, "sync failed", is_final=True))
    assert desk.stage("t2", 1, "c")[-1].problem == "sync failed"
    answer = desk.commit(1, ("t0", 1))
    assert answer is not None
    assert answer.problem == "sync failed"


def test_an_epoch_that_cannot_be_read_from_the_disk_is_refused() -> None:
    desk = SinkDesk()
    desk.stage("t0", 0, "a")
    desk.hold(ReadEvents)
    desk.commit(0, ("t0", 1))
    desk.take(ReadEvents)
    desk.step(EventsRead(STAGED, (), (), ()))
    assert "cannot be read" in desk.said(desk.spark, Committed)[-1].problem


def test_ordinary_publishers_and_epochs_share_a_pubend() -> None:
    desk = SinkDesk()
    publisher = desk.publisher("p", 1, 2)
    desk.stage("t0", 0, "a")
    desk.commit(0, ("t0", 1))
    assert desk.said(publisher, Accepted)[-1].upto == 2
    assert [(each.publisher, each.n) for each in desk.log()] == [("p", 1), ("p", 2), (APP, first_number(0))]
    assert desk.said(desk.keeper, Portion)


def test_stable_is_counted_by_appends() -> None:
    """Two attempts share a sync."""
    desk = SinkDesk()
    desk.hold(AppendEvents)
    desk.stage("t0", 0, "a")
    desk.stage("t1", 0, "b")
    desk.step(EventsStable(STAGED, len(desk.take(AppendEvents)), 0))
    assert desk.said(desk.spark, Staged) == [Staged("t0", 1), Staged("t1", 1)]
