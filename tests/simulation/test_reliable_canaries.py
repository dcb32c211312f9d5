"""Every law of a reliable network catches the node that breaks it; a sound one is not accused.

Each fault is planted in the real code, in all nodes, and one schedule is played that a sound network survives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from holdfast.messages.overlay import Trail
from holdfast.node import plane as plane_module
from holdfast.node.graves import Graves
from holdfast.node.holdings import Holdings
from holdfast.node.introductions import Introductions
from holdfast.node.marks import Marks
from holdfast.node.node import Node
from holdfast.node.partitions import Partitions
from holdfast.node.plane import Plane
from holdfast.node.reach import Reach
from holdfast.node.spread import Spread
from holdfast.node.trails import extended
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.checkers.delay import delay
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.simulator.liveness import stuck
from holdfast.simulator.oracle.oracle import Oracle
from holdfast.simulator.run import simulate

Plant = Callable[[pytest.MonkeyPatch], None]

#: p, v and w on the first of six brokers in a row, q in the middle, r on the last but one, u on the last.
CHAIN = (
    "Guarantee reliable\nDelta 1\nDackEvery 200\nLoggingLevel full\n"
    + "".join(
        f"Site s{i} Parent {f's{i - 1}' if i else 'none'}\nProcess b{i} is broker On s{i} URL tcp://localhost:0/b\n"
        for i in range(6)
    )
    + "".join(
        f"Process {name} is {kind} On {site} URL tcp://localhost:0/c\n"
        for name, kind, site in (
            ("p", "publisher", "s0"),
            ("v", "subscriber", "s0"),
            ("q", "publisher", "s2"),
            ("u", "subscriber", "s5"),
            ("r", "publisher", "s4"),
            ("w", "subscriber", "s0"),
        )
    )
)

SUBSCRIBED = "Subscriber u Subscribe orders As mine\nSubscriber v Subscribe # As all\nWait 300\n"
TRAFFIC = (
    "Publisher p Publish 30 Ontopic orders Interval 50\nPublisher q Publish 15 Ontopic orders Interval 100\n"
)
END = (
    "Wait 4000\nPublisher p Publish 3 Ontopic orders Interval 10\nPublisher p Publish 3 Ontopic alarms Interval 10\n"
    "Drain 10000\nWait 1500\nStatus\n"
)

#: One broker freezes, another restarts, the subscriber is cut off; one at a time.
FREEZE = SUBSCRIBED + TRAFFIC + "Wait 400\nFreeze b2\nWait 3000\nUnfreeze b2\n" + END
RESTART = SUBSCRIBED + TRAFFIC + "Wait 400\nCrash b2\nWait 1000\nRestart b2\nWait 100\n" + TRAFFIC + END
CUT_OFF = SUBSCRIBED + TRAFFIC + "Isolate u\nWait 1500\nHeal u\n" + END
#: Two on the way are down, which is beyond the guarantee: what p sends may not pass, and q must not overtake it.
TWO_DOWN = (
    SUBSCRIBED
    + "Crash b1\nCrash b3\nWait 900\nPublisher p Publish 2 Ontopic orders Interval 10\nWait 300\n"
    + "Publisher q Publish 2 Ontopic orders Interval 10\nWait 500\nRestart b3\nWait 1000\nRestart b1\n"
    + END
)
#: A subscription that ends while a broker is cut off [X12], and one that begins so [X11].
WITHDRAWN = SUBSCRIBED + "Isolate b2\nWait 900\nSubscriber v Unsubscribe all\nWait 300\nHeal b2\n" + END
PARTIAL = (
    "Subscriber w Subscribe # As early\nWait 300\nCrash b2\nCrash b3\nWait 1500\nSubscriber v Subscribe # As all\n"
    "Link b4 b5 Delay 300\n"  # so that it takes a while until everybody beyond knows
    f"Publisher r Publish 60 Ontopic t Interval 100\nWait 500\nRestart b2\nWait 2000\nRestart b3\n{END}"
)


def kinds_found(script: str) -> set[str]:
    """What is said of one run."""
    configuration = parse_configuration(CHAIN, "configuration")
    oracle = Oracle(configuration)
    trace = simulate(configuration, parse_script(script, "script", configuration), transcript=oracle).trace
    found = [
        *check_all(trace, grace_seconds=1.5),
        *stuck(trace),
        *delay(trace, within_seconds=1.5),
        *oracle.broken,
    ]
    return {violation.kind for violation in found}


@pytest.mark.parametrize("script", [FREEZE, RESTART, CUT_OFF, WITHDRAWN])
def test_a_sound_network_is_not_accused(script: str) -> None:
    assert kinds_found(script) == set()


@pytest.mark.parametrize("script", [TWO_DOWN, PARTIAL])
def test_beyond_delta_a_sound_network_is_only_late(script: str) -> None:
    assert kinds_found(script) <= {"delayed"}


# The faults


def _illegitimate(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks how many a way has passed by."""
    patch.setattr(plane_module, "is_legitimate", lambda trail, delta: True)


def _overtaking(patch: pytest.MonkeyPatch) -> None:
    """What cannot be sent is skipped (against B0.9)."""
    send = Plane._send_in

    def skipping(plane: Plane, direction: str, segments: Sequence[Any]) -> list[Any]:
        effects: list[Any] = []
        for segment in segments:
            effects += send(plane, direction, [segment])
            plane.stalled.pop(direction, None)
        return effects

    patch.setattr(Plane, "_send_in", skipping)


def _lying(patch: pytest.MonkeyPatch) -> None:
    """The numbers of others are passed on wrongly."""

    def wrong(trail: Trail, me: Any, numbers: list[int], bypassed: Any, delta: int) -> Trail:
        told = [[number + 1 for number in column] for column in trail.numbers]
        return extended(Trail(trail.steps, told), me, numbers, bypassed, delta)

    patch.setattr(plane_module, "extended", wrong)


def _renumbering(patch: pytest.MonkeyPatch) -> None:
    """Every batch is numbered from 1."""
    enter = Plane._enter

    def again(plane: Plane, *arguments: Any, **named: Any) -> Any:
        plane._last = 0
        return enter(plane, *arguments, **named)

    patch.setattr(Plane, "_enter", again)


def _echoing(patch: pytest.MonkeyPatch) -> None:
    """Publications go back where they came from."""
    enter = Plane._enter

    def back(plane: Plane, *arguments: Any, **named: Any) -> Any:
        changed: list[Any] = [*arguments[:5], None, *arguments[6:]]
        return enter(plane, *changed, **named)

    patch.setattr(Plane, "_enter", back)


def _forgetful(patch: pytest.MonkeyPatch) -> None:
    """Nothing is taken for a repeat."""
    patch.setattr(Marks, "new", lambda marks, trail, count: list(range(count)))


def _suspicious(patch: pytest.MonkeyPatch) -> None:
    """More is taken for seen than was."""
    see = Marks._see
    patch.setattr(Marks, "_see", lambda marks, node, life, number: see(marks, node, life, number + 5))


def _backwards(patch: pytest.MonkeyPatch) -> None:
    """Nothing is taken for a repeat, and a queue is served from its tail."""
    _forgetful(patch)
    send = Plane._send_in

    def from_the_tail(plane: Plane, direction: str, segments: Sequence[Any]) -> list[Any]:
        effects: list[Any] = []
        for segment in reversed(segments):
            for endpoint in plane._endpoints:
                endpoint.cursor = 0
            effects += send(plane, direction, [segment])
        return effects

    patch.setattr(Plane, "_send_in", from_the_tail)


def _hasty(patch: pytest.MonkeyPatch) -> None:
    """Who is met is sent publications at once."""
    begin = Introductions._begin

    def open_at_once(
        ours: Introductions, connection: int, station: Any, *others: Any, **named: Any
    ) -> list[Any]:
        effects = begin(ours, connection, station, *others, **named)
        station.has_told = station.is_ready = True
        return effects

    patch.setattr(Introductions, "_begin", open_at_once)


def _taciturn(patch: pytest.MonkeyPatch) -> None:
    """Who has lost its memory is told of no subscription."""
    patch.setattr(Spread, "lore_for", lambda spread, station: [])


def _wasteful(patch: pytest.MonkeyPatch) -> None:
    """Everything is safe, and for good."""
    patch.setattr(Holdings, "safe", lambda holdings, path: (1 << 60, 1 << 60))


def _resurrecting(patch: pytest.MonkeyPatch) -> None:
    """Nobody remembers what is over."""
    patch.setattr(Graves, "__contains__", lambda graves, subscription: False)
    patch.setattr(Graves, "__iter__", lambda graves: iter(()))


def _untagging(patch: pytest.MonkeyPatch) -> None:
    """Nothing is tagged."""
    patch.setattr(Partitions, "tags_for", lambda partitions, trail, tags, upstream: tags)
    patch.setattr(Partitions, "tags_before", lambda partitions, partition, tags, upstream: tags)


def _hoarding(patch: pytest.MonkeyPatch) -> None:
    """Nothing is ever discarded."""
    patch.setattr(Plane, "_purge", lambda plane: [])


def _mute(patch: pytest.MonkeyPatch) -> None:
    """Confirmations are not heard."""
    patch.setattr(Spread, "on_confirmed", lambda spread, sender, message: [])


def _losing(patch: pytest.MonkeyPatch) -> None:
    """Nobody is sent again what the one before may have lost."""
    rewire = Plane.rewire

    def forget(plane: Plane) -> list[Any]:
        kept = dict(plane.queue)
        plane.queue.clear()
        effects = rewire(plane)
        plane.queue.update(kept)
        return effects

    patch.setattr(Plane, "rewire", forget)


def _waiting(patch: pytest.MonkeyPatch) -> None:
    """Who has failed is waited for, not passed by."""
    patch.setattr(Reach, "_want", lambda reach, station, found: found.update({station.name: None}))


def _doubling(patch: pytest.MonkeyPatch) -> None:
    """Every copy is sent twice."""
    copy = Plane._copy
    patch.setattr(Plane, "_copy", lambda plane, *arguments: copy(plane, *arguments) + copy(plane, *arguments))


def _generous(patch: pytest.MonkeyPatch) -> None:
    """Everything goes to everybody."""
    gather = Node._gather

    def to_all(node: Node, events: Any) -> Any:
        gathered = gather(node, events)
        more = [each for each in node.reach.rim() if each not in gathered]
        for station in more:
            station.at = list(range(len(events)))
        return [*gathered, *more]

    patch.setattr(Node, "_gather", to_all)


@pytest.mark.parametrize(
    ("plant", "script", "kind"),
    [
        (_illegitimate, TWO_DOWN, "I5"),
        (_overtaking, TWO_DOWN, "I6"),
        (_lying, FREEZE, "I7"),
        (_forgetful, FREEZE, "I8"),
        (_suspicious, FREEZE, "I8"),
        (_backwards, CUT_OFF, "I2"),
        (_hasty, RESTART, "I9"),
        (_taciturn, RESTART, "I10"),
        (_taciturn, RESTART, "lost"),
        (_untagging, PARTIAL, "untagged"),
        (_wasteful, CUT_OFF, "I12"),
        (_renumbering, FREEZE, "I13"),
        (_resurrecting, WITHDRAWN, "I14"),
        (_echoing, FREEZE, "I15"),
        (_losing, RESTART, "lost"),
        (_hoarding, FREEZE, "I31"),
        (_doubling, FREEZE, "copies"),
        (_generous, FREEZE, "no-interest"),
        (_waiting, FREEZE, "delayed"),
        (_mute, FREEZE, "stuck"),
    ],
)
def test_a_planted_fault_is_caught(
    plant: Plant, script: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert kind in kinds_found(script)
