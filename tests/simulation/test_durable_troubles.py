"""Durable streams in one trouble after another, each by itself: what must come of it, exactly.

Events are numbered from 1; whatever else is asserted, all promises are judged in every run (``durable_runs``).
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from durable_runs import Run, chain, run
from holdfast.clock import MILLISECOND
from holdfast.scenarios.actor import BUFFER_ITEMS
from holdfast.simulator.durable_scenarios import Hazard
from holdfast.simulator.world import World
from holdfast.streams.knowledge import VERSIONS_MAX

#: A publisher at one end of three brokers, a subscriber at the other.
ROW = chain(3, ("p", "publisher", 0), ("u", "subscriber", 2))
END = "Wait 3000\nDrain 8000\nWait 3000\n"
MINE = "Subscriber u Subscribe a As mine Durable\n"
STEADY = "At 500 Publisher p Publish 200 Ontopic a Interval 10\n"  # two seconds
ALL = list(range(1, 201))


def steady(troubles: str, configuration: str = ROW, *, subscribe: str = MINE, **options: Any) -> Run:
    """Two seconds of events for a durable subscriber, with troubles in their midst."""
    return run(configuration, f"{subscribe}{STEADY}{troubles}Wait 6000\n{END}", **options)


def got_all(done: Run, *subscriptions: str) -> bool:
    assert done.accepted() == ALL
    for subscription in subscriptions or ("mine",):
        assert done.got(subscription) == ALL
        assert not done.gaps(subscription)
    return True


# Brokers that crash


@pytest.mark.parametrize("broker", ["b0", "b1", "b2"])
@pytest.mark.parametrize("down_ms", [1, 100, 2000])
def test_a_broker_crashes_wherever_it_is_and_every_event_comes_once(broker: str, down_ms: int) -> None:
    """R1.1, R1.2: the publisher's broker, one on the way, the subscriber's."""
    assert got_all(steady(f"At 1000 Crash {broker}\nAt {1000 + down_ms} Restart {broker}\n"))


@pytest.mark.parametrize("microseconds", range(0, 2400, 200))
def test_the_publishers_broker_dies_at_any_point_of_logging_and_no_event_has_two_ticks(
    microseconds: int,
) -> None:
    """B1.4: the publisher cannot know whether the event was logged, and sends it again [I18]."""
    at = 1000 + microseconds / 1000
    assert got_all(steady(f"At {at:.3f} Crash b0\nAt {at + 300:.3f} Restart b0\n"))


def test_all_brokers_crash_together() -> None:
    down = "".join(f"At 1000 Crash b{i}\nAt 1500 Restart b{i}\n" for i in range(3))
    assert got_all(steady(down))


def test_a_relay_that_missed_something_does_not_call_it_silence() -> None:
    """It is back, with an empty memory, before anybody has noticed; half of what passed it is lost with it [lo]."""
    crashes = "".join(f"At {at} Crash b1\nAt {at + 30} Restart b1\n" for at in range(700, 2200, 300))
    assert got_all(steady(crashes))


def test_a_broker_that_is_bypassed_is_no_loss() -> None:
    """δ = 1: the way to the pubend goes around it, and back through it when it is there again."""
    configuration = chain(4, ("p", "publisher", 0), ("u", "subscriber", 3), settings="Delta 1")
    done = steady("At 1000 Crash b1\nAt 4000 Restart b1\n", configuration)
    assert got_all(done)
    while_down = [line for line in done.lines("deliver") if 1.8 < line["t"] < 4.0]
    assert len(while_down) > 50, "delivery goes on meanwhile"


@pytest.mark.parametrize("order", ["b2 b1 b3", "b2 b3 b1", "b3 b2 b1"])
def test_whoever_was_confirmed_without_some_hears_of_the_rest_though_who_would_have_said_so_died(
    order: str,
) -> None:
    """It had told those beyond when it died, and the subscriber not yet; nobody between remembers (seed 3001062)."""
    restarts = "".join(f"Restart {each}\nWait 2000\n" for each in order.split())
    done = run(
        chain(5, ("p", "publisher", 4), ("u", "subscriber", 0), settings="Delta 0"),
        f"""Crash b4
        Wait 2000
        {MINE}Wait 2000
        Crash b1
        Wait 2000
        Restart b4
        Wait 2000
        Crash b2
        Crash b3
        Wait 2000
        {restarts}Wait 10000
        {END}""",
    )
    [subscribed] = done.lines("subscribed")
    assert [each["lead"] for each in subscribed["partial"]] == ["b3"]
    [upgraded] = done.lines("upgraded")
    assert upgraded["partial"] == []


# Links


def test_a_subscribers_broker_is_cut_off_for_long_and_nobody_there_has_a_gap() -> None:
    """R1.14: what it has not had is not released, however old it is."""
    configuration = chain(3, ("p", "publisher", 0), ("u", "subscriber", 2), settings="Retain 1000")
    assert got_all(steady("At 1000 Cut b1 b2\nAt 5000 Heal b1 b2\n", configuration, retain_seconds=1))


def test_links_lose_double_and_disorder_frames() -> None:
    bad = "At 600 Link b0 b1 Delay 10 Loss 0.05 Duplicate 0.05 Reorder 0.05\nAt 3000 Link b0 b1 Delay 10\n"
    assert got_all(steady(bad))


def test_a_frozen_pubend_goes_on_where_it_was() -> None:
    assert got_all(steady("At 1000 Freeze b0\nAt 3000 Unfreeze b0\n"))


# Subscribers that go


def test_a_subscriber_that_was_away_for_a_while_has_everything_in_order() -> None:
    done = steady("At 800 Subscriber u Disconnect\nAt 4000 Subscriber u Reconnect\n")
    assert got_all(done)
    assert not [line for line in done.lines("deliver") if 0.9 < line["t"] < 4.0]


@pytest.mark.parametrize("offset", [0, 3, 7, 10, 13])
def test_a_subscriber_that_crashes_over_and_over_goes_on_from_its_record(offset: int) -> None:
    crashes = "".join(
        f"At {at + offset} Crash u\nAt {at + offset + 40} Restart u\n" for at in range(600, 2600, 150)
    )
    assert got_all(steady(crashes))


@pytest.mark.parametrize("durable", [True, False])
def test_who_is_slow_costs_the_network_nothing(durable: bool) -> None:
    """Every event crosses a link once; some were told again for who filters again (seed 3127, tight)."""
    events = BUFFER_ITEMS + 500
    done = run(
        chain(2, ("p", "publisher", 0), ("u", "subscriber", 1), settings="LoggingLevel full"),
        f"""{MINE if durable else MINE.replace(" Durable", "")}Slow u 3
        Publisher p Publish {events} Ontopic a Interval 1
        Wait 6000
        {END}""",
    )
    assert done.got("mine") == list(range(1, events + 1))
    assert len(done.lines("forward", to="b1")) == events


def test_who_is_slow_gets_on_in_every_pubend_though_somebody_has_come_since() -> None:
    """What it waits for in one is not forgotten while its room is taken by another."""
    done = run(
        chain(
            2, *((name, "publisher", i) for i, name in enumerate("pq")), *((u, "subscriber", 1) for u in "uv")
        ),
        f"""{MINE.replace(" Durable", "")}Slow u 10
        Publisher p Publish 1 Ontopic a Interval 1
        Publisher q Publish 1 Ontopic a Interval 1
        Wait 1000
        Publisher p Publish 300 Ontopic a Interval 1
        Publisher q Publish 2500 Ontopic a Interval 8
        Wait 5000
        Subscriber v Subscribe zzz
        Wait 3000
        Status
        Wait 40000
        {END}""",
        buffer=16,
    )
    [at, *_] = [line["t"] for line in done.lines("status")]
    early = [line for line in done.lines("deliver", publisher="p") if line["t"] < at]
    assert len(early) == 301
    assert done.got("mine", "q") == list(range(1, 2502))


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("ahead_s", [50, 180])
def test_a_new_pubend_is_read_from_its_first_event_on_though_clocks_are_wrong(
    ahead_s: int, durable: bool
) -> None:
    done = run(
        chain(2, ("p", "publisher", 0), ("u", "subscriber", 1)),
        f"""Clock b1 Shift {ahead_s * 1000}
        Wait 1000
        {MINE if durable else MINE.replace(" Durable", "")}Wait 2000
        Publisher p Publish 50 Ontopic a Interval 1000
        Wait 55000
        {END}""",
    )
    assert done.got("mine") == list(range(1, 51))
    assert not done.gaps("mine")


def test_b1_2_who_is_slow_catches_up_though_very_many_have_subscribed_since() -> None:
    """Each of them is a version, and no more than ``VERSIONS_MAX`` are told apart: it was asked for again for ever."""
    newcomers = [f"v{i}" for i in range(VERSIONS_MAX + 6)]
    configuration = chain(
        2, ("p", "publisher", 0), ("u", "subscriber", 1), *((name, "subscriber", 1) for name in newcomers)
    )
    come = "".join(f"At {2500 + 150 * i} Subscriber {v} Subscribe {v}\n" for i, v in enumerate(newcomers))
    end = 2500 + 150 * len(newcomers)
    done = run(
        configuration,
        f"""Subscriber u Subscribe a As mine
        Slow u {end - 500}
        At 500 Publisher p Publish {BUFFER_ITEMS + 200} Ontopic a Interval 1
        At 2000 Publisher p Publish {end // 50} Ontopic z Interval 50
        {come}At {end} Slow u 0
        Wait {end + 1000}
        {END}""",
    )
    assert done.got("mine") == list(range(1, BUFFER_ITEMS + 201))


def test_a_subscriber_leaves_again_while_it_catches_up() -> None:
    comings = "".join(
        f"At {at} Subscriber u Reconnect\nAt {at + 35} Subscriber u Disconnect\n"
        for at in range(3000, 4000, 70)
    )
    assert got_all(steady(f"At 600 Subscriber u Disconnect\n{comings}At 4500 Subscriber u Reconnect\n"))


def test_who_is_slow_gets_everything_and_holds_up_nobody() -> None:
    """It has credit for a thousand; its broker keeps the rest for it (B1.14)."""
    configuration = chain(2, ("p", "publisher", 0), ("u", "subscriber", 1), ("v", "subscriber", 1))
    done = run(
        configuration,
        f"""{MINE}Subscriber v Subscribe a As hers Durable
        Slow u 3
        Publisher p Publish 1500 Ontopic a Interval 0.5
        Wait 2000
        {END}""",
    )
    assert done.got("mine") == done.got("hers") == list(range(1, 1501))
    last = {name: done.lines("deliver", subscription=name)[-1]["t"] for name in ("mine", "hers")}
    assert last["hers"] < 2 < 4 < last["mine"]


def test_a_subscription_that_is_not_kept_is_exact_while_it_is_connected() -> None:
    done = steady("At 1000 Crash b1\nAt 1100 Restart b1\n", subscribe="Subscriber u Subscribe a As mine\n")
    assert got_all(done)


# Subscribers that move


def test_a_subscriber_moves_to_another_broker_and_is_served_from_its_own_record() -> None:
    """R1.32: nobody there has filtered for it before."""
    assert got_all(steady("At 800 Subscriber u Disconnect\nAt 1500 Subscriber u Reconnect On s0\n"))


def test_the_broker_that_is_left_is_down_and_keeps_the_log_until_it_has_heard_of_it() -> None:
    """B1.9: release is handed over first; the old broker pins with its last report until it is told."""
    moved = "At 800 Crash b2\nAt 900 Subscriber u Reconnect On s1\nAt 5000 Restart b2\n"
    assert got_all(steady(moved))


def test_a_subscriber_moves_to_and_fro_faster_than_brokers_can_tell_each_other() -> None:
    moves = "".join(f"At {600 + 90 * i} Subscriber u Reconnect On s{i % 3}\n" for i in range(25))
    done = steady(moves)
    assert got_all(done)
    assert [line["kind"] for line in done.trace if line.get("nodes") == ["u"]] == [
        "disconnect",
        "reconnect",
    ] * 25


def test_a_subscriber_moves_while_its_new_broker_crashes() -> None:
    moved = (
        "At 800 Subscriber u Disconnect\nAt 1000 Subscriber u Reconnect On s1\n"
        "At 1020 Crash b1\nAt 1400 Restart b1\nAt 1600 Subscriber u Reconnect On s2\n"
    )
    assert got_all(steady(moved))


# Pubends


def test_a_pubend_that_came_while_a_subscriber_was_away_is_read_from_its_beginning() -> None:
    """B1.11: no gap, no loss; the subscriber's token does not know of it."""
    done = run(
        ROW,
        f"""{MINE}Subscriber u Disconnect
        Join Process q is publisher On s1 URL tcp://localhost:0/q
        Publisher q Publish 50 Ontopic a Interval 10
        Wait 2000
        Subscriber u Reconnect
        {END}""",
    )
    assert done.got("mine", "q") == list(range(1, 51))
    assert not done.gaps("mine")


@pytest.mark.parametrize("durable", [True, False])
def test_who_subscribes_where_a_pubend_cannot_be_heard_of_is_not_told_all_it_ever_had(durable: bool) -> None:
    """B1.11: it is confirmed in part, and what there was before is a gap; "now" is not the beginning of the log."""
    done = run(
        chain(3, ("p", "publisher", 0), ("v", "subscriber", 1), ("u", "subscriber", 2)),
        f"""Subscriber v Subscribe a As hers Durable
        Wait 1000
        Subscriber v Disconnect
        Publisher p Publish 20 Ontopic a Interval 10
        Wait 100000
        Cut b0 b1
        Crash b2
        Crash b1
        Wait 1000
        Restart b1
        Restart b2
        Wait 2000
        {MINE if durable else MINE.replace(" Durable", "")}Wait 5000
        Publisher p Publish 5 Ontopic a Interval 10
        Heal b0 b1
        Wait 5000
        Publisher p Publish 5 Ontopic a Interval 10
        Wait 3000
        Subscriber v Reconnect
        {END}""",
    )
    assert done.got("hers") == list(range(1, 31))
    assert done.got("mine") == list(range(21, 31))
    assert [gap["reason"] for gap in done.gaps("mine")] == ["could not be reached"]


def test_a_pubend_that_came_while_a_subscriber_was_away_is_read_at_another_broker_too() -> None:
    done = run(
        ROW,
        f"""{MINE}Wait 500
        Subscriber u Disconnect
        Publisher p Publish 50 Ontopic a Interval 10
        Wait 2000
        Subscriber u Reconnect On s1
        {END}""",
    )
    assert done.got("mine") == list(range(1, 51))


def test_a_pubend_that_came_meanwhile_is_read_at_its_broker_though_that_reaches_nobody() -> None:
    """Somebody reads there already: everything is in place, and confirmed, at once."""
    done = run(
        chain(2, ("p", "publisher", 0), ("u", "subscriber", 1), ("v", "subscriber", 0)),
        f"""{MINE}Subscriber v Subscribe a As hers
        Wait 500
        Subscriber u Disconnect
        Publisher p Publish 50 Ontopic a Interval 10
        Wait 1000
        Cut b0 b1
        Wait 1000
        Subscriber u Reconnect On s0
        Wait 5000
        Heal b0 b1
        {END}""",
    )
    assert done.got("mine") == list(range(1, 51))
    assert not done.gaps("mine")


@pytest.mark.parametrize("pubends", [1, 3])
def test_publishers_of_a_broker_share_its_pubends_and_each_stays_in_order(pubends: int) -> None:
    publishers = [(f"p{i}", "publisher", 0) for i in range(5)]
    configuration = chain(2, *publishers, ("u", "subscriber", 1), settings=f"Pubends {pubends}")
    lines = "".join(f"Publisher p{i} Publish 40 Ontopic a Interval 5\n" for i in range(5))
    done = run(configuration, f"{MINE}{lines}At 700 Crash b0\nAt 900 Restart b0\nWait 1000\n{END}")
    for i in range(5):
        assert done.got("mine", f"p{i}") == list(range(1, 41))
        assert len({line["pubend"] for line in done.lines("accepted", publisher=f"p{i}")}) == 1
    assert min(pubends, 2) <= len({line["pubend"] for line in done.lines("accepted")}) <= pubends


def test_a_broker_that_joins_brings_pubends_of_its_own_and_serves_who_moves_there() -> None:
    done = run(
        ROW + "Site far Parent s2\n",
        f"""{MINE}Publisher p Publish 100 Ontopic a Interval 20
        Wait 500
        Join Process b9 is broker On far URL tcp://localhost:0/b
        Join Process q is publisher On far URL tcp://localhost:0/q
        Publisher q Publish 50 Ontopic a Interval 20
        Subscriber u Reconnect On far
        Wait 2000
        {END}""",
    )
    assert done.got("mine") == list(range(1, 101))
    assert done.got("mine", "q") == list(range(1, 51))
    assert {line["pubend"] for line in done.lines("accepted", publisher="q")} == {"scenario@b9/0"}


def test_who_has_left_may_come_back_and_goes_on_from_its_record() -> None:
    assert got_all(steady("At 900 Leave u\nAt 3000 Restart u\n"))


def test_what_many_readers_want_is_logged_once() -> None:
    """I18, R1.3: twenty durable subscribers on four brokers, and as many records as events."""
    readers = [(f"u{i}", "subscriber", 1 + i % 4) for i in range(20)]
    asked = "".join(f"Subscriber u{i} Subscribe a As w{i} Durable\n" for i in range(20))
    configuration = chain(5, ("p", "publisher", 0), *readers)
    done = run(configuration, f"{asked}Publisher p Publish 30 Ontopic a Interval 10\nWait 500\n{END}")
    assert done.oracle.events == 30
    assert all(done.got(f"w{i}") == list(range(1, 31)) for i in range(20))


# Clocks


@pytest.mark.parametrize("shift_ms", [-60_000, -50, 60_000])
@pytest.mark.parametrize("restarts", [True, False])
def test_a_clock_that_is_set_back_or_forward_does_not_disturb_the_order(
    shift_ms: int, restarts: bool
) -> None:
    """B1.3: no tick is given twice, and none that was said to be past [I19]."""
    crash = "At 1010 Crash b0\nAt 1200 Restart b0\n" if restarts else ""
    done = steady(f"At 1000 Clock b0 Shift {shift_ms}\n{crash}")
    assert got_all(done)
    ticks = [line["tick"] for line in done.lines("deliver")]
    assert ticks == sorted(set(ticks))


def test_pubends_whose_clocks_are_apart_are_read_each_by_itself() -> None:
    """B1.12: what the ticks of one say of the other is nothing; who was away catches up in both, through a crash."""
    configuration = chain(3, ("p", "publisher", 0), ("q", "publisher", 1), ("u", "subscriber", 2))
    done = run(
        configuration,
        f"""Clock b0 Shift -40000
        {MINE}At 500 Publisher p Publish 100 Ontopic a Interval 20
        At 505 Publisher q Publish 100 Ontopic a Interval 20
        At 1000 Subscriber u Disconnect
        At 1500 Crash b2
        At 1700 Restart b2
        At 3500 Subscriber u Reconnect
        Wait 6000
        {END}""",
    )
    for publisher in ("p", "q"):
        assert done.got("mine", publisher) == list(range(1, 101))
    assert not done.gaps("mine")
    places = {line["pubend"]: line["tick"] for line in done.lines("deliver")}
    assert places["scenario@b1/0"] - places["scenario@b0/0"] > 30_000_000


# Disks


def test_a_full_disk_refuses_serves_what_it_has_and_comes_to_itself() -> None:
    hazard = Hazard("b0", "full", 1000, 3000)
    done = run(
        ROW,
        f"""{MINE}Subscriber u Disconnect
        At 500 Publisher p Publish 20 Ontopic a Interval 10
        At 1500 Publisher p Publish 20 Ontopic a Interval 10
        At 2000 Subscriber u Reconnect
        At 5000 Publisher p Publish 20 Ontopic a Interval 10
        Wait 6000
        {END}""",
        beside=hazard.arrange,
        is_judged=lambda kind: kind != "unaccepted",
    )
    assert done.accepted() == [*range(1, 21), *range(41, 61)], "what was refused was certainly not accepted"
    assert done.got("mine") == done.accepted()
    caught_up = [line["t"] for line in done.lines("deliver") if line["n"] <= 20]
    assert max(caught_up) < 3, "reading goes on while the disk is full"


def test_a_subscribers_broker_with_a_full_disk_loses_nothing() -> None:
    """The filtering log cannot be written, so what was delivered does not count as such [R1.19]."""
    hazard = Hazard("b2", "full", 1000, 3000)
    done = steady("At 1500 Subscriber u Disconnect\nAt 3500 Subscriber u Reconnect\n", beside=hazard.arrange)
    assert got_all(done)


def test_after_a_sync_that_failed_nothing_is_acknowledged_until_the_broker_has_started_again() -> None:
    hazard = Hazard("b0", "failing", 1000, 1100)
    done = steady(
        "At 3000 Crash b0\nAt 3200 Restart b0\n",
        beside=hazard.arrange,
        is_judged=lambda kind: kind != "unaccepted",
    )
    assert not [line for line in done.lines("accepted") if 1.1 < line["t"] < 3.2]
    assert done.got("mine")[: len(done.accepted())]
    assert set(done.accepted()) <= set(done.got("mine"))


def test_a_restored_backup_is_another_incarnation_and_what_it_lost_is_announced() -> None:
    """A log that is older than the tokens it handed out never reuses their ticks in silence [design.md §4]."""
    saved: dict[str, Any] = {}

    def save(world: World) -> None:
        node = world.nodes["b0"]
        assert node.store is not None
        saved["files"] = deepcopy(node.disk._files)
        saved["tables"] = deepcopy(node.store.tables._tables)

    def restore(world: World) -> None:
        node = world.nodes["b0"]
        assert node.store is not None
        node.disk._files = {**saved["files"], "incarnation": node.disk._files["incarnation"]}
        node.store.tables._tables = saved["tables"]

    def beside(world: World) -> None:
        world.clock.at(world.now + 1000 * MILLISECOND, save, world)
        world.clock.at(world.now + 6000 * MILLISECOND, restore, world)

    done = run(
        ROW,
        f"""{MINE}At 500 Publisher p Publish 40 Ontopic a Interval 100
        At 5500 Crash b0
        At 6500 Restart b0
        At 8000 Publisher p Publish 20 Ontopic a Interval 10
        Wait 9000
        {END}""",
        beside=beside,
        is_judged=lambda kind: kind not in ("lost", "I17"),
    )
    assert done.got("mine") == list(range(1, 61)), "what it had got it has; what is new comes"
    ticks = [line["tick"] for line in done.lines("accepted")]
    assert ticks == sorted(set(ticks))


# Release


def test_when_everybody_has_acknowledged_the_log_forgets_and_new_subscribers_begin_behind_it() -> None:
    done = run(
        ROW,
        f"""{MINE}Publisher p Publish 50 Ontopic a Interval 10
        Wait 20000
        Join Process v is subscriber On s1 URL tcp://localhost:0/v
        Subscriber v Subscribe a As hers Durable
        Publisher p Publish 50 Ontopic a Interval 10
        Wait 1000
        {END}""",
    )
    assert done.got("mine") == list(range(1, 101))
    assert done.got("hers") == list(range(51, 101))
    assert done.oracle.forgotten("scenario@b0/0") >= 50


def test_who_is_away_keeps_the_log_and_who_has_unsubscribed_does_not() -> None:
    """I17 from both sides."""
    configuration = chain(2, ("p", "publisher", 0), ("u", "subscriber", 1), ("v", "subscriber", 1))
    away = f"""{MINE}Subscriber v Subscribe a As hers Durable
    Subscriber u Disconnect
    Publisher p Publish 50 Ontopic a Interval 10
    Wait 20000
    """
    kept = run(configuration, f"{away}{END}")
    assert kept.oracle.forgotten("scenario@b0/0") == 0
    ended = run(
        configuration, f"{away}Subscriber u Reconnect\nSubscriber u Unsubscribe mine\nWait 15000\n{END}"
    )
    assert ended.oracle.forgotten("scenario@b0/0") == 50


# In bytes


def test_it_is_the_same_when_every_message_travels_as_bytes() -> None:
    troubles = "At 900 Crash b0\nAt 1300 Restart b0\nAt 1500 Subscriber u Reconnect On s1\n"
    spoken, written = (steady(troubles, wire=wire) for wire in (False, True))
    assert [(line["t"], line["tick"]) for line in spoken.lines("deliver")] == [
        (line["t"], line["tick"]) for line in written.lines("deliver")
    ]


@pytest.mark.parametrize(
    ("fault", "mended"),
    [
        ("Crash b2", "Restart b2"),
        ("Cut b1 b2", "Heal b1 b2"),
        ("Cut b0 b1", "Heal b0 b1"),
        ("Crash b1", "Restart b1"),
    ],
)
def test_what_came_last_before_a_pubend_was_at_rest_is_had_through_a_relay_that_has_missed_it(
    fault: str, mended: str
) -> None:
    """Nothing more is told of the pubend: the relay has to say that there was more than it knows."""
    done = run(
        chain(3, ("p", "publisher", 0), ("u", "subscriber", 2)),
        f"""Subscriber u Subscribe a As mine Durable
        Wait 1000
        Publisher p Publish 1 Ontopic a Interval 10
        Wait 1000
        {fault}
        Wait 5000
        Publisher p Publish 3 Ontopic a Interval 10
        Wait 30000
        {mended}
        Wait 10000
        """,
    )
    assert done.got("mine") == done.accepted() == [1, 2, 3, 4]
