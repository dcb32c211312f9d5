"""What the peers of `holdfast bench peers` say, cut anywhere: as it stands in their specifications."""

from __future__ import annotations

import itertools
import re
import socket
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.peers_load import Publishing, Receiving, body
from holdfast.bench.peers_mosquitto import Mosquitto, MqttPublisher, MqttReceiver
from holdfast.bench.peers_nats import NatsPublisher, NatsReceiver
from holdfast.bench.peers_peer import EVENT_BYTES
from holdfast.bench.peers_rabbitmq import AmqpPublisher, AmqpReceiver
from holdfast.bench.peers_raw import Space
from holdfast.bench.peers_redis import RedisPublisher, RedisReceiver

FAN = Space("fan", 4)
NUMBERS = [2, 6, 10, 14, 18]


def amqp_method(class_number: int, method: int, arguments: bytes) -> bytes:
    content = struct.pack(">HH", class_number, method) + arguments
    return struct.pack(">BHI", 1, 1, len(content)) + content + b"\xce"


def nats_messages() -> bytes:
    return b"".join(
        b"MSG replies.fan.consumer2 1 $JS.ACK.fan.consumer2.1.%d.%d.0.0 %d\r\n%b\r\n"
        % (n, n, EVENT_BYTES, body(n))
        for n in NUMBERS
    )


def redis_answer() -> bytes:
    entries = b"".join(
        b"*2\r\n$8\r\n170000-%d\r\n*2\r\n$1\r\nb\r\n$%d\r\n%b\r\n" % (i, EVENT_BYTES, body(n))
        for i, n in enumerate(NUMBERS)
    )
    return b":7\r\n*1\r\n*2\r\n$4\r\nfan2\r\n*%d\r\n%b" % (len(NUMBERS), entries)


def mqtt_messages() -> bytes:
    size = EVENT_BYTES + 8
    head = bytes([0x32, size & 127 | 128, size >> 7]) + b"\0\x04fan2"
    return b"".join(head + struct.pack(">H", n) + body(n) for n in NUMBERS)


def amqp_deliveries() -> bytes:
    deliveries = b""
    for tag, n in enumerate(NUMBERS, start=1):
        names = b"\x02me" + struct.pack(">Q", tag) + b"\0" + b"\x0aamq.direct" + b"\x04fan2"
        header = struct.pack(">BHIHHQHB", 2, 1, 15, 60, 0, EVENT_BYTES, 0x1000, 2) + b"\xce"
        content = struct.pack(">BHI", 3, 1, EVENT_BYTES) + body(n) + b"\xce"
        deliveries += amqp_method(60, 60, names) + header + content
    return deliveries


def connected() -> socket.socket:
    """A socket for those who have one; what is written to it goes nowhere."""
    own, other = socket.socketpair()
    other.close()
    return own


#: How a subscriber is made, what it reads, and the end of what it says when it has read it all.
READ: dict[str, tuple[Callable[[socket.socket], Receiving], bytes, bytes]] = {
    "NATS": (NatsReceiver, nats_messages(), b"PUB $JS.ACK.fan.consumer2.1.18.18.0.0 0\r\n\r\n"),
    "MQTT": (lambda s: MqttReceiver(s, "fan2"), mqtt_messages(), b"\x40\x02\x00\x12"),
    "AMQP": (AmqpReceiver, amqp_deliveries(), amqp_method(60, 80, struct.pack(">QB", 5, 1))),
}


def fed(receiver: Receiving, data: bytes, cuts: set[int]) -> tuple[list[int], bytes]:
    edges = [0, *sorted(cuts), len(data)]
    numbers, answers = [], b""
    for start, end in itertools.pairwise(edges):
        if start < end:
            some, answer = receiver.taken(data[start:end])
            numbers += some
            answers += answer
    return numbers, answers


CUTS = st.sets(st.integers(min_value=1, max_value=4 * EVENT_BYTES), max_size=8)


@pytest.mark.parametrize("kind", READ)
@given(cuts=CUTS)
def test_deliveries_are_read_and_acknowledged_wherever_they_are_cut(kind: str, cuts: set[int]) -> None:
    make, data, last = READ[kind]
    with connected() as end:
        numbers, answers = fed(make(end), data, cuts)
    assert numbers == NUMBERS
    assert answers.endswith(last)


@given(cuts=CUTS)
def test_redis_is_asked_again_when_an_answer_is_whole(cuts: set[int]) -> None:
    own, other = socket.socketpair()
    with own, other:
        receiver = RedisReceiver(own, "fan2", "group2")
        first = other.recv(1_000)
        assert b"XREADGROUP" in first
        for _ in range(2):
            numbers, answer = fed(receiver, redis_answer(), cuts)
            assert numbers == NUMBERS
            assert answer.count(b"XACK") == 1
            assert all(b"170000-%d" % i in answer for i in range(len(NUMBERS)))
            assert answer.endswith(first)


#: How a publisher is made, and what acknowledges three events, or refuses one.
ANSWERED: dict[str, tuple[Callable[[socket.socket, Space], Publishing], bytes, bytes]] = {
    "NATS": (
        NatsPublisher,
        b'MSG replies.fan 1 27\r\n{"stream":"fan", "seq":1234}\r\n' * 3,
        b'MSG replies.fan 1 30\r\n{"error":{"code":503},"seq":0}\r\n',
    ),
    "RESP": (RedisPublisher, b"$8\r\n170000-1\r\n" * 3, b"-MISCONF Errors writing to the AOF file\r\n"),
    "MQTT": (MqttPublisher, b"\x40\x02\x00\x01" * 3, b"\xe0\x00\xe0\x00"),
    "AMQP": (
        AmqpPublisher,
        b"".join(amqp_method(60, 80, struct.pack(">QB", *each)) for each in ((2, 0), (2, 1), (3, 0))),
        amqp_method(60, 120, struct.pack(">QB", 1, 0)),
    ),
}


@pytest.mark.parametrize("kind", ANSWERED)
def test_acknowledgements_are_counted_wherever_they_are_cut(kind: str) -> None:
    make, answers, _ = ANSWERED[kind]
    for cut in range(len(answers) + 1):
        with connected() as end:
            publisher = make(end, FAN)
            assert sum(publisher.acknowledged(part) for part in (answers[:cut], answers[cut:]) if part) == 3


@pytest.mark.parametrize("kind", ANSWERED)
def test_a_refusal_is_no_acknowledgement(kind: str) -> None:
    make, _, refusal = ANSWERED[kind]
    with connected() as end, pytest.raises(BenchFailed):
        make(end, FAN).acknowledged(refusal)


@pytest.mark.parametrize("kind", ANSWERED)
def test_an_event_is_published_whole_and_to_its_group(kind: str) -> None:
    make, _, _ = ANSWERED[kind]
    with connected() as end:
        messages = make(end, FAN).messages(range(6, 8))
    first, second = messages.index(body(6)), messages.index(body(7))
    assert re.findall(rb"fan\d", messages[:first]) == [b"fan2"]
    assert re.findall(rb"fan\d", messages[first:]) == [b"fan3"]
    assert first < second


def test_mosquitto_is_not_said_to_sync() -> None:
    assert not Mosquitto().on_disk_statement().synced
