"""Durable streams from a shell: real processes read durably, and an operator looks, seeks, ends and forgets."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pytest

from holdfast.cli.main import main
from running import Running, write_network

EVENTS = "".join(f'{{"attributes": {{"i": {i}}}}}\n' for i in (1, 2, 3))


class Network(NamedTuple):
    path: Path
    urls: list[str]
    up: Running


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """b1 and b2 below it, up."""
    path, urls = write_network(tmp_path, "b1", guarantee="durable")
    with Running("up", "--network", str(path)) as up:
        up.wait_for("ready; connect to")
        yield Network(path, urls, up)
        up.tell(signal.SIGTERM)
        up.ended()


def command(*arguments: str, given: str = "") -> tuple[int, str, str]:
    with Running(*arguments) as running:
        running.write(given)
        return running.ended()


class Operator:
    """Runs the commands that only ask the admin ports, in this process."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._path = path
        self._capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        status = main([*arguments, "--network", str(self._path)])
        return status, *self._capsys.readouterr()

    def data(self, *arguments: str) -> tuple[int, Any]:
        status, out, err = self.run(*arguments, "--output", "json")
        assert err == ""
        return status, json.loads(out)

    def words(self, *arguments: str) -> str:
        status, out, err = self.run(*arguments)
        assert (status, err) == (0, "")
        return out


def sub(network: Network, *arguments: str) -> tuple[int, list[Any]]:
    """What a durable subscriber at b2 prints; its events by the attribute i."""
    status, out, _ = command("sub", "#", "--url", network.urls[1], "--durable", "audit", "--json", *arguments)
    return status, [json.loads(line) for line in out.splitlines()]


def test_a_durable_subscription_through_its_life(
    network: Network, capsys: pytest.CaptureFixture[str]
) -> None:
    """R1.2, R1.8: it goes on where it was; an operator sees it, moves it and ends it."""
    operator = Operator(network.path, capsys)
    hostile = "z\n\x1b[2J"  # a name is whatever its client likes
    for name in ("audit", "keeper", hostile):
        status, out, _ = command("sub", "#", "--url", network.urls[1], "--durable", name, "--timeout", "0.2")
        assert (status, out) == (1, "")  # nothing came
    assert " z··[2J " in operator.words("subscription", "ls")
    assert "Durable subscription z··[2J to #" in operator.words("subscription", "show", hostile)
    assert operator.words("subscription", "rm", hostile) == "z··[2J is ended.\n"
    status, out, _ = command("pub", "orders", "--json", "--url", network.urls[0], "--name", "p", given=EVENTS)
    receipts = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert [(each["line"], each["accepted"], each["pubend"]) for each in receipts] == [
        (line, True, "default@b1/0") for line in (1, 2, 3)
    ]

    status, events = sub(network, "--count", "2")
    assert (status, [each["attributes"]["i"] for each in events]) == (0, [1, 2])
    assert [(each["pubend"], each["tick"]) for each in events] == [
        (each["pubend"], each["tick"]) for each in receipts[:2]
    ]
    assert [each["attributes"]["i"] for each in sub(network, "--count", "1")[1]] == [3]  # no sooner, no later

    status, found = operator.data("subscription", "ls")
    audit, keeper = found["subscriptions"]
    assert (status, audit["name"], audit["broker"], audit["state"]) == (0, "audit", "b2", "away")
    assert keeper["places"][0]["acknowledged"] < receipts[0]["tick"] <= audit["places"][0]["acknowledged"]
    assert "Durable subscription audit to #, kept by b2: nobody reads it since" in operator.words(
        "subscription", "show", "audit"
    )

    (stream,) = operator.data("stream", "ls")[1]["streams"]
    assert (stream["name"], stream["guarantee"], stream["copies"]) == ("default", "durable", 1)
    (log,) = stream["logs"]
    assert [(pin["broker"], pin["subscription"]) for pin in log["pinned_by"]] == [("b2", "keeper")]
    assert "kept for keeper at b2, away since" in operator.words("stream", "show", "default")
    assert "One log holds" in operator.words("status", "--over", "0.1")

    assert operator.data("subscription", "seek", "audit", "earliest")[0] == 0
    (place,) = operator.data("subscription", "show", "audit")[1]["places"]
    assert 0 < place["acknowledged"] < receipts[0]["tick"]
    assert place["behind_seconds"] > 0, "all there is"
    assert [each["attributes"]["i"] for each in sub(network, "--count", "3")[1]] == [1, 2, 3]
    assert operator.data("subscription", "rm", "keeper") == (0, {"name": "keeper", "ended_at": ["b2"]})
    assert [each["name"] for each in operator.data("subscription", "ls")[1]["subscriptions"]] == ["audit"]


def test_a_broker_that_is_gone_holds_a_log_until_it_is_forgotten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B1.8."""
    path, urls = write_network(tmp_path, "b1", guarantee="durable")
    operator = Operator(path, capsys)
    flags = ["--network", str(path), "--set", "neighbours.detect_after_ms=300"]
    with Running("broker", "b1", *flags) as b1, Running("broker", "b2", *flags) as b2:
        for broker in (b1, b2):
            broker.wait_for('"in session"', "err")
        command("sub", "#", "--url", urls[1], "--durable", "audit", "--timeout", "0.2")
        assert command("pub", "orders", "--url", urls[0], given=EVENTS)[0] == 0
        status, _, err = operator.run("stream", "forget", "default", "b2")
        assert (status, err) == (
            1,
            "holdfast: b1: b2 can be reached, and would be waited for again: end its subscriptions instead\n",
        )
        b2.process.kill()
        b1.wait_for("connection lost", "err")
        status, out, err = operator.run("subscription", "ls")
        assert (status, "audit" in out, "b2 does not answer" in err) == (1, True, True)
        status, out, err = operator.run("stream", "forget", "default", "b2")
        assert (status, out) == (1, "One log of default will not wait for b2 any more.\n")
        assert "b2 does not answer" in err
        status, out, _ = operator.run("stream", "show", "default", "--output", "json")
        assert json.loads(out)["logs"][0]["waits_for"] == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["subscription", "seek", "audit", "soon"],
            "'soon' is no place in a stream; expected now, earliest,",
        ),
        (["stream", "show", "news"], "there is no stream 'news'; expected default"),
        (["stream", "show", ""], "there is no stream ''; expected default"),
        (["sub", "#", "--start", "soon"], "--start: 'soon' is no place in a stream"),
    ],
)
def test_what_is_wrong_is_said_before_anybody_is_asked(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = write_network(tmp_path, guarantee="durable")
    flags = [] if arguments[0] == "sub" else ["--network", str(path)]
    assert main([*arguments, *flags]) == 2
    assert capsys.readouterr().err.startswith(f"holdfast: {problem}")


def test_where_nothing_is_logged_or_nobody_answers_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = write_network(tmp_path)
    assert main(["subscription", "ls", "--network", str(path)]) == 2
    assert "no stream is durable" in capsys.readouterr().err
    assert main(["stream", "ls", "--network", str(path)]) == 1
    assert "no broker of tested answers: connection refused" in capsys.readouterr().err


def test_what_has_expired_is_a_gap_for_who_was_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R1.33: the first two had no time left when they were published."""
    stream = '[[stream]]\nname = "quotes"\ntopics = ["#"]\nexpires = "until"\n'
    path, urls = write_network(tmp_path)
    path.write_text(path.read_text().partition("[[stream]]")[0] + stream)
    operator = Operator(path, capsys)
    given = "".join(
        f'{{"attributes": {{"i": {i}, "until": {until}}}}}\n' for i, until in enumerate((1, 2.5, 9e9, 1), 1)
    )
    with Running("up", "--network", str(path)) as up:
        up.wait_for("ready; connect to")
        reading = ("sub", "#", "--url", urls[0], "--durable", "audit", "--json")
        command(*reading, "--timeout", "0.2")
        status, out, _ = command("pub", "a", "--json", "--url", urls[0], given=given)
        second = json.loads(out.splitlines()[1])["tick"]
        assert status == 0
        deadline = monotonic() + 30
        while operator.data("stream", "show", "quotes")[1]["logs"][0]["given_up"] < second:
            assert monotonic() < deadline
        assert "or past the time in its attribute until goes" in operator.words("stream", "show", "quotes")
        _, out, _ = command(*reading, "--count", "2")
        gap, *events = [json.loads(line) for line in out.splitlines()]
        assert (gap["kind"], gap["upto"], gap["reason"]) == ("gap", second, "expired")
        assert [each["attributes"]["i"] for each in events] == [3, 4]
        up.tell(signal.SIGTERM)
        up.ended()
