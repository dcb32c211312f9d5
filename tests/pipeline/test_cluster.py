"""A standalone cluster whose executors have no Holdfast: the archive gives it to them, and who lacks it is told so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install -r requirements-spark.txt")

from hand_written import STREAM, HandWritten, events

import large_trace
from holdfast.pipeline.audit.engine import audit
from holdfast.pipeline.packing import PACKED, pack
from spark_cluster import cluster

ROOT = Path(__file__).resolve().parent.parent.parent
NETWORK = """
name = "small"
[[broker]]
name = "lisbon"
listen = "127.0.0.1:7000"
data = "data"
[[stream]]
name = "orders"
topics = ["#"]
"""


def test_executors_without_holdfast_are_refused_by_name_and_work_with_the_archive(tmp_path: Path) -> None:
    network = tmp_path / "network.toml"
    network.write_text(NETWORK)
    ticks = range(1_000, 1_100)
    with HandWritten(tmp_path / "data" / "streams") as written:
        written.publish(events(ticks))
        written.vouch(ticks[-1])
    trace = tmp_path / "trace.parquet"
    large_trace.make(10_000, trace)
    large_trace.plant(trace)
    archive = tmp_path / "archive.tar.gz"
    pack(archive)
    with cluster(tmp_path) as url:
        given = [url, str(archive), str(network), STREAM, str(trace)]
        driver = [sys.executable, str(ROOT / "tests" / "cluster_driver.py"), *given]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests")))}
        done = subprocess.run(
            driver, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert (
        "has no holdfast, pyarrow, msgspec, google_crc32c, lxml; install holdfast[spark] there"
        in found["bare"]
    )
    assert "the executors' Python is another, and the driver's" in found["another"]
    assert (
        'the executors run no Python of ours: java.io.IOException: Cannot run program "/nowhere'
        in found["none"]
    )
    assert "\n" not in found["none"]
    assert sorted(found["numbers"]) == list(ticks)
    assert found["executors"] == 2
    assert found["verdict"] == json.loads(json.dumps(audit([trace], "local").as_json()))


def test_the_archive_has_what_holdfast_needs_and_nothing_of_spark(tmp_path: Path) -> None:
    """Every dependency of pyproject.toml is in it, and every file of Holdfast."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {each.split(">")[0] for each in wanted} <= {*PACKED}
    path = tmp_path / "archive.tar.gz"
    told: list[tuple[int, int]] = []
    count = pack(path, lambda done, of: told.append((done, of)))
    with tarfile.open(path) as archive:
        names = archive.getnames()
    assert told == [(done, count) for done in range(count)]
    assert len(names) == count
    assert {"holdfast/pipeline/source.py", "holdfast/py.typed", "numpy/__init__.py", "pytz/__init__.py"} <= {
        *names
    }
    assert not [name for name in names if name.startswith(("pyspark/", "py4j/", "/", ".."))]
