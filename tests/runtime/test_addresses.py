from __future__ import annotations

import socket

import pytest

from holdfast.runtime.addresses import Address, BadAddress, parse_address, words_of


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:7000", "127.0.0.1", 7000),
        ("127.8.9.10:0", "127.8.9.10", 0),
        ("localhost:65535", "localhost", 65535),
        ("LocalHost:1", "LocalHost", 1),
        ("[::1]:7000", "::1", 7000),
    ],
)
def test_loopback_is_allowed_and_printed_as_it_was_written(text: str, host: str, port: int) -> None:
    address = parse_address(text)
    assert address == Address(host, port)
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["192.168.0.1:7000", "0.0.0.0:7000", "[::]:7000", "example.org:80", "localhost.example.org:80"]
)
def test_any_other_address_is_refused_until_insecurity_is_asked_for(text: str) -> None:
    with pytest.raises(BadAddress, match="insecure = true"):
        parse_address(text)
    assert str(parse_address(text, insecure=True)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "host:port"),
        ("7000", "host:port"),
        ("localhost", "host:port"),
        ("localhost:", "host:port"),
        (":7000", "host:port"),
        ("localhost:http", "host:port"),
        ("localhost:-1", "host:port"),
        ("::1:7000", "host:port"),
        ("localhost:7000/x", "host:port"),
        ("local host:7000", "host:port"),
        ("localhost:٣", "host:port"),
        ("localhost:65536", "65535"),
        ("[127.0.0.1]:7000", "IPv6"),
        ("[]:7000", "IPv6"),
        ("localhost:7000\n", "host:port"),
        ("x" * 300 + ":1", "host:port"),
    ],
)
def test_a_malformed_address_is_refused_with_what_was_expected(text: str, expected: str) -> None:
    with pytest.raises(BadAddress, match=expected) as refused:
        parse_address(text, insecure=True)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(111, "Connect call failed ('127.0.0.1', 7000)"), "connection refused"),
        (
            OSError(
                "Multiple exceptions: [Errno 111] Connect … ('::1', 7), [Errno 111] Connect … ('127.0.0.1', 7)"
            ),
            "connection refused",
        ),
        (
            OSError(
                "Multiple exceptions: [Errno 101] Connect … ('::1', 7), [Errno 111] Connect … ('127.0.0.1', 7)"
            ),
            "network is unreachable and connection refused",
        ),
        (socket.gaierror(-2, "Name or service not known"), "name or service not known"),
        (OSError("cut off"), "cut off"),
    ],
)
def test_why_an_address_cannot_be_had_is_said_in_the_systems_own_words(error: OSError, words: str) -> None:
    assert words_of(error) == words
