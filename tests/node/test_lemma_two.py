"""Lemma 2, executable: no node on the way drops a publication that matches a confirmed subscription [KJ §6].

R0.58, I10. A witness stands at every node of a network under faults. Whenever a node matches a publication, in every
step of the run, the witness looks for subscriptions confirmed in full before it was published, whose way from the
publisher passes this node: each must have a share in what the node sends on.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import swarm
from harness import Bare, Net
from swarm import Run

from holdfast.identity import EventId
from holdfast.messages.publications import Batch
from holdfast.node.segment import Segment
from holdfast.node.station import Station


class Watched(Net):
    """A network with a witness at every node, for all its lives."""

    forgetful: frozenset[str] = frozenset()  #: nodes that are made to forget, to see that the witness notices

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.drops: list[str] = []
        self.seen = 0
        self.way = cache(self.path)
        super().__init__(*arguments, **options)

    def _maker(self, name: str) -> Any:
        make = super()._maker(name)

        def watched(incarnation: int) -> Bare:
            bare: Bare = make(incarnation)
            plane = bare.node.plane
            enter = plane._enter

            def witness(
                stream: str,
                batch: Batch,
                events: Any,
                trail: Any,
                tags: Any,
                upstream: str | None,
                only: Any = None,
                **flags: Any,
            ) -> Segment | None:
                segment = enter(stream, batch, events, trail, tags, upstream, only, **flags)
                if segment is not None and name in self.forgetful:
                    segment.shares.clear()
                for i, publication in enumerate(batch.publications):
                    self.look(name, publication.id, i, segment, only)
                return segment

            plane._enter = witness  # type: ignore[method-assign]
            return bare

        return watched

    def look(
        self, me: str, event: EventId, place: int, segment: Segment | None, only: Station | None
    ) -> None:
        for subscriber, memory in self.memories.items():
            for number, text in memory.wishes.items():
                way = self.way(event.publisher, subscriber)
                if me not in way[:-1] or not self.is_owed(subscriber, number, text, event):
                    continue
                beyond = way[way.index(me) + 1 :]
                if only is not None and only.name not in beyond:
                    continue  # given back, for those beyond the giver
                self.seen += 1
                found = segment is not None and any(
                    place in share.at and target.direction == beyond[0]
                    for target, share in segment.shares.items()
                )
                if not found:
                    self.drops.append(
                        f"{me} at {self.now:.0f} drops {event}, which {subscriber}#{number} is owed"
                    )

    def is_owed(self, subscriber: str, number: int, text: str, event: EventId) -> bool:
        full_at = self.full_at(subscriber, number)
        publisher = self.memories[event.publisher]
        _, k = publisher.ks[event.n - 1]
        return (
            full_at is not None
            and publisher.published_at[event] > full_at
            and (text == "#" or text.endswith(f"= {k}"))
        )


@pytest.mark.parametrize("seed", range(6))
def test_kj6_lemma_2_no_node_on_the_way_drops_what_a_confirmed_subscription_is_owed(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swarm, "Net", Watched)
    run = Run(seed, churn=True)
    run.run()
    assert isinstance(run.net, Watched)
    assert run.net.drops == [], f"python tests/node/swarm.py churn {seed}"
    assert run.net.seen > 0 or not run.subscribers


def test_the_witness_notices_a_drop() -> None:
    net = Watched("P-A-B-S", 1)
    net.subscribe("S")
    net.run(1000)
    net.forgetful = frozenset({"A"})
    net.publish("P")
    net.run(500)
    assert [drop.split(" at ")[0] for drop in net.drops] == ["A"]


def test_x8_again_with_a_witness() -> None:
    """The paper's own case: the fragment returns node by node, and each is told before it is sent anything."""
    net = Watched("S-N-F1-F2-M-P", 2)
    net.crash("F1", "F2")
    net.run(1000)
    net.subscribe("S")
    net.run(1000)
    for name in ("F2", "F1"):
        net.restart(name)
        for _ in range(300):
            net.publish("P")
            net.run(1)
        net.run(1500)
    assert net.drops == []
    assert net.got("S") == [f"P#{n}" for n in range(1, 601)]
