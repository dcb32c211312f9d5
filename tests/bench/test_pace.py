"""A load keeps its pace, and reads whatever it owes (``bench.pace``)."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator

import pytest

from holdfast.bench.pace import read_until
from holdfast.clock import MILLISECOND


class Reading:
    """A socket that is read when ``pace`` says so, and what came."""

    def __init__(self, end: socket.socket) -> None:
        self.epoll = select.epoll()
        self.epoll.register(end, select.EPOLLIN)
        self.came: list[bytes] = []
        self._end = end

    def __call__(self) -> None:
        self.came.append(self._end.recv(100))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Reading]]:
    near, far = socket.socketpair()
    with near, far:
        reading = Reading(far)
        with reading.epoll:
            yield near, reading


def test_a_load_that_is_behind_reads_before_it_publishes_more(pair: tuple[socket.socket, Reading]) -> None:
    near, reading = pair
    near.send(b"delivered")
    read_until(time.monotonic_ns() - 30 * MILLISECOND, reading.epoll, reading)
    assert reading.came == [b"delivered"]


def test_one_that_is_behind_does_not_wait_for_anything(pair: tuple[socket.socket, Reading]) -> None:
    _, reading = pair
    read_until(time.monotonic_ns() - 1, reading.epoll, reading)
    assert reading.came == []


def test_what_comes_is_read_until_the_time_has_come_and_not_earlier_left(
    pair: tuple[socket.socket, Reading],
) -> None:
    near, reading = pair
    near.send(b"delivered")
    at = time.monotonic_ns() + 5 * MILLISECOND
    read_until(at, reading.epoll, reading)
    assert reading.came == [b"delivered"]
    assert time.monotonic_ns() >= at
