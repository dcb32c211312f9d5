"""`holdfast network plan`: what would stop, in words, as data and as a status; short, however large the network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.main import main

#: A chain of five brokers with a branch: a-b-c-d-e, and f beside c.
PARENTS = {"a": None, "b": "a", "c": "b", "d": "c", "e": "d", "f": "c"}
STREAMS = """
stream = [{name = "orders", topics = ["orders/#"], guarantee = "reliable"},
          {name = "news", topics = ["news/#"], guarantee = "best-effort"}]
"""


def write(path: Path, parents: dict[str, str | None], delta: int) -> Path:
    lines = ['name = "tested"', f"delta = {delta}", STREAMS]
    for i, (name, parent) in enumerate(parents.items()):
        lines += ["[[broker]]", f'name = "{name}"', f'listen = "127.0.0.1:{7000 + i}"']
        lines += [f'parent = "{parent}"'] if parent else []
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "network.toml", PARENTS, 1)


class Said:
    """What a command printed, and its status."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.status = main(["network", "plan", *arguments])
        captured = capsys.readouterr()
        self.out, self.err = captured.out, captured.err

    @property
    def words(self) -> str:
        """Without the breaks of lines."""
        return re.sub(r"\s+", " ", self.out)

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def test_the_plan_says_what_stops_within_delta_and_the_first_sets_beyond(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R0.3, B0.16."""
    said = Said(capsys, str(file))
    assert (said.status, said.err) == (0, "")
    for sentence in (
        "Network tested: six brokers, delta = 1.",
        "While at most one broker or link is down, whichever it is:",
        "On one reliable stream (orders) their clients get everything, once and in order",
        "A broker that fails stops its plain clients.",
        "A link that fails stops what clients of one of its two brokers publish for clients of the other",
        "A subscription made while a broker at the edge (a, e and f) is down is confirmed in part",
        "On best-effort streams (news) what is on its way through a broker or link when that fails is lost.",
        "If two brokers failed at a time, three sets of them would part the network",
        "- b and c: no way between a | d, f, e",
        "- c and d: no way between b, f, a | e",
        "- b and d: no way between a | e; what waits at c holds up what follows",
        "Any other two brokers would stop their own clients only.",
    ):
        assert sentence in said.words, sentence
    assert "Two links" not in said.words, "delta allows one failure"


def test_with_delta_two_links_around_a_third_are_named_too(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(capsys, str(file), "--set", "delta=2")
    assert "(four such pairs, such as a:b and c:d)" in said.words


def test_without_delta_every_inner_broker_parts_the_network(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(capsys, str(file), "--set", "delta=0")
    assert "While at most" not in said.words
    assert "Any link that failed would part the network, and so would three brokers:" in said.words
    assert "- c: no way between b, a | d, e | f" in said.words
    assert "Any other broker would stop its own clients only." in said.words


def test_where_no_set_parts_the_network_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "n.toml", {"a": None, "b": "a"}, 1)
    said = Said(capsys, str(path))
    assert said.words.endswith(
        "If two brokers failed at a time, whichever they are, they would stop their own clients only. "
    )
    assert (
        "There are only two brokers: one may be left alone with its own clients, or none at all."
        in said.words
    )


def test_one_broker_stops_its_own_clients_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, str(write(tmp_path / "n.toml", {"a": None, "b": "a"}, 0)))
    assert said.words.endswith("If one broker failed, whichever it is, it would stop its own clients only. ")


def test_the_file_may_be_named_by_the_environment(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_NETWORK", str(file))
    assert main(["network", "plan"]) == 0
    assert capsys.readouterr().out.startswith("Network tested: six brokers")


def test_for_programs_there_is_every_set(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = Said(capsys, str(file), "--output", "json").json
    assert (found["network"], found["delta"], found["streams"]["reliable"]) == ("tested", 1, ["orders"])
    assert ["a", "b"] in found["links"]
    beyond = found["beyond"]
    assert (beyond["failures"], beyond["sets"], beyond["sets_are_all"]) == (2, 3, True)
    assert {"failed": ["b", "d"], "sides": [["a"], ["e"]], "between": ["c"]} in beyond["apart"]


def test_a_large_network_has_a_short_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parents = {f"b{i}": None if i == 0 else f"b{(i - 1) // 3}" for i in range(200)}
    said = Said(capsys, str(write(tmp_path / "large.toml", parents, 2)))
    assert len(said.out.splitlines()) < 40
    assert re.search(r"- and [\d,]+ others, which part fewer pairs of brokers", said.words)


# What if


@pytest.mark.parametrize(
    ("down", "status", "words"),
    [
        (
            ["c"],
            0,
            (
                "If c is down (within delta): - plain clients of c stop; its members go on"
                " - everybody else hears everybody"
            ),
        ),
        (
            ["b:c"],
            1,
            (
                "If the link b:c is down (within delta): - clients of b and those of c do not hear each other"
                " - on best-effort streams clients of b do not hear those of d, e and f either"
                " - on best-effort streams clients of c do not hear those of a either"
            ),
        ),
        (
            ["c", "b"],
            1,
            (
                "If b and c are down (2 near each other, and delta is 1):"
                " - plain clients of b stop; its members are heard by clients of a only"
                " - plain clients of c stop; its members are heard by clients of d, e and f only"
                " - clients of a and those of d, e and f do not hear each other"
            ),
        ),
    ],
)
def test_what_certain_failures_would_stop(
    file: Path, capsys: pytest.CaptureFixture[str], down: list[str], status: int, words: str
) -> None:
    said = Said(capsys, str(file), *(flag for name in down for flag in ("--down", name)))
    assert (said.status, said.words.strip()) == (status, words)


def test_certain_failures_as_data(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = Said(capsys, str(file), "--down", "c:b", "--output", "json").json
    assert found == {
        "down": {"brokers": [], "links": [["b", "c"]]},
        "within_delta": True,
        "apart": [["b", "c"]],
        "deaf_on_best_effort": {"b": ["d", "e", "f"], "c": ["a"]},
    }


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("x", "there is no such broker; expected a, b, c"),
        ("a:c", "there is no such link; expected two neighbouring brokers"),
        ("a:", "there is no such link"),
    ],
)
def test_what_is_not_there_cannot_fail(
    file: Path, capsys: pytest.CaptureFixture[str], name: str, problem: str
) -> None:
    said = Said(capsys, str(file), "--down", name)
    assert said.status == 2
    assert said.err.startswith(f"holdfast: --down {name}: {problem}")


def test_a_bad_file_is_refused_with_its_lines(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(file.read_text().replace('parent = "a"', 'parent = "x"'))
    said = Said(capsys, str(file))
    assert said.status == 2
    assert 'parent is "x", which is no broker' in said.err


def test_of_durable_streams_it_says_where_their_events_are(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One copy, and late rather than lost; a total order has one sequencer (B3.6)."""
    streams = """
stream = [{name = "orders", topics = ["orders/#"]},
          {name = "audit", topics = ["audit"], order = "total", sequencer = "c"}]
"""
    file.write_text(file.read_text().replace(STREAMS, streams))
    words = Said(capsys, str(file)).words
    assert "On two durable streams (orders and audit) every event is on one disk" in words
    assert "- audit is in total order: while c is down nobody publishes there." in words
    assert Said(capsys, str(file), "--output", "json").json["streams"]["durable"] == ["orders", "audit"]


def test_beside_a_durable_stream_no_client_is_a_member(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Decision 0015: the plan says what the failure of a broker is to clients of its reliable streams then."""
    audit = STREAMS.replace("]\n", ',\n          {name = "audit", topics = ["audit"]}]\n')
    file.write_text(file.read_text().replace(STREAMS, audit))
    words = Said(capsys, str(file)).words
    assert "On one reliable stream (orders) their clients get everything, once and in order" in words
    assert "A broker that fails stops its clients until it is back, or they have found another" in words
    assert "What they miss of that stream meanwhile is announced to them by a gap" in words
    assert "for clients of the other. Everybody else hears everybody." in words
    assert "On one durable stream (audit) every event is on one disk" in words
    assert "plain" not in words
    down = Said(capsys, str(file), "--down", "c")
    expected = "If c is down (within delta): - clients of c stop - everybody else hears everybody"
    assert (down.status, down.words.strip()) == (0, expected)
