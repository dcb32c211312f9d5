"""`holdfast status`: what is up, what is not, and why, for people and for programs."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import status as module
from holdfast.cli.main import main
from holdfast.cli.status import Answer, rates_between
from holdfast.cli.words import duration
from holdfast.identity import is_first_life
from holdfast.runtime.addresses import Address
from holdfast.runtime.admin_page import NoAnswer
from holdfast.runtime.network_file import BrokerEntry, read_network
from running import PATIENCE_S, Running, write_network


@pytest.fixture
def network(tmp_path: Path) -> Path:
    return write_network(tmp_path, "b1", "b1")[0]


def status(network: Path, *flags: str) -> tuple[int, str]:
    with Running("status", "--network", str(network), "--over", "0.05", *flags) as asked:
        code, out, err = asked.ended()
    assert err == ""
    return code, out


def test_a_whole_network_is_shown_in_one_table(network: Path) -> None:
    with Running("up", "--network", str(network)) as up:
        up.wait_for("ready; connect to")
        code, out = status(network)
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert out.startswith("Network tested: all 3 brokers are up.\n")
    assert lines[1] == [
        "broker",
        "up",
        "for",
        "neighbours",
        "clients",
        "subscriptions",
        "kept",
        "in/s",
        "out/s",
    ]
    assert [line[0] for line in lines[3:]] == ["b1", "b2", "b3"]
    assert lines[3][3:] == ["b2,", "b3", "0", "0", "0", "0", "0"]


def test_who_does_not_answer_is_named_once_and_not_by_all_who_miss_it(network: Path) -> None:
    flags = ["--network", str(network), "--set", "neighbours.detect_after_ms=1000"]
    with Running("broker", "b1", *flags), Running("broker", "b2", *flags):
        deadline = time.monotonic() + PATIENCE_S
        code, out = status(network)
        while "2 of 3" not in out or "b3 is down.\n" not in out or "b2 is without" in out:
            assert time.monotonic() < deadline, out
            code, out = status(network)
    assert code == 1
    assert out.startswith("Network tested: 2 of 3 brokers are up.\n")
    assert "b1 is without" not in out
    assert "b3 (never met)" in out, "in the table"
    assert "\nb3 does not answer at 127.0.0.1:" in out
    assert ": connection refused.\n" in out
    assert ["b3", "down"] in [line.split() for line in out.splitlines()]


def test_for_programs_there_is_everything(network: Path) -> None:
    with Running("broker", "b1", "--network", str(network)) as broker:
        broker.wait_for("listening", "err")
        code, out = status(network, "--output", "json")
    assert code == 1
    found = json.loads(out)
    assert found["network"] == "tested"
    one, two, _ = found["brokers"]
    assert (one["name"], one["up"], is_first_life(one["status"]["incarnation"])) == ("b1", True, True)
    assert one["rates"]["own"]["published"] == one["rates"]["reliable"]["accepted"] == 0
    assert one["status"]["overlay"]["down"] == []
    assert found["overlay"]["delta"] == 0
    assert (two["name"], two["up"], two["status"], two["rates"]) == ("b2", False, None, None)
    assert "connection refused" in two["trouble"]


def test_a_stranger_on_the_admin_port_is_no_broker(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = [b"HTTP/1.0 200 OK\r\n\r\n{}", b"nonsense\r\n\r\n", b"HTTP/1.0 404 No\r\n\r\n"]
    port = int(network.read_text().split('admin = "127.0.0.1:')[1].split('"')[0])
    with socket.create_server(("127.0.0.1", port)) as server:
        for answer in answers:
            thread = threading.Thread(target=serve_once, args=(server, answer))
            thread.start()
            assert main(["status", "--network", str(network), "--over", "0.01"]) == 1
            thread.join()
            out = capsys.readouterr().out
            assert f"b1 does not answer at 127.0.0.1:{port}: what answers there " in out


def serve_once(server: socket.socket, answer: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(1000)
        connection.sendall(answer)


@pytest.mark.parametrize(("is_b1_up", "times"), [(True, [2, 1, 2]), (False, [1, 1, 1])])
def test_who_was_silent_for_long_is_not_waited_for_again(
    network: Path, monkeypatch: pytest.MonkeyPatch, is_b1_up: bool, times: list[int]
) -> None:
    """b2 is frozen, b3 refuses at once and may be there later; if nobody answers there is nothing to watch."""
    b1, b2, b3 = brokers = [broker.admin for broker in read_network(network).brokers]
    asked: list[Address | None] = []

    async def answer_of(address: Address) -> dict[str, Any]:
        asked.append(address)
        if address == b1 and is_b1_up:
            return page(1, 0)
        if address == b2:
            await asyncio.sleep(0.06)
        elif address == b3 and asked.count(b3) == 2:
            return page(1, 0)
        raise NoAnswer("no answer")

    monkeypatch.setattr(module, "status_page", answer_of)
    answers = asyncio.run(module.ask_all(read_network(network), 0.05))
    assert [asked.count(each) for each in brokers] == times
    assert [answer.page is not None for answer in answers] == [is_b1_up, False, is_b1_up]
    assert (answers[0].rates is not None) == is_b1_up


def answer(name: str, *neighbours: str, page_of: str | None = None) -> Answer:
    """Of a broker with neighbours such as "b2" and "b3 (absent)"."""
    split = [each.partition(" (") for each in neighbours]
    states = [{"name": one, "state": state.rstrip(")") or "active"} for one, _, state in split]
    where = Address("127.0.0.1", 1)
    page = {"name": page_of or name, "ready": True, "neighbours": states}
    return Answer(BrokerEntry(name, None, where, where, where, Path(name)), page)


def test_who_is_without_others_is_named_unless_they_are() -> None:
    assert answer("b1", "b2", "b3 (absent)").lacks_only({"b3"})
    assert not answer("b1", "b2 (absent)", "b3 (absent)").lacks_only({"b3"}), "b2 is up: a link has failed"
    assert not answer("b1", "b3 (absent)", page_of="b9").lacks_only({"b3"}), "it is not b1 at all"
    assert not answer("b1", "b3").lacks_only({"b3"}), "if there is trouble it is another"


def test_a_broker_without_an_admin_port_is_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "network.toml"
    path.write_text('name = "x"\nbroker = [{name = "a", listen = "127.0.0.1:7000"}]\n')
    assert main(["status", "--network", str(path)]) == 1
    assert capsys.readouterr().out == (
        "Network x: its broker cannot be asked.\n"
        "a cannot be asked: it has no admin address in the file; give its [[broker]] one, such as"
        ' admin = "127.0.0.1:7100", with a port of its own, and restart it.\n'
    )
    assert main(["status", "--network", str(path), "--output", "json"]) == 1
    [found] = json.loads(capsys.readouterr().out)["brokers"]
    assert found["up"] is None, "nobody knows"


def without_admin(network: Path, *names: str) -> None:
    """Take their admin addresses out of the file."""
    lines = network.read_text().splitlines()
    ends = {lines.index(f'name = "{name}"') + 2 for name in names}
    assert all(lines[at].startswith("admin = ") for at in ends)
    network.write_text("\n".join(line for at, line in enumerate(lines) if at not in ends) + "\n")


@pytest.mark.parametrize(
    ("unasked", "said"),
    [
        (["b2"], "Network tested: 2 of 3 brokers are up, 1 cannot be asked.\n"),
        (["b1", "b2", "b3"], "Network tested: none of its 3 brokers can be asked.\n"),
    ],
)
def test_a_broker_that_runs_and_cannot_be_asked_is_not_down(
    network: Path, unasked: list[str], said: str
) -> None:
    without_admin(network, *unasked)
    with Running("up", "--network", str(network)) as up:
        up.wait_for("ready; connect to")
        code, out = status(network)
    assert code == 1
    assert out.startswith(said)
    assert all(f"\n{name} cannot be asked: it has no admin address in the file; " in out for name in unasked)
    assert "down" not in out
    if len(unasked) == 1:
        assert ["b2", "cannot", "be", "asked"] in [line.split() for line in out.splitlines()]


def test_a_broker_that_cannot_be_asked_is_down_if_its_neighbour_says_so(network: Path) -> None:
    without_admin(network, "b3")
    flags = ["--network", str(network), "--set", "neighbours.detect_after_ms=1000"]
    with Running("broker", "b1", *flags), Running("broker", "b2", *flags):
        deadline = time.monotonic() + PATIENCE_S
        code, out = status(network)
        while "2 of 3" not in out or "b3 is down.\n" not in out:
            assert time.monotonic() < deadline, out
            code, out = status(network)
    assert code == 1
    assert ["b3", "down"] in [line.split() for line in out.splitlines()]


def test_brokers_whose_admin_ports_are_mixed_up_are_named_and_not_down(network: Path) -> None:
    with Running("up", "--network", str(network)) as up:
        up.wait_for("ready; connect to")
        two, three = (broker.admin for broker in read_network(network).brokers[1:])
        text = network.read_text().replace(f'admin = "{two}"', "admin = ?")
        text = text.replace(f'admin = "{three}"', f'admin = "{two}"')
        network.write_text(text.replace("admin = ?", f'admin = "{three}"'))
        code, out = status(network)
    assert code == 1
    assert out.startswith(
        "Network tested: all 3 brokers are up.\n"
        f"b2 is not what answers at {three}: that is b3.\n"
        f"b3 is not what answers at {two}: that is b2.\n"
    )
    assert "down" not in out
    rows = [line.split() for line in out.splitlines()[-3:]]
    assert [row[0] for row in rows] == ["b1", "b2", "b3"]


def test_a_broker_of_another_network_at_the_address_of_one_of_ours_is_not_counted(
    network: Path,
) -> None:
    [ours, *_] = read_network(network).brokers
    with Running("broker", "b1", "--network", str(network)) as broker:
        broker.wait_for("listening", "err")
        network.write_text(network.read_text().replace('"b1"', '"b9"'))
        code, out = status(network)
    assert code == 1
    assert out.startswith("Network tested: 0 of 3 brokers are up.\n")
    assert f"b9 is not what answers at {ours.admin}: that is b1.\n" in out


def page(incarnation: int, accepted: int, originated: int = 0, **counters: int) -> dict[str, Any]:
    """What a broker might say of itself."""
    own = dict.fromkeys(("published", "received", "forwarded", "delivered"), 0) | counters
    return {
        "incarnation": incarnation,
        "counters": own,
        "overlay": {"counters": {"accepted": accepted, "originated": originated, "forwarded": accepted}},
    }


def test_rates_are_of_one_life() -> None:
    then = page(1, 100, published=10)
    rates = rates_between(then, page(1, 140, originated=20, published=30, delivered=8), 2.0)
    assert rates is not None
    assert rates.own["published"] == 10.0
    assert (rates.arriving, rates.leaving) == (20.0, 24.0)
    assert rates_between(then, page(2, 0, published=3), 2.0) is None
    assert rates_between(None, then, 1.0) is None


def test_an_event_of_a_plain_client_arrives_once_whatever_its_stream_promises() -> None:
    """Ten are relayed, six published on a reliable stream and four on a durable one, in a second."""
    rates = rates_between(page(1, 0), page(1, 16, originated=6, published=10), 1.0)
    assert rates is not None
    assert rates.arriving == 20.0


@pytest.mark.parametrize(
    ("elapsed", "text"),
    [(0.4, "0 s"), (59.9, "59 s"), (60, "1 min"), (3_661, "1 h 1 min"), (86_400 * 3 + 5, "3 d 5 s")],
)
def test_durations_are_said_in_two_units(elapsed: float, text: str) -> None:
    assert duration(elapsed) == text


def test_an_interrupt_is_no_traceback(network: Path) -> None:
    with Running("broker", "b1", "--network", str(network)) as broker:
        broker.wait_for("listening", "err")
        with Running("status", "--network", str(network), "--over", "60") as asked:
            asked.wait_for("watching for 60 s", "err")
            asked.tell(signal.SIGINT)
            assert asked.ended() == (130, "", "watching for 60 s\n")
