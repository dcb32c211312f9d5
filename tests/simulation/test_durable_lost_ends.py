"""What a crash may take of a log, and what a damaged disk takes: the one in silence, the other announced.

Issue 5 §1; I16, I17, I20. A broker loses its power, and while it is down a bit changes in the last commit to its log,
which looks like a write that was torn. All promises are judged in every run, but that nothing is lost.
"""

from __future__ import annotations

import pytest

from durable_runs import Run, chain, run
from holdfast.broker.durable.own import OwnPubend
from holdfast.clock import MILLISECOND
from holdfast.messages.ticks import Tick
from holdfast.simulator.durable_scenarios import Hazard
from holdfast.simulator.world import World
from holdfast.storage.tables import Change

PAIR = chain(2, ("p", "publisher", 0), ("u", "subscriber", 1))
ABSENT = "Subscriber u Subscribe a As mine Durable\nSubscriber u Disconnect\n"
EVENTS = "At 500 Publisher p Publish 50 Ontopic a Interval 10\n"  # the last one comes at 990
BACK = """At 6000 Subscriber u Reconnect
At 7000 Publisher p Publish 10 Ontopic a Interval 10
Wait 9000
Drain 8000
Wait 3000
"""


def flip_the_last_bit(world: World) -> None:
    """Of the last commit to the log of b0."""
    disk = world.nodes["b0"].disk
    name = max(each for each in disk.names() if each.startswith("events-") and each.endswith(".segment"))
    whole = disk.read(name)
    assert whole is not None
    written = whole.rstrip(b"\0")  # behind it is room for more
    disk.replace(name, written[:-1] + bytes([written[-1] ^ 1]) + whole[len(written) :])


def crashed(*, down_ms: int, is_damaged: bool) -> Run:
    """Both brokers go down, so that nobody has the events in memory, and come back with what is on their disks."""

    def beside(world: World) -> None:
        if is_damaged:
            world.clock.at(world.now + (down_ms + 50) * MILLISECOND, flip_the_last_bit, world)

    crashes = "".join(
        f"At {down_ms} Crash {each}\nAt {down_ms + 100} Restart {each}\n" for each in ("b0", "b1")
    )
    is_judged = (lambda kind: kind not in ("lost", "I17")) if is_damaged else (lambda kind: True)
    return run(PAIR, ABSENT + EVENTS + crashes + BACK, beside=beside, is_judged=is_judged)


@pytest.mark.parametrize("down_ms", [2200, 3000, 4500])
def test_a_commit_that_is_damaged_after_a_second_of_quiet_is_announced_as_lost(down_ms: int) -> None:
    done = crashed(down_ms=down_ms, is_damaged=True)
    assert done.got("mine") == [*range(1, 50), *range(51, 61)]
    [last] = [line["tick"] for line in done.lines("accepted") if line["n"] == 50]
    [gap] = done.gaps("mine")
    assert gap["reason"] == "damaged"
    assert gap["after"] < last <= gap["upto"]


@pytest.mark.parametrize("down_ms", [700, 985, 991, 992, 1000, 2200])
def test_a_crash_by_itself_loses_nothing_and_announces_nothing(down_ms: int) -> None:
    done = crashed(down_ms=down_ms, is_damaged=False)
    assert done.got("mine") == done.accepted() == [*range(1, 61)]
    assert not done.gaps("mine")


def hasty(self: OwnPubend, now: Tick, vouch_every: Tick | None = None) -> Change | None:
    """Where the log ends is said of what is on its way to the disk, too."""
    self.core.stable = self.core._last
    return sound_lease(self, now, vouch_every)


sound_lease = OwnPubend.next_lease


@pytest.mark.parametrize("is_sound", [True, False])
def test_the_end_of_what_is_not_on_disk_must_not_be_saved(
    is_sound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whatever a failing disk did not take would be announced as lost, though it was never accepted."""
    if not is_sound:
        monkeypatch.setattr(OwnPubend, "next_lease", hasty)
    done = run(
        PAIR,
        f"{ABSENT}{EVENTS}At 3000 Crash b0\nAt 3100 Restart b0\n{BACK}",
        beside=Hazard("b0", "failing", 700, 3000).arrange,
        is_judged=lambda kind: is_sound and kind != "unaccepted",
    )
    assert bool(done.gaps("mine")) == (not is_sound)
