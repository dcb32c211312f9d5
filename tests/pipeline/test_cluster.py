"""A standalone cluster whose executors have no Holdfast, and the archive that gives it to them."""

from __future__ import annotations

import tarfile
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install -r requirements-spark.txt")

from bare_cluster import judged_by_driver
from holdfast.pipeline.packing import PACKED, pack

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive, of which every file has been told."""
    path = tmp_path_factory.mktemp("packed") / "archive.tar.gz"
    told: list[tuple[int, int]] = []
    count = pack(path, lambda done, of: told.append((done, of)))
    assert told == [(done, count) for done in range(count)]
    return path


def test_executors_without_holdfast_are_refused_by_name_and_read_a_stream_with_the_archive(
    packed: Path, tmp_path: Path
) -> None:
    """What else may be wrong with them, and the audit, is soaked: each takes executors of its own."""
    judged_by_driver(tmp_path, packed)


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
