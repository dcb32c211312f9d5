"""The rules for what is owed, and for what streams tell, as queries: *lost*, *unexplained*, and the order of ticks."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from holdfast.pipeline.audit.spark_rows import BEFORE, DELIVERED, new, rows
from holdfast.pipeline.audit.spark_sieve import matching
from holdfast.pipeline.audit.spark_tables import Tables

__all__ = ["lagging", "owed", "streams"]


def owed(tables: Tables) -> Sequence[DataFrame]:
    """What matches a tenure and did not come to it, but for what explains that."""
    plan = tables.plan
    came = tables.delivered.where("tid IS NOT NULL").select(*DELIVERED)
    slim = ("t", "node", "i", "pubend", "tick", "is_owed", "is_open_ended")
    # Both are large. Of three narrow columns Spark believes that they can be sent to everybody, and they cannot.
    due = matching(tables, plan.tenures).select(*DELIVERED, *slim)
    missing = due.join(came.hint("merge"), [*DELIVERED], "left_anti")
    missing = tables.named(missing)
    latest = came.groupBy("tid", "publisher").agg(f.max("n").alias("latest"))
    publishers = f.broadcast(plan.accepted_from.select("run", "publisher", "is_unannounced"))
    missing = missing.join(latest, ["tid", "publisher"], "left").join(publishers, ["run", "publisher"])
    missing = missing.join(f.broadcast(plan.runs.select("run", "is_logged")), "run")
    is_excused = f.expr("is_unannounced OR (is_open_ended AND n > coalesce(latest, 0))")
    missing = tables.keep(missing.withColumn("is_owed", f.col("is_owed") & ~is_excused))
    owed = _without(missing.where("is_owed"), plan.hidden, _is_hidden())
    rules = [rows(_without(owed, plan.covers, _is_covered()), "lost", "missing")]
    if tables.has_logs:
        passed = (
            missing.where("NOT is_owed")
            .join(_told(tables), ["tid", "pubend"])
            .where("begin < tick AND tick < end")
        )
        rules.append(rows(_without(passed, plan.gaps, _is_covered()), "lost", "passed"))
    return rules


def _without(lines: DataFrame, reasons: DataFrame, holds: Column) -> DataFrame:
    """The lines for which none of the reasons holds."""
    reason = reasons.select(*(f.col(column).alias(f"reason_{column}") for column in reasons.columns))
    return lines.join(f.broadcast(reason), holds, "left_anti")


def _is_hidden() -> Column:
    return (
        (f.col("tid") == f.col("reason_tid"))
        & (f.col("publisher") == f.col("reason_publisher"))
        & (f.col("reason_after") < f.col("t"))
        & (f.col("t") <= f.col("reason_upto"))
        & (f.col("n") <= f.col("reason_upto_n"))
    )


def _is_covered() -> Column:
    """Announced; where nobody tells the tick of an event any gap may be about it."""
    pubend = f.when(f.col("is_logged"), f.col("pubend")).otherwise(f.col("publisher"))
    tick = f.when(f.col("is_logged"), f.col("tick")).otherwise(f.col("n"))
    is_within = (
        (pubend == f.col("reason_pubend")) & (f.col("reason_after") < tick) & (tick <= f.col("reason_upto"))
    )
    return (f.col("tid") == f.col("reason_tid")) & (tick.isNull() | is_within)


def _told(tables: Tables) -> DataFrame:
    """By tenure and pubend: from where up to where it was told while it stood."""
    logged = f.broadcast(tables.plan.tenures.where("is_logged").select("tid"))
    events = tables.delivered.where("tid IS NOT NULL").join(logged, "tid")
    ranges = events.select(
        "tid", "pubend", "i", "ended_i", (f.col("tick") - 1).alias("after"), f.col("tick").alias("upto")
    )
    ranges = ranges.unionByName(tables.told.select("tid", "pubend", "i", "ended_i", "after", "upto"))
    stood = f.col("i") < f.col("ended_i")
    return ranges.groupBy("tid", "pubend").agg(
        f.min(f.when(stood, f.col("after"))).alias("begin"),
        f.max(f.when(stood, f.col("upto"))).alias("end"),
    )


def streams(tables: Tables) -> Sequence[DataFrame]:
    """Where streams go back or jump."""
    logged = f.broadcast(tables.plan.tenures.where("is_logged").select("tid", "is_total"))
    delivered = tables.slim.join(logged, "tid")
    events = delivered.withColumns({"is_item": f.lit(False), "after": f.col("tick"), "upto": f.col("tick")})
    told = tables.told.select("tid", "i", "t", "pubend", "node", "after", "upto").join(logged, "tid")
    items = told.withColumns({"is_item": f.lit(True), "tick": f.col("upto")})
    lines = events.unionByName(items, allowMissingColumns=True)
    order = Window.partitionBy("tid", "pubend").orderBy(
        "i", "t", "is_item", "publisher", "n", "after", "upto"
    )
    lines = lines.withColumn("before", f.max("upto").over(order.rowsBetween(*BEFORE)))
    lines = tables.keep(lines.where("tick <= before OR (is_item AND (after <> before OR upto <= after))"))
    if lines.isEmpty():
        return ()
    back = new(delivered, lines.where("NOT is_item"))
    rule = (
        f.when(f.col("upto") <= f.col("after"), "empty")
        .when(f.col("after") < f.col("before"), "behind")
        .when(f.col("after") > f.col("before"), "hole")
    )
    jumps = lines.where("is_item").withColumn("rule", rule).where("rule IS NOT NULL")
    after = f.col("after").cast("string")
    against = f.when(f.col("rule") == "hole", f.concat(f.col("before"), f.lit(" and "), after)).otherwise(
        after
    )
    return (
        rows(
            tables.named(back),
            f.when(f.col("is_total"), "total-order").otherwise("misorder"),
            "tick",
            f.col("before").cast("string"),
        ),
        rows(
            tables.named(jumps),
            f.when(f.col("rule") == "behind", "misorder").otherwise("unexplained"),
            f.col("rule"),
            against,
        ),
    )


def lagging(tables: Tables, told: DataFrame) -> DataFrame:
    """Who stands at the end, and has not been told of everything that was logged some time before.

    ``told`` says how far, by tenure and pubend.
    """
    runs = f.broadcast(tables.plan.runs.select("run", "known_at"))
    logged = (
        tables.events.where("t IS NOT NULL AND tick IS NOT NULL").join(runs, "run").where("t <= known_at")
    )
    due = logged.groupBy("run", "pubend").agg(f.max(f.struct("tick", "t")).alias("due"))
    standing = tables.plan.tenures.where("stands")
    standing = standing.select(
        "run",
        "tid",
        "subscriber",
        "subscription",
        "since",
        f.col("last_node").alias("node"),
        f.col("last_i").alias("i"),
        f.col("last_t").alias("t"),
    )
    lines = due.join(f.broadcast(standing), "run").join(
        told.select("tid", "pubend", "reached"), ["tid", "pubend"], "left"
    )
    lines = lines.withColumn("reached", f.coalesce("reached", f.lit(0))).withColumn("tick", f.col("due.tick"))
    lagging = lines.where((f.col("due.t") > f.col("since")) & (f.col("reached") < f.col("tick")))
    return rows(lagging, "unexplained", "lagging", f.col("reached").cast("string"))
