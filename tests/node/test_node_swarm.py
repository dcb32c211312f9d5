"""Random trees of bare nodes under random faults, for a few seconds by the clock; a failing seed names itself.

*Calm* runs keep to the guarantee and lose nothing (I1-I4, I30); *wild* ones do not, and repeat, reorder and invent
nothing all the same, and everything works again in the end (R0.59). With *churn* subscriptions come and go. After every
run everything has settled (I31), and whatever was said on the wire was lawful (I5, I6, I7, I9, I13).
"""

from __future__ import annotations

from time import monotonic

import pytest
from swarm import Run
from wiretap import Wiretap

SECONDS = 2.0  #: for each kind of run
FIRST_SEED = 1000


def problems(seed: int, *, wild: bool, churn: bool) -> list[str]:
    tap = Wiretap()
    run = Run(seed, wild=wild, churn=churn, transcript=tap)
    run.run()
    return run.problems() + tap.broken_laws(run.net)


@pytest.mark.parametrize("churn", [False, True], ids=["", "churn"])
@pytest.mark.parametrize("wild", [False, True], ids=["calm", "wild"])
def test_a_swarm_of_nodes(wild: bool, churn: bool) -> None:
    end = monotonic() + SECONDS
    seed = FIRST_SEED
    while monotonic() < end:
        found = problems(seed, wild=wild, churn=churn)
        words = " ".join(["wild"] * wild + ["churn"] * churn + [str(seed)])
        assert not found, f"{found[:5]}; repeat it with: .venv/bin/python tests/node/swarm.py {words}"
        seed += 1
    assert seed > FIRST_SEED


#: Seeds that found something once, and what.
FOUND = [
    (False, 35),  # a withdrawal passed by a station that was being met
    (False, 118),  # a partition was left
    (False, 176),
    (True, 14),  # δ = 0: a restarted broker did not learn its clients' subscriptions
    (True, 60),  # a partition was cleared while it was being healed once more
    (True, 73),  # a node was refilled that had long recovered
    (True, 2044),  # a partition was cleared for a subscription that came after its healing
]


@pytest.mark.parametrize(("wild", "seed"), FOUND)
def test_a_seed_that_found_something_once(wild: bool, seed: int) -> None:
    assert problems(seed, wild=wild, churn=True) == []


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ("deliveries", "a duplicate"),
        ("order", "out of order"),
        ("loss", "lost"),
        ("invention", "made up"),
        ("leak", "still holds"),
        ("resurrection", "too, and not"),
    ],
)
def test_the_checks_of_the_swarm_notice(broken: str, expected: str) -> None:
    """What a run found is spoilt by hand, and the checks must say so."""
    run = Run(3, delta=1)
    run.run()
    assert run.problems() == []
    name = next(each for each in run.subscribers if len(run.net.memories[each].deliveries) > 2)
    deliveries = run.net.memories[name].deliveries
    match broken:
        case "deliveries":
            deliveries.append(deliveries[-1])
        case "order":
            deliveries.reverse()
        case "loss":
            del deliveries[1]
        case "invention":
            publisher = deliveries[0].event.publisher
            run.net.memories[publisher].ks.clear()
        case "leak":
            run.net.freeze(name)
            for _ in range(5):
                run.publish_all()
            run.quiet(2000)
        case "resurrection":
            run.net.memories[name].wishes.clear()
    assert any(expected in problem for problem in run.problems())
