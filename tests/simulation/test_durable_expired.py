"""Events that expire (R1.33) in whole networks: who was away has one gap and then the rest, whoever crashes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from durable_runs import Run, chain, run
from holdfast.broker.broker import Broker
from holdfast.broker.settings import Settings
from holdfast.clock import SECOND
from holdfast.simulator.world import EPOCH_NS

#: By the wall clock: while the script runs, and long after it.
SOON = EPOCH_NS // SECOND + 6
LATE = SOON + 1_000

#: The subscribers' broker starts again, or it would serve what is gone from its memory, which is no harm.
SCRIPT = f"""Subscriber u Subscribe a As mine Durable
Subscriber v Subscribe a As hers Durable
{{more}}At 500 Subscriber u Disconnect
At 1000 Publisher p Publish 10 Ontopic a Interval 50 With until={SOON}
At 2000 Publisher p Publish 10 Ontopic a Interval 50 With until={LATE}
At 3000 Publisher p Publish 10 Ontopic a Interval 50 With until={SOON}
At 15000 Crash b1
At 15100 Restart b1
At 17000 Subscriber u Reconnect
Wait 20000
Drain 5000
Wait 3000
"""


class ExpiringBroker(Broker):
    """One whose stream has events that expire; a scenario has no word for that."""

    def __init__(self, settings: Settings, **more: Any) -> None:
        streams = tuple(replace(stream, expires="until") for stream in settings.streams)
        super().__init__(replace(settings, streams=streams), **more)


def played(*happenings: str, make_broker: type[Broker] = ExpiringBroker) -> Run:
    more = "".join(f"{line}\n" for line in happenings)
    network = chain(2, ("p", "publisher", 0), ("u", "subscriber", 1), ("v", "subscriber", 1))
    return run(network, SCRIPT.format(more=more), retain_seconds=0, make_broker=make_broker)


#: While events are logged, before they expire, between that and their release, and after it.
CRASHES = (*range(1_003, 1_500, 83), *range(5_000, 6_500, 125))


def test_who_was_away_has_a_gap_and_then_the_events_behind_and_who_was_there_has_none() -> None:
    done = played()
    [gap] = done.gaps("mine")
    assert gap["reason"] == "expired"
    missed = [line["n"] for line in done.lines("accepted") if gap["after"] < line["tick"] <= gap["upto"]]
    assert missed == list(range(1, 11))
    assert done.got("mine") == list(range(11, 31)), "also those that have expired, behind what has not"
    assert (done.gaps("hers"), done.got("hers")) == ([], list(range(1, 31)))


def test_without_the_setting_nothing_expires() -> None:
    done = played(make_broker=Broker)
    assert (done.gaps("mine"), done.got("mine")) == ([], list(range(1, 31)))


@pytest.mark.parametrize("at", CRASHES)
def test_a_crash_of_the_pubends_broker_changes_nothing(at: int) -> None:
    done = played(f"At {at} Crash b0", f"At {at + 2_000} Restart b0")
    [gap] = done.gaps("mine")
    assert gap["reason"] == "expired"
    late = [line["tick"] for line in done.lines("accepted") if 11 <= line["n"] <= 20]
    assert gap["upto"] < min(late), "nothing went too early"
    assert done.got("mine") == list(range(11, 31))
    assert (done.gaps("hers"), done.got("hers")) == ([], list(range(1, 31)))


def test_nothing_expires_that_a_broker_with_subscribers_has_not_had() -> None:
    """R1.14: it is cut off before the first event; afterwards all who are there have everything."""
    done = played("At 700 Cut b0 b1", "At 9000 Heal b0 b1")
    assert (done.gaps("hers"), done.got("hers")) == ([], list(range(1, 31)))
    assert [gap["reason"] for gap in done.gaps("mine")] == ["expired"]
