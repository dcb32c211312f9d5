"""The rules of the audit as queries: each the twin of one of the local engine, and of the same name.

A rule is a table of violations, most often empty. Windows are ordered as the local engine orders lines; what they let
through is looked at once more, which costs nothing where there is little. Here are the rules for single deliveries, for
events whoever gets them, and for links.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from holdfast.pipeline.audit.spark_rows import BEFORE, DELIVERED, ORDER, named, new, of_the_same, placed, rows
from holdfast.pipeline.audit.spark_sieve import judged, sieved, suspects_in
from holdfast.pipeline.audit.spark_streams import lagging, owed, streams
from holdfast.pipeline.audit.spark_tables import EVENT, Tables

__all__ = ["violations_in"]


def violations_in(tables: Tables) -> list[DataFrame]:
    """All that is wrong, by rules; those that can find nothing in these runs are not asked."""
    rules = [*_events(tables)]
    found = tables.keep(sieved(tables))
    suspects = suspects_in(tables, found)
    if suspects:
        some = tables.about(suspects)
        rules += [
            *_deliveries(some),
            *_repeats(some),
            *owed(some),
            *(streams(some) if tables.has_logs else ()),
        ]
    if tables.has_logs:
        rules += [*_log(tables), lagging(tables, found)]
    if tables.has_traffic:
        rules.append(_traffic(tables))
    return rules


# Single deliveries


def _deliveries(tables: Tables) -> Sequence[DataFrame]:
    lines = judged(tables, tables.delivered).drop("certain", "maybe")
    against = (
        f.when(f.col("rule") == "foreign", f.col("node"))
        .when(f.col("rule") == "topic", f.col("published_topic"))
        .when(f.col("rule") == "unmatched", f.col("filter"))
        .otherwise("")
    )
    bad = tables.keep(lines.where("rule IS NOT NULL OR is_misplaced"))
    filters = f.broadcast(tables.plan.tenures.select("tid", "filter"))
    wrong = bad.where("rule IS NOT NULL").join(filters, "tid", "left")
    kind = f.when(f.col("is_total"), "total-order").otherwise("duplicate")
    return (
        rows(wrong, f.when(f.col("rule") == "ended", "late").otherwise("wrong"), f.col("rule"), against),
        rows(bad.where("is_misplaced"), kind, "placed", placed("known_pubend", "known_tick")),
    )


def _repeats(tables: Tables) -> Sequence[DataFrame]:
    """Repeats, and what is out of a publisher's order: neither is above all that came before."""
    lines = tables.slim
    before = Window.partitionBy("tid", "publisher").orderBy(*ORDER).rowsBetween(*BEFORE)
    suspects = tables.keep(lines.withColumn("before", f.max("n").over(before)).where("n <= before"))
    if suspects.isEmpty():
        return ()
    times = Window.partitionBy(*DELIVERED).orderBy(*ORDER)
    repeated = of_the_same(lines, suspects).withColumn("time", f.row_number().over(times)).where("time > 1")
    unlogged = f.broadcast(tables.plan.tenures.where("is_fifo AND NOT is_logged").select("tid"))
    straggling = new(lines, suspects.where("n < before").join(unlogged, "tid"))
    return (
        rows(tables.named(repeated), "duplicate", "again"),
        rows(tables.named(straggling), "misorder", "fifo", named("publisher", "before")),
    )


# Events, whoever gets them


def _events(tables: Tables) -> Sequence[DataFrame]:
    times = Window.partitionBy(*EVENT).orderBy("t", "node", "i")
    again = tables.published.withColumn("time", f.row_number().over(times)).where("time > 1")
    published = tables.events.where("t IS NOT NULL")
    runs = f.broadcast(tables.plan.runs)
    owed = f.broadcast(tables.plan.accepted_from)
    refused = published.where("NOT is_accepted").drop("pubend", "tick").join(runs.where("accepts"), "run")
    refused = refused.join(owed, ["run", "publisher"]).where("t >= since")
    known = tables.events.where("tick IS NOT NULL").select(
        *EVENT, f.col("pubend").alias("known_pubend"), f.col("tick").alias("known_tick")
    )
    elsewhere = tables.accepted.where("tick <> 0").join(known, EVENT).join(runs, "run")
    elsewhere = elsewhere.where("NOT (known_pubend = pubend AND known_tick = tick)")
    kind = f.when(f.col("is_total"), "total-order").otherwise("duplicate")
    return (
        rows(again, "duplicate", "published"),
        rows(refused, "unaccepted", "refused"),
        rows(elsewhere, kind, "placed", placed("known_pubend", "known_tick")),
    )


def _log(tables: Tables) -> Sequence[DataFrame]:
    """One event at a tick, one log in total order, and each publisher's events in a log as they were published."""
    logged = tables.events.where("t IS NOT NULL AND tick IS NOT NULL").join(
        f.broadcast(tables.plan.runs), "run"
    )
    there = Window.partitionBy("run", "pubend", "tick").orderBy("publisher", "n")
    placed = logged.withColumn("first_one", f.first(named("publisher", "n")).over(there))
    placed = placed.withColumn("time", f.row_number().over(there))
    taken = placed.where("time > 1")
    run = Window.partitionBy("run")
    pubend = Window.partitionBy("run", "pubend").orderBy("tick", "publisher", "n")
    total = logged.where("is_total").withColumn("only", f.min("pubend").over(run))
    beginning = total.withColumn("time", f.row_number().over(pubend)).where("time = 1 AND pubend <> only")
    before = Window.partitionBy("run", "pubend", "publisher").orderBy("tick", "n").rowsBetween(*BEFORE)
    behind = logged.where("is_fifo").withColumn("before", f.max("n").over(before)).where("n < before")
    return (
        rows(taken, "wrong", "taken", f.col("first_one")),
        rows(beginning, "total-order", "sequencers", f.col("only")),
        rows(behind, "misorder", "logged", named("publisher", "before")),
    )


# Traffic


def _traffic(tables: Tables) -> DataFrame:
    events = tables.events.where("t IS NOT NULL").select(*EVENT, "certain", "maybe")
    runs = f.broadcast(tables.plan.runs.select("run", "is_reliable"))
    lines = tables.forwarded.join(f.broadcast(tables.plan.wanted), ["run", "source", "to"])
    lines = lines.where("begin <= t AND t < end").join(runs, "run")
    lines = lines.where("is_reliable OR source <> publisher").join(events, EVENT)
    unwanted = lines.where(~f.arrays_overlap("certain", "places") & ~f.arrays_overlap("maybe", "places"))
    return rows(unwanted, "no-interest", "link", f.concat(f.col("source"), f.lit(" -> "), f.col("to")))
