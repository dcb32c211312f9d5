"""`holdfast sub`: what matches is printed as it comes, and it ends as it was asked to."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import sys
import termios
from pathlib import Path

import pytest

from holdfast.broker.durable.greeting import UNREACHED
from holdfast.cli.main import main
from holdfast.cli.sub import _first, _tell_upgrade, _text_line, json_line, write_beside
from holdfast.client.item import Gap
from holdfast.events.event import make_event
from holdfast.events.json_form import event_from_json
from holdfast.messages.subscriptions import Partition
from holdfast.streams.pubend import RELEASED, RESTORED
from holdfast.streams.release import Reason
from holdfast.streams.store_events import DAMAGED
from running import Running, write_network


def publish(url: str, *events: dict[str, object]) -> None:
    with Running("pub", "unnamed", "--url", url, "--name", "trader") as pub:
        pub.write("".join(json.dumps(event) + "\n" for event in events))
        status, _, err = pub.ended()
    assert status == 0, err


def test_events_cross_the_network_and_only_those_that_match_are_printed(urls: list[str]) -> None:
    with Running("sub", "cross/# WHERE price > 100", "--url", urls[1], "--json", "--count", "2") as sub:
        sub.wait_for(f"subscribed to cross/# WHERE price > 100 at {urls[1]} as client-", "err")
        publish(
            urls[0],
            {"topic": "cross/a", "attributes": {"price": 101.5}, "payload": "first"},
            {"topic": "cross/a", "attributes": {"price": 99}},
            {"topic": "other", "attributes": {"price": 200}},
            {"topic": "cross/b", "attributes": {"price": 102}, "payload_base64": "/w=="},
        )
        status, out, _ = sub.ended()
    assert status == 0
    first, second = (event_from_json(line) for line in out.splitlines())
    assert (first.topic, first.payload, first.attributes) == ("cross/a", b"first", {"price": 101.5})
    assert (second.topic, second.payload, second.publisher) == ("cross/b", b"\xff", "trader")
    assert second.n > first.n > 0


def test_an_event_is_printed_before_the_next_one_is_published(urls: list[str]) -> None:
    with (
        Running("sub", "prompt/#", "--url", urls[0]) as sub,
        Running("pub", "prompt/x", "--url", urls[1], "--name", "p") as pub,
    ):
        sub.wait_for("subscribed", "err")
        for i in range(3):
            pub.write(json.dumps({"n": i + 1, "attributes": {"i": i}}) + "\n")
            assert sub.wait_for("\n", times=i + 1).endswith(f"p#{i + 1}  prompt/x  i={i}\n")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_an_interrupted_subscriber_leaves_without_a_word(
    urls: list[str], number: signal.Signals, status: int
) -> None:
    with Running("sub", "#", "--url", urls[0]) as sub:
        said = sub.wait_for("subscribed", "err")
        sub.tell(number)
        assert sub.ended() == (status, "", said)


def test_a_reader_that_leaves_early_causes_no_complaint(urls: list[str]) -> None:
    with Running("sub", "pipe/#", "--url", urls[0]) as sub:
        said = sub.wait_for("subscribed", "err")
        sub.stop_reading()
        publish(urls[0], {"topic": "pipe/x"})
        status, _, err = sub.ended()
    assert (status, err) == (141, said)


def test_silence_ends_it_where_that_was_asked_for(urls: list[str]) -> None:
    with Running("sub", "nothing/comes", "--url", urls[0], "--timeout", "0.1") as sub:
        status, out, err = sub.ended()
    assert (status, out) == (1, "")
    assert err.endswith("holdfast: nothing came for 0.1 s\n")


def test_who_is_taken_over_is_told_what_to_do(urls: list[str]) -> None:
    arguments = ("sub", "#", "--url", urls[0], "--name", "twice")
    with Running(*arguments) as first:
        first.wait_for("subscribed", "err")
        with Running(*arguments) as second:
            second.wait_for("subscribed", "err")
            status, _, err = first.ended()
    assert status == 1
    assert err.endswith(
        "holdfast: another client connected as 'twice' and has taken over; give one of the two another --name\n"
    )


def test_a_network_that_is_not_there_is_named(tmp_path: Path) -> None:
    _, (url,) = write_network(tmp_path)
    with Running("sub", "#", "--url", url, "--timeout", "0.5") as sub:
        status, _, err = sub.ended()
    assert status == 1
    assert err.startswith(f"holdfast: {url}: ")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["a WHERE x ="],
            "line 1, column 12: unexpected end of the filter; expected an attribute or a literal\n\n    a WHERE x =\n",
        ),
        (
            ["#", "--url", "tcp://x:1"],
            "'tcp://x:1': the scheme 'tcp' is not known; expected holdfast://HOST:PORT",
        ),
        (["#", "--url", ""], "--url is empty; expected one such as holdfast://127.0.0.1:7000"),
        (
            ["orders/#", "WHERE", "price", ">", "100"],
            "put it in quotes, as in: holdfast sub 'orders/# WHERE price > 100'\n",
        ),
        (["#", "--count", "0"], "'0': expected a whole number from 1"),
        (["#", "--timeout", "-1"], "'-1': expected seconds, above 0"),
        (["#"], "network.toml, line 1: name is missing"),
    ],
)
def test_what_can_never_work_is_refused(tmp_path: Path, arguments: list[str], problem: str) -> None:
    (tmp_path / "network.toml").write_text("broker = []")
    with Running("sub", *arguments, cwd=tmp_path) as sub:
        status, out, err = sub.ended()
    assert (status, out) == (2, "")
    assert problem in err


def test_the_address_comes_from_the_environment_or_the_file_beside_it(
    tmp_path: Path, urls: list[str]
) -> None:
    with Running("sub", "#", environment={"HOLDFAST_URL": urls[1]}) as sub:
        sub.wait_for(f"at {urls[1]} ", "err")
    host = urls[0].removeprefix("holdfast://")
    (tmp_path / "network.toml").write_text(f'name = "x"\nbroker = [{{name = "b1", listen = "{host}"}}]\n')
    with Running("sub", "#", cwd=tmp_path) as sub:
        sub.wait_for(f"at {urls[0]} ", "err")


@pytest.mark.parametrize(
    ("arguments", "environment", "file"),
    [
        (["--url", "holdfast://0.0.0.0:{port}", "--insecure"], {}, ""),
        (["--url", "holdfast://0.0.0.0:{port}"], {"HOLDFAST_INSECURE": "true"}, ""),
        ([], {}, "insecure = true"),
        ([], {"HOLDFAST_INSECURE": "true"}, ""),
    ],
    ids=["flag", "variable", "file", "variable above the file"],
)
def test_an_address_beyond_this_machine_is_for_those_who_say_so(
    tmp_path: Path, urls: list[str], arguments: list[str], environment: dict[str, str], file: str
) -> None:
    port = urls[0].rpartition(":")[2]  # as 0.0.0.0 it is no loopback address, and reached all the same
    lines = ['name = "x"', file, "[[broker]]", 'name = "b1"', f'listen = "0.0.0.0:{port}"']
    (tmp_path / "network.toml").write_text("\n".join(lines))
    said = [argument.format(port=port) for argument in arguments]
    with Running("sub", "#", *said, environment=environment, cwd=tmp_path) as sub:
        sub.wait_for(f"at holdfast://0.0.0.0:{port} ", "err")
    with Running("pub", "a", *said, environment=environment, cwd=tmp_path) as pub:
        assert pub.ended()[0] == 0


def test_an_address_beyond_this_machine_is_refused_to_all_others(tmp_path: Path) -> None:
    for environment, problem in [
        ({}, "holdfast://0.0.0.0:1 is beyond this machine: only loopback is allowed, "),
        ({}, "; --insecure allows it all the same"),
        ({"HOLDFAST_INSECURE": "yes"}, "HOLDFAST_INSECURE is 'yes'; expected true or false"),
    ]:
        with Running("sub", "#", "--url", "holdfast://0.0.0.0:1", environment=environment) as sub:
            status, _, err = sub.ended()
        assert status == 2
        assert problem in err


# How items are written


def test_a_reader_that_stops_reading_does_not_stop_the_loop() -> None:
    reads, writes = os.pipe()
    text = "x" * 1_000_000  # more than any pipe holds

    async def main() -> bytes:
        with os.fdopen(writes, "w") as output:
            writing = asyncio.create_task(write_beside(output, text))
            while not fcntl.ioctl(reads, termios.FIONREAD, bytes(4)).strip(b"\0"):
                await asyncio.sleep(0)  # the loop goes on, though the text cannot
            assert not writing.done()
            read = await asyncio.to_thread(_read_all, reads, len(text))
            await writing
        return read

    assert asyncio.run(main()) == text.encode()
    os.close(reads)


def _read_all(source: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += os.read(source, 1 << 16)
    return data


def test_a_subscriber_whose_reader_has_stopped_can_be_interrupted(urls: list[str]) -> None:
    with Running("sub", "stuck/#", "--url", urls[0]) as sub:
        sub.wait_for("subscribed", "err")
        long: dict[str, object] = {"topic": "stuck/x", "attributes": {"long": "x" * 1000}}
        publish(urls[0], *[long] * 300)
        output = sub.process.stdout
        assert output is not None
        full = fcntl.fcntl(output, fcntl.F_GETPIPE_SZ)
        while int.from_bytes(fcntl.ioctl(output, termios.FIONREAD, bytes(4)), sys.byteorder) < full // 2:
            assert sub.process.poll() is None
        sub.tell(signal.SIGINT)
        assert sub.process.wait(20) == 130


def test_a_gap_stands_where_it_is() -> None:
    gap = Gap("trader", 4, 9, "the broker\x1b[2J went away")
    assert _text_line(gap) == (
        "-- gap: events 5 to 9 of trader may be missing here: the broker·[2J went away\n"
    )
    assert _text_line(Gap("trader", 4, 5, "why")) == "-- gap: event 5 of trader may be missing here: why\n"
    assert json.loads(json_line(gap)) == {
        "kind": "gap",
        "pubend": "trader",
        "after": 4,
        "upto": 9,
        "reason": gap.reason,
    }


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("disconnected", "this subscriber was disconnected"),
        ("beyond delta", "more brokers next to each other than delta lost their memory together"),
        ("overtaken", "its publisher went to another broker, and what it published there was faster"),
    ],
)
def test_why_there_is_a_gap_is_said_in_words_and_to_programs_in_one(reason: str, words: str) -> None:
    assert _text_line(Gap("p", 1, 2, reason)).endswith(f": {words}\n")
    assert json.loads(json_line(Gap("p", 1, 2, reason)))["reason"] == reason


def test_an_event_cannot_move_the_cursor() -> None:
    event = make_event("a", {"x": "\x1b[2J"}, b"line\nline\x07", publisher="p", n=1)
    assert _text_line(event) == "p#1  a  x='\\x1b[2J'  line·line·\n"
    assert _text_line(make_event("a", payload=b"\xff\x00", publisher="p", n=2)) == "p#2  a  (2 bytes)\n"
    assert _text_line(make_event("a", payload=b"x" * 201, publisher="p", n=3)).endswith(f"{'x' * 200}…\n")


def test_gaps_do_not_count() -> None:
    event, gap = make_event("a"), Gap("p", 0, 1, "why")
    assert _first([gap, event, gap, event, event], 2) == ([gap, event, gap, event], 0)
    assert _first([gap, event], 2) == ([gap, event], 1)


def test_the_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sub", "--help"])
    shown = capsys.readouterr().out
    assert all(
        option in shown for option in ("--json", "--count", "--timeout", "--name", "--url", "--insecure")
    )


def test_where_it_is_not_subscribed_yet_is_said_and_when_that_is_over(tmp_path: Path) -> None:
    """R0.26: a partial confirmation, and its upgrade; b3 is at the edge, and down."""
    reliable = 'delta = 1\nstream = [{name = "s", topics = ["#"], guarantee = "reliable"}]'
    path, urls = write_network(tmp_path, "b1", "b2", extra=reliable)
    path.write_text(path.read_text().replace("detect_after_ms = 5000", "detect_after_ms = 600"))
    flags = ["--network", str(path)]
    with (
        Running("broker", "b1", *flags),
        Running("broker", "b2", *flags),
        Running("sub", "#", "--url", urls[0], "--count", "1", "--timeout", "30") as sub,
    ):
        said = sub.wait_for("not at b3 yet: what is published there may be missing", "err")
        assert "holdfast: subscribed to # at" in said
        with Running("broker", "b3", *flags):
            sub.wait_for("holdfast: subscribed at b3 too\n", "err")
            with Running("pub", "t", "--url", urls[2], "--name", "late") as pub:
                pub.write('{"attributes": {"x": 1}}\n')
                assert pub.ended()[0] == 0
            status, out, _ = sub.ended()
    assert status == 0
    assert out.startswith("late#")


@pytest.mark.parametrize("reason", [RESTORED, RELEASED, DAMAGED, UNREACHED, *map(str, Reason)])
def test_every_reason_of_a_log_is_a_sentence(reason: str) -> None:
    assert not _text_line(Gap("orders@a/0", 1, 2, reason)).endswith(f": {reason}\n")


def test_what_is_not_reached_after_a_broken_session_is_said_as_at_the_beginning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = (Partition("b1", 1, 1, ("b3",)),)
    _tell_upgrade((), places)
    _tell_upgrade(places, ())
    _tell_upgrade((), ())
    assert capsys.readouterr().err.splitlines() == [
        "holdfast: not at b3 yet: what is published there may be missing",
        "holdfast: subscribed at b3 too",
    ]


def test_what_is_missing_is_called_as_the_help_calls_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sub"])
    assert capsys.readouterr().err.endswith("the following arguments are required: FILTER\n")
