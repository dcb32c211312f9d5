"""Spark, ready for Holdfast: a session that makes no noise, and the source made known to any session."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.resources import files

from pyspark.sql import SparkSession

from holdfast.errors import EnvironmentsFault
from holdfast.pipeline.preflight import check_executors
from holdfast.pipeline.source import HoldfastSource

__all__ = ["NoJava", "register", "session"]


class NoJava(EnvironmentsFault):
    """Spark needs Java, and there is none."""


def session(app: str = "holdfast", *, master: str = "local[*]", **config: str) -> SparkSession:
    """A session with the source in it; by default embedded, on all cores of this machine.

    ``config`` are Spark's settings, with ``__`` for a dot: ``spark__driver__memory="4g"``. The Python of the executors
    is this one, unless ``PYSPARK_PYTHON`` says otherwise.

    :raises NoJava: if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if shutil.which(os.path.join(home, "bin", "java") if home else "java") is None:
        where = f"in JAVA_HOME, {home}" if home else "on the path"
        raise NoJava(
            f"Spark needs Java 17 or newer, and there is none {where}; install a JDK, or set JAVA_HOME"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app).master(master)
    for key, value in {
        **_quiet(master),
        **{key.replace("__", "."): text for key, text in config.items()},
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Make ``format("holdfast")`` known to a session, and see that its executors can do what it takes.

    :raises CannotExecute: if they cannot.
    """
    check_executors(spark)
    spark.dataSource.register(HoldfastSource)


def _quiet(master: str) -> dict[str, str]:
    log = files("holdfast.pipeline") / "log4j2.properties"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log}",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings
