"""What the rules on Spark have in common: rows of the verdict, the order of lines, and which delivery was the first."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from holdfast.pipeline.audit.violation import Violation

__all__ = ["BEFORE", "DELIVERED", "ORDER", "named", "new", "of_the_same", "placed", "rows"]

#: Deliveries are ordered by these, as the local engine orders them.
ORDER: Final = ("i", "t", "publisher", "n", "pubend", "tick")
#: What is delivered to a tenure.
DELIVERED: Final = ("tid", "publisher", "n")
#: Of a window: everything before a line.
BEFORE: Final = (Window.unboundedPreceding, -1)


def rows(found: DataFrame, kind: str | Column, rule: str | Column, against: str | Column = "") -> DataFrame:
    """Rows of ``Violation``: what a table has of its columns, and nothing said where it has not."""
    texts = ("run", "node", "subscriber", "subscription", "publisher", "pubend")
    given: dict[str, Column] = {"kind": _said(kind), "rule": _said(rule), "against": _said(against)}
    for name in Violation._fields:
        if name not in given:
            nothing: Any = "" if name in texts else -1
            given[name] = f.coalesce(f.col(name), f.lit(nothing)) if name in found.columns else f.lit(nothing)
    types = {"i": "bigint", "n": "bigint", "tick": "bigint", "t": "double"}
    return found.select(
        *(given[name].cast(types.get(name, "string")).alias(name) for name in Violation._fields)
    )


def _said(text: str | Column) -> Column:
    return f.lit(text) if isinstance(text, str) else text


def named(publisher: str, n: str) -> Column:
    """An event as people call it."""
    return f.concat(f.col(publisher), f.lit("#"), f.col(n))


def placed(pubend: str, tick: str) -> Column:
    """A place in a log as people call it."""
    return f.concat(f.lit("tick "), f.col(tick), f.lit(" of "), f.col(pubend))


def of_the_same(lines: DataFrame, suspects: DataFrame) -> DataFrame:
    """All deliveries of the events of some of them."""
    return lines.join(suspects.select(*DELIVERED).distinct(), [*DELIVERED], "left_semi")


def new(lines: DataFrame, suspects: DataFrame) -> DataFrame:
    """Those that are the first deliveries of their events: a repeat is no order of any kind.

    A line that stands there twice is the first one once, and suspected as often as it is there, or else once less.
    """
    alike = of_the_same(lines, suspects).groupBy(*DELIVERED, f.struct(*ORDER).alias("at")).count()
    firsts = alike.groupBy(*DELIVERED).agg(f.min(f.struct("at", "count")).alias("first_one"))
    same = Window.partitionBy(*DELIVERED)
    found = suspects.join(firsts, [*DELIVERED]).where(f.struct(*ORDER) == f.col("first_one.at"))
    found = found.withColumn("alike", f.count("*").over(same))
    found = found.withColumn("time", f.row_number().over(same.orderBy("i")))
    return found.where("time = 1 AND alike = first_one.count")
