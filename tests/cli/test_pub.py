"""`holdfast pub`: every good line is published, every bad one named, and the end says what became of them."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bare_port import BarePort
from holdfast.cli import connection
from holdfast.cli import pub as module
from holdfast.cli.main import main
from holdfast.cli.pub import LineSplitter
from holdfast.cli.targets import Target
from holdfast.client.effect import Ended
from holdfast.client.errors import TakenOver
from holdfast.messages.session import Farewell
from running import Running, write_network
from scenario import scenario


def summary(err: str) -> str:
    """The last line, without the time it took."""
    return re.sub(r" in [0-9.]+ s \([0-9,]+/s\)", "", err.splitlines()[-1])


@pytest.fixture
def heard(urls: list[str]) -> Iterator[Running]:
    with Running("sub", "heard/#", "--url", urls[1], "--json") as sub:
        sub.wait_for("subscribed", "err")
        yield sub


def lines(sub: Running, count: int) -> list[dict[str, object]]:
    return [json.loads(line) for line in sub.wait_for("\n", times=count).splitlines()]


def test_a_missing_topic_is_filled_in_and_another_is_kept(urls: list[str], heard: Running) -> None:
    with Running("pub", "heard/default", "--url", urls[0]) as pub:
        pub.write(
            '{"payload": "1"}\n\n{}\n {"payload": "3"}\n{"topic": null, "payload": "4"}\n'
            '{"topic": "heard/own", "payload": "5"}\n{"payload": "6", "attributes": {"topic": 1}}'
        )
        status, out, err = pub.ended()
    assert (status, out, summary(err)) == (0, "", "holdfast: 6 events accepted")
    assert [(line["topic"], line["payload"]) for line in lines(heard, 6)] == [
        ("heard/default", "1"),
        ("heard/default", ""),
        ("heard/default", "3"),
        ("heard/default", "4"),
        ("heard/own", "5"),
        ("heard/default", "6"),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"attributes": {"x": 1e400}}', "column 17: attributes.x: "),
        ('{"attributes": {"x": 1, "x": 2}}', "column 25: attributes.x: appears twice"),
        (' {"topic": null, "attributes": {"x": 1, "x": 2}}', "column 41: attributes.x: appears twice"),
        ('{"n": 99999999999999999999}', "column 2: n: "),
    ],
)
def test_a_line_whose_topic_is_filled_in_is_read_no_less_strictly(
    urls: list[str], line: str, problem: str
) -> None:
    with Running("pub", "strict/x", "--url", urls[0]) as pub:
        pub.write(line)
        status, _, err = pub.ended()
    assert (status, summary(err)) == (2, "holdfast: 0 events accepted, 1 bad line")
    assert err.startswith(f"holdfast: standard input, line 1, {problem}")


def test_without_a_topic_every_line_says_its_own(urls: list[str], heard: Running) -> None:
    with Running("pub", "--url", urls[0]) as pub:
        pub.write('{"topic": "heard/a"}\n{"payload": "whose?"}\n{"topic": "heard/b"}\n')
        status, _, err = pub.ended()
    problem = (
        "standard input, line 2, column 1: topic: is missing, and none was given to `holdfast pub TOPIC`"
    )
    assert f"holdfast: {problem}\n" in err
    assert (status, summary(err)) == (2, "holdfast: 2 events accepted, 1 bad line")
    assert [line["topic"] for line in lines(heard, 2)] == ["heard/a", "heard/b"]


def test_bad_lines_are_named_and_the_rest_goes_on(urls: list[str], heard: Running) -> None:
    with Running("pub", "heard/x", "--url", urls[0]) as pub:
        pub.stdin.write(
            b'{"payload": "first"}\nnonsense\n{"atributes": {}}\n{"topic": "heard/+"}\n{"topic": "\xff"}\n'
            b'{"kind": "gap", "pubend": "p", "after": 1, "upto": 2}\n{"payload": "last"}\n'
        )
        status, _, err = pub.ended()
    assert status == 2
    assert summary(err) == "holdfast: 2 events accepted, 5 bad lines"
    for problem in (
        "line 2, column 1: json: is not JSON",
        "line 3, column 2: atributes: is not a member of an event; did you mean 'attributes'?",
        "line 4, column 2: topic: contains the wildcard '+'",
        "line 5, column 12: byte 0xFF is not UTF-8",
        'line 6, column 2: kind: is "gap"; expected an event',
    ):
        assert f"holdfast: standard input, {problem}" in err
    assert [line["payload"] for line in lines(heard, 2)] == ["first", "last"]


def test_what_the_network_refuses_is_named_and_the_rest_goes_on(urls: list[str], heard: Running) -> None:
    sizes = [10, 3000, 10, 4000, 3000, 10]
    with Running("pub", "heard/x", "--url", urls[0], "--window", "2") as pub:
        pub.write("".join(json.dumps({"payload": "x" * size}) + "\n" for size in sizes))
        status, _, err = pub.ended()
    assert (status, summary(err)) == (2, "holdfast: 3 events accepted, 3 bad lines")
    assert re.findall(r"standard input, line (\d+): the network refuses it: ", err) == ["2", "4", "5"]
    assert err.count("limit payload_bytes") == 3
    assert len(lines(heard, 3)) == 3


def test_numbers_are_kept_where_they_are_ours(urls: list[str], heard: Running) -> None:
    events = [
        {"n": 5},
        {"publisher": "numbered", "n": 8},
        {"publisher": "somebody else", "n": 3},
        {"n": 7},
    ]
    with Running("pub", "heard/x", "--url", urls[0], "--name", "numbered") as pub:
        pub.write("".join(json.dumps(event) + "\n" for event in events))
        status, _, err = pub.ended()
    assert status == 2
    assert "standard input, line 4, column 2: n: " in err
    first, second, third = lines(heard, 3)
    assert [first["n"], second["n"]] == [5, 8]
    assert third["publisher"] == "numbered"
    assert isinstance(third["n"], int)
    assert third["n"] > 8


def test_what_was_accepted_before_is_counted_as_a_duplicate(urls: list[str], heard: Running) -> None:
    for expected in ("1 event accepted", "2 events accepted, 1 of them had been before"):
        with Running("pub", "heard/x", "--url", urls[0], "--name", "repeater") as pub:
            pub.write('{"n": 1}\n' if expected.startswith("1") else '{"n": 1}\n{"n": 2}\n')
            status, _, err = pub.ended()
        assert (status, summary(err)) == (0, f"holdfast: {expected}")
    assert [line["n"] for line in lines(heard, 2)] == [1, 2]


def test_what_sub_wrote_can_be_published_again(urls: list[str], heard: Running) -> None:
    with Running("pub", "x", "--url", urls[0]) as pub:
        pub.write('{"topic": "heard/a", "attributes": {"b": true, "f": 1.0}, "payload_base64": "/w=="}\n')
        assert pub.ended()[0] == 0
    (line,) = lines(heard, 1)
    with Running("pub", "x", "--url", urls[0]) as pub:
        pub.write(json.dumps(line) + "\n")
        assert pub.ended()[0] == 0
    again = lines(heard, 2)[1]
    assert again["publisher"] != line["publisher"]
    for member in ("topic", "attributes", "payload_base64"):
        assert again[member] == line[member]


def test_an_interrupted_publisher_says_what_it_did(urls: list[str]) -> None:
    with (
        Running("pub", "heard/x", "--url", urls[0]) as pub,
        Running("sub", "heard/x", "--url", urls[0]) as sub,
    ):
        sub.wait_for("subscribed", "err")
        pub.write("{}\n")
        sub.wait_for("\n")
        pub.tell(signal.SIGINT)
        pub.process.wait(30)
        status, _, err = pub.ended()
    assert status == 130
    assert summary(err).startswith("holdfast: 1 event accepted"), err


def test_a_network_that_goes_away_and_stays_away_is_said(tmp_path: Path) -> None:
    path, (url,) = write_network(tmp_path)
    with (
        Running("broker", "b1", "--network", str(path)) as broker,
        Running("sub", "x", "--url", url) as sub,
    ):
        sub.wait_for("subscribed", "err")  # so the broker is there, and the publisher need not wait for it
        with Running("pub", "x", "--url", url, "--timeout", "1") as pub:
            pub.write("{}\n")
            sub.wait_for("\n")
            broker.tell(signal.SIGTERM)
            assert broker.ended()[0] == 0
            pub.write("{}\n{}\n")
            status, _, err = pub.ended()
    assert status == 1
    away, accepted, unknown = err.splitlines()
    assert away.startswith("holdfast: the network is away (")
    assert summary(accepted) == "holdfast: 1 event accepted, 2 not known to be accepted"
    assert "#2: not known whether it was accepted: no answer for 1 s; retry with n=2" in unknown


@pytest.mark.parametrize(
    ("codes", "status", "said"),
    [
        (["", ""], 1, "2 refused by the network"),
        (["event", "event"], 2, "2 bad lines"),
        (["", "event"], 2, "1 bad line, 1 refused by the network"),
    ],
)
def test_whose_fault_it_is_that_a_line_is_refused_is_the_status(
    codes: list[str],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Who gets 1 may try the same again; who gets 2 has something to mend first."""

    async def lines() -> AsyncIterator[tuple[int, bytes]]:
        for line in (1, 2, 3):
            yield line, b"{}"

    async def published() -> int:
        port = BarePort()
        port.refuses = {1: ("why not", codes[0]), 3: ("why not", codes[1])}
        monkeypatch.setattr(connection, "connect", lambda *arguments, **options: port.connect())
        monkeypatch.setattr(module, "_input_lines", lines)
        options = Namespace(topic="a", name="me", json=False, window=10, timeout=1.0)
        return await module._publish(options, Target("bare://", insecure=False))

    assert asyncio.run(published()) == status
    err = capsys.readouterr().err
    assert summary(err) == f"holdfast: 1 event accepted, {said}"
    assert re.findall(r"line (\d): the network refuses it: me#\d: why not", err) == ["1", "3"]


@scenario
async def test_a_publisher_that_is_taken_over_says_what_it_did(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port = BarePort()

    async def lines() -> AsyncIterator[tuple[int, bytes]]:
        yield 1, b"{}"
        await asyncio.sleep(0)
        port.accepts = False
        yield 2, b"{}"
        yield 3, b"{}"
        port.say(Ended(Farewell.TAKEN_OVER, "by another"))
        yield 4, b"{}"

    monkeypatch.setattr(connection, "connect", lambda *arguments, **options: port.connect())
    monkeypatch.setattr(module, "_input_lines", lines)
    options = Namespace(topic="a", name="me", json=False, window=10, timeout=1.0)
    with pytest.raises(TakenOver):
        await module._publish(options, Target("bare://", insecure=False))
    said = summary(capsys.readouterr().err)
    assert said == "holdfast: 1 event accepted, 2 not known to be accepted"


def test_a_network_that_is_not_there_is_named(tmp_path: Path) -> None:
    _, (url,) = write_network(tmp_path)
    with Running("pub", "x", "--url", url, "--timeout", "0.3") as pub:
        status, _, err = pub.ended()
    assert status == 1
    address = url.removeprefix("holdfast://")
    assert err == (
        f"holdfast: {url}: cannot reach the broker: {address}: connection refused (nothing within 0.3 s);"
        " is the network up (holdfast up), and is it there (--url)?\n"
    )


def test_a_topic_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pub", "a/+"]) == 2
    assert capsys.readouterr().err == "holdfast: topic: contains the wildcard '+' at character 3\n"


# Lines


def split(*pieces: bytes) -> list[tuple[int, bytes | None]]:
    splitter = LineSplitter()
    return [line for piece in (*pieces, b"") for line in splitter.feed(piece)]


def test_lines_do_not_depend_on_how_they_are_cut() -> None:
    text = b"a\nbc\n\nlast"
    expected = [(1, b"a"), (2, b"bc"), (3, b""), (4, b"last")]
    assert split(text) == expected
    assert split(*(text[i : i + 1] for i in range(len(text)))) == expected
    assert split(b"a\n") == [(1, b"a")]
    assert split() == []


def test_a_line_that_is_too_long_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_BYTES_MAX", 4)
    assert split(b"a\nbbbbb", b"bbbbbb", b"b\nc\ndddddd\n", b"e") == [
        (1, b"a"),
        (2, None),
        (3, b"c"),
        (4, None),
        (5, b"e"),
    ]
    assert split(b"aaaaa", b"aaaaa") == [(1, None)]
