"""What a driver sees of a cluster whose executors have a Python and no Holdfast; run by `bare_cluster.py`.

    python tests/cluster_driver.py MASTER PYTHON ARCHIVE NETWORK STREAM TRACE

With ``-`` for the trace only what the source needs is tried. Each case has a session of its own; what came of them is
printed as one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import holdfast.pipeline
from holdfast.pipeline.audit.spark import audit_in
from holdfast.pipeline.preflight import CannotExecute
from spark_cluster import JAVA

#: What makes a Python say that it is of another version, since there may be no other one here.
ANOTHER = """import sys
class Version(tuple):
    major, minor = 3, 99
sys.version_info = Version((3, 99, 0, "final", 0))
"""


def refused(master: str, **settings: str) -> str:
    """Why a session could not be had."""
    try:
        session(master, **settings).stop()
    except CannotExecute as error:
        return str(error)
    return ""


def session(master: str, **settings: Any) -> Any:
    small: dict[str, Any] = {"spark__executor__memory": "512m", "spark__driver__extraJavaOptions": JAVA}
    small |= {"spark__executor__extraJavaOptions": JAVA, "spark__sql__codegen__wholeStage": "false"}
    return holdfast.pipeline.session("cluster", master=master, **small, **settings)


def main() -> None:
    master, python, archive, network, stream, trace = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = python
    found: dict[str, Any] = {"bare": refused(master)}
    if trace != "-":
        found |= others(master, Path(archive).parent / "another")
        os.environ["PYSPARK_PYTHON"] = python
    spark = session(master, archive=Path(archive))
    rows = spark.read.format("holdfast").options(network=network, stream=stream, localSegments="true")
    numbers = rows.option("attributes", "i BIGINT").load().select("a.i").collect()
    found["numbers"] = [row.i for row in numbers]
    found["executors"] = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    if trace != "-":
        found["verdict"] = audit_in(spark, [Path(trace)]).as_json()
    spark.stop()
    sys.stdout.write(json.dumps(found))


def others(master: str, folder: Path) -> dict[str, str]:
    """What is said of a Python of another version, and of one that is not there."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(ANOTHER)
    another = refused(master, spark__executorEnv__PYTHONPATH=str(folder))
    os.environ["PYSPARK_PYTHON"] = "/nowhere/python"
    return {"another": another, "none": refused(master)}


if __name__ == "__main__":
    main()
