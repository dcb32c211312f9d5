"""A driver of Spark killed with -9 twice, and every event once at the end [issue 6]; all points are in the soak."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from killed_driver import query_in
from real_pipeline import performed
from tested_spark import spark

PATIENCE_S = 400  #: two sessions of Spark are started


def go_on(network: Path, checkpoint: Path) -> None:
    """As the next driver, in the session that tests have: it is no other to a checkpoint."""
    query_in(spark(), str(network), str(checkpoint)).awaitTermination()


def test_a_driver_killed_between_staging_and_commit_and_another_after_the_commit(tmp_path: Path) -> None:
    """The rows of the first are never seen, those of the second were: both compute other ids than the next."""
    running = performed(["1-staged", "1-committed"], tmp_path, last=go_on)
    assert asyncio.run(asyncio.wait_for(running, PATIENCE_S)) == []
