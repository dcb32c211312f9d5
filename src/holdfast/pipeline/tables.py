"""A stream as a DataFrame that Spark reads by itself as far as the lake goes, and through our source from there on.

Files of the lake are Parquet. Spark reads those without a process of Python in between, leaves out columns and row
groups that a query has no need of, and hands comparisons down, all of which it cannot do, or not well, with a source
written in Python. What has come since, and pubends that the lake has not seen yet, are read from the logs.

A DataFrame is what there was when it was made, however often it is asked: files are those of one version of the table,
and of the rest whoever has it then is asked, the logs or the lake.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import reduce
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from holdfast.filters.spark_text import cast_sql, string_sql, type_test
from holdfast.pipeline.columns import Shape, arrow_type, shape_of, spark_ddl
from holdfast.pipeline.errors import BadOption, CannotRead
from holdfast.pipeline.lake.errors import NoTable
from holdfast.pipeline.lake.files import DataFile
from holdfast.pipeline.lake.parquet import ParquetRows
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.options import BATCH, Options, read_options
from holdfast.pipeline.origins import Origins, network_at, origins_in
from holdfast.pipeline.planning import TickRange, token_of
from holdfast.pipeline.reading import Task
from holdfast.pipeline.rows import EVENT, GAP, SILENCE
from holdfast.runtime.declarations import ddl_of
from holdfast.runtime.network_file import Network

__all__ = ["table"]

#: Whatever a session says: what is not there, or not as it was written, is an error; and times are as they are.
_EXACTLY: Final = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "parquet.page.verify-checksum.enabled": "true",
}
_GLOB: Final = str.maketrans({char: f"\\{char}" for char in "\\{}[]*?"})


def table(
    spark: SparkSession,
    *,
    network: str | Path,
    stream: str,
    attributes: str | None = None,
    on_gap: Literal["fail", "row", "ignore"] = "fail",
    emit_silence: bool = False,
    read_from: Literal["auto", "lake"] = "auto",
    local_segments: bool = False,
) -> DataFrame:
    """All there is of a stream; ``attributes`` are those that the network file and the lake declare, unless given.

    The session must know the source (``holdfast.pipeline.register``). Options mean what those of the source do; gaps of
    the lake are found here, those of the logs when the DataFrame is asked.

    :raises BadOption: if one will not do.
    :raises Gap: if something is missing in the lake, and ``on_gap`` is ``fail``.
    :raises HoldfastError: if the lake or a log cannot be read.
    """
    found = network_at(Path(network))
    given = {
        "network": str(network),
        "stream": stream,
        "onGap": on_gap,
        "emitSilence": _word(emit_silence),
        "readFrom": read_from,
        "localSegments": _word(local_segments),
    }
    if read_from not in ("auto", "lake"):
        raise BadOption("read_from", f"is {read_from!r}; expected auto or lake")
    origins = origins_in(found, stream, local=local_segments, source=read_from)
    lake = _lake(found, stream, is_needed=read_from == "lake")
    declared = _declared(found, stream, lake) if attributes is None else attributes
    if declared:
        given["attributes"] = declared
    options = read_options(given, BATCH)
    parts: list[DataFrame] = []
    if lake is not None:
        _refuse_gaps(options, origins, lake.files())
        parts += _stored(spark, lake, options)
    if read_from == "auto":
        parts.append(_since(spark, given, origins, [] if lake is None else lake.files()))
    if not parts:
        return spark.createDataFrame([], spark_ddl(options.shape))
    return reduce(DataFrame.union, parts)


def _word(flag: bool) -> str:
    return "true" if flag else "false"


def _lake(network: Network, stream: str, *, is_needed: bool) -> LakeTable | None:
    try:
        return LakeTable(network.lake / stream, stream)
    except NoTable:
        if is_needed:
            raise
        return None


def _declared(network: Network, stream: str, lake: LakeTable | None) -> str:
    """The attributes that have a type without being given one."""
    entry = next(each for each in network.streams if each.name == stream)
    return ddl_of({**({} if lake is None else lake.attributes), **entry.attributes})


def _refuse_gaps(options: Options, origins: Origins, files: Sequence[DataFile]) -> None:
    """Find the first, if there shall be none; of most files their zones say that there is none."""
    if options.gaps == "fail":
        for file in files:
            if not _is_all_events(file):
                looking = Task(
                    Origins(origins.stream, {}, origins.table), ("tick",), {}, None, "fail", silence=False
                )
                for _ in looking.rows(TickRange(file.pubend, file.after, file.tick)):
                    pass


def _is_all_events(file: DataFile) -> bool:
    zone = file.zones.get("kind")
    return zone is not None and zone.least == zone.greatest == EVENT


class _Kind(NamedTuple):
    """What has to be known of a file to read it."""

    is_all_events: bool
    own: frozenset[str]  #: of the attributes that are wanted those that have a column there


def _kind(lake: LakeTable, file: DataFile, wanted: Shape) -> _Kind:
    """Of most files their zones say it."""
    has_all = wanted.attributes.items() <= lake.attributes.items()
    if has_all and all(f"a.{name}" in file.zones for name in wanted.attributes):
        return _Kind(_is_all_events(file), frozenset(wanted.attributes))
    return _Kind(_is_all_events(file), _columns_in(lake.folder / file.path, wanted))


def _columns_in(path: Path, wanted: Shape) -> frozenset[str]:
    """The attributes of which a file has a column of the type that is wanted."""
    try:
        there = ParquetRows(path).attributes
    except (OSError, ValueError) as error:
        raise CannotRead(f"{path}: {error}") from error
    types = arrow_type("a", wanted)
    return frozenset(name for name in wanted.attributes if there.get(name) == types.field(name).type)


def _stored(spark: SparkSession, lake: LakeTable, options: Options) -> list[DataFrame]:
    """What is in files, those together that are read alike.

    That is all of them, mostly: others are from before an attribute was declared, or have more than events.
    """
    alike: dict[_Kind, list[DataFile]] = {}
    for file in lake.files():
        alike.setdefault(_kind(lake, file, options.shape), []).append(file)
    return [_frame(spark, lake, files, kind, options) for kind, files in alike.items()]


def _frame(
    spark: SparkSession, lake: LakeTable, files: Sequence[DataFile], kind: _Kind, options: Options
) -> DataFrame:
    """The rows of some files, as Spark reads them."""
    wanted = options.shape
    own = {name: type_ for name, type_ in wanted.attributes.items() if name in kind.own}
    paths = [f"file://{lake.folder.absolute() / file.path}".translate(_GLOB) for file in files]
    frame = spark.read.schema(spark_ddl(shape_of(None, own))).options(**_EXACTLY).parquet(*paths)
    if not kind.is_all_events:
        shown = [EVENT, *([GAP] if options.gaps == "row" else []), *([SILENCE] if options.silence else [])]
        frame = frame.where(f"kind IN ({', '.join(map(string_sql, shown))})")
    if len(own) == len(wanted.attributes):
        return frame
    columns = (_declared_sql(kind.own, wanted) if name == "a" else f"`{name}`" for name in wanted.columns)
    return frame.selectExpr(*columns)


def _declared_sql(own: Set[str], wanted: Shape) -> str:
    """The declared attributes: from their columns, or from all attributes where they have none."""
    fields = []
    for name, type_ in wanted.attributes.items():
        column = f"a.`{name.replace('`', '``')}`"
        from_all = f"CASE WHEN {type_test(name, type_).text} THEN {cast_sql(name, type_)} END"
        fields += [string_sql(name), column if name in own else from_all]
    return f"CASE WHEN attributes IS NOT NULL THEN named_struct({', '.join(fields)}) END AS a"


def _since(
    spark: SparkSession, given: dict[str, str], origins: Origins, files: Sequence[DataFile]
) -> DataFrame:
    """What the files do not have yet, whoever has it when it is read."""
    ends = origins.ends()
    places = {pubend: end.first for pubend, end in ends.items()} | {file.pubend: file.tick for file in files}
    lasts = {pubend: max(end.last, places[pubend]) for pubend, end in ends.items()}
    reader = spark.read.format("holdfast").options(**given)
    if ends:
        reader = reader.option("startingOffsets", str(token_of(places, ends)))
        reader = reader.option("endingOffsets", str(token_of(lasts, ends)))
    return reader.load()
