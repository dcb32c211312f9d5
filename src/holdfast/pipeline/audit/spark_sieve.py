"""The sieve: which tenures need a closer look, told by one pass over all deliveries.

Almost all tenures are in order, and that can be seen without asking rule by rule. Sorted by pubend and position, the
ticks that a tenure was told of rise, each silence and gap goes on where the last line ended, no delivery is wrong by
itself, and as many events came as match. Then nothing is repeated or out of order, for an event stands at one tick; and
nothing is missing, for what came is among what matches. A tenure of which any of that is not so is a *suspect*: maybe
nothing is wrong with it. The rules are asked about suspects alone, so that they cost nothing where there are none.

Refused: rules that look at all deliveries each by itself, as they did; two sorts and four joins of everything.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from holdfast.pipeline.audit.spark_tables import EVENT, NOBODYS, Tables

__all__ = ["judged", "matching", "sieved", "suspects_in"]


def judged(tables: Tables, delivered: DataFrame) -> DataFrame:
    """Deliveries, each with the ``rule`` it breaks by itself, and with what is known of its event."""
    events = tables.events.select(
        *EVENT,
        f.col("t").alias("published_t"),
        f.col("topic").alias("published_topic"),
        "certain",
        "maybe",
        "is_accepted",
        f.col("pubend").alias("known_pubend"),
        f.col("tick").alias("known_tick"),
    )
    runs = f.broadcast(tables.plan.runs.select("run", "is_logged", "is_total"))
    lines = delivered.join(tables.sent(events), EVENT, "left").join(runs, "run")
    is_matched = f.array_contains("certain", f.col("place")) | f.array_contains("maybe", f.col("place"))
    is_another = f.col("topic") != f.col("published_topic")  # which spares most of them the closer look
    is_elsewhere = (f.col("pubend") != f.col("publisher")) | (f.col("tick") != f.col("n"))
    rule = (
        f.when(f.col("node") != f.col("subscriber"), "foreign")
        .when(f.col("published_t").isNull(), "unpublished")
        .when(f.col("t") < f.col("published_t"), "early")
        .when(is_another & (_canonical("topic") != _canonical("published_topic")), "topic")
        .when(~f.col("is_logged") & is_elsewhere, "position")
        .when(f.col("tid").isNull(), "unasked")
        .when(~is_matched, "unmatched")
        .when(f.col("i") > f.col("ended_i"), "ended")
    )
    is_misplaced = f.expr(
        "is_logged AND tid IS NOT NULL AND known_tick IS NOT NULL"
        " AND NOT (known_pubend = pubend AND known_tick = tick)"
    )
    return lines.withColumns({"rule": rule, "is_misplaced": is_misplaced})


def _canonical(topic: str) -> Column:
    """The same levels, without a leading slash [contracts.md §2]."""
    return f.regexp_replace(f.col(topic), "^/(?=[^/])", "")


def matching(tables: Tables, tenures: DataFrame) -> DataFrame:
    """What certainly matches some tenures and is owed to them, or stands in a log: it comes, or something is lost."""
    slim = tenures.select("run", "tid", "place", "since", "until", "owes", "is_open_ended")
    events = tables.events.where("t IS NOT NULL").withColumn("place", f.explode("certain"))
    lines = events.drop("certain", "maybe", "topic").join(f.broadcast(slim), ["run", "place"])
    is_owed = f.expr("owes AND is_accepted AND since < t AND t < until")
    return lines.withColumn("is_owed", is_owed).where("is_owed OR tick IS NOT NULL")


def sieved(tables: Tables) -> DataFrame:
    """By tenure and pubend: how far it was told, how many came of what is ``matching``, and whether one is odd."""
    owed = f.broadcast(tables.plan.tenures.select("tid", "since", "until", "owes"))
    lines = judged(tables, tables.delivered).join(owed, "tid", "left")
    is_owed = f.expr("owes AND is_accepted AND since < published_t AND published_t < until")
    is_due = f.array_contains("certain", f.col("place")) & (is_owed | f.col("known_tick").isNotNull())
    events = lines.select(
        f.coalesce("tid", f.lit(NOBODYS)).alias("tid"),
        "pubend",
        "i",
        f.lit(None).cast("bigint").alias("after"),
        f.col("tick").alias("upto"),
        f.coalesce(is_due.cast("int"), f.lit(0)).alias("is_due"),
        (f.expr("rule IS NOT NULL OR is_misplaced OR (is_logged AND tick <= 0)")).alias("is_odd"),
    )
    items = tables.told.select("tid", "pubend", "i", "after", "upto")
    items = items.withColumns({"is_due": f.lit(0), "is_odd": f.col("upto") <= f.col("after")})
    order = Window.partitionBy("tid", "pubend").orderBy("i")
    before, last_i = f.lag("upto").over(order), f.lag("i").over(order)
    goes_on = f.when(f.col("after").isNull(), f.col("upto") > before).otherwise(f.col("after") == before)
    is_odd = f.col("is_odd") | (f.col("i") == last_i) | ~goes_on
    lines = events.unionByName(items).withColumn("is_odd", f.coalesce(is_odd, f.col("is_odd")))
    return lines.groupBy("tid", "pubend").agg(
        f.max("upto").alias("reached"), f.sum("is_due").alias("came"), f.max("is_odd").alias("is_odd")
    )


def suspects_in(tables: Tables, found: DataFrame) -> list[int]:
    """The tenures that are not in order, of what was ``sieved``; ``NOBODYS`` too, if anything came to nobody."""
    came = found.groupBy("tid").agg(f.sum("came").alias("came"), f.max("is_odd").alias("is_odd")).collect()
    due = matching(tables, tables.plan.tenures).groupBy("tid").count().collect()
    counts = {row["tid"]: row["count"] for row in due}
    odd = {row["tid"] for row in came if row["is_odd"] or row["came"] != counts.get(row["tid"], 0)}
    return sorted(odd | counts.keys() - {row["tid"] for row in came})
