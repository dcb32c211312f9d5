"""`holdfast demo`: a real network that ends by itself, says what it did, and leaves nothing behind."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from holdfast.cli.demo_clients import Tally, due_events
from holdfast.cli.demo_figures import Figures
from holdfast.cli.demo_plan import (
    BROKERS,
    DELTA,
    KILLED,
    PUBLISHERS,
    SUBSCRIBERS,
    Plan,
    make_network,
    make_plan,
)
from holdfast.cli.demo_view import picture, plain_line, summary, tree_labels
from holdfast.cli.latencies import Latencies
from holdfast.client.item import Gap
from holdfast.events.event import Event, make_event
from running import Running, processes_of


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo's temporary folder goes, so that its processes can be found."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def rows(out: str) -> dict[str, str]:
    """The summary."""
    return dict(
        re.findall(
            r"^(killed|published|expected|delivered|lost|duplicated|out of order|latency)  +(.*?) *$",
            out,
            re.M,
        )
    )


def number(text: str) -> int:
    return int(text.split()[0].replace(",", ""))


def test_two_brokers_are_killed_and_all_that_matches_arrives_once_and_in_order(folder: Path) -> None:
    """R0.3 with real processes: δ = 2, a publisher's broker and the root killed with -9, nothing of it is missed."""
    with Running("demo", "--seconds", "1.2") as demo:
        status, out, err = demo.ended()
    assert (status, err) == (0, "")
    found = rows(out)
    assert re.fullmatch(r"dublin after [\d.]+ s, frankfurt after [\d.]+ s", found["killed"])
    assert number(found["published"]) == 600
    assert number(found["expected"]) == number(found["delivered"]) > number(found["published"])
    assert [found[name] for name in ("lost", "duplicated", "out of order")] == ["0", "0", "0"]
    assert re.fullmatch(r"p50 [\d.]+ [mµ]?s, p99 [\d.]+ [mµ]?s, longest [\d.]+ [mµ]?s", found["latency"])
    for said in ("dublin is killed, with -9", "frankfurt is started again, without its memory"):
        assert re.search(rf"^ +\d+\.\d s · {said}$", out, re.M)
    assert re.search(
        r"^ +\d+\.\d s · published [\d,]+ · delivered [\d,]+ of [\d,]+ · latency p50 ", out, re.M
    )
    assert out.endswith("Every subscriber got all that matches its filter, once and in order.\n")
    assert "\x1b" not in out, "plain lines where there is no terminal"
    assert processes_of(folder / "holdfast-demo-") == []

    (scenario,) = folder.iterdir()
    replay = re.search(r"^  \S+ -m holdfast\.cli\.main (puppet .*)$", out, re.M)
    assert replay is not None
    assert str(scenario) in replay[1]
    with Running(*replay[1].split()) as again:
        status, out, _ = again.ended()
    assert status == 0
    told = dict(re.findall(r"^(published|delivered) +([\d,]+)$", out, re.M))
    assert told == {"published": "600", "delivered": found["delivered"]}
    assert "promises kept" in out


def test_ctrl_c_on_a_terminal_ends_it_with_the_summary(folder: Path) -> None:
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    command = [sys.executable, "-m", "holdfast.cli.main", "demo", "--seconds", "600"]
    shown = b""
    with subprocess.Popen(
        command, stdin=end, stdout=end, stderr=end, env=environment, start_new_session=True
    ) as demo:
        os.close(end)
        with suppress(OSError):  # how a terminal says that nobody is left at its other end
            while chunk := os.read(terminal, 65_536):
                before = shown
                shown += chunk
                if b"published 1" in shown and b"published 1" not in before:
                    demo.send_signal(signal.SIGINT)
        status = demo.wait(30)
    os.close(terminal)
    text = shown.decode()
    assert status == 130
    assert "Traceback" not in text
    assert "├ london" in text
    assert re.search(r"lost *\x1b\[0m  \d", text)
    assert "\x1b[?25h" in text, "the cursor is back"
    assert processes_of(folder) == []
    assert list(folder.iterdir()) == []


def test_a_broker_that_dies_ends_it_with_its_name(folder: Path) -> None:
    with Running("demo", "--seconds", "600") as demo:
        demo.wait_for("published ")
        victim = next(
            pid for pid in processes_of(folder) if b"vienna" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
        os.kill(victim, signal.SIGKILL)
        status, _, err = demo.ended()
    assert status == 1
    assert err.startswith("holdfast: vienna was killed by SIGKILL\n")
    assert processes_of(folder) == []


def test_a_reader_that_leaves_early_ends_it_without_a_complaint(folder: Path) -> None:
    with Running("demo", "--seconds", "600") as demo:
        demo.wait_for("published ")
        demo.stop_reading()
        status, _, err = demo.ended()
    assert (status, err) == (141, "")
    assert processes_of(folder) == []


def test_killing_the_demo_outright_leaves_no_process(folder: Path) -> None:
    with Running("demo", "--seconds", "600") as demo:
        demo.wait_for("published ")
        watched = [os.pidfd_open(pid) for pid in processes_of(folder)]
        assert len(watched) == len(BROKERS)
        demo.tell(signal.SIGKILL)
        for descriptor in watched:
            assert select.select([descriptor], [], [], 30)[0]
            os.close(descriptor)


# The plan


def test_the_plan_makes_a_network_and_survives_the_command_line(tmp_path: Path) -> None:
    network = make_network(tmp_path)
    assert {broker.name: broker.parent for broker in network.brokers} == BROKERS
    assert network.delta == DELTA == len(KILLED)
    assert {one.broker for one in (*PUBLISHERS, *SUBSCRIBERS)} <= set(BROKERS)
    plan = make_plan({"frankfurt": "holdfast://x:1"}, 2.5, 7)
    assert Plan.from_json(plan.as_json()) == plan
    assert plan.broker_of("auditor") == "holdfast://x:1"


def test_the_scenario_is_of_the_same_network_and_kills_two_at_a_time(tmp_path: Path) -> None:
    plan = make_plan({}, 10.0, 3)
    tree = plan.configuration.tree()
    assert {name: tree[name] for name in BROKERS} == BROKERS
    assert (plan.configuration.delta, plan.configuration.guarantee) == (DELTA, "reliable")
    assert plan.configuration.detect_after_ns == make_network(tmp_path).settings("milan", 1).detect_after_ns
    assert [str(at) for at in plan.faults] == [
        "At 2000 Crash dublin",
        "At 4000 Crash frankfurt",
        "At 6000 Restart dublin",
        "At 7000 Restart frankfurt",
    ]


def test_a_publisher_publishes_its_flows_together_in_the_order_of_time() -> None:
    plan = make_plan({}, 0.1, 3)
    dues = list(due_events(plan.publishing()["factory"], plan.configuration.seed))
    assert [due.at_ns // 1_000_000 for due in dues[:6]] == [0, 0, 10, 20, 20, 30]
    places = [due.event.topic.split("/")[1] for due in dues[:6]]
    assert places == ["north", "south", "north", "north", "south", "north"]
    assert len(dues) == 10 + 5
    assert dues == list(due_events(plan.publishing()["factory"], plan.configuration.seed))


# Counting


def event(n: int, publisher: str = "p") -> Event:
    return make_event("a", {"sent": 1_000}, publisher=publisher, n=n)


def test_a_tally_tells_repetitions_from_wrong_order() -> None:
    tally = Tally()
    for n in (1, 2, 2, 5, 4, 1, 6):
        tally.take(event(n), 2_000)
    tally.take(event(1, "q"), 2_000)
    tally.take(Gap("p", 6, 9, "why"), 2_000)
    report = tally.report()
    counts = {name: report[name] for name in ("delivered", "duplicated", "disordered", "gaps")}
    assert counts == {"delivered": 6, "duplicated": 2, "disordered": 1, "gaps": 1}
    assert Latencies(report["latencies"]).percentile(1.0) == pytest.approx(1_000, rel=0.05)
    assert tally.report()["latencies"] == {}


def told(**counts: int) -> Figures:
    """Figures in which the auditor was owed and got so much."""
    figures = Figures()
    owed = counts.pop("expected", 10)
    got = {"delivered": 10, "duplicated": 0, "disordered": 0, "gaps": 0, "latencies": {}}
    for name, report in (
        ("publishers", {"published": {"exchange": 10}, "expected": {"auditor": owed}, "tick": 4}),
        ("subscribers", {"subscribers": {"auditor": {**got, **counts}}, "tick": 4}),
    ):
        figures.on_line(name, json.dumps(report), 1.0)
    return figures


@pytest.mark.parametrize(
    "fault",
    [{"delivered": 9}, {"duplicated": 1}, {"disordered": 1}, {"gaps": 1}, {"expected": 9}],
)
def test_every_fault_is_seen(fault: dict[str, int]) -> None:
    assert told().is_right
    assert not told(**fault).is_right


def test_what_was_delivered_is_held_against_what_was_owed_at_the_same_instant() -> None:
    figures = told()
    later = {"published": {"exchange": 500}, "expected": {"auditor": 500}, "tick": 5}
    figures.on_line("publishers", json.dumps(later), 1.25)
    assert figures.progress == (10, 10, 10), "the subscribers have not been heard"
    figures.on_line("publishers", json.dumps({**later, "tick": 6}), 1.5)
    got = {"delivered": 499, "duplicated": 0, "disordered": 0, "gaps": 0, "latencies": {}}
    figures.on_line("subscribers", json.dumps({"subscribers": {"auditor": got}, "tick": 5}), 1.5)
    assert figures.progress == (500, 499, 500), "one is on its way"
    figures.on_line("publishers", json.dumps({**later, "published": {"exchange": 501}, "final": True}), 2.0)
    assert figures.progress == (501, 499, 500), "in the end the last that each has said"


def test_nothing_published_is_not_right() -> None:
    assert not Figures().is_right


def test_words_are_kept_apart_from_reports() -> None:
    figures = Figures()
    figures.on_line("london", "Traceback: [1]", 1.0)
    figures.on_line("publishers", '{"published": {}, "expected": {}, "final": true}', 1.0)
    assert list(figures.words) == ["london: Traceback: [1]"]
    assert figures.finished == {"publishers"}


# The view


def drawn(figures: Figures) -> list[str]:
    console = Console(width=80, height=24, force_terminal=True, color_system=None, file=StringIO())
    console.print(picture(figures, 12.0))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def test_the_picture_fits_a_terminal_of_80_by_24_and_shows_every_filter_whole() -> None:
    figures = told(delivered=99_999, expected=99_999)
    for one in figures.subscribers.values():
        for latency in (18_300_000, 999_000_000):
            one.latest.add(latency)
        one.delivered, one.rate = 99_999, 4_321.0
    lines = drawn(figures)
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for subscriber in SUBSCRIBERS:
        assert subscriber.filter in text
    assert all(name in text for name in BROKERS)
    assert "…" not in text


def test_who_was_killed_is_shown_as_killed_until_it_is_started_again() -> None:
    figures = told()
    figures.on_killed("dublin", 2.0)
    assert any("dublin" in line and "killed with -9" in line for line in drawn(figures))
    figures.on_started_again("dublin")
    assert not any("killed" in line for line in drawn(figures))
    assert any("dublin" in line and "starts again" in line for line in drawn(figures))


def test_a_line_and_the_summary_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    figures = told(delivered=8, duplicated=3)
    assert plain_line(figures, 2.0) == "  2.0 s · published 10 · delivered 8 of 10 · latency p50 -, p99 -"
    Console(width=80).print(summary(figures))
    found = rows(capsys.readouterr().out)
    assert (found["lost"], found["duplicated"]) == ("2", "3")


def test_a_tree_is_drawn_with_its_branches() -> None:
    parents = {"a": None, "b": "a", "c": "b", "d": "b", "e": "a", "f": "e"}
    assert list(tree_labels(parents).values()) == ["a", "├ b", "│ ├ c", "│ └ d", "└ e", "  └ f"]
