"""`docs/operating.md` is held to what it says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from holdfast.events.event import Limits
from holdfast.events.json_form import event_from_json
from holdfast.runtime.network_document import BROKER_VARIABLES, VARIABLES
from holdfast.runtime.network_file import NetworkFileError, read_network
from holdfast.runtime.network_keys import BROKER, STREAM, TABLES, Key

MANUAL = (Path(__file__).parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
EVENT_LIMITS = {one.name for one in fields(Limits)}  # of these the manual names the first and the last


def block(kind: str, containing: str) -> str:
    found: list[str] = re.findall(rf"^```{kind}\n(.*?)^```$", MANUAL, re.DOTALL | re.MULTILINE)
    return next(text for text in found if containing in text)


def test_the_file_shown_makes_a_network(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(block("toml", "[[broker]]"))
    assert [broker.name for broker in read_network(path).brokers] == ["root", "left"]


@pytest.mark.parametrize(
    ("table", "keys"),
    [
        *((f"[{name}] " if name else "", keys) for name, keys in TABLES.items()),
        ("[[broker]] ", BROKER),
        ("[[stream]] ", STREAM),
    ],
)
def test_every_key_has_its_row_and_its_default(table: str, keys: dict[str, Key]) -> None:
    for name, key in keys.items():
        if name in EVENT_LIMITS:
            continue
        row = next(
            line
            for line in MANUAL.splitlines()
            if line.startswith(f"| `{table}") and re.match(rf"\| `{re.escape(table)}[^|]*\b{name}`", line)
        )
        if isinstance(key.default, int):
            assert str(key.default).lower() in row.strip("| ").rpartition("|")[2], row
        elif isinstance(key.default, str):
            assert f'`"{key.default}"`' in row, row


def test_every_kind_of_variable_is_named_and_none_that_is_not_there() -> None:
    named = set(re.findall(r"`(HOLDFAST_[A-Z_]+)`", MANUAL)) - {"HOLDFAST_ROUTNG"}
    of_commands = {"HOLDFAST_NETWORK", "HOLDFAST_URL", "HOLDFAST_LOG_FORMAT"}
    assert named <= {*VARIABLES, *BROKER_VARIABLES, *of_commands}
    assert {path[0] for path in VARIABLES.values()} == {VARIABLES[name][0] for name in named & set(VARIABLES)}
    assert set(BROKER_VARIABLES) | of_commands <= named


def test_the_events_shown_are_events() -> None:
    first, second = block("json", "payload").splitlines()
    event_from_json(second)
    event_from_json('{"topic": "orders/eu", ' + first[1:])


def test_the_problems_shown_are_those_of_such_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("network.toml").write_text(
        'name = "x"\n\ndelta = -1\nroutng = "flooding"\n\n[[broker]]\nname = "root"\nlisten = "127.0.0.1:1"\n'
        '[[broker]]\nname = "left"\nparent = "root"\nlisten = "127.0.0.1:2"\n'
        '[[broker]]\nparent = "lefd"\nname = "right"\n'
        'listen = "127.0.0.1:3"\n'
    )
    with pytest.raises(NetworkFileError) as raised:
        read_network(Path("network.toml"))
    assert block("console", "3 problems").endswith(f"3 problems\n{raised.value}\n")
