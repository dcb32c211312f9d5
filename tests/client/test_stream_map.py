"""Which stream a topic belongs to, seen from a client."""

from __future__ import annotations

from holdfast.client.stream_map import TOPICS_MAX, StreamMap
from holdfast.events.event import Limits, make_event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication
from holdfast.messages.streams import Guarantee, Order, StreamOrder

STREAMS = StreamMap(
    [
        StreamOrder("orders", Order.FIFO, Guarantee.RELIABLE, ("orders/#", "trades/+")),
        StreamOrder("rest", Order.NONE, Guarantee.BEST_EFFORT, ("orders/debug", "logs/#")),
    ]
)


def test_a_topic_belongs_to_the_first_stream_with_a_pattern_for_it() -> None:
    assert STREAMS.stream_of("orders/eu") == STREAMS.stream_of("orders/debug") == "orders"
    assert STREAMS.stream_of("trades/1") == "orders"
    assert STREAMS.stream_of("logs/a/b") == "rest"


def test_a_topic_may_belong_to_none() -> None:
    assert STREAMS.stream_of("trades/1/2") is None
    assert STREAMS.stream_of("trades/1/2") is None  # and is remembered so


def test_the_reliable_ones_are_known_by_name() -> None:
    assert STREAMS.reliable == {"orders"}


def test_what_is_remembered_is_bounded() -> None:
    for i in range(TOPICS_MAX + 10):
        STREAMS.stream_of(f"logs/{i}")
    assert len(STREAMS._known) <= TOPICS_MAX
    assert STREAMS.stream_of("logs/1") == "rest"


def published(n: int, topic: str, payload: bytes = b"") -> Publication:
    return Publication("p", n, pack(make_event(topic, {}, payload)))


def test_events_are_sorted_by_the_way_they_go_each_in_its_order() -> None:
    topics = ["orders/1", "logs/1", "orders/2", "nowhere", "logs/2"]
    found = STREAMS.sort([published(n, topic) for n, topic in enumerate(topics, start=1)])
    assert {stream: [each.n for each in row] for stream, row in found.reliable.items()} == {"orders": [1, 3]}
    assert [each.n for each in found.best_effort] == [2, 5]
    assert found.refused == [(4, "no stream has the topic 'nowhere'", "event")]


def test_what_the_network_would_not_accept_is_refused_before_it_is_sent() -> None:
    """A broker checks what a plain client publishes; nobody checks after a member."""
    streams = StreamMap(STREAMS.streams, Limits(payload_bytes=10))
    found = streams.sort([published(1, "orders/1", b"x" * 11), published(2, "orders/1", b"x" * 10)])
    assert [each.n for each in found.reliable["orders"]] == [2]
    [(n, problem, code)] = found.refused
    assert (n, code) == (1, "event")
    assert "payload" in problem
