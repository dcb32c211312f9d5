"""The fenced blocks of docs/filters.md, so that tests hold the manual to what it says."""

from __future__ import annotations

import re
from pathlib import Path

MANUAL = Path(__file__).parents[1] / "docs" / "filters.md"


def blocks(kind: str) -> list[str]:
    """The insides of the blocks that are marked so."""
    found = re.findall(
        rf"^```{kind}\n(.*?)^```$", MANUAL.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found, f"no block of {kind} in {MANUAL.name}"
    return found


def lines(kind: str) -> list[str]:
    """Their lines."""
    return [line for block in blocks(kind) for line in block.split("\n") if line]
