"""`holdfast derive` as the manual shows it, killed with -9: every window once [issue 6 §6]; more kills in the soak."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from real_derive import performed

PATIENCE_S = 400  #: two sessions of Spark are started


def test_the_example_of_the_manual_killed_once_and_interrupted_and_a_changed_query(tmp_path: Path) -> None:
    running = performed(1, 0, tmp_path)
    assert asyncio.run(asyncio.wait_for(running, PATIENCE_S)) == []
