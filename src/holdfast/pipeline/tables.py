"""A stream as a DataFrame that Spark reads by itself as far as the lake goes, and through our source beyond.

Files of the lake are Parquet. Spark reads those without a process of Python in between, leaves out columns and row
groups that a query has no need of, and hands comparisons down, all of which it cannot do, or not well, with a source
written in Python. What has come since, and pubends that the lake has not seen yet, are read from the logs.

A DataFrame is what there was when it was made, however often it is asked: files are those of one version of the table,
and of the rest whoever has it then is asked, the logs or the lake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import reduce
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from holdfast.pipeline.columns import Shape, arrow_type, shape_of, spark_ddl
from holdfast.pipeline.errors import BadOption, CannotRead
from holdfast.pipeline.lake.errors import NoTable
from holdfast.pipeline.lake.files import DataFile
from holdfast.pipeline.lake.parquet import DAMAGE, ParquetRows
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.options import BATCH, Options, read_options
from holdfast.pipeline.origins import Origins, network_at, origins_in
from holdfast.pipeline.planning import TickRange, token_of
from holdfast.pipeline.ranges import End
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
_VARIANTS: Final = "map<string, variant>"


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
    if read_from not in ("auto", "lake"):
        raise BadOption("read_from", f"is {read_from!r}; expected auto or lake")
    path = Path(network).absolute()  # Spark plans where Java was started, which may be elsewhere
    found = network_at(path)
    origins = origins_in(found, stream, local=local_segments, source=read_from)
    lake = _lake(found, stream, is_needed=read_from == "lake")
    given = {
        "network": str(path),
        "stream": stream,
        "onGap": on_gap,
        "emitSilence": _word(emit_silence),
        "readFrom": read_from,
        "localSegments": _word(local_segments),
    }
    declared = _declared(found, stream, lake) if attributes is None else attributes
    if declared:
        given["attributes"] = declared
    options = read_options(given, BATCH)
    parts = [] if lake is None else _stored(spark, lake, origins, options)
    if read_from == "auto":
        parts += _logged(spark, given, origins.ends(), [] if lake is None else lake.files())
    if not parts:
        return spark.createDataFrame([], spark_ddl(options.shape))
    return reduce(DataFrame.union, parts)


def _word(flag: bool) -> str:
    return "true" if flag else "false"


def _lake(network: Network, stream: str, *, is_needed: bool) -> LakeTable | None:
    try:
        return LakeTable((network.lake / stream).resolve(), stream)
    except NoTable:
        if is_needed:
            raise
        return None


def _declared(network: Network, stream: str, lake: LakeTable | None) -> str:
    """The attributes that have a type without being given one; of two that are one to Spark the network file's."""
    own = next(each for each in network.streams if each.name == stream).attributes
    lower = {name.lower() for name in own}
    others = {} if lake is None else lake.attributes
    return ddl_of({**{name: type_ for name, type_ in others.items() if name.lower() not in lower}, **own})


def _stored(spark: SparkSession, lake: LakeTable, origins: Origins, options: Options) -> list[DataFrame]:
    """What is in files, those together that are read alike.

    That is all of them, mostly: others are from before an attribute was declared, or have more than events. If files
    are gone the table has others by now, with the same rows.
    """
    while True:
        version = lake.version
        try:
            _refuse_gaps(options, origins, lake.files())
            alike: dict[_Layout, list[DataFile]] = {}
            for file in lake.files():
                alike.setdefault(_layout(lake, file, options.shape), []).append(file)
            return [_frame(spark, lake, files, layout, options) for layout, files in alike.items()]
        except CannotRead:
            lake.refresh()
            if lake.version == version:
                raise


def _refuse_gaps(options: Options, origins: Origins, files: Sequence[DataFile]) -> None:
    """Find the first, if there shall be none; of most files their zones say that there is none."""
    if options.gaps != "fail":
        return
    looking = Task(Origins(origins.stream, {}, origins.table), ("tick",), {}, None, "fail", silence=False)
    for file in files:
        if not _is_all_events(file):
            for _ in looking.rows(TickRange(file.pubend, file.after, file.tick)):
                pass


def _is_all_events(file: DataFile) -> bool:
    zone = file.zones.get("kind")
    return zone is not None and zone.least == zone.greatest == EVENT


class _Layout(NamedTuple):
    """What has to be known of a file to read it."""

    is_all_events: bool
    own: frozenset[str]  #: of the attributes that are wanted those that have a column there


def _layout(lake: LakeTable, file: DataFile, wanted: Shape) -> _Layout:
    """Told from the zones, if all attributes have some; else the file has to be opened."""
    has_all = wanted.attributes.items() <= lake.attributes.items()
    if has_all and all(f"a.{name}" in file.zones for name in wanted.attributes):
        return _Layout(_is_all_events(file), frozenset(wanted.attributes))
    return _Layout(_is_all_events(file), _columns_in(lake.folder / file.path, wanted))


def _columns_in(path: Path, wanted: Shape) -> frozenset[str]:
    """The attributes of which a file has a column of the type that is wanted."""
    try:
        there = ParquetRows(path).attributes
    except DAMAGE as error:
        raise CannotRead(f"{path}: {error}") from error
    types = arrow_type("a", wanted)
    return frozenset(name for name in wanted.attributes if there.get(name) == types.field(name).type)


def _frame(
    spark: SparkSession, lake: LakeTable, files: Sequence[DataFile], layout: _Layout, options: Options
) -> DataFrame:
    """The rows of some files, as Spark reads them."""
    wanted = options.shape
    own = {name: type_ for name, type_ in wanted.attributes.items() if name in layout.own}
    paths = [f"file://{lake.folder / file.path}".translate(_GLOB) for file in files]
    try:
        frame = spark.read.schema(spark_ddl(shape_of(None, own))).options(**_EXACTLY).parquet(*paths)
    except AnalysisException as error:
        raise CannotRead(f"{lake.folder}: {error}") from error
    if not layout.is_all_events:
        shown = [EVENT, *([GAP] if options.gaps == "row" else []), *([SILENCE] if options.silence else [])]
        frame = frame.where(sql.col("kind").isin(shown))
    if len(own) == len(wanted.attributes):
        return frame
    columns = (_struct(layout.own, wanted) if name == "a" else sql.col(name) for name in wanted.columns)
    return frame.select(*columns)


def _struct(own: Set[str], wanted: Shape) -> Column:
    """The declared attributes: from their columns, or from all attributes where they have none.

    Not as text, which settings of a session may read otherwise.
    """
    everything = sql.col("attributes")
    fields = []
    for name, type_ in wanted.attributes.items():
        value = everything.try_cast(_VARIANTS).getItem(name)
        typed = sql.when(sql.schema_of_variant(value) == sql.lit(type_), value.try_cast(type_))
        fields.append((sql.col("a").getField(name) if name in own else typed).alias(name))
    return sql.when(everything.isNotNull(), sql.struct(*fields)).alias("a")


def _logged(
    spark: SparkSession, given: Mapping[str, str], ends: Mapping[str, End], files: Sequence[DataFile]
) -> list[DataFrame]:
    """What the files do not have, whoever has it when it is read: what came since, and what was before them.

    The second is only of logs that were given back what they had forgotten, from a backup.
    """
    first = {file.pubend: file.after for file in reversed(files)}
    last = {file.pubend: file.tick for file in files}
    begin = {pubend: end.first for pubend, end in ends.items()}
    since = {pubend: last.get(pubend, tick) for pubend, tick in begin.items()}
    now = {pubend: max(end.last, since[pubend]) for pubend, end in ends.items()}
    before = {pubend: first.get(pubend, tick) for pubend, tick in begin.items()}
    return [
        spark.read.format("holdfast")
        .options(**given)
        .option("startingOffsets", str(token_of(start, ends)))
        .option("endingOffsets", str(token_of(end, ends)))
        .load()
        for start, end in ((begin, before), (since, now))
        if start != end
    ]
