"""What publishers hand in: accepted, sent again, or rejected by name; and who gets it."""

from __future__ import annotations

import msgspec
import pytest

from by_hand import ByHand, a_publication, publish, subscribe
from holdfast.broker.settings import Stream
from holdfast.events.value import INT_MAX
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted, Batch, Deliveries, Publication, Publish, Rejected
from holdfast.messages.session import Farewell, Goodbye
from holdfast.overlay.transport import Trace

BAD = Publication("peer", 2, b"\xc1")


def test_events_are_accepted_and_delivered_in_order() -> None:
    world = ByHand()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    assert world.say(peer, publish("peer", 1, 2, 5))[-1] == Accepted(5)
    assert world.delivered(peer) == [("peer", n, (1,)) for n in (1, 2, 5)]


def test_an_event_sent_again_is_acknowledged_and_goes_nowhere() -> None:
    world = ByHand()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1), publish("peer", 1, 2))
    assert world.say(peer, publish("peer", 1, 2, 3))[-1] == Accepted(3, (1, 2))
    assert [n for _, n, _ in world.delivered(peer)] == [1, 2, 3]
    assert world.broker.counters.duplicates == 2


def test_a_bad_event_is_rejected_alone() -> None:
    world = ByHand()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    answer = world.say(peer, Publish(Batch([a_publication("peer", 1), BAD, a_publication("peer", 3)])))
    assert [n for _, n, _ in world.delivered(peer)] == [1, 3]
    rejected, accepted = [each for each in answer if not isinstance(each, Deliveries)]
    assert isinstance(rejected, Rejected)
    assert (rejected.n, rejected.code) == (2, "event")
    assert accepted == Accepted(3)
    assert world.broker.counters.rejected == 1


def rejected_numbers(answer: list[Message]) -> list[int]:
    """Of events that are at fault themselves."""
    return [each.n for each in answer if isinstance(each, Rejected) and each.code == "event"]


def test_a_rejected_event_stays_rejected_when_it_is_sent_again() -> None:
    world = ByHand()
    batch = [a_publication("peer", 1), BAD, a_publication("peer", 3)]
    assert rejected_numbers(world.say(world.client("peer"), Publish(Batch(batch)))) == [2]
    again = world.client("peer")
    answer = world.say(again, Publish(Batch(batch)))
    assert rejected_numbers(answer) == [2]
    assert answer[-1] == Accepted(3, (1, 3))


@pytest.mark.parametrize("n", [0, -1, INT_MAX + 1])
def test_a_number_no_event_can_have_is_rejected(n: int) -> None:
    world = ByHand()
    peer = world.client("peer")
    answer = world.say(peer, publish("peer", n))
    assert rejected_numbers(answer) == [n] or isinstance(answer[-1], Goodbye)
    assert world.broker.counters.published == 0
    if peer not in world.closed:
        assert world.say(peer, publish("peer", 1))[-1] == Accepted(1), "and leaves the next ones alone"


def test_somebody_elses_name_is_a_breach_and_nothing_of_the_batch_counts() -> None:
    world = ByHand()
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    batch = Batch([a_publication("peer", 1), a_publication("other", 2)])
    world.say(peer, Publish(batch))
    assert world.said(peer, Goodbye)[0].farewell is Farewell.PROTOCOL
    assert world.delivered(peer) == []


def test_an_empty_batch_is_nothing() -> None:
    world = ByHand()
    assert world.say(world.client("peer"), Publish(Batch([]))) == []


def test_a_topic_of_no_stream_is_rejected_by_name() -> None:
    world = ByHand(streams=(Stream("orders", ("orders/#",)),))
    peer = world.client("peer")
    answer = world.say(peer, publish("peer", 1, topic="news"))
    assert isinstance(answer[0], Rejected)
    assert "'news'" in answer[0].problem
    assert answer[0].code == "event"


def test_each_stream_gets_its_own_and_the_first_that_matches_wins() -> None:
    world = ByHand(streams=(Stream("orders", ("orders/#",)), Stream("rest", ("#",))))
    peer = world.client("peer")
    world.say(peer, subscribe("peer", 1))
    topics = ["orders/eu", "news", "orders/us", "orders/eu", "x"]
    world.say(peer, Publish(Batch([a_publication("peer", n, topic) for n, topic in enumerate(topics, 1)])))
    streams = [(each.stream, len(each.at)) for each in world.said(peer, Deliveries)]
    assert streams == [("orders", 1), ("rest", 1), ("orders", 2), ("rest", 1)]
    assert [n for _, n, _ in world.delivered(peer)] == [1, 2, 3, 4, 5]


def test_several_subscriptions_of_a_client_are_one_delivery() -> None:
    world = ByHand()
    one, two = world.client("one"), world.client("two")
    world.say(one, subscribe("one", 1, "a"), subscribe("one", 2, "b"), subscribe("one", 3, "#"))
    world.say(two, subscribe("two", 7, "+"), subscribe("two", 4, "a"))
    world.say(one, publish("one", 1, topic="a"))
    assert world.delivered(one) == [("one", 1, (1, 3))]
    [(publisher, n, numbers)] = world.delivered(two)
    assert (publisher, n, sorted(numbers)) == ("one", 1, [4, 7])


def test_what_is_for_a_client_that_is_away_is_counted() -> None:
    world = ByHand()
    away = world.client("away")
    world.say(away, subscribe("away", 1))
    world.lose(away)
    world.say(world.client("peer"), publish("peer", 1, 2))
    assert world.broker.counters.dropped == 2


def test_forwards_are_traced_before_they_are_sent_when_asked_for() -> None:
    world = ByHand(trace_forwards=True)
    watcher, peer = world.client("watcher"), world.client("peer")
    world.say(watcher, subscribe("watcher", 1))
    effects = world.step_of(peer, publish("peer", 1, 2))
    kinds = [type(effect).__name__ for effect in effects]
    assert kinds == ["Trace", "Trace", "Send", "Send"]
    assert isinstance(effects[0], Trace)
    assert effects[0].fields == {"from": "b", "to": "watcher", "publisher": "peer", "n": 1, "again": False}


def test_the_status_is_plain_data() -> None:
    world = ByHand(["child"])
    world.neighbour("child")
    world.say(world.client("peer"), subscribe("peer", 1), publish("peer", 1))
    status = world.broker.status()
    assert msgspec.json.decode(msgspec.json.encode(status)) == status
    assert status["counters"]["published"] == 1
    assert status["neighbours"][0]["state"] == "active"
