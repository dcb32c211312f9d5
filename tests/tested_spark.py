"""One Spark session for all tests of a process: it takes long to start."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import holdfast.pipeline

#: As little around a session as can be. Java compiles a little and at once, and Spark not at all, nor does it plan anew
#: what has begun: each would take longer than the few rows of a test.
LITTLE: Final[dict[str, Any]] = {
    "spark__sql__shuffle__partitions": "2",
    "spark__sql__session__timeZone": "UTC",
    "spark__sql__codegen__wholeStage": "false",
    "spark__sql__codegen__factoryMode": "NO_CODEGEN",
    "spark__sql__adaptive__enabled": "false",
    "spark__driver__extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@cache
def spark() -> Any:
    """On two threads."""
    return holdfast.pipeline.session("tests", master="local[2]", **LITTLE)


def load(network: Path, stream: str, **options: object) -> Any:
    """The stream as a DataFrame."""
    reader = spark().read.format("holdfast").option("network", str(network)).option("stream", stream)
    for name, value in options.items():
        reader = reader.option(name, str(value).lower() if isinstance(value, bool) else str(value))
    return reader.load()
