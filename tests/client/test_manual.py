"""The examples of ``docs/client.md``: each is a program, and prints what it says it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.embedded.network import Network

MANUAL = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", MANUAL, re.DOTALL | re.MULTILINE)
SAID_URL = "holdfast://localhost:7000"
URL = "memory://of-the-manual"


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    with Network(URL.removeprefix("memory://")):
        yield


@pytest.mark.parametrize("example", EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
def test_an_example_prints_what_it_says(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(example.replace(SAID_URL, URL), "docs/client.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.splitlines() == re.findall(r"# → (.*)$", example, re.MULTILINE)


def test_there_are_examples_of_everything() -> None:
    said = "\n".join(EXAMPLES)
    for call in (".publish(", ".publisher(", ".subscribe(", "holdfast.sync", "holdfast.memory", "Unknown"):
        assert call in said
