"""A standalone cluster of Spark on this machine: a master and two workers, one core each, from the package pyspark."""

from __future__ import annotations

import json
import os
import subprocess
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

from holdfast.cli.free_ports import free_ports
from holdfast.pipeline.spark_session import java_home

WORKERS = 2
WAIT_SECONDS = 120.0
#: They have little to do: Java need not compile for speed.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def bare_python(folder: Path) -> str:
    """A Python of our version, made in a folder, that has no packages at all."""
    venv.create(folder, symlinks=True)
    return str(folder / "bin" / "python")


@contextmanager
def cluster(folder: Path, memory: str = "1g") -> Iterator[str]:
    """The URL of its master; in the folder is what its processes say. Nothing of our environment reaches executors."""
    port, page = free_ports(2)
    url = f"spark://127.0.0.1:{port}"
    classes = "org.apache.spark.deploy"
    master = [
        f"{classes}.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--webui-port",
        str(page),
    ]
    worker = [f"{classes}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", memory]
    worker += ["--webui-port", "0", "--work-dir", str(folder / "work"), url]
    with ExitStack() as stack:
        stack.enter_context(_started(master, folder, "master"))
        _wait(page, 0)
        for number in range(WORKERS):
            stack.enter_context(_started(worker, folder, f"worker{number}"))
        _wait(page, WORKERS)
        yield url


@contextmanager
def _started(arguments: list[str], folder: Path, name: str) -> Iterator[None]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    environment = {key: text for key, text in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK"))}
    home = java_home(folder / name)
    environment |= {"JAVA_HOME": home} if home is not None else {}
    environment |= {
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [str(Path(spec.origin).parent / "bin" / "spark-class"), *arguments]
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def _wait(page: int, workers: int) -> None:
    """Until the master has so many workers."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            with urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
                if json.load(answer)["aliveworkers"] >= workers:
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise TimeoutError(f"no cluster of {workers} workers within {WAIT_SECONDS} s")
