"""A durable subscriber whose token is older than the log is fed from the lake behind it (issue 6, part 5).

All promises are judged in each run, and without patience: where a log has a lake, nobody may ever have a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from durable_runs import Run, chain, run
from holdfast.clock import MILLISECOND, Instant
from holdfast.overlay.transport import Log
from holdfast.scenarios.roles import STREAM
from holdfast.simulator.connection import Host
from holdfast.simulator.durable_swarm import run_durable, run_durable_swarm
from holdfast.simulator.lake import SimulatedLake
from holdfast.simulator.oracle.durable import DurableOracle
from holdfast.simulator.world import World
from holdfast.streams.pubend_names import pubend_name
from holdfast.streams.store_lake import LakePage
from holdfast.streams.storing import LakeRead, ReadEvents, ReadLake
from swarm_time import for_seconds

SECONDS = 4.0
#: So many run, however long that takes.
RUNS_MIN = 3

ALL = list(range(1, 41))

#: Forty events, one a second; what is older than two seconds goes. ``u`` is away for most of them.
AWAY = """Subscriber u Subscribe a As mine Durable
Subscriber v Subscribe a As hers Durable
At 1000 Publisher p Publish 40 Ontopic a Interval 1000
At 5500 Subscriber u Disconnect
{more}At 30000 Subscriber u Reconnect{where}
Wait 42000
Drain 5000
Wait 3000
"""


class Watching(DurableOracle):
    """Also keeps what was read, and what brokers had to say of it."""

    def __init__(self) -> None:
        super().__init__()
        self.lake_reads: list[ReadLake] = []
        self.log_reads: list[ReadEvents] = []
        self.answers: list[LakeRead] = []
        self.logged: list[Log] = []

    def step(self, now: Instant, host: Host, stimulus: Any, effects: Sequence[Any]) -> None:
        super().step(now, host, stimulus, effects)
        self.lake_reads += [each for each in effects if isinstance(each, ReadLake)]
        self.log_reads += [each for each in effects if isinstance(each, ReadEvents)]
        self.logged += [each for each in effects if isinstance(each, Log)]
        if isinstance(stimulus, LakeRead):
            self.answers.append(stimulus)

    def said(self) -> list[str]:
        """What brokers had to say of the lake."""
        return [each.text for each in self.logged if "lake" in each.text]


def lake_of(world: World, broker: str) -> SimulatedLake:
    store = world.nodes[broker].store
    assert store is not None
    assert store.lake is not None
    return store.lake


def at(ms: int, deed: Callable[[World], None]) -> Callable[[World], None]:
    """Have something done to the world then."""
    return lambda world: world.clock.at(world.now + ms * MILLISECOND, deed, world)


def fed(
    more: str = "", where: str = "", brokers: int = 2, lake: bool = True, **options: Any
) -> tuple[Run, Watching]:
    """``u`` comes back; the brokers are started again before, or what is gone from the disk is in memory still."""
    again = "".join(f"At 28000 Crash b{i}\nAt 28100 Restart b{i}\n" for i in range(brokers))
    clients = ("p", "publisher", 0), ("u", "subscriber", brokers - 1), ("v", "subscriber", brokers - 1)
    watching = Watching()
    done = run(
        chain(brokers, *clients, settings="Retain 2000"),
        AWAY.format(more=again + more, where=where),
        oracle=watching,
        lake=lake,
        **options,
    )
    return done, watching


def early(kind: str) -> bool:
    """I17 is about logs alone, and this one gives up early."""
    return kind != "I17"


@pytest.mark.parametrize("brokers", [1, 2, 3])
@pytest.mark.parametrize("wire", [False, True])
def test_who_was_away_for_longer_than_the_log_is_fed_and_joins(brokers: int, wire: bool) -> None:
    done, watching = fed(brokers=brokers, wire=wire, is_judged=early)
    assert done.got("mine") == done.got("hers") == ALL
    assert not done.lines("gap")
    assert watching.lake_reads
    found = [tick for answer in watching.answers for tick in answer.ticks]
    assert len(found) == len(set(found)), "nothing is read twice"
    assert not watching.said()


def test_without_a_lake_it_is_a_gap_as_ever() -> None:
    done, watching = fed(lake=False, retain_seconds=2)
    [gap] = done.gaps("mine")
    assert gap["reason"] == "max_retain"
    assert not watching.lake_reads


def test_a_filter_is_asked_of_what_comes_from_the_lake() -> None:
    clients = ("p", "publisher", 0), ("u", "subscriber", 1), ("v", "subscriber", 1)
    done = run(
        chain(2, *clients, settings="Retain 2000"),
        """Subscriber v Subscribe a As hers Durable
        At 100 Subscriber u Subscribe a WHERE qty > 4 As mine Durable
        At 1000 Publisher p Publish 100 Ontopic a Interval 100 With qty=randint(1,9)
        At 3000 Subscriber u Disconnect
        At 14000 Crash b0
        At 14000 Crash b1
        At 14100 Restart b0
        At 14100 Restart b1
        At 16000 Subscriber u Reconnect
        Wait 20000
        Drain 5000
        Wait 3000
        """,
        lake=True,
        is_judged=early,
    )
    large = [line["n"] for line in done.lines("publish") if line["attributes"]["qty"] > 4]
    assert done.got("mine") == large
    assert not done.lines("gap")


def test_it_is_fed_at_another_broker_too() -> None:
    """R1.32: there is no filtering log of it; all that comes from the lake is filtered there."""
    done, watching = fed(where=" On s0", is_judged=early)
    assert done.got("mine") == ALL
    assert not done.lines("gap")
    assert watching.lake_reads


@pytest.mark.parametrize("ms", [30_003, 30_010, 30_015, 30_022, 30_040])
@pytest.mark.parametrize("broker", ["b0", "b1"])
def test_a_broker_that_dies_while_it_feeds_goes_on(broker: str, ms: int) -> None:
    done, watching = fed(f"At {ms} Crash {broker}\nAt 31000 Restart {broker}\n", is_judged=early)
    assert done.got("mine") == ALL
    assert not done.lines("gap")
    assert watching.lake_reads


def test_a_lake_out_of_reach_is_waited_for_and_said_once() -> None:
    """No answer is no loss; and the log goes on being read meanwhile."""

    def be_away(world: World) -> None:
        lake_of(world, "b0").is_away = True

    def be_back(world: World) -> None:
        lake_of(world, "b0").is_away = False

    def beside(world: World) -> None:
        at(29_000, be_away)(world)
        at(36_000, be_back)(world)

    done, watching = fed(beside=beside, is_judged=early)
    assert done.got("mine") == ALL
    assert not done.lines("gap")
    late = [line["t"] for line in done.lines("deliver", subscription="mine") if line["n"] == 6]
    assert late[0] > 36
    assert watching.said() == ["the lake cannot be read", "the lake can be read again"]
    assert 2 <= sum(bool(answer.problem) for answer in watching.answers) < 10, "not over and over"


def test_what_the_lake_lacks_is_a_gap_and_the_rest_is_served() -> None:
    """The reason is that for which the log gave it up."""
    lacking: list[int] = []

    def lose(world: World) -> None:
        lake = lake_of(world, "b0")
        page = lake.page(pubend_name(STREAM, "b0", 0), 0, 1 << 60, 15)
        lacking.extend(page.ticks[9:12])
        lake.absent.add(lacking[0] - 1, lacking[-1])

    clients = ("p", "publisher", 0), ("u", "subscriber", 1), ("v", "subscriber", 1)
    again = "".join(f"At 28000 Crash b{i}\nAt 28100 Restart b{i}\n" for i in range(2))
    done = run(
        chain(2, *clients, settings="Retain 2000"),
        AWAY.format(more=again, where=""),
        lake=True,
        beside=at(29_000, lose),
        retain_seconds=2,
    )
    gaps = done.gaps("mine")
    assert [gap["upto"] for gap in gaps] == lacking, "only its own matches are asked for, one by one"
    assert {gap["reason"] for gap in gaps} == {"max_retain"}
    assert done.got("mine") == [*ALL[:9], *ALL[12:]]


def test_what_everybody_had_acknowledged_is_in_the_lake_for_an_older_token() -> None:
    """R1.9 would be a gap: the filtering log was chopped, and what it knew is asked of the lake and filtered again."""
    forgets: dict[str, bytes] = {}

    def remember(world: World) -> None:
        disk = world.nodes["u"].disk
        [name] = [name for name in disk.names() if "mine" in name]
        forgets[name] = disk.read(name) or b""

    def forget(world: World) -> None:
        for name, token in forgets.items():
            world.nodes["u"].disk.replace(name, token)

    def beside(world: World) -> None:
        at(6_500, remember)(world)
        at(30_500, forget)(world)

    clients = ("p", "publisher", 0), ("u", "subscriber", 1), ("v", "subscriber", 1)
    watching = Watching()
    done = run(
        chain(2, *clients),
        """Subscriber u Subscribe a WHERE qty > 4 As mine Durable
        Subscriber v Subscribe a As hers Durable
        At 1000 Publisher p Publish 200 Ontopic a Interval 100 With qty=randint(1,9)
        At 30000 Crash u
        At 30000 Crash b0
        At 30000 Crash b1
        At 30100 Restart b0
        At 30100 Restart b1
        At 31000 Restart u
        At 33000 Publisher p Publish 20 Ontopic a Interval 100 With qty=randint(1,9)
        Wait 42000
        Drain 5000
        Wait 3000
        """,
        lake=True,
        beside=beside,
        oracle=watching,
        is_judged=lambda kind: kind not in ("duplicate", "misorder", "unexplained"),  # it has asked for that
    )
    large = [line["n"] for line in done.lines("publish") if line["attributes"]["qty"] > 4]
    got = done.got("mine")
    again = next(i for i in range(1, len(got)) if got[i] <= got[i - 1])
    assert got[:again] == [n for n in large if n <= 200]
    assert got[again] < 70
    assert got[again:] == [n for n in large if n >= got[again]]
    assert not done.lines("gap")
    assert watching.lake_reads


# Drawn


@pytest.mark.parametrize("faults", [False, True])
def test_no_seed_has_a_gap_where_there_is_a_lake(faults: bool) -> None:
    report = run_durable_swarm(
        range(1_000_000), faults=faults, lake=True, is_time_up=for_seconds(SECONDS, RUNS_MIN)
    )
    assert not report.failures, "\n".join(map(str, report.failures))
    assert report.tally.runs >= RUNS_MIN


def leaves_out(page: LakePage) -> LakePage:
    """An event is missing, and nobody says so."""
    return replace(page, ticks=page.ticks[1:], publications=page.publications[1:])


def has_nothing(page: LakePage) -> LakePage:
    return LakePage(page.covered, absent=[(page.covered - 1, page.covered)])


@pytest.mark.parametrize("break_page", [leaves_out, has_nothing])
def test_a_broken_lake_is_caught(
    break_page: Callable[[LakePage], LakePage], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SimulatedLake.page
    monkeypatch.setattr(SimulatedLake, "page", lambda self, *asked: break_page(whole(self, *asked)))
    failing = next(
        outcome for seed in range(40) if (outcome := run_durable(seed, faults=False, lake=True)).violations
    )
    assert failing.command == f"python -m holdfast.simulator.durable_swarm --seed {failing.seed} --lake"
