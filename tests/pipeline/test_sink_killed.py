"""A driver of Spark killed with -9 twice, and every event once at the end [issue 6]; all points are in the soak."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from real_pipeline import performed

PATIENCE_S = 400  #: three sessions of Spark are started


def test_a_driver_killed_between_staging_and_commit_and_another_after_the_commit(tmp_path: Path) -> None:
    """The rows of the first are never seen, those of the second were: both compute other ids than the next."""
    running = performed(["staged", "committed"], tmp_path)
    assert asyncio.run(asyncio.wait_for(running, PATIENCE_S)) == []
