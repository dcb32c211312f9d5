"""The plans of all runs as small tables of Spark, joined with the large ones; tenures are numbered over all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from holdfast.pipeline.audit.plan import Plan, Tagged
from holdfast.pipeline.audit.quiet import wanted_on

__all__ = ["PlanTables", "filters_of", "plan_tables", "small_table"]


@dataclass(frozen=True, slots=True)
class PlanTables:
    """What the rules ask about runs, tenures and links."""

    runs: DataFrame
    tenures: DataFrame
    hidden: DataFrame  #: not owed to a tenure
    covers: DataFrame  #: announced as gone, and that explains it
    gaps: DataFrame  #: announced as gone
    accepted_from: DataFrame
    wanted: DataFrame  #: by link, while it was at rest


def filters_of(plan: Plan) -> list[str]:
    """The filters of a run; places in this list stand for them."""
    return sorted({line.filter or "" for lines in plan.chronicle.asking.values() for line in lines})


def plan_tables(
    spark: SparkSession,
    plans: Sequence[Plan],
    tagged: Mapping[str, Sequence[Tagged]],
    links: Mapping[str, Sequence[tuple[str, str]]],
) -> PlanTables:
    """The tables of these plans; of each run the deliveries with tags, and the links that anything went over."""
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _SCHEMAS}
    begin = 0  #: the number of a run's first tenure
    for plan in plans:
        _add(rows, plan, begin, tagged.get(plan.run, ()), links.get(plan.run, ()))
        begin += len(plan.tenures)
    return PlanTables(**{name: small_table(spark, rows[name], _SCHEMAS[name]) for name in _SCHEMAS})


def small_table(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    """Rows as a table that is part of the plan of a query, and not the work of a job.

    ``schema`` has names with the types of Spark, separated by commas.
    """
    fields = [tuple(each.split()) for each in schema.split(", ")]
    columns = zip(*rows, strict=True) if rows else ([] for _ in fields)
    arrays = [pa.array(each, _TYPES[kind]) for each, (_, kind) in zip(columns, fields, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, [name for name, _ in fields]))


_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "array<int>": pa.list_(pa.int32()),
}
_SCHEMAS = {
    "runs": "run string, is_logged boolean, is_total boolean, is_fifo boolean, is_reliable boolean, accepts boolean,"
    " known_at double",
    "tenures": "run string, tid int, subscriber string, subscription string, filter string, place int, begin_i bigint,"
    " end_i bigint, ended_i bigint, since double, until double, owes boolean, is_open_ended boolean, stands boolean,"
    " last_node string, last_i bigint, last_t double, is_logged boolean, is_total boolean, is_fifo boolean",
    "hidden": "tid int, publisher string, after double, upto double, upto_n bigint",
    "covers": "tid int, pubend string, after bigint, upto bigint",
    "gaps": "tid int, pubend string, after bigint, upto bigint",
    "accepted_from": "run string, publisher string, since double, is_unannounced boolean",
    "wanted": "run string, source string, to string, begin double, end double, places array<int>",
}


def _add(
    rows: dict[str, list[tuple[Any, ...]]],
    plan: Plan,
    begin: int,
    tagged: Sequence[Tagged],
    links: Sequence[tuple[str, str]],
) -> None:
    run = plan.run
    places = {text: place for place, text in enumerate(filters_of(plan))}
    flags = (plan.is_logged, plan.is_total, plan.is_fifo, plan.guarantee == "reliable", plan.accepts)
    rows["runs"].append((run, *flags, plan.known_at))
    for tenure in plan.tenures:
        last = tenure.lines[-1]
        rows["tenures"].append(
            (
                run,
                begin + tenure.number,
                *tenure.key,
                tenure.filter,
                places[tenure.filter],
                tenure.begin_i,
                tenure.end_i,
                tenure.ended_i,
                tenure.since,
                tenure.until,
                plan.owes,
                tenure.until < inf or not plan.is_complete,
                plan.stands(tenure),
                last.node,
                last.i,
                last.t,
                plan.is_logged,
                plan.is_total,
                plan.is_fifo,
            )
        )
    rows["hidden"] += [(begin + each.tenure, *each[1:]) for each in plan.hidden(plan.bars(tagged))]
    rows["covers"] += [(begin + each.tenure, *each[1:]) for each in plan.covers]
    rows["gaps"] += [
        (begin + tenure.number, gap.pubend, gap.after, gap.upto)
        for tenure, gap in plan.gaps
        if plan.is_logged
    ]
    rows["accepted_from"] += [
        (run, publisher, since, publisher in plan.unannounced)
        for publisher, since in plan.accepted_from.items()
    ]
    rows["wanted"] += [
        (run, each.source, each.to, each.begin, each.end, sorted(places[text] for text in each.filters))
        for each in wanted_on(plan, links)
    ]
