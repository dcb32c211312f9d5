"""What the load of `holdfast bench peers` notices, at a broker of thirty lines that errs where it is told to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest

from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.peers_load import Load, Marked, body
from holdfast.bench.peers_peer import EVENT_BYTES

#: What is delivered to a subscriber in the place of an event.
Fault = Callable[[int, int], list[int]]


class ToyPublisher:
    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.most = 0  #: unacknowledged at a time
        self._acknowledged = 0

    def messages(self, numbers: range) -> bytes:
        self.most = max(self.most, numbers[-1] + 1 - self._acknowledged)
        return b"".join(body(n) for n in numbers)

    def acknowledged(self, data: bytes) -> int:
        self._acknowledged += len(data)
        return len(data)


class ToyReceiver:
    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._marked = Marked(b"()")

    def taken(self, data: bytes) -> tuple[list[int], bytes]:
        return self._marked.cut(data)[1], b""


def toy_load(
    subscribers: int, groups: int, fault: Fault = lambda i, n: [n], *, acknowledges: bool = True
) -> Load:
    """A load at a toy broker, which relays events whole and ends with its publisher's connection."""
    own, its = socket.socketpair()
    ends = [socket.socketpair() for _ in range(subscribers)]

    def serve() -> None:
        inbox = Marked(b"()")
        with its:
            while data := its.recv(64 * EVENT_BYTES):
                _, numbers = inbox.cut(data)
                for n in numbers:
                    for i in range(n % groups, subscribers, groups):
                        ends[i][1].sendall(b"".join(body(each) for each in fault(i, n)))
                if acknowledges:
                    its.sendall(b"+" * len(numbers))
        for _, end in ends:
            end.close()

    def serve_until_hung_up() -> None:
        try:
            serve()
        except ConnectionError:
            for _, end in ends:
                end.close()

    threading.Thread(target=serve_until_hung_up, daemon=True).start()
    return Load(ToyPublisher(own), [ToyReceiver(end) for end, _ in ends], groups)


def run(load: Load) -> tuple[int, int]:
    try:
        done = load.run(0.02, 16)
    finally:
        load.close()
    return done.events, done.deliveries


def test_a_load_gets_exactly_what_is_due() -> None:
    events, deliveries = run(toy_load(8, 4))
    assert events > 0
    assert deliveries == 2 * events


def test_without_subscribers_acknowledgements_are_enough() -> None:
    events, deliveries = run(toy_load(0, 1))
    assert events > 0
    assert deliveries == 0


def test_a_second_run_goes_on_where_the_first_ended() -> None:
    load = toy_load(4, 4)
    assert load.run(0.01, 16).events > 0
    assert run(load)[0] > 0


@pytest.mark.parametrize("window", [1, 16])
def test_no_more_than_a_window_is_unacknowledged(window: int) -> None:
    load = toy_load(1, 1)
    publisher = load.publisher
    load.run(0.02, window)
    load.close()
    assert isinstance(publisher, ToyPublisher)
    assert publisher.most == window


def test_every_event_of_a_paced_run_is_timed() -> None:
    load = toy_load(1, 1)
    latencies = load.run_paced(1_000, 0.03)
    load.close()
    assert len(latencies) == 30
    assert all(latency > 0 for latency in latencies)


FAULTS: dict[str, Fault] = {
    "lost": lambda i, n: [] if (i, n) == (3, 7) else [n],
    "repeated": lambda i, n: [n, n] if (i, n) == (3, 7) else [n],
    "misordered": lambda i, n: {7: [11], 11: [7]}.get(n, [n]) if i == 3 else [n],
    "of another group": lambda i, n: [8] if (i, n) == (3, 7) else [n],
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_what_was_not_due_is_caught(fault: Fault) -> None:
    with pytest.raises(BenchFailed, match=r"subscriber 3: \d+ … \d+ came where \d+ was due"):
        run(toy_load(8, 4, fault))


def test_a_delivery_that_does_not_come_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.bench.peers_load.STALL_SECONDS", 0.2)
    load = toy_load(1, 1, lambda i, n: [])
    with pytest.raises(BenchFailed, match="0 events are not acknowledged, 1 deliveries are missing"):
        load.run_paced(1_000, 0.001)
    load.close()


def test_an_acknowledgement_that_does_not_come_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.bench.peers_load.STALL_SECONDS", 0.2)
    with pytest.raises(BenchFailed, match="16 events are not acknowledged, 0 deliveries are missing"):
        run(toy_load(0, 1, acknowledges=False))


def test_a_server_that_hangs_up_is_caught() -> None:
    own, its = socket.socketpair()
    its.close()
    load = Load(ToyPublisher(own), [], 1)
    with pytest.raises(BenchFailed):
        run(load)
