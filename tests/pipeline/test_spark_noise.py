"""What a user of Spark sees besides the answer of a query that ends early: nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from hand_written import NETWORK, HandWritten, events

from holdfast.pipeline.daemon import print_exc

SCRIPT = """
import holdfast.pipeline
spark = holdfast.pipeline.session("short", master="local[1]")
orders = spark.read.format("holdfast").options(network="network.toml", stream="orders", localSegments="true").load()
print([row.tick for row in orders.limit(3).collect()])
"""


@pytest.mark.parametrize(("problem", "is_said"), [(BrokenPipeError(), False), (OSError("no disk"), True)])
def test_that_nobody_reads_any_more_is_no_error(
    capsys: pytest.CaptureFixture[str], problem: OSError, is_said: bool
) -> None:
    try:
        raise problem
    except OSError:
        print_exc()
    assert ("Traceback" in capsys.readouterr().err) is is_said


@pytest.mark.long
def test_a_query_that_ends_early_says_nothing_but_its_answer(tmp_path: Path) -> None:
    (tmp_path / "network.toml").write_text(NETWORK)
    with HandWritten(tmp_path / "streams") as written:
        written.publish(events(range(1, 20_001)))
        written.vouch(20_000)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[1, 2, 3]\n"
    # which is Java's own
    said = [line for line in done.stderr.splitlines() if "incubator modules" not in line]
    assert said == []
