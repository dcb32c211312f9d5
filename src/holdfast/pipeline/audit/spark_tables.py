"""The many lines as tables of Spark: what was published and what it matches, what was delivered to which tenure.

These are ``facts`` once more, by joins. Events are matched in Python, a batch of Arrow at a time; everything else stays
in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from holdfast.pipeline.audit.line import decoded_attributes
from holdfast.pipeline.audit.rematch import Rematch
from holdfast.pipeline.audit.spark_plan import PlanTables, small_table

__all__ = ["EVENT", "NOBODYS", "Tables", "tables_of"]

EVENT: Final = ["run", "publisher", "n"]
#: Stands for the tenure of what nobody had asked for.
NOBODYS: Final = -1
#: So many events are sent to everybody (about 200 bytes each), which spares sorting the deliveries.
_SENT_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Tables:
    """What the rules are about."""

    plan: PlanTables
    published: DataFrame
    accepted: DataFrame
    events: DataFrame  #: one row for each id anybody speaks of; matched, and placed in the logs
    delivered: DataFrame  #: with the tenure, where there is one
    told: DataFrame  #: silences and gaps of logged streams, with their tenures
    forwarded: DataFrame
    has_logs: bool  #: whether any run is logged
    has_traffic: bool  #: whether anything is known of what may pass a link
    are_few: bool  #: whether events are so few that they can be sent to everybody
    kept: list[DataFrame] = field(default_factory=list)

    @property
    def slim(self) -> DataFrame:
        """Deliveries to tenures, with no more than is needed to sort them."""
        return self.delivered.where("tid IS NOT NULL").select(
            "tid", "publisher", "n", "i", "t", "pubend", "tick", "node"
        )

    def named(self, lines: DataFrame) -> DataFrame:
        """Lines of tenures, with run, subscriber and subscription."""
        return lines.join(
            f.broadcast(self.plan.tenures.select("tid", "run", "subscriber", "subscription")), "tid"
        )

    def sent(self, events: DataFrame) -> DataFrame:
        """Events, to be joined with deliveries."""
        return f.broadcast(events) if self.are_few else events

    def about(self, suspects: Sequence[int]) -> Tables:
        """The same of some tenures, or of ``NOBODYS``; of events and links everything."""
        wanted = f.broadcast(
            small_table(self.events.sparkSession, [(tid,) for tid in suspects], "suspect int")
        )
        tid = f.coalesce("tid", f.lit(NOBODYS))
        delivered, told, tenures = (
            table.join(wanted, tid == f.col("suspect"), "left_semi")
            for table in (self.delivered, self.told, self.plan.tenures)
        )
        return replace(
            self, delivered=self.keep(delivered), told=told, plan=replace(self.plan, tenures=tenures)
        )

    def keep(self, table: DataFrame) -> DataFrame:
        """Work a table out once, although several rules ask for it."""
        self.kept.append(table.persist(StorageLevel.MEMORY_AND_DISK))
        return table

    def forget(self) -> None:
        """The rules have been asked."""
        for table in self.kept:
            table.unpersist()


def tables_of(
    lines: DataFrame, plan: PlanTables, filters: Mapping[str, Sequence[str]], counts: Mapping[str, int]
) -> Tables:
    """The tables of all runs; ``filters`` are theirs, ``counts`` the numbers of lines by kind."""
    published = _of_kind(lines, "publish", "publisher", "n", "topic", "attributes")
    accepted = _of_kind(lines, "accepted", "publisher", "n", "pubend", "tick")
    items = _of_kind(
        lines, "deliver", "publisher", "n", "topic", "pubend", "tick", "subscriber", "subscription"
    )
    delivered = _in_tenures(items, plan)
    told = _of_kind(lines, ("silence", "gap"), "pubend", "after", "upto", "subscriber", "subscription")
    logged = plan.runs.where("is_logged").select("run")
    told = _in_tenures(told.join(f.broadcast(logged), "run"), plan).where("tid IS NOT NULL")
    are_few = max(counts.get("publish", 0), counts.get("accepted", 0)) <= _SENT_MAX
    events = _events(published, accepted, items, logged, filters, are_few=are_few)
    forwarded = _of_kind(lines, "forward", "publisher", "n", f.col("from").alias("source"), "to")
    has_logs, has_traffic = not logged.isEmpty(), not plan.wanted.isEmpty()
    known = (has_logs, has_traffic, are_few)
    tables = Tables(plan, published, accepted, events, delivered, told, forwarded, *known)
    tables.keep(events)
    return tables


def _of_kind(lines: DataFrame, kind: str | tuple[str, ...], *columns: Any) -> DataFrame:
    kinds = (kind,) if isinstance(kind, str) else kind
    return lines.where(f.col("kind").isin(*kinds)).select("run", "t", "node", "i", *columns)


def _in_tenures(lines: DataFrame, plan: PlanTables) -> DataFrame:
    """Lines of subscribers, with the tenures in which they were written."""
    tenures = plan.tenures.select(
        f.col("run").alias("tenure_run"),
        f.col("subscriber").alias("tenure_subscriber"),
        f.col("subscription").alias("tenure_subscription"),
        "tid",
        "place",
        "begin_i",
        "end_i",
        "ended_i",
    )
    mine = (
        (f.col("run") == f.col("tenure_run"))
        & (f.col("subscriber") == f.col("tenure_subscriber"))
        & (f.col("subscription") == f.col("tenure_subscription"))
        & (f.col("i") > f.col("begin_i"))
        & (f.col("i") < f.col("end_i"))
    )
    dropped = ("tenure_run", "tenure_subscriber", "tenure_subscription", "begin_i", "end_i")
    return lines.join(f.broadcast(tenures), mine, "left").drop(*dropped)


def _events(
    published: DataFrame,
    accepted: DataFrame,
    delivered: DataFrame,
    logged: DataFrame,
    filters: Mapping[str, Sequence[str]],
    *,
    are_few: bool,
) -> DataFrame:
    """By id: the first ``publish`` line, the filters it matches, whether it was accepted, and where it stands."""
    first = published.groupBy(*EVENT).agg(
        f.min(f.struct("t", "node", "i", "topic", "attributes")).alias("first")
    )
    first = first.select(*EVENT, "first.*")
    matched = first.mapInArrow(
        _matching({run: list(texts) for run, texts in filters.items()}),
        "run string, publisher string, n bigint, t double, node string, i bigint, topic string,"
        " certain array<int>, maybe array<int>",
    )
    receipts = accepted.groupBy(*EVENT).agg(
        f.lit(True).alias("is_accepted"),
        f.min(f.when(f.col("tick") != 0, f.struct("pubend", "tick"))).alias("receipt"),
    )
    is_logged = logged.withColumn("is_logged", f.lit(True))
    known = receipts.where("receipt IS NOT NULL").select(*EVENT)
    known = f.broadcast(known) if are_few else known
    told = delivered.where("tick <> 0").join(f.broadcast(logged), "run").join(known, EVENT, "left_anti")
    told = told.groupBy(*EVENT).agg(f.min(f.struct("pubend", "tick")).alias("told"))
    events = matched.join(receipts, EVENT, "full").join(told, EVENT, "full")
    events = events.join(f.broadcast(is_logged), "run", "left")
    position = f.when(f.col("is_logged"), f.coalesce("receipt", "told"))
    return events.select(
        *EVENT,
        "t",
        "node",
        "i",
        "topic",
        "certain",
        "maybe",
        f.coalesce("is_accepted", f.lit(False)).alias("is_accepted"),
        position["pubend"].alias("pubend"),
        position["tick"].alias("tick"),
    )


def _matching(
    filters: dict[str, list[str]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What matches the events of a batch, by the filters of their runs."""

    def match(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rematches: dict[str, Rematch] = {}
        for batch in batches:
            runs = batch.column("run").to_pylist()
            topics = batch.column("topic").to_pylist()
            attributes = map(msgspec.json.decode, batch.column("attributes").to_pylist())
            contents = [
                (topic, decoded_attributes(each)) for topic, each in zip(topics, attributes, strict=True)
            ]
            certain: list[list[int]] = [[]] * len(runs)
            maybe: list[list[int]] = [[]] * len(runs)
            for run in dict.fromkeys(runs):
                if run not in rematches:
                    rematches[run] = Rematch(filters[run])
                places = [place for place, each in enumerate(runs) if each == run]
                found = rematches[run].matches([contents[place] for place in places])
                for place, (sure, possible) in zip(places, found, strict=True):
                    certain[place] = sure
                    maybe[place] = (
                        [] if len(sure) == len(possible) else [one for one in possible if one not in sure]
                    )
            kept = [batch.column(name) for name in ("run", "publisher", "n", "t", "node", "i", "topic")]
            lists = [pa.array(each, pa.list_(pa.int32())) for each in (certain, maybe)]
            names = ["run", "publisher", "n", "t", "node", "i", "topic", "certain", "maybe"]
            yield pa.RecordBatch.from_arrays([*kept, *lists], names)

    return match
