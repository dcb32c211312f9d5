"""Spark, ready for Holdfast: a session with the source in it, and the source made known to any session."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from holdfast.pipeline.preflight import check_executors
from holdfast.pipeline.source import HoldfastSource
from holdfast.pipeline.spark_session import started

__all__ = ["register", "session"]


def session(
    app: str = "holdfast", *, master: str = "local[*]", archive: Path | None = None, **config: str
) -> SparkSession:
    """A session with the source in it; by default embedded, on all cores of this machine.

    ``config`` are Spark's settings, with ``__`` for a dot: ``spark__driver__memory="4g"``. The Python of the executors
    is this one, unless ``PYSPARK_PYTHON`` says otherwise. ``archive`` is what `holdfast pack-spark` has written, for
    executors on which Holdfast is not installed; their Python is then any of our version.

    :raises NoSpark: if there is no Java.
    :raises CannotExecute: as ``register``.
    """
    folder = Path(tempfile.mkdtemp(prefix="holdfast-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = {key.replace("__", "."): text for key, text in config.items()}
    spark = started(app, master, folder, settings, archive)
    try:
        register(spark)
    except BaseException:
        spark.stop()  # it is of no use to anybody
        raise
    return spark


def register(spark: SparkSession) -> None:
    """Make ``format("holdfast")`` known to a session, and see that its executors can do what it takes.

    :raises CannotExecute: if they cannot.
    """
    check_executors(spark)
    spark.dataSource.register(HoldfastSource)
