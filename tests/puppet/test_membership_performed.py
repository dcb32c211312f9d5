"""Join, Leave and Expel with real processes, beside the same in the simulator [contracts.md §4, B0.25]."""

from __future__ import annotations

from holdfast.puppet.run import Result
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.run import Result as Simulated
from performances import performed
from simulations import numbers, of_kind, promises_kept, simulated

NETWORK = """
Guarantee reliable
Delta 1
DackEvery 100
Heartbeat 50
DetectAfter 800
ProbeEvery 50
Site s1 Parent none
Site s2 Parent s1
Site s3 Parent s2
Process b1 is broker On s1 URL tcp://localhost:0/b
Process b2 is broker On s2 URL tcp://localhost:0/b
Process p is publisher On s1 URL tcp://localhost:0/p
Process u1 is subscriber On s1 URL tcp://localhost:0/u
Process u2 is subscriber On s2 URL tcp://localhost:0/u
"""

TEN = "Publisher p Publish 10 Ontopic a Interval 2\n"

#: A broker and its client join and are reached past a failed broker; one leaves and comes back; one is expelled.
SCRIPT = f"""
Join Process b3 is broker On s3 URL tcp://localhost:0/b
Join Process u3 is subscriber On s3 URL tcp://localhost:0/u
Subscriber u1 Subscribe # As s1
Subscriber u2 Subscribe # As s2
Subscriber u3 Subscribe # As s3
{TEN}
Drain 5000
Leave u1
Crash b2
{TEN}
Wait 500
Restart b2
Drain 5000
Crash u2
{TEN}
Wait 100
Expel u2
Restart u1
Drain 5000
{TEN}
"""


def delivered(trace: list[TraceLine]) -> dict[str, list[int]]:
    return {name: numbers(trace, "deliver", subscriber=name) for name in ("u1", "u2", "u3")}


def test_processes_join_leave_and_are_expelled_alike_in_both_worlds() -> None:
    def check(result: Result | Simulated) -> None:
        trace = result.trace
        told = [(line["kind"], *line["nodes"]) for line in of_kind(trace, "join", "leave")]
        assert told == [("join", "b3"), ("join", "u3"), ("leave", "u1"), ("leave", "u2")]
        got = delivered(trace)
        assert got["u1"] == [*range(1, 11), *range(31, 41)], (
            "what was published while it was away is not for it"
        )
        assert got["u2"] == list(range(1, len(got["u2"]) + 1))
        assert 20 <= len(got["u2"]) < 30, (
            "it was struck when the twenty-first was sent, and had a few more at most"
        )
        assert got["u3"] == list(range(1, 41))
        assert result.drained
        assert trace[0]["tree"]["u3"] == "b3"
        assert promises_kept(trace)

    for world in (simulated, performed):
        check(world(NETWORK, SCRIPT))


def test_any_two_can_be_cut_off_from_each_other_and_one_from_everybody() -> None:
    """δ = 1: with u2 cut off from b2 it is served by b1, until that is cut off too; isolated it is alone."""
    cutting = f"Subscriber u2 Subscribe # As s2\nCut u2 b2\nWait 1500\n{TEN}Wait 300\nCut u2 b1\n"
    starving = f"Wait 1500\n{TEN}Wait 300\n"
    healing = "Heal u2\nDrain 5000\n"
    isolating = f"Isolate u2\nWait 1500\n{TEN}Wait 300\nHeal u2\n"
    result = performed(NETWORK, cutting + starving + healing + isolating)
    first_cut, second_cut, isolated = (line["t"] for line in of_kind(result.trace, "cut"))
    first_healed, healed = (line["t"] for line in of_kind(result.trace, "heal"))
    times = [line["t"] for line in of_kind(result.trace, "deliver", subscriber="u2")]
    assert numbers(result.trace, "deliver", subscriber="u2") == list(range(1, 31))
    assert all(first_cut < t < second_cut for t in times[:10])
    assert all(first_healed < t < isolated for t in times[10:20])
    assert all(healed < t for t in times[20:])
    assert result.drained
    assert promises_kept(result.trace)
