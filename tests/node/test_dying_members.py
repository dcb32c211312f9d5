"""Random trees in which brokers fail within δ while members die for good: the dead are expelled, the living are not."""

from __future__ import annotations

from functools import partial

import pytest
import swarm
from harness import Net
from schedules import unsettled

from holdfast.messages.overlay import Role
from holdfast.node.node import Node

GRACE = 2000


def dying(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[swarm.Run, list[str]]:
    """A calm run in which half of the clients die on the way; and who."""
    monkeypatch.setattr(swarm, "Net", partial(Net, member_grace_ms=GRACE))
    run = swarm.Run(seed)
    random, net = run.random, run.net
    for name in run.subscribers:
        run.subscribe(name)
    net.run(2000)
    clients = run.publishers[1:] + run.subscribers  # somebody publishes to the end
    dead = random.sample(clients, (len(clients) + 1) // 2)
    for name in dead:
        net.crash(name)
        run.wave()
    run.quiet(GRACE + 12_000)
    return run, dead


def remembered(net: Net, dead: list[str]) -> list[str]:
    """Who knows anything of the dead."""
    found = []
    for name in net.edges:
        if net.world.nodes[name].is_up:
            found += [f"{name} knows of {each}" for each in dead if _knows(net.node(name), each)]
    return found


def _knows(node: Node, client: str) -> bool:
    """Of a publisher that all brokers have forgotten at once, other clients may remember where it was; no more."""
    if node.settings.role is not Role.BROKER:
        return client in {each.subscriber for each in node.spread.interests}
    subscribers = {each.subscriber for each in node.spread.interests}
    return client in node.topology or client in subscribers or client in node.absences._questions


#: The last: a broker that lost its memory learns of somebody who is being expelled, and tells others.
SEEDS = [*range(1, 13), 380]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_dead_are_forgotten_and_the_living_lose_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, dead = dying(seed, monkeypatch)
    net = run.net
    assert remembered(net, dead) == []
    assert unsettled(net) == []
    alive = [name for name in run.subscribers if name not in dead]
    publishers = [name for name in run.publishers if name not in dead]
    assert [problem for name in alive for problem in run.misdelivered(name)] == []
    for name in alive + publishers:
        assert net.node(name).farewell is None
        assert net.node(name).settings.role is not Role.BROKER
    for name in publishers:
        assert net.memories[name].accepted == {*net.memories[name].published}
