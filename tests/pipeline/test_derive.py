"""`holdfast derive`: windows, unions and joins as a plain computation has them, each once, and silence ends them.

[issue 6 §6]
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from derivations import SECOND, STREAMS, Accepted, deriving, publish, results, text_of, until, wanted
from kept_logs import keep_everything

from durable_brokers import Brokers, brokers_in, patiently
from holdfast.pipeline.derive import views
from holdfast.pipeline.derive.errors import Derailed
from holdfast.pipeline.derive.run import follow
from holdfast.pipeline.origins import origins_of
from holdfast.runtime.kept_subscriptions import kept_subscriptions
from holdfast.runtime.network_file import read_network
from tested_spark import spark

WINDOWS = """
SELECT window(accepted, '1 second') AS window, a.sym, count(*) AS n, sum(a.price) AS price
FROM orders WHERE a.i >= {least} AND a.i < {most} GROUP BY ALL
"""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    spark()
    folder = tmp_path_factory.mktemp("derive")
    with brokers_in(folder, {"b1": None, "b2": "b1"}, streams=STREAMS, readers=True) as found:
        asyncio.run(found.start("b1", "b2"))
        asyncio.run(keep_everything(found))
        yield found


def windowed(accepted: Sequence[Accepted]) -> list[dict[str, Any]]:
    """What `WINDOWS` is to give."""
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    for tick, _, sym, price in accepted:
        found[tick - tick % SECOND, sym].append(price)
    return [
        {
            "window_start": text_of(at),
            "window_end": text_of(at + SECOND),
            "sym": sym,
            "n": len(prices),
            "price": sum(prices),
        }
        for (at, sym), prices in found.items()
    ]


def by_text(rows: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(map(str, rows))


@patiently
async def test_windows_over_two_brokers_are_those_of_a_plain_computation_and_silence_ends_the_last(
    brokers: Brokers, tmp_path: Path
) -> None:
    """One broker is read as far as the other each time, whoever has a backlog, and nothing is late."""
    first = await publish(brokers, "b1", "orders/a", range(40))
    what = wanted(brokers, tmp_path, WINDOWS.format(least=0, most=120), "derived/windows", events_max=60)
    async with deriving(what) as running:
        second, third = await asyncio.gather(
            publish(brokers, "b1", "orders/a", range(40, 80), pause=0.04),
            publish(brokers, "b2", "orders/b", range(80, 120), pause=0.05),
        )
        expected = windowed(first + second + third)
        assert len(expected) > 9, "several windows of three symbols"
        assert by_text(await results(brokers, "derived/windows", len(expected))) == by_text(expected)
        assert "Filter" not in below_the_watermark(running.query)
    assert sum(batch.events for batch in running.batches) >= 120
    assert sum(batch.results or 0 for batch in running.batches) == len(expected)
    assert not any(batch.late for batch in running.batches)


@patiently
async def test_without_the_filter_that_spark_does_not_move_the_last_window_of_a_stream_never_ends(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another one it has the query's condition below the watermark, and silence has no attributes."""
    monkeypatch.setattr(views, "ABOVE", "kind <> 'silence'")
    accepted = await publish(brokers, "b1", "orders/a", range(1_000, 1_010), pause=0.12)
    what = wanted(brokers, tmp_path, WINDOWS.format(least=1_000, most=1_010), "derived/never")
    async with deriving(what) as running:

        def moment() -> int:
            """How far the last batch went."""
            progress = running.query.lastProgress
            return 0 if progress is None else int(json.loads(progress.sources[0].endOffset)["moment"])

        await until(lambda: moment() > accepted[-1].tick + 3 * SECOND)
        assert "Filter" in below_the_watermark(running.query)
        ended = [each["window_end"] for each in await results(brokers, "derived/never", 0)]
        assert max(ended, default="") <= text_of(accepted[-1].tick), "events end a window, silence does not"


def below_the_watermark(query: Any) -> str:
    """What Spark does with rows before the watermark sees them."""
    plan: str = query._jsq.explainInternal(True)
    optimized = plan.split("== Optimized Logical Plan ==")[1].split("== Physical Plan ==")[0]
    return optimized.split("EventTimeWatermark")[1]


@patiently
async def test_a_union_with_idle_and_with_empty_streams_ends_its_windows(
    brokers: Brokers, tmp_path: Path
) -> None:
    idle = await publish(brokers, "b2", "news/a", range(2_000, 2_005))
    text = """
    WITH everything AS (SELECT accepted, a.i FROM orders UNION ALL SELECT accepted, a.i FROM news
                        UNION ALL SELECT accepted, a.i FROM quiet)
    SELECT window(accepted, '1 second') AS window, count(*) AS n
    FROM everything WHERE i BETWEEN 2000 AND 2999 GROUP BY ALL
    """
    async with deriving(wanted(brokers, tmp_path, text, "derived/union")):
        busy = await publish(brokers, "b1", "orders/a", range(2_100, 2_160), pause=0.05)
        counts = Counter(each.tick - each.tick % SECOND for each in (*idle, *busy))
        expected = [
            {"window_start": text_of(at), "window_end": text_of(at + SECOND), "n": n}
            for at, n in counts.items()
        ]
        assert by_text(await results(brokers, "derived/union", len(expected))) == by_text(expected)


@pytest.mark.long
@patiently
async def test_an_outer_join_of_a_busy_and_an_idle_stream_says_what_has_found_nothing(
    brokers: Brokers, tmp_path: Path
) -> None:
    news = await publish(brokers, "b2", "news/a", range(3_000, 3_003))
    text = """
    SELECT 'derived/join' AS topic, o.a.i AS i, n.a.i AS news
    FROM (SELECT * FROM orders WHERE a.i BETWEEN 3000 AND 3999) AS o
    LEFT JOIN (SELECT * FROM news WHERE a.i BETWEEN 3000 AND 3999) AS n
    ON o.a.sym = n.a.sym AND n.accepted BETWEEN o.accepted - INTERVAL 1 SECOND AND o.accepted
    """
    async with deriving(wanted(brokers, tmp_path, text, None)):
        orders = await publish(brokers, "b1", "orders/a", range(3_100, 3_140), pause=0.04)
        expected = []
        for order in orders:
            matched = [
                each.i for each in news if each.sym == order.sym and 0 <= order.tick - each.tick <= SECOND
            ]
            expected += [{"i": order.i, "news": i} for i in matched] or [{"i": order.i}]
        assert by_text(await results(brokers, "derived/join", len(expected))) == by_text(expected)


@pytest.mark.long
@patiently
async def test_what_is_there_is_done_once_and_the_next_time_what_came_since(
    brokers: Brokers, tmp_path: Path
) -> None:
    """Nothing is grouped: each row is published as soon as it is read, with its payload and its own topic."""
    text = """SELECT concat('derived/each/', a.sym) AS topic, CAST(a.i AS STRING) AS payload, a.i, accepted,
              a.price > 2003 AS dear FROM orders WHERE a.i >= 4000 AND a.i < 5000"""
    what = wanted(brokers, tmp_path, text, None, every_seconds=None, subscription="mine")
    origins = origins_of(brokers.file, "orders", local=False)
    for numbers in (range(4_000, 4_010), range(4_010, 4_020)):
        accepted = await publish(brokers, "b1", "orders/a", numbers)
        await until(lambda: origins.silence().upto >= accepted[-1].tick)  # noqa: B023
        async with deriving(what) as running:
            await asyncio.to_thread(running.query.awaitTermination)
        rows = await results(brokers, "derived/each/#", numbers.stop - 4_000)
        assert sorted(each["i"] for each in rows) == list(range(4_000, numbers.stop))
        last = next(each for each in rows if each["i"] == accepted[-1].i)
        assert last == {
            "i": accepted[-1].i,
            "accepted": text_of(accepted[-1].tick),
            "dear": accepted[-1].price > 2003,
        }
        kept = (await kept_subscriptions(read_network(brokers.file))).named("mine-orders")
        assert kept is not None
        assert accepted[-1].tick in [each["acknowledged"] for each in kept["places"]], (
            "and no silence behind it"
        )


@patiently
async def test_a_row_that_cannot_be_an_event_ends_the_query_with_what_is_wrong_with_it(
    brokers: Brokers, tmp_path: Path
) -> None:
    await publish(brokers, "b1", "orders/a", range(5_000, 5_001))
    text = "SELECT a.i, double('NaN') AS x FROM orders WHERE a.i = 5000"
    with pytest.raises(Derailed, match=r"a row with the topic 'derived/x': attributes\.x: ") as caught:
        async with deriving(wanted(brokers, tmp_path, text, "derived/x")) as running:
            await asyncio.to_thread(follow, running.query, running.batches.append, running.stopping)
    assert not caught.value.is_passing, "it would be the same again"
    assert "\n" not in str(caught.value)
