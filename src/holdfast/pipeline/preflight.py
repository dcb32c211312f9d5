"""Whether Spark's executors can do what the source asks of them, found out before a query fails in the middle.

A probe runs on the executors and tells what is there. It travels as code, not by name: where Holdfast is missing,
nothing of it could be imported to say so. An embedded session that runs our own Python is not asked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from socket import gethostname
from typing import Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.errors import EnvironmentsFault

__all__ = ["CannotExecute", "Found", "check_executors", "probe", "problem_in"]

#: What executors need, by the name under which it is imported.
NEEDED: Final = ("holdfast", "pyarrow", "numpy", "deltalake", "msgspec", "google_crc32c", "lxml")
PROBES: Final = 8
_MISMATCH: Final = "PYTHON_VERSION_MISMATCH"
ADVICE: Final = "install holdfast[spark] there, or set PYSPARK_PYTHON to a Python that has it"

#: A host, its Python's version, and what is missing there.
Answer = tuple[str, tuple[int, ...], list[str]]


class CannotExecute(EnvironmentsFault):
    """Executors that lack something, or have another Python."""


class Found(NamedTuple):
    """What a probe has found."""

    host: str
    python: tuple[int, ...]
    missing: list[str]


def probe(_: Iterable[int]) -> Iterator[Answer]:
    """What is where this runs; nothing of Holdfast may be needed to say it."""
    yield gethostname(), tuple(sys.version_info[:2]), [name for name in NEEDED if find_spec(name) is None]


def problem_in(found: Iterable[Found]) -> str | None:
    """What is wrong with the first executor that will not do."""
    ours = tuple(sys.version_info[:2])
    for host, python, missing in found:
        if python != ours:
            return _other_python(f"{'.'.join(map(str, python))} on {host}")
        if missing:
            return f"the executor on {host} has no {', '.join(missing)}; {ADVICE}"
    return None


def _other_python(which: str) -> str:
    ours = ".".join(map(str, sys.version_info[:2]))
    return f"the executors' Python is {which}, and the driver's {ours}; {ADVICE}"


def _cause(text: str) -> str:
    """Of what Java says, over pages: why it could not start a Python, or else whatever came first."""
    found = re.search(r"java\.io\.IOException: Cannot run program .*", text)
    return found[0] if found else text.strip().partition("\n")[0]


def check_executors(spark: SparkSession) -> None:
    """Ask them, unless they are ourselves.

    :raises CannotExecute: naming what is wrong, and where.
    """
    context = spark.sparkContext
    is_embedded = context.master.startswith("local") and not context.master.startswith("local-cluster")
    if is_embedded and context.pythonExec == sys.executable:
        return
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        answers = context.parallelize(range(PROBES), PROBES).mapPartitions(probe).collect()
    except (PySparkException, Py4JError) as error:
        if _MISMATCH in str(error):
            raise CannotExecute(_other_python("another")) from error
        raise CannotExecute(f"the executors run no Python of ours: {_cause(str(error))}; {ADVICE}") from error
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    problem = problem_in(Found(*answer) for answer in answers)
    if problem is not None:
        raise CannotExecute(problem)
