"""URLs of processes."""

from __future__ import annotations

import pytest

from holdfast.scenarios.address import Address, BadUrl, address_of


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("tcp://localhost:3330/broker", "localhost", 3330),
        ("tcp://127.0.0.1:0/", "127.0.0.1", 0),
        ("tcp://127.9.9.9:65535", "127.9.9.9", 65535),
        ("tcp://[::1]:80/x/y?z#", "::1", 80),
        ("tcp://some-host.example:1/a", "some-host.example", 1),
    ],
)
def test_an_address_is_a_name_or_loopback_and_a_port(url: str, host: str, port: int) -> None:
    assert address_of(url) == Address(host, port)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("localhost:3330", "another form"),
        ("http://localhost:80/", "another form"),
        ("tcp://localhost/x", "another form"),
        ("tcp://localhost:x/", "another form"),
        ("tcp://localhost:80 /", "another form"),
        ("tcp://:80/", "host"),
        ("tcp://localhost:65536/", "no port 65536"),
        ("tcp://10.0.0.1:80/", "host"),
        ("tcp://0.0.0.0:80/", "host"),
        ("tcp://[::]:80/", "host"),
        ("tcp://[2001:db8::1]:80/", "host"),
        ("tcp://256.1.1.1:80/", "host"),
        ("tcp://a_b:80/", "host"),
        ("tcp://[x]:80/", "host"),
        (f"tcp://{'a.' * 130}a:80/", "host"),
    ],
)
def test_what_others_could_reach_or_nobody_is_refused(url: str, says: str) -> None:
    with pytest.raises(BadUrl) as refused:
        address_of(url)
    assert says in refused.value.problem
    assert refused.value.expected
