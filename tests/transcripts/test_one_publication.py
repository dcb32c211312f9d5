"""One publication through three brokers, every input and effect of every node: ``one_publication.txt``.

It is the last stop of the reading path [style.md §11]. After a change that is meant, write it again with

    HOLDFAST_REWRITE=1 pytest tests/transcripts

and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Neighbour
from holdfast.broker.settings import Settings as BrokerSettings
from holdfast.client.input import AddSubscription, EndSubscription, Leave, Open, Submit
from holdfast.client.protocol import ClientCore
from holdfast.client.settings import Settings as ClientSettings
from holdfast.clock import MILLISECOND
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication
from holdfast.simulator.transcript import Transcript
from holdfast.simulator.world import World, address_of

KEPT = Path(__file__).parent / "one_publication.txt"

#: The tree: who is a child of whom, so who dials whom.
PARENTS = {"root": None, "middle": "root", "leaf": "middle"}

STEP = 200 * MILLISECOND


def neighbours(name: str) -> tuple[Neighbour, ...]:
    parent = PARENTS[name]
    children = [Neighbour(child, None) for child, above in PARENTS.items() if above == name]
    return (*children, *([Neighbour(parent, address_of(parent))] if parent else []))


def told() -> str:
    """The story, told anew."""
    transcript = Transcript()
    world = World(0, wire=True, transcript=transcript)

    def broker(name: str) -> None:
        around = neighbours(name)
        world.add(name, lambda life: Broker(BrokerSettings(name, life, around, trace_forwards=True)))

    def client(name: str, home: str) -> None:
        world.add(name, lambda life: ClientCore(ClientSettings(name, life, address_of(home))))
        world.submit(name, Open())

    def chapter(title: str) -> None:
        world.run_for(STEP)
        transcript.lines.append(f"\n-- {title}")

    chapter(
        "Three brokers meet; each tells what it knows once its other neighbours have, and is ready when all have."
    )
    for name in PARENTS:
        broker(name)
    chapter("A subscriber comes to the root, a publisher to the leaf.")
    client("sub", "root")
    client("pub", "leaf")
    chapter("A subscription goes outward to every broker, and its confirmation comes inward.")
    world.submit("sub", AddSubscription(1, "orders/# WHERE price > 100", 10))
    chapter("One publication: accepted at the leaf, matched at each broker, delivered at the root.")
    event = make_event("orders/eu", {"price": 101.5})
    world.submit("pub", Submit([Publication("pub", 1, pack(event))]))
    chapter("One that nobody wants goes no further than the broker it came to.")
    cheap = make_event("orders/eu", {"price": 99.0})
    world.submit("pub", Submit([Publication("pub", 2, pack(cheap))]))
    chapter("The subscription is withdrawn, and everybody forgets it.")
    world.submit("sub", EndSubscription(1))
    chapter("The publisher leaves.")
    world.submit("pub", Leave())
    world.run_for(STEP)
    return str(transcript)


def test_one_publication_goes_as_it_is_written() -> None:
    story = told()
    if "HOLDFAST_REWRITE" in os.environ:
        KEPT.write_text(story)
    assert story.splitlines() == KEPT.read_text().splitlines()


def kept() -> list[str]:
    """Node, mark and text of every line, whatever the columns are."""
    return [" ".join(line.split()[1:]) for line in KEPT.read_text().splitlines()]


@pytest.mark.parametrize(
    "line",
    [
        "pub > leaf: Publish(pub#1)",
        "leaf > middle: Publications(pub#1)",
        "middle > root: Publications(pub#1)",
        "root > sub: Deliveries(pub#1 to 1)",
        "leaf > pub: Accepted(1)",
        "sub < root: Confirmed(sub.1#1)",
        "sub < root: Withdrawn(sub.1#1)",
    ],
)
def test_what_matters_happens_exactly_once(line: str) -> None:
    assert kept().count(line) == 1


def test_what_nobody_wants_is_accepted_and_not_forwarded() -> None:
    assert "leaf > pub: Accepted(2)" in kept()
    assert "leaf > middle: Publications(pub#2)" not in kept()
