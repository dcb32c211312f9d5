"""The archive that gives Holdfast to executors; a cluster that has nothing else is soaked (``bare_cluster.py``)."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install -r requirements-spark.txt")

from holdfast.pipeline.packing import PACKED, pack
from holdfast.pipeline.preflight import NEEDED

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive, of which every file has been told."""
    path = tmp_path_factory.mktemp("packed") / "archive.tar.gz"
    told: list[tuple[int, int]] = []
    count = pack(path, lambda done, of: told.append((done, of)))
    assert told == [(done, count) for done in range(count)]
    return path


def test_the_archive_has_what_holdfast_needs_and_nothing_of_spark(packed: Path) -> None:
    """Every dependency of pyproject.toml is in it."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {each.split(">")[0] for each in wanted} <= {*PACKED}
    with tarfile.open(packed) as archive:
        names = archive.getnames()
    assert len(names) == len({*names})
    assert {"holdfast/pipeline/source.py", "holdfast/py.typed", "numpy/__init__.py", "pytz/__init__.py"} <= {
        *names
    }
    assert not [name for name in names if name.startswith(("pyspark/", "py4j/", "/", ".."))]


def test_a_python_that_has_nothing_else_imports_what_tasks_do(packed: Path, tmp_path: Path) -> None:
    """With the site left out: what a virtual environment has, and what else the machine has, is not there."""
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")
    modules = [
        *NEEDED,
        "pandas",
        "holdfast.pipeline.reading",
        "holdfast.pipeline.past",
        "holdfast.pipeline.audit.local",
    ]
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {', '.join(modules)}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
