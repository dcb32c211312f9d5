"""The reliable guarantee with real processes [KJ; issue 4]: ``tests/real_overlay.py`` in short, with faults by hand.

Thirteen brokers, δ = 2. Two of them at a time are killed, frozen or cut off while four publishers go on; nothing is
lost, repeated or reordered [I1-I4].
"""

from __future__ import annotations

from collections import Counter

from holdfast.puppet.run import Result
from holdfast.scenarios.checkers import check_all
from real_overlay import PUBLISHERS, draw, performed, problems
from scenario_traces import Lines
from simulations import of_kind

SEED = 1
EVENTS = 600

#: Brokers on the way of many: next to each other in the first wave, one failed and one cable in the second.
FAULTS = """
At 300 Crash b1
At 400 Freeze b2
At 2200 Restart b1
At 2300 Unfreeze b2
At 4000 Crash b4
At 4200 Cut b0 b1
At 5000 Restart b4
At 5200 Heal b0 b1
"""


def test_kills_freezes_and_cuts_within_delta_lose_nothing() -> None:
    drawn = draw(SEED, seconds=6, rate=EVENTS // 6, faults=FAULTS)
    result = performed(drawn)
    assert problems(result) == []
    kinds = Counter(line["kind"] for line in result.trace)
    assert kinds["publish"] == kinds["accepted"] == EVENTS
    assert kinds["crash"] == kinds["restart"] == 2
    assert len(of_kind(result.trace, "deliver", subscriber="u0")) == EVENTS, "u0 subscribes to everything"
    latest = {f"p{i}": 0 for i in range(PUBLISHERS)}
    for line in of_kind(result.trace, "deliver", subscriber="u0"):
        assert line["n"] == latest[line["publisher"]] + 1
        latest[line["publisher"]] = line["n"]


def test_a_gap_is_no_excuse_within_delta() -> None:
    lines = Lines(guarantee="reliable", delta=2)
    lines.subscribe(1)
    lines.publish(2, 1)
    lost = {"subscriber": "s1", "subscription": "all", "pubend": "p", "after": 0, "upto": 1}
    lines.add(3, "s1", "gap", **lost, reason="beyond delta")
    trace = lines.trace()
    assert check_all(trace) == []
    (problem,) = problems(Result(trace, drained=True))
    assert problem.startswith("a gap within delta")
