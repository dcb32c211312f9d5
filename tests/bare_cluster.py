"""A cluster whose executors have a Python and nothing of ours: they are refused by name, and work with the archive.

python tests/bare_cluster.py ROUNDS SEED        everything, which is how `make soak` calls it
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import large_trace
from holdfast.pipeline.audit.engine import audit
from holdfast.pipeline.packing import pack
from spark_cluster import bare_python, cluster

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "pipeline"))

from hand_written import STREAM, HandWritten, events  # noqa: E402

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
TICKS = range(1_000, 1_100)


def judged_by_driver(folder: Path, archive: Path, trace: Path | None = None) -> dict[str, Any]:
    """What a driver sees of such a cluster; with a trace, of everything that may be wrong with it, too."""
    network = folder / "network.toml"
    network.write_text(NETWORK)
    with HandWritten(folder / "data" / "streams") as written:
        written.publish(events(TICKS))
        written.vouch(TICKS[-1])
    with cluster(folder) as url:
        given = [url, bare_python(folder / "bare"), str(archive), str(network), STREAM]
        given.append("-" if trace is None else str(trace))
        path = os.pathsep.join(map(str, (HERE.parent / "src", HERE)))
        driver = [sys.executable, str(HERE / "cluster_driver.py"), *given]
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(driver, env=environment, capture_output=True, text=True, timeout=900)
    assert not done.returncode, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    missing = "has no holdfast, pyarrow, numpy, deltalake, msgspec, google_crc32c, lxml; install holdfast[spark] there"
    assert missing in found["bare"], found["bare"]
    assert sorted(found["numbers"]) == list(TICKS)
    assert found["executors"] == 2
    return found


def main() -> None:
    rounds, seed = map(int, sys.argv[1:])
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            trace = Path(name) / "trace.parquet"
            large_trace.make(100_000, trace)
            large_trace.plant(trace, seed + number)
            archive = Path(name) / "archive.tar.gz"
            pack(archive)
            found = judged_by_driver(Path(name), archive, trace)
            assert "the executors' Python is another, and the driver's" in found["another"], found["another"]
            cannot = 'the executors run no Python of ours: java.io.IOException: Cannot run program "/nowhere'
            assert cannot in found["none"], found["none"]
            assert found["verdict"] == json.loads(json.dumps(audit([trace], "local").as_json()))


if __name__ == "__main__":
    main()
