"""Streams as tables: the data pipeline on Spark (docs/spark.md).

    import holdfast.pipeline

    spark = holdfast.pipeline.session()
    spark.read.format("holdfast").option("network", "network.toml").option("stream", "orders").load()

What needs Spark is loaded when it is first used: the log reader has no need of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.pipeline.publishing import publish
    from holdfast.pipeline.sessions import register, session
    from holdfast.pipeline.tables import table

__all__ = ["publish", "register", "session", "table"]

_HOMES = {"publish": "publishing", "register": "sessions", "session": "sessions", "table": "tables"}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"holdfast.pipeline.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'holdfast.pipeline' has no attribute {name!r}")
