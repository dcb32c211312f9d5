"""What `holdfast status` says of a network as a whole: what has failed, who goes around it, what of δ is left."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.status_overlay import OverlayView
from holdfast.identity import is_first_life
from holdfast.runtime.admin_page import status_page
from holdfast.runtime.network_file import Network, read_network
from running import PATIENCE_S, Running, write_network


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """b1-b2-b3-b4-b5, δ = 2."""
    path, _ = write_network(tmp_path, "b1", "b2", "b3", "b4", extra="delta = 2")
    return read_network(path)


def page(*connections: str, **said: Any) -> dict[str, Any]:
    """What a broker says; a connection past others is written "b2>b3"."""
    spoken = [(each.rpartition(">")[2], each.split(">")[:-1]) for each in connections]
    overlay: dict[str, Any] = {
        "connections": [{"to": to, "past": past, "role": "broker", "state": "open"} for to, past in spoken],
        "bypassing": [{"to": to, "past": past} for to, past in spoken if past],
        "down": [],
        "partitions": [],
        "crossings": [],
        "waiting": {},
        "stalled": {},
        "stalled_subscriptions": [],
        "lapses": [],
    }
    return {"overlay": overlay | said}


WHOLE = {
    "b1": page("b2"),
    "b2": page("b1", "b3"),
    "b3": page("b2", "b4"),
    "b4": page("b3", "b5"),
    "b5": page("b4"),
}


def lines(network: Network, pages: dict[str, dict[str, Any]]) -> list[str]:
    return list(OverlayView(network, pages).lines())


def test_of_a_whole_network_it_says_how_much_may_fail(network: Network) -> None:
    assert lines(network, WHOLE) == ["Nothing has failed: two brokers or links may, whichever they are."]
    assert OverlayView(network, WHOLE).budget == 2
    assert lines(network, {}) == [], "nobody answered, so nothing is known"


def test_of_a_broker_that_cannot_be_asked_only_its_neighbours_can_say_that_it_is_down(
    network: Network,
) -> None:
    brokers = tuple(
        replace(each, admin=None) if each.name in ("b4", "b5") else each for each in network.brokers
    )
    mute = replace(network, brokers=brokers)
    heard = {name: WHOLE[name] for name in ("b1", "b2", "b3")}
    assert lines(mute, heard) == [
        "Nothing is known to have failed: two brokers or links may, whichever they are."
    ]
    assert lines(mute, heard | {"b3": page("b2")})[0] == "b4 is down."


def test_a_broker_that_is_down_is_named_with_who_goes_around_it_and_what_is_left(network: Network) -> None:
    pages = WHOLE | {"b2": page("b1", "b3>b4"), "b4": page("b5", "b3>b2")}
    del pages["b3"]
    assert lines(network, pages) == [
        "b3 is down: b2 speaks with b4 past b3; b4 speaks with b2 past b3.",
        "One more broker or link may fail near there (b1, b2, b4 and b5).",
    ]
    assert OverlayView(network, pages).budget == 1


def test_clients_that_are_served_past_their_broker_are_counted(network: Network) -> None:
    pages = WHOLE | {"b4": page("b3", "b5>c1", "b5>c2")}
    del pages["b5"]
    assert "b5 is down: b4 speaks with two clients past b5." in lines(network, pages)


def test_a_broker_that_does_not_answer_us_but_its_neighbours_is_not_down(network: Network) -> None:
    pages = {name: said for name, said in WHOLE.items() if name != "b3"}
    assert not OverlayView(network, pages).failures.brokers
    assert not OverlayView(network, pages).failures.links


def test_a_link_that_failed_is_told_from_a_broker(network: Network) -> None:
    pages = WHOLE | {"b2": page("b1", "b3>b4"), "b3": page("b4", "b2>b1")}
    assert lines(network, pages) == [
        "b2 and b3 are up and do not reach each other: b2 speaks with b4 past b3; b3 speaks with b1 past b2.",
        "One more broker or link may fail near there (b1, b2, b3, b4 and b5).",
    ]


def test_when_delta_is_used_up_or_passed_that_is_said(network: Network) -> None:
    pages = {"b1": page("b2>b3>b4"), "b4": page("b5", "b3>b2>b1"), "b5": page("b4")}
    assert "No more may fail near there (b1, b4 and b5)." in lines(network, pages)
    beyond = {"b1": page(), "b5": page()}
    assert OverlayView(network, beyond).budget == -1
    assert "That is more than delta = 2 allows: some events wait until a broker or link is back." in lines(
        network, beyond
    )


def test_what_waits_for_whom_is_said_and_what_is_held_up(network: Network) -> None:
    waiting = page("b1", down=["b3"], waiting={"b3": 12, "b1": 4}, stalled={"b3": 7})
    found = lines(network, WHOLE | {"b2": waiting})
    assert "b2 keeps 12 events for b3, which it does not reach." in found
    assert not any("keeps four" in line for line in found), "those are on their way"
    assert any(line.startswith("b2 sends nothing on towards b3: ") for line in found)


def test_partitions_are_told_once_however_many_know_them(network: Network) -> None:
    """R0.26, B0.32: the partition tables of all brokers, as one."""
    partition = {"lead": "b4", "seq": 3, "fragment": ["b5"]}
    pages = WHOLE | {
        "b3": page("b2", "b4", partitions=[partition | {"subscriptions": 1}]),
        "b4": page("b3", partitions=[partition | {"subscriptions": 2}]),
        "b2": page("b1", "b3", crossings=[{"lead": "b1", "seq": 1, "fragment": ["b2"], "crossed": True}]),
    }
    found = lines(network, pages)
    told = (
        "2 subscriptions have not been told to b5: what is published there may be missing (partition b4/3)."
    )
    assert found.count(told) == 1
    assert "Partition b1/1 is over, and its subscribers are being told." in found


# Lapses


@pytest.fixture
def reliable(tmp_path: Path) -> Network:
    """The same, with a stream that promises something."""
    stream = 'delta = 2\nstream = [{name = "s", topics = ["#"], guarantee = "reliable"}]'
    return read_network(write_network(tmp_path, "b1", "b2", "b3", "b4", extra=stream)[0])


def lapse(by: str, at: datetime, life: int = 2, seq: int = 1) -> dict[str, Any]:
    return {"by": by, "life": life, "seq": seq, "at": at.isoformat()}


NOON = datetime(2026, 11, 14, 12, 2, 7, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_that_events_may_be_lost_is_said_once_with_the_time_and_who_noticed(reliable: Network) -> None:
    """B0.16: beyond δ nothing is lost without a word; whoever heard of it later does not make it later."""
    told = [lapse("b3", NOON), lapse("b2", NOON), lapse("a client", NOON)]
    pages = WHOLE | {
        "b1": page("b2", lapses=told),
        "b5": page("b4", lapses=[lapse("b2", NOON + 9 * MINUTE)]),
    }
    expected = (
        f"Events that were on their way at {NOON.astimezone():%Y-%m-%d %H:%M} may be lost: more brokers next to each"
        " other than delta = 2 lost their memory together, as b2 and b3 noticed. Subscribers see where, by gaps."
    )
    assert lines(reliable, pages)[1:] == [expected]
    assert {"by": "b2", "at": NOON.isoformat()} in OverlayView(reliable, pages).as_json()["lapses"]


def test_of_lapses_the_last_that_each_noticed_counts_and_today_needs_no_date(reliable: Network) -> None:
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0)
    for later in (lapse("b2", today + MINUTE, life=3), lapse("b2", today + MINUTE, seq=2)):
        pages = WHOLE | {
            "b1": page("b2", lapses=[later]),
            "b2": page("b1", "b3", lapses=[lapse("b2", today + 5 * MINUTE)]),
            "b3": page("b2", "b4", lapses=[lapse("a client", today)]),
        }
        said = lines(reliable, pages)[1]
        assert "at 00:00 and 00:01 may be lost" in said
        assert ", as b2 noticed." in said


def test_where_nothing_was_promised_nothing_is_said_to_be_lost(network: Network) -> None:
    assert len(lines(network, WHOLE | {"b1": page("b2", lapses=[lapse("b2", NOON)])})) == 1


def test_a_real_network_says_so_of_itself(tmp_path: Path) -> None:
    """δ = 0 and a broker killed and started again: its page has the date, its metrics the number."""
    stream = 'stream = [{name = "s", topics = ["#"], guarantee = "reliable"}]'
    path, _ = write_network(tmp_path, "b1", extra=stream)
    before = datetime.now(UTC).replace(microsecond=0)
    with Running("broker", "b1", "--network", str(path)) as first:
        with Running("broker", "b2", "--network", str(path)):
            wait_for(path, "all 2 brokers are up")
        with Running("broker", "b2", "--network", str(path)):
            assert ", as b2 noticed." in wait_for(path, "may be lost: ")
            admin = read_network(path).brokers[0].admin
            assert admin is not None
            page = asyncio.run(status_page(admin))
    assert first.process.returncode != 1
    (said,) = page["overlay"]["lapses"]
    assert (said["by"], is_first_life(said["life"] - 1), page["counters"]["lapses"]) == ("b2", True, 1)
    assert before <= datetime.fromisoformat(said["at"]) <= datetime.now(UTC)


# Running networks


def test_a_real_network_with_a_frozen_broker_says_who_goes_around_it(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path, "b1", "b2", extra="delta = 1")
    path.write_text(path.read_text().replace("detect_after_ms = 5000", "detect_after_ms = 600"))
    with (
        Running("broker", "b1", "--network", str(path)),
        Running("broker", "b2", "--network", str(path)) as middle,
        Running("broker", "b3", "--network", str(path)),
    ):
        wait_for(path, "Nothing has failed: one broker or link may, whichever it is.")
        os.kill(middle.process.pid, signal.SIGSTOP)
        out = wait_for(path, "b2 is down: b1 speaks with b3 past b2; b3 speaks with b1 past b2.")
        assert "No more may fail near there (b1 and b3)." in out
        os.kill(middle.process.pid, signal.SIGCONT)
        wait_for(path, "Nothing has failed")


def wait_for(path: Path, text: str) -> str:
    """Ask until the status says so."""
    deadline = time.monotonic() + PATIENCE_S
    out = ""
    while text not in out:
        assert time.monotonic() < deadline, out
        with Running("status", "--network", str(path), "--over", "0.01") as asked:
            _, out, err = asked.ended()
        assert err == ""
    return out
