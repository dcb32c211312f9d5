"""Publishing through interruptions: sent again in order under the old numbers, and answered for each."""

from __future__ import annotations

import pytest

from answered import Answered, numbered
from counted_calls import work_of
from holdfast.client.effect import Acknowledged, NotAccepted
from holdfast.client.input import Open, Submit
from holdfast.client.protocol import ClientCore
from holdfast.client.settings import Settings
from holdfast.messages.message import Message
from holdfast.messages.publications import PART_BYTES_MAX, Accepted, Publication, Publish, Rejected
from holdfast.messages.subscriptions import Subscribe
from holdfast.wire.frame import FRAME_BYTES_MAX, encode


def test_events_are_sent_at_once_and_wait_for_their_acknowledgement() -> None:
    world = Answered()
    world.open()
    world.submit(1, 2, 5)
    assert world.sent_numbers() == [1, 2, 5]
    assert world.core.unacknowledged == 3
    assert world.say(Accepted(2)) == [Acknowledged(2, ())]
    assert world.say(Accepted(5, (5,))) == [Acknowledged(5, (5,))]
    assert world.core.unacknowledged == 0
    assert world.say(Accepted(5)) == []


def test_what_is_submitted_while_away_is_sent_at_the_welcome() -> None:
    world = Answered()
    world.step(Open())
    world.submit(1, 2)
    world.connected()
    assert world.sent_numbers() == []
    world.welcome()
    assert world.sent_numbers() == [1, 2]


def test_what_was_not_acknowledged_is_sent_again_in_order() -> None:
    world = Answered()
    world.open()
    world.subscribe(1)
    world.submit(1, 2, 3)
    world.say(Accepted(1))
    world.lose()
    world.submit(4)
    world.reconnect(last_number=2)
    assert world.sent_numbers() == [2, 3, 4]
    kinds = [type(message) for message in world.said]
    assert kinds.index(Subscribe) < kinds.index(Publish), "what one publishes oneself is wanted too"


def test_a_welcome_acknowledges_nothing() -> None:
    world = Answered()
    world.open()
    world.submit(1, 2, 3)
    world.lose()
    world.reconnect(last_number=3)
    assert world.told(Acknowledged) == []
    world.say(Rejected(2, "bad"), Accepted(3, (1, 3)))
    assert world.told(NotAccepted) == [NotAccepted(2, "bad")]
    assert world.told(Acknowledged) == [Acknowledged(3, (1, 3))]


def said_with(world: Answered) -> list[tuple[int, list[int]]]:
    """What was published since, and of which refusals its publisher had heard."""
    found = [
        (each.heard, [publication.n for publication in each.batch.publications])
        for each in world.said
        if isinstance(each, Publish)
    ]
    world.said.clear()
    return found


def test_it_says_of_which_refusals_it_had_heard_when_something_was_submitted() -> None:
    """Also when it is sent again: what was to come behind a refused event must not be taken before that comes again."""
    world = Answered()
    world.open()
    world.submit(1, 2)
    world.say(Rejected(1, "the disk is full"))
    world.submit(3)
    world.say(Rejected(2, "the disk is full"), Rejected(3, "the disk is full"))
    world.submit(4, 5)
    world.say(Rejected(4, "the event is none", "event"))
    world.submit(6)
    assert said_with(world) == [(0, [1, 2]), (1, [3]), (3, [4, 5]), (3, [6])]
    world.lose()
    world.submit(7)
    world.reconnect()
    assert said_with(world) == [(3, [5, 6, 7])]
    world.say(Rejected(5, "the disk is full"))
    world.lose()
    world.submit(8)
    world.reconnect()
    assert said_with(world) == [(3, [6, 7]), (5, [8])]
    world.say(Accepted(8))
    world.submit(9)
    assert said_with(world) == [(5, [9])]


def test_a_rejected_event_is_answered_once_and_not_sent_again() -> None:
    world = Answered()
    world.open()
    world.submit(1, 2, 3)
    assert world.say(Rejected(2, "bad")) == [NotAccepted(2, "bad")]
    assert world.say(Rejected(2, "bad")) == []
    assert world.core.unacknowledged == 2
    world.lose()
    world.reconnect()
    assert world.sent_numbers() == [1, 3]
    world.say(Accepted(3))
    assert world.core.unacknowledged == 0


def test_the_last_of_a_batch_may_be_the_rejected_one() -> None:
    world = Answered()
    world.open()
    world.submit(1, 2)
    world.say(Rejected(2, "bad"), Accepted(2))
    assert world.told(Acknowledged) == [Acknowledged(1, ())]
    assert world.core.unacknowledged == 0


@pytest.mark.parametrize("n", [0, 2, 9, -1])
def test_the_rejection_of_what_was_never_submitted_changes_nothing(n: int) -> None:
    world = Answered()
    world.open()
    world.submit(1, 3)
    assert world.say(Rejected(n, "bad")) == []
    assert world.core.unacknowledged == 2


def test_the_work_of_a_rejection_does_not_grow_with_the_window() -> None:
    def work(window: int) -> int:
        world = Answered()
        world.open()
        world.submit(*range(1, window + 1))
        answers: list[Message] = [Rejected(n, "no stream") for n in range(1, 101)]
        return work_of(lambda: world.say(*answers)).calls

    assert work(5_000) < work(500) * 2


def test_many_events_are_many_frames_of_which_none_is_large() -> None:
    world = Answered()
    world.open()
    world.step(Submit([Publication("peer", n, b"x" * 100_000) for n in range(1, 21)]))
    sizes = [len(encode(message)[1]) for message in world.said if isinstance(message, Publish)]
    assert len(sizes) == 10
    assert max(sizes) < PART_BYTES_MAX * 1.1
    assert world.sent_numbers() == list(range(1, 21))


def test_the_smallest_events_under_the_longest_name_fit_into_frames() -> None:
    longest = "é" * 128
    events = numbered(*range(2**62, 2**62 + 40_000), publisher=longest)
    world = Answered()
    world.open()
    world.step(Submit(events))
    assert all(len(encode(message)[1]) < FRAME_BYTES_MAX // 4 for message in world.said)


def test_one_event_larger_than_a_frame_should_be_travels_alone() -> None:
    world = Answered()
    world.open()
    world.step(Submit([Publication("peer", n, b"x" * 2_000_000) for n in (1, 2)]))
    assert [type(message) for message in world.said[1:]] == [Publish, Publish]


SENT_BYTES = Settings("peer", 1, "b:1").sent_bytes


def large(*numbers: int) -> list[Publication]:
    return numbered(*numbers, event=b"x" * 1_000_000)


def test_what_a_broker_has_not_answered_is_bounded_in_bytes_and_the_rest_waits_for_its_answers() -> None:
    """Else the link of a publisher of large events counts as too slow, and all of them are sent again, for ever."""
    world = Answered()
    world.open()
    world.step(Submit(large(*range(1, 31))))
    world.step(Submit(large(*range(31, 101))))
    window = len(world.sent_numbers())
    assert SENT_BYTES <= window * 1_000_000 < SENT_BYTES + 1_000_000
    world.say(Accepted(3))
    assert world.sent_numbers() == list(range(1, window + 4))
    world.say(Rejected(4, "bad"), Rejected(6, "bad"))
    assert world.sent_numbers() == list(range(1, window + 6)), "what is refused has an answer too"
    world.say(Rejected(99, "bad"))
    while (upto := world.sent_numbers()[-1]) < 100:
        world.say(Accepted(upto))
    assert world.sent_numbers() == [*range(1, 99), 100]
    world.say(Accepted(100))
    assert world.core.unacknowledged == 0


def test_after_a_loss_no_more_is_sent_again_than_a_broker_should_hold() -> None:
    world = Answered()
    world.open()
    world.step(Submit(large(*range(1, 101))))
    window = len(world.sent_numbers())
    world.lose()
    world.step(Submit(large(101)))
    world.reconnect(last_number=window)
    assert world.sent_numbers() == list(range(1, window + 1))
    world.say(Accepted(50))  # of what a former session has brought it knew more than it had said
    assert world.sent_numbers() == [*range(1, window + 1), *range(51, 51 + window)]
    while world.core.unacknowledged:
        world.say(Accepted(world.sent_numbers()[-1]))
    assert world.sent_numbers() == [*range(1, window + 1), *range(51, 102)]
    assert world.core.unacknowledged == 0


def test_one_event_that_is_larger_than_all_that_may_wait_is_sent_all_the_same() -> None:
    world = Answered()
    world.open()
    world.step(Submit(numbered(1, 2, event=b"x" * (SENT_BYTES + 1))))
    assert world.sent_numbers() == [1]
    world.say(Accepted(1))
    assert world.sent_numbers() == [1, 2]


def test_submissions_outside_the_rules_are_the_callers_bug() -> None:
    for numbers in ((2, 2), (2, 1), (0,)):
        core = Answered().core
        assert isinstance(core, ClientCore)
        with pytest.raises(AssertionError):
            core.step(Submit(numbered(*numbers)), 0)
    crowded = Answered(unacknowledged_max=2)
    with pytest.raises(AssertionError):
        crowded.submit(1, 2, 3)
