"""Publishers that lose their broker and go to another: every event once, in order, to everybody [B1.4, I18, R1.2].

Brokers b0 ── b1 ── b2 in a row; the publisher's own is b2, where its events are logged, and the other one b0. All
promises are judged in each run; that no event has two ticks, and that the order is the publisher's, among them.
"""

from __future__ import annotations

from typing import Any

import pytest

from durable_runs import Run, chain, run
from holdfast.client.outbox import publishes
from holdfast.client.protocol import ClientCore
from holdfast.messages.message import Message
from holdfast.messages.publications import Publication

NETWORK = chain(3, ("p", "publisher", 2), ("u", "subscriber", 0), ("v", "subscriber", 1))
OTHERS = {"p": ("b0",)}

BEGIN = """Subscriber u Subscribe a As mine Durable
Subscriber v Subscribe # As hers
At 500 Publisher p Publish 200 Ontopic a Interval 10
"""
END = """Wait 9000
Drain 10000
Wait 3000
"""

#: What happens to the publisher and its brokers, while it publishes from 500 to 2,500 ms.
TROUBLES = {
    "its link is cut, and it stays away": "At 1200 Cut p b2",
    "its link is cut, and the other one when that is healed": """At 1000 Cut p b2
        At 1800 Heal p b2
        At 2000 Cut p b0""",
    "to and fro": """At 700 Cut p b2
        At 1250 Heal p b2
        At 1270 Cut p b0
        At 1800 Heal p b0
        At 1820 Cut p b2
        At 2350 Heal p b2
        At 2400 Cut p b0""",
    "its home crashes": """At 1000 Crash b2
        At 4000 Restart b2""",
    "its home crashes, and then where it went": """At 1000 Crash b2
        At 2500 Restart b2
        At 3000 Crash b0
        At 3500 Restart b0""",
    "it crashes elsewhere, and goes on under its name": """At 1000 Cut p b2
        At 1900 Crash p
        At 2000 Restart p
        At 3000 Publisher p Publish 20 Ontopic a Interval 10""",
    "its home is cut off from where it went": """At 1000 Cut p b2
        At 1300 Cut b1 b0
        At 5000 Heal b1 b0""",
    "its home is frozen, and wakes up with what had arrived": """At 1000 Freeze b2
        At 3000 Unfreeze b2""",
    "answers are slow, and it is gone when they come": """At 600 Link b2 p Delay 400
        At 1000 Cut p b2
        At 1700 Link b1 b0 Delay 300""",
}


def moved(trouble: str, **options: Any) -> Run:
    return run(NETWORK, f"{BEGIN}{trouble}\nAt 6000 Heal p\n{END}", others=OTHERS, **options)


@pytest.mark.parametrize("wire", [False, True])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_publisher_keeps_its_home_wherever_it_goes(trouble: str, wire: bool) -> None:
    done = moved(TROUBLES[trouble], wire=wire)
    logged = {line["pubend"] for line in done.lines("accepted", "deliver")}
    assert logged == {"scenario@b2/0"}
    if "Crash p" in TROUBLES[trouble]:  # what it had not heard of died with it
        assert done.got("mine") == sorted(done.got("mine")) == done.got("hers")
    else:
        assert done.got("mine") == done.got("hers") == done.accepted() == list(range(1, 201))


def test_what_is_published_while_the_home_cannot_be_reached_waits_for_it() -> None:
    """The price: nothing is accepted meanwhile, nor logged elsewhere."""
    done = moved(TROUBLES["its home is cut off from where it went"])
    assert not [line for line in done.lines("accepted") if 1.4 < line["t"] < 5.0]
    assert len(done.accepted()) == 200


class Homeless(ClientCore):
    """A client that is at home wherever it is."""

    def _publishes(self, publications: list[Publication]) -> list[Message]:
        super()._publishes(publications)
        return publishes(publications)


def test_without_a_home_events_are_logged_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs above can tell: the answer to what was logged is lost with the connection."""
    monkeypatch.setattr("holdfast.scenarios.actor.ClientCore", Homeless)
    with pytest.raises(AssertionError, match="duplicate"):
        moved(TROUBLES["its link is cut, and it stays away"])
