from __future__ import annotations

from functools import partial

import pytest

from holdfast.client.errors import InvalidUrl
from holdfast.client.port import way_to
from holdfast.embedded.network import Network
from holdfast.runtime.driver import Driver


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("holdfast://localhost:7000", "localhost:7000"),
        ("holdfast://127.0.0.1:1/", "127.0.0.1:1"),
        ("HOLDFAST://[::1]:65535", "[::1]:65535"),
    ],
)
def test_a_url_leads_to_a_broker_over_tcp(url: str, address: str) -> None:
    way = way_to(url)
    assert way.broker == address
    assert isinstance(way.dial, partial)
    assert way.dial.func is Driver


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "has no scheme"),
        ("localhost:7000", "the scheme 'localhost' is not known"),
        ("tcp://localhost:7000", "the scheme 'tcp' is not known"),
        ("holdfast://localhost", "has no port"),
        ("holdfast://localhost:0", "has no port"),
        ("holdfast://:7000", "has no host"),
        ("holdfast://localhost:70000", "Port out of range"),
        ("holdfast://localhost:x", "Port could not be cast"),
        ("holdfast://[::1:7000", "Invalid IPv6"),
        ("holdfast://localhost:7000/stream", "has more than an address"),
        ("holdfast://localhost:7000?a=b", "has more than an address"),
        ("holdfast://me:secret@localhost:7000", "has more than an address"),
        ("holdfast://example.org:7000", "only loopback is allowed, since there is no TLS yet"),
        ("memory://", "names no network"),
        ("memory://nowhere", "there is no network 'nowhere' in this process; holdfast.memory.Network"),
    ],
)
def test_a_bad_url_is_refused_with_what_is_wrong_and_what_is_right(url: str, problem: str) -> None:
    with pytest.raises(InvalidUrl) as refused:
        way_to(url)
    assert problem in str(refused.value)
    assert "expected holdfast://HOST:PORT or memory://NAME" in str(refused.value)
    assert refused.value.url == url


def test_an_address_beyond_this_machine_must_be_asked_for() -> None:
    assert way_to("holdfast://example.org:7000", insecure=True).broker == "example.org:7000"


def test_a_broker_can_be_chosen_only_in_memory() -> None:
    with pytest.raises(InvalidUrl, match="is one broker already; broker='b2' is for memory://"):
        way_to("holdfast://localhost:7000", "b2")
    with Network("here", brokers=2), pytest.raises(InvalidUrl, match="no broker 'b3'; there are b1, b2"):
        way_to("memory://here", "b3")
