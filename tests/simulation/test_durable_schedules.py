"""Directed schedules of durable streams [D.2]: X20, X21, X22, X24, X36; all promises are judged in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from durable_runs import chain, run
from holdfast.broker.durable import hosted
from holdfast.clock import Instant
from holdfast.simulator.connection import Host
from holdfast.simulator.oracle.durable import DurableOracle
from holdfast.streams.storing import MatchesRead


class Readings(DurableOracle):
    """Also keeps what was read from filtering logs."""

    def __init__(self) -> None:
        super().__init__()
        self.matches: list[list[int]] = []

    def step(self, now: Instant, host: Host, stimulus: Any, effects: Sequence[Any]) -> None:
        super().step(now, host, stimulus, effects)
        if isinstance(stimulus, MatchesRead):
            self.matches.append(list(stimulus.reading.matches))


# X20


def test_x20_the_filtering_log_is_read_in_windows_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """B1.6: 100 matches were missed, 30 are read at a time."""
    monkeypatch.setattr(hosted, "READING_MAX", 30)
    readings = Readings()
    done = run(
        chain(1, ("p", "publisher", 0), ("u", "subscriber", 0), ("v", "subscriber", 0)),
        """Subscriber u Subscribe a As mine Durable
        Subscriber v Subscribe # As hers
        Wait 500
        Subscriber u Disconnect
        Publisher p Publish 100 Ontopic a Interval 10
        Publisher p Publish 100 Ontopic b Interval 10
        Wait 2000
        Subscriber u Reconnect
        Drain 5000
        Wait 3000
        """,
        oracle=readings,
    )
    read = [batch for batch in readings.matches if batch]
    ticks = [line["tick"] for line in done.lines("deliver", subscription="mine")]
    assert ticks == sorted(ticks)
    assert len(ticks) == 100
    assert [tick for batch in read for tick in batch] == ticks, "each match read once, in ascending order"
    assert [len(batch) for batch in read] == [30, 30, 30, 10]


# X21


@pytest.mark.parametrize("microseconds", range(0, 3000, 150))
def test_x21_a_crash_between_append_sync_and_metadata_loses_and_repeats_nothing(microseconds: int) -> None:
    """B1.5: the subscribers' broker dies at any point of a commit; the filtering log and its chains are whole again."""
    done = run(
        chain(2, ("p", "publisher", 0), ("u", "subscriber", 1), ("v", "subscriber", 1)),
        f"""Subscriber u Subscribe a As mine Durable
        Subscriber v Subscribe a WHERE qty > 4 As hers Durable
        At 600 Publisher p Publish 40 Ontopic a Interval 2 With qty=randint(1,9)
        At 630 Subscriber v Disconnect
        At {650 + microseconds / 1000:.3f} Crash b1
        At 1200 Restart b1
        At 2500 Subscriber v Reconnect
        Wait 3000
        Drain 5000
        Wait 3000
        """,
    )
    assert done.got("mine") == done.accepted() == list(range(1, 41))
    assert done.got("hers") == sorted(done.got("hers"))


# X22


def test_x22_a_subscription_begins_where_its_filter_was_installed() -> None:
    """B1.1: half a second per hop, an event every 10 ms, nobody had asked before. A naive start loses about 100."""
    done = run(
        chain(3, ("p", "publisher", 0), ("u", "subscriber", 2))
        + "Link b0 b1 Delay 500\nLink b1 b2 Delay 500\n",
        """At 0 Publisher p Publish 600 Ontopic a Interval 10
        Wait 1000
        Subscriber u Subscribe a As mine Durable
        Wait 6000
        Drain 5000
        Wait 3000
        """,
    )
    got = done.got("mine")
    assert got == list(range(got[0], 601)), "from its beginning on everything"
    [subscribed] = done.lines("subscribed")
    owed = [line["n"] for line in done.lines("publish") if line["t"] > subscribed["t"]]
    assert got[0] <= owed[0]


# X24


#: The subscribers' broker starts again meanwhile, or it would serve what is gone from its memory, which is no harm.
EARLY_RELEASE = """Subscriber u Subscribe a As mine Durable
Subscriber v Subscribe a As hers Durable
{more}At 1000 Publisher p Publish 40 Ontopic a Interval 1000
At 5500 Subscriber u Disconnect
At 28000 Crash b1
At 28100 Restart b1
At 30000 Subscriber u Reconnect
Wait 42000
Drain 5000
Wait 3000
"""


def test_x24_what_is_older_than_retained_is_one_gap_for_who_was_away_and_none_for_others() -> None:
    done = run(
        chain(
            2, ("p", "publisher", 0), ("u", "subscriber", 1), ("v", "subscriber", 1), settings="Retain 10000"
        ),
        EARLY_RELEASE.format(more=""),
        retain_seconds=10,
    )
    [gap] = done.gaps("mine")
    assert gap["reason"] == "max_retain"
    assert 5 <= done.seconds(gap["after"]) < 6
    assert 19 <= done.seconds(gap["upto"]) <= 20.5
    missed = [line["n"] for line in done.lines("accepted") if gap["after"] < line["tick"] <= gap["upto"]]
    assert done.got("mine") == [n for n in range(1, 41) if n not in missed]
    assert done.got("hers") == list(range(1, 41))
    assert not done.gaps("hers")


def test_x24_nothing_is_released_that_another_subscribers_broker_has_not_had() -> None:
    """T_d = 8: a second broker with subscribers is cut off since 8 s, so nothing above may go [R1.14]."""
    done = run(
        chain(
            3,
            ("p", "publisher", 0),
            ("u", "subscriber", 1),
            ("v", "subscriber", 1),
            ("w", "subscriber", 2),
            settings="Retain 10000",
        ),
        EARLY_RELEASE.format(
            more="Subscriber w Subscribe a As theirs Durable\nAt 8900 Cut b1 b2\nAt 36000 Heal b1 b2\n"
        ),
        retain_seconds=10,
    )
    [gap] = done.gaps("mine")
    assert 5 <= done.seconds(gap["after"]) < 6
    assert 8 <= done.seconds(gap["upto"]) < 9
    assert done.got("mine") == [1, 2, 3, 4, 5, *range(9, 41)]
    assert done.got("hers") == done.got("theirs") == list(range(1, 41))
    assert not done.gaps("hers")
    assert not done.gaps("theirs")


# X36

SIX_SITES = """Guarantee durable
Ordering TOTAL
Site site0 Parent none
Site site1 Parent site0
Site site2 Parent site0
Site site3 Parent site2
Site site4 Parent site3
Site site5 Parent site3
Process b0 is broker On site0 URL tcp://localhost:0/b
Process b1 is broker On site1 URL tcp://localhost:0/b
Process b2 is broker On site2 URL tcp://localhost:0/b
Process b3 is broker On site3 URL tcp://localhost:0/b
Process b4 is broker On site4 URL tcp://localhost:0/b
Process b5 is broker On site5 URL tcp://localhost:0/b
Process PA is publisher On site5 URL tcp://localhost:0/p
Process PB is publisher On site1 URL tcp://localhost:0/p
Process S3 is subscriber On site3 URL tcp://localhost:0/s
Process S4 is subscriber On site4 URL tcp://localhost:0/s
Process S0 is subscriber On site0 URL tcp://localhost:0/s
"""


@pytest.mark.parametrize("durable", ["", " Durable"])
def test_x36_total_order_with_filters_and_a_sequencer_that_crashes(durable: str) -> None:
    """I26, B3.5, B3.6, B3.7 (FIFO too): 200 messages alternately on x and y, the sequencer is down for two seconds."""
    done = run(
        SIX_SITES,
        f"""Subscriber S3 Subscribe # As both Durable
        Subscriber S4 Subscribe x As xs Durable
        Subscriber S0 Subscribe y As ys{durable}
        Publisher PA Publish 50 Ontopic x Interval 20
        Publisher PB Publish 50 Ontopic y Interval 20
        Wait 10
        Publisher PA Publish 50 Ontopic y Interval 20
        Publisher PB Publish 50 Ontopic x Interval 20
        Wait 290
        Crash b0
        Wait 2000
        Restart b0
        Wait 3700
        Drain 5000
        Wait 3000
        """,
    )
    assert {line["pubend"] for line in done.lines("accepted")} == {"scenario@b0/0"}
    ticks = [line["tick"] for line in done.lines("accepted")]
    assert len(set(ticks)) == len(ticks) == 200, "each message has one number"
    both = [line["tick"] for line in done.lines("deliver", subscription="both")]
    assert both == sorted(ticks)
    assert len(done.lines("deliver", subscription="xs")) == 100
    if durable:
        assert len(done.lines("deliver", subscription="ys")) == 100
    began = min(line["t"] for line in done.lines("publish"))
    assert max(line["t"] for line in done.lines("deliver")) <= began + 6.0
