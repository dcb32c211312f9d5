"""Traces as one table of Spark: Parquet as it is, JSON Lines converted first, with all that may be wrong found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Final, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row, SparkSession, types
from pyspark.sql import functions as f

from holdfast.pipeline.audit.columns import NESTED, SCHEMA, line_of, write_lines
from holdfast.pipeline.audit.line import CONTROL, REQUIRED, BadLine, Line
from holdfast.pipeline.audit.traces import TraceError, is_parquet, read_traces

__all__ = ["Watch", "census", "control_lines", "load"]

#: Is handed lines as they are read, and hands them on.
Watch: TypeAlias = Callable[[Iterable[tuple[str, Line]]], Iterator[tuple[str, Line]]]

_TYPES: Final = {"string": "string", "double": "double", "int64": "bigint", "bool": "boolean"}
#: The column that says where a line stands: path and row.
WHERE: Final = "__where"
_COMMON: Final = ("t", "i", "node")
_NAMES: Final = {"source": "from"}


def load(spark: SparkSession, paths: Sequence[Path], folder: Path, watch: Watch) -> DataFrame:
    """All lines of all traces, and where they stand; ``folder`` is for what has to be converted.

    :raises TraceError: if a file is no trace, or a line of JSON is none.
    """
    texts = [path for path in paths if not is_parquet(path)]
    tables = [path for path in paths if is_parquet(path)]
    if texts:
        converted = folder / "lines.parquet"
        write_lines(watch(read_traces(texts)), converted)
    parts = [_table(spark, path, str(path)) for path in tables]
    if texts:
        parts.append(_table(spark, converted, ""))
    return reduce(DataFrame.unionByName, parts)


def _table(spark: SparkSession, path: Path, run: str) -> DataFrame:
    try:
        table = spark.read.option("recursiveFileLookup", "true").parquet(str(path))
    except AnalysisException as error:
        raise TraceError(str(path), None, f"not Parquet: {error}") from None
    given = {field.name: field.dataType for field in table.schema}
    columns = [_column(str(path), field.name, str(field.type), given.get(field.name)) for field in SCHEMA]
    where = f.struct(f.lit(str(path)).alias("path"), (f.col("_metadata.row_index") + 1).alias("row"))
    table = table.select(*columns, where.alias(WHERE))
    return table.withColumn("run", f.coalesce("run", f.lit(run)))


def _column(path: str, name: str, wanted: str, given: types.DataType | None) -> Column:
    """A column of the schema, of what there is."""
    kind = "array<string>" if name == "nodes" else _TYPES[wanted]
    if given is None:
        return f.lit(None).cast(kind).alias(name)
    if name in NESTED and not isinstance(given, types.StringType):
        keep = {"ignoreNullFields": "false"} if name == "tree" else {}
        return f.to_json(f.col(name), keep).alias(name)
    fits = {
        "string": types.StringType
        | types.IntegralType,  # numbers of runs; and a column that is null throughout
        "double": types.NumericType,
        "bigint": types.IntegralType,
        "boolean": types.BooleanType,
        "array<string>": types.ArrayType,
    }[kind]
    if not isinstance(given, fits | types.NullType):
        raise TraceError(path, None, f"the column {name} is {given.simpleString()}; expected {kind}")
    return f.col(name).cast(kind).alias(name)


def census(lines: DataFrame) -> dict[tuple[str, str], int]:
    """How many lines there are, by run and kind.

    :raises TraceError: if one of them has not what its kind must have.
    """
    columns = sorted({_NAMES.get(name, name) for names in REQUIRED.values() for name in names} | {*_COMMON})
    given = [f.count(f.col(name)).alias(name) for name in columns]
    rows = lines.groupBy("run", "kind").agg(f.count("*").alias("lines"), *given).collect()
    for row in rows:
        _check_common(lines, row)
        for name in (_NAMES.get(name, name) for name in REQUIRED[row.kind]):
            if row[name] < row.lines:
                _refuse(
                    lines, (f.col("kind") == row.kind) & f.col(name).isNull(), f"{row.kind} has no {name}"
                )
    return {(row.run, row.kind): row.lines for row in rows}


def _check_common(lines: DataFrame, row: Row) -> None:
    for name in _COMMON:
        if row[name] < row.lines:
            _refuse(lines, f.col(name).isNull(), f"the line has no field `{name}`")
    if row.kind is None:
        _refuse(lines, f.col("kind").isNull(), "the line has no field `kind`")
    if row.kind not in REQUIRED:
        problem = f"kind is {row.kind!r}; expected one of {', '.join(REQUIRED)}"
        _refuse(lines, f.col("kind") == row.kind, problem)


def _refuse(lines: DataFrame, is_bad: Column, problem: str) -> None:
    """Name the first line of which that is true."""
    found = lines.where(is_bad).orderBy(WHERE).first()
    assert found is not None
    raise TraceError(found[WHERE].path, found[WHERE].row, problem)


def control_lines(lines: DataFrame) -> list[tuple[str, Line]]:
    """The lines that decide what is owed, here.

    :raises TraceError: if one of them is none.
    """
    rows = lines.where(f.col("kind").isin(*CONTROL)).drop(WHERE).collect()
    found = []
    for row in rows:
        try:
            found.append((row.run, line_of(row.asDict())))
        except BadLine as problem:
            raise TraceError(row.run, None, f"line {row.i} of {row.node}: {problem}") from None
    return found
