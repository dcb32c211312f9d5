"""The engine on Spark: the answers of the local one, of traces of any size.

Lines that there are few of are collected and make the plan, by the same code; what is to be judged by it stays in
tables, and only violations come back.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from holdfast.errors import CallersFault
from holdfast.pipeline.audit.chronicle import chronicles_of
from holdfast.pipeline.audit.line import Tag
from holdfast.pipeline.audit.plan import Plan, Tagged
from holdfast.pipeline.audit.spark_lines import Watch, census, control_lines, load
from holdfast.pipeline.audit.spark_plan import filters_of, plan_tables
from holdfast.pipeline.audit.spark_rules import violations_in
from holdfast.pipeline.audit.spark_tables import tables_of
from holdfast.pipeline.audit.verdict import ROWS_MAX, Verdict, first_of_each, in_order, notes_on
from holdfast.pipeline.audit.violation import Violation
from holdfast.pipeline.spark_session import spark_session

__all__ = ["audit_in", "audit_with_spark"]

#: So many rows are sorted and joined at a time.
_PARTITION_ROWS: Final = 500_000
_PARTITIONS_MIN: Final = 2
#: Events with their matches are sent to everybody up to this size, which spares sorting the deliveries.
_BROADCAST: Final = "64MB"


def audit_with_spark(
    paths: Sequence[Path], *, unfinished: bool = False, master: str | None = None, watch: Watch = iter
) -> Verdict:
    """Judge traces together, in a session of their own."""
    with spark_session(master) as spark:
        return audit_in(spark, paths, unfinished=unfinished, watch=watch)


def audit_in(
    spark: SparkSession, paths: Sequence[Path], *, unfinished: bool = False, watch: Watch = iter
) -> Verdict:
    """Judge traces together, in a session that there is.

    :raises CallersFault: if one cannot be read, or the executors cannot.
    """
    with tempfile.TemporaryDirectory(prefix="holdfast-audit-") as folder:
        lines = load(spark, paths, Path(folder), watch)
        try:
            return _verdict(spark, lines, unfinished=unfinished)
        except PythonException as error:
            if "ModuleNotFoundError" in str(error):
                raise CallersFault(f"the executors lack a package: {_last_line(str(error))}") from error
            raise


def _last_line(text: str) -> str:
    return next(line for line in text.splitlines() if "ModuleNotFoundError" in line).strip()


def _verdict(spark: SparkSession, lines: DataFrame, *, unfinished: bool) -> Verdict:
    sizes = census(lines)
    counts: Counter[str] = Counter()
    for (_, kind), count in sizes.items():
        counts[kind] += count
    partitions = max(_PARTITIONS_MIN, sum(counts.values()) // _PARTITION_ROWS)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", _BROADCAST)
    chronicles = chronicles_of({run for run, _ in sizes}, control_lines(lines), unfinished=unfinished)
    publishers = _pairs(lines, "publish", "publisher")
    plans = [Plan(chronicle, {name for (name,) in publishers[run]}) for run, chronicle in chronicles.items()]
    plan = plan_tables(spark, plans, _tagged(lines), _pairs(lines, "forward", "from", "to"))
    tables = tables_of(lines, plan, {each.run: filters_of(each) for each in plans}, counts)
    try:
        broken, rows = _found(violations_in(tables))
    finally:
        tables.forget()
    return Verdict(len(plans), dict(counts), in_order(broken), rows, notes_on(plans))


def _found(rules: Sequence[DataFrame]) -> tuple[Counter[str], list[Violation]]:
    """How often each promise was broken, and the first rows of each kind.

    Rule by rule: Spark plans anew whenever a part of a query is done, and one query of them all would be planned for
    longer than it runs.
    """
    broken: Counter[str] = Counter()
    rows: list[Violation] = []
    for rule in rules:
        found = rule.persist()
        counts = {row["kind"]: row["count"] for row in found.groupBy("kind").count().collect()}
        if counts:
            broken.update(counts)
            rows += _first_rows(found)
        found.unpersist()
    return broken, first_of_each(rows)


def _pairs(lines: DataFrame, kind: str, *columns: str) -> dict[str, list[tuple[Any, ...]]]:
    """By run, what there is in these columns of a kind."""
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in lines.where(f.col("kind") == kind).select("run", *columns).distinct().collect():
        found[row[0]].append(tuple(row[1:]))
    return found


def _tagged(lines: DataFrame) -> dict[str, list[Tagged]]:
    """By run, the deliveries that carry tags: few, and of partial confirmations only."""
    rows = lines.where("kind = 'deliver' AND tags <> '[]'")
    found: dict[str, list[Tagged]] = defaultdict(list)
    for row in rows.select("run", "subscriber", "subscription", "i", "publisher", "n", "tags").collect():
        tags = msgspec.json.decode(row.tags, type=tuple[Tag, ...])
        key = (row.subscriber, row.subscription)
        found[row.run].append(Tagged(key, row.i, row.publisher, row.n, tags))
    return found


def _first_rows(found: DataFrame) -> list[Violation]:
    """The first of each kind."""
    order = Window.partitionBy("kind").orderBy(*Violation._fields)
    first = found.withColumn("row", f.row_number().over(order)).where(f.col("row") <= ROWS_MAX)
    return [Violation(*row) for row in first.select(*Violation._fields).collect()]
