"""Ports that are free are different, and can be had."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from holdfast.cli import free_ports as module
from holdfast.cli.free_ports import free_ports


def test_free_ports_are_different_and_can_be_listened_on() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    with ExitStack() as held:
        for port in ports:
            held.enter_context(socket.create_server(("127.0.0.1", port)))


def test_a_port_that_is_taken_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_ports(1)[0]
    monkeypatch.setattr(module, "FIRST", first)
    monkeypatch.setattr(module, "LAST", first)
    monkeypatch.setattr(module, "TRIES_MAX", 50)
    assert free_ports(1) == [first]
    with socket.create_server(("127.0.0.1", first)), pytest.raises(OSError, match="fewer than 1 free ports"):
        free_ports(1)
