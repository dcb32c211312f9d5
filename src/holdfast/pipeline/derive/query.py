"""The text of a query as a DataFrame: the streams it names become views; what is wrong with it is said with its place.

Only a query is taken, by Spark's own parser, before anything is done: a statement would be carried out at once. Streams
become views when Spark misses them, so that a network may have many.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.messages.streams import Guarantee
from holdfast.pipeline.columns import COLUMNS
from holdfast.pipeline.derive.errors import BadQuery
from holdfast.pipeline.derive.views import EVENT_TIME
from holdfast.runtime.network_file import Network, StreamEntry

__all__ = ["Query", "bad_query"]

#: PySpark would say on the terminal, at length, what we say in a line.
_QUIET: Final = logging.getLogger("SQLQueryContextLogger")
_PLACE: Final = re.compile(r"\bline (\d+),? pos (\d+)")
_STATE: Final = re.compile(r"\s*SQLSTATE: .*", re.DOTALL)
_CONDITION: Final = re.compile(r"^\s*\[[A-Z0-9_.]+\] ")
_NO_TABLE: Final = "TABLE_OR_VIEW_NOT_FOUND"
_NO_COLUMN: Final = "UNRESOLVED_COLUMN"
_MODE: Final = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"


@dataclass(slots=True)
class Query:
    """One query file, and the streams it has turned out to name."""

    file: Path
    text: str
    network: Network
    streams: list[StreamEntry] = field(default_factory=list)

    def frame(self, spark: SparkSession, view: Callable[[StreamEntry], DataFrame]) -> DataFrame:
        """What the query asks for; ``view`` makes a stream a DataFrame.

        :raises BadQuery: if it is none, or names something that is not there.
        """
        _QUIET.setLevel(logging.CRITICAL)
        text = self.text.rstrip().removesuffix(";")
        try:
            spark._jsparkSession.sessionState().sqlParser().parseQuery(text)
        except ParseException as error:
            raise bad_query(self.file, error) from error
        self.streams.clear()
        try:
            frame = self._resolved(spark, text, view)
        finally:
            for stream in self.streams:
                spark.catalog.dropTempView(stream.name)
        if not self.streams:
            raise BadQuery(self.file, f"names no stream; expected FROM one of {', '.join(self._logged)}")
        return frame

    def _resolved(
        self, spark: SparkSession, text: str, view: Callable[[StreamEntry], DataFrame]
    ) -> DataFrame:
        while True:
            try:
                return spark.sql(text)
            except AnalysisException as error:
                if error.getCondition() != _NO_TABLE:
                    raise bad_query(self.file, error) from error
                stream = self._missed(error)
                view(stream).createTempView(f"`{stream.name}`")
                self.streams.append(stream)

    @property
    def _logged(self) -> list[str]:
        return [each.name for each in self.network.streams if each.guarantee is Guarantee.DURABLE]

    def _missed(self, error: AnalysisException) -> StreamEntry:
        """The stream that Spark has missed."""
        name = _unquoted((error.getMessageParameters() or {}).get("relationName", ""))
        found = next((each for each in self.network.streams if each.name.lower() == name.lower()), None)
        if found is None:
            problem = f"there is no stream {name} in {self.network.path}; expected {', '.join(self._logged)}"
            raise BadQuery(self.file, problem, *_place(error)) from error
        if found.guarantee is not Guarantee.DURABLE:
            problem = f"{name} is {found.guarantee}, and only durable streams are logged"
            raise BadQuery(self.file, problem, *_place(error)) from error
        assert found not in self.streams, "it was made a view"
        return found


def bad_query(file: Path, error: PySparkException) -> BadQuery:
    """What Spark says of a query, in a line of ours."""
    condition, parameters = error.getCondition() or "", error.getMessageParameters() or {}
    said = _STATE.sub("", _CONDITION.sub("", str(error).strip())).partition("\n")[0].rstrip(".;")
    if isinstance(error, ParseException):
        problem = f"{said}; expected one SELECT"
    elif condition.startswith(_NO_COLUMN):
        name = parameters.get("objectName", "")
        problem = f"there is no column {name}; a stream has {', '.join(COLUMNS)}"
    elif condition == _MODE:
        problem = (
            f"Spark does not do {parameters.get('operation')} here: a result is published once, when nothing can"
            f" change it any more; expected GROUP BY window({EVENT_TIME}, '1 minute') and what else you like"
        )
    else:
        problem = said
    return BadQuery(file, problem, *_place(error))


def _place(error: PySparkException) -> tuple[int | None, int | None]:
    found = _PLACE.search(str(error))
    return (None, None) if found is None else (int(found[1]), int(found[2]) + 1)


def _unquoted(name: str) -> str:
    return ".".join(part.strip("`") for part in re.findall(r"`[^`]*`|[^.`]+", name))
