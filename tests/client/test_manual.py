"""The examples of ``docs/client.md``: each is a program, and prints what it says it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.embedded.network import Network

MANUAL = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", MANUAL, re.DOTALL | re.MULTILINE)
SAID_URL = "holdfast://localhost:7000"
URL = "memory://of-the-manual"
SAID_DATABASE = "postgresql://localhost/shop"


@contextmanager
def network() -> Iterator[None]:
    """One broker, whose stream is durable, as in the file that ``holdfast init`` writes."""
    with Network(URL.removeprefix("memory://"), streams={"all": ("#", "durable")}):
        yield


@pytest.mark.parametrize("example", EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
def test_an_example_prints_what_it_says(
    example: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    text = example.replace(SAID_URL, URL)
    if SAID_DATABASE in text:
        text = text.replace(SAID_DATABASE, request.getfixturevalue("postgres"))
    with network():
        exec(compile(text, "docs/client.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.splitlines() == re.findall(r"# → (.*)$", example, re.MULTILINE)


def test_there_are_examples_of_everything() -> None:
    said = "\n".join(EXAMPLES)
    for call in (
        ".publish(",
        ".publisher(",
        ".subscribe(",
        "durable=",
        ".commit(",
        "SqliteCheckpoint",
        "PostgresOutbox",
        "holdfast.sync",
        "holdfast.memory",
        "Unknown",
    ):
        assert call in said
