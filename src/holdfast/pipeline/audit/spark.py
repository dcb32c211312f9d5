"""The engine on Spark: the answers of the local one, of traces of any size.

Lines that there are few of are collected and make the plan, by the same code; what is to be judged by it stays in
tables, and only violations come back.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

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
from holdfast.pipeline.preflight import check_executors
from holdfast.pipeline.spark_session import spark_session

__all__ = ["Step", "audit_in", "audit_with_spark"]

#: Is told what is being done; and which part it is of how many, once that is known.
Step: TypeAlias = Callable[[str, int, int | None], None]

#: So many rows are sorted and joined at a time.
_PARTITION_ROWS: Final = 500_000
_PARTITIONS_MIN: Final = 2
#: So many violations of one rule are taken as they come; of more the first ones are sought.
_COLLECTED_MAX: Final = 10_000


def _untold(what: str, part: int, parts: int | None) -> None:
    """Nobody wants to know."""


def audit_with_spark(
    paths: Sequence[Path],
    *,
    unfinished: bool = False,
    master: str | None = None,
    archive: Path | None = None,
    watch: Watch = iter,
    step: Step = _untold,
) -> Verdict:
    """Judge traces together, in a session of their own.

    :raises CallersFault: as ``audit_in``.
    :raises EnvironmentsFault: if there is no such Spark, or its executors lack something.
    """
    step("starting Spark", 0, None)
    with spark_session(master, archive) as spark:
        check_executors(spark)
        return audit_in(spark, paths, unfinished=unfinished, watch=watch, step=step)


def audit_in(
    spark: SparkSession,
    paths: Sequence[Path],
    *,
    unfinished: bool = False,
    watch: Watch = iter,
    step: Step = _untold,
) -> Verdict:
    """Judge traces together, beside a session that there is; its settings stay as they are.

    :raises CallersFault: if one cannot be read, or the executors cannot.
    """
    beside = spark.newSession()
    with tempfile.TemporaryDirectory(prefix="holdfast-audit-") as folder:
        lines = load(beside, paths, Path(folder), watch)
        try:
            return _verdict(beside, lines, step, unfinished=unfinished)
        except PythonException as error:
            if "ModuleNotFoundError" in str(error):
                raise CallersFault(f"the executors lack a package: {_last_line(str(error))}") from error
            raise
        finally:
            # The session that last made a frame of rows is the active one, which writers ask for their format.
            spark.createDataFrame([], "nothing INT")


def _last_line(text: str) -> str:
    return next(line for line in text.splitlines() if "ModuleNotFoundError" in line).strip()


def _verdict(spark: SparkSession, lines: DataFrame, step: Step, *, unfinished: bool) -> Verdict:
    step("reading", 0, None)
    sizes = census(lines)
    counts: Counter[str] = Counter()
    for (_, kind), count in sizes.items():
        counts[kind] += count
    partitions = max(_PARTITIONS_MIN, sum(counts.values()) // _PARTITION_ROWS)
    for name, value in _settings(partitions).items():
        spark.conf.set(name, value)
    chronicles = chronicles_of({run for run, _ in sizes}, control_lines(lines), unfinished=unfinished)
    publishers = _pairs(lines, "publish", "publisher")
    plans = [Plan(chronicle, {name for (name,) in publishers[run]}) for run, chronicle in chronicles.items()]
    plan = plan_tables(spark, plans, _tagged(lines), _pairs(lines, "forward", "from", "to"))
    tables = tables_of(lines, plan, {each.run: filters_of(each) for each in plans}, counts)
    step("sieving", 0, None)
    try:
        broken, rows = _found(violations_in(tables), step)
    finally:
        tables.forget()
    return Verdict(len(plans), dict(counts), in_order(broken), rows, notes_on(plans))


def _settings(partitions: int) -> dict[str, str]:
    """How Spark goes about so many parts. What is small is planned once, and not again after each of its stages."""
    return {
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.adaptive.enabled": str(partitions > _PARTITIONS_MIN).lower(),
        # it would look for rows in one part after the other
        "spark.sql.limit.initialNumPartitions": str(partitions),
    }


def _found(rules: Sequence[DataFrame], step: Step) -> tuple[Counter[str], list[Violation]]:
    """How often each promise was broken, and the first rows of each kind.

    Rule by rule: Spark plans anew whenever a part of a query is done, and one query of them all would be planned for
    longer than it runs. What a rule finds is most often little, and is then all here at once.
    """
    broken: Counter[str] = Counter()
    rows: list[Violation] = []
    for part, rule in enumerate(rules):
        step("rules", part, len(rules))
        found = [Violation(*row) for row in rule.limit(_COLLECTED_MAX + 1).collect()]
        if len(found) <= _COLLECTED_MAX:
            broken.update(each.kind for each in found)
            rows += found
        else:
            broken.update({row["kind"]: row["count"] for row in rule.groupBy("kind").count().collect()})
            rows += _first_rows(rule)
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
