"""A stream as a DataFrame that Spark reads by itself as far as the lake goes, and through our source from there on.

Files of the lake are Parquet. Spark reads those without a process of Python in between, leaves out columns and row
groups that a query has no need of, and hands comparisons down, all of which it cannot do, or not well, with a source
written in Python. What has come since, and pubends that the lake has not seen yet, are read from the logs.

A DataFrame is what there was when it was made, however often it is asked: files are those of one version of the table,
and of the rest whoever has it then is asked, the logs or the lake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby
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
    files = [] if lake is None else lake.files()
    _refuse_gaps(options, origins, files)
    parts = (
        [] if lake is None else [_frame(spark, lake, part, options) for part in _parts(lake, files, options)]
    )
    if read_from == "auto":
        parts.append(_since(spark, given, origins, files))
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


class _Part(NamedTuple):
    """Files that are read alike."""

    files: list[DataFile]
    own: dict[str, str]  #: of the attributes that are wanted those that have a column there
    is_all_events: bool


def _parts(lake: LakeTable, files: Sequence[DataFile], options: Options) -> Iterator[_Part]:
    """Usually one, or two: files from before an attribute was declared, and those with more than events, are others."""
    wanted = options.shape
    declared = lake.attributes.items()

    def key(file: DataFile) -> tuple[bool, ...]:
        known = [
            (name, kind) in declared and f"a.{name}" in file.zones for name, kind in wanted.attributes.items()
        ]
        return _is_all_events(file), *(known if all(known) else _columns_in(lake.folder / file.path, wanted))

    for (is_all_events, *has), alike in groupby(sorted(files, key=key), key):
        own = {
            name: kind for (name, kind), there in zip(wanted.attributes.items(), has, strict=True) if there
        }
        yield _Part(list(alike), own, is_all_events)


def _columns_in(path: Path, wanted: Shape) -> list[bool]:
    """Of each attribute that is wanted, whether a file has a column of its type."""
    try:
        there = ParquetRows(path).attributes
    except (OSError, ValueError) as error:
        raise CannotRead(f"{path}: {error}") from error
    types = arrow_type("a", wanted)
    return [there.get(name) == types.field(name).type for name in wanted.attributes]


def _frame(spark: SparkSession, lake: LakeTable, part: _Part, options: Options) -> DataFrame:
    """The rows of files, as Spark reads them."""
    paths = [f"file://{lake.folder.absolute() / file.path}".translate(_GLOB) for file in part.files]
    read = spark.read.schema(spark_ddl(shape_of(None, part.own))).options(**_EXACTLY).parquet(*paths)
    if not part.is_all_events:
        kinds = [EVENT]
        kinds += [GAP] if options.gaps == "row" else []
        kinds += [SILENCE] if options.silence else []
        read = read.where(f"kind IN ({', '.join(map(string_sql, kinds))})")
    if len(part.own) == len(options.shape.attributes):
        return read
    return read.selectExpr(
        *(_struct(part.own, options.shape) if name == "a" else f"`{name}`" for name in options.shape.columns)
    )


def _struct(own: dict[str, str], shape: Shape) -> str:
    """The declared attributes: from their columns, or from all attributes where they have none."""
    fields = []
    for name, kind in shape.attributes.items():
        quoted = name.replace("`", "``")
        value = (
            f"a.`{quoted}`"
            if name in own
            else f"CASE WHEN {type_test(name, kind).text} THEN {cast_sql(name, kind)} END"
        )
        fields.append(f"{string_sql(name)}, {value}")
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
