"""Spark, ready for Holdfast: a session that makes no noise, and the source made known to any session."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from pyspark.sql import SparkSession

from holdfast.pipeline.preflight import check_executors
from holdfast.pipeline.source import HoldfastSource
from holdfast.pipeline.spark_session import java_home

__all__ = ["register", "session"]


def session(app: str = "holdfast", *, master: str = "local[*]", **config: str) -> SparkSession:
    """A session with the source in it; by default embedded, on all cores of this machine.

    ``config`` are Spark's settings, with ``__`` for a dot: ``spark__driver__memory="4g"``. The Python of the executors
    is this one, unless ``PYSPARK_PYTHON`` says otherwise.

    :raises NoSpark: if there is no Java.
    :raises CannotExecute: as ``register``.
    """
    folder = Path(tempfile.mkdtemp(prefix="holdfast-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    home = java_home(folder)
    if home is not None:
        os.environ["JAVA_HOME"] = home
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
