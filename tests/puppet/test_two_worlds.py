"""One scenario, both worlds: where subscriptions stand from before the first Publish to the end, equal deliveries."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.scenarios.trace import TraceLine
from performances import PAIR, performed
from simulations import numbers, of_kind, promises_kept, simulated

NETWORK = """
Seed 17
Site s1 Parent none
Site s2 Parent s1
Site s3 Parent s1
Process b1 is broker On s1 URL tcp://localhost:0/b
Process b2 is broker On s2 URL tcp://localhost:0/b
Process b3 is broker On s3 URL tcp://localhost:0/b
Process p2 is publisher On s2 URL tcp://localhost:0/p
Process p3 is publisher On s3 URL tcp://localhost:0/p
Process u1 is subscriber On s1 URL tcp://localhost:0/u
Process u3 is subscriber On s3 URL tcp://localhost:0/u
"""

SCRIPT = """
Subscriber u1 Subscribe orders/# WHERE price > 100 As dear
Subscriber u1 Subscribe orders/+ WHERE sym = 'A' AND NOT hot As big
Subscriber u3 Subscribe "news WHERE XPATH '//*[@sym = ""IBM""]' OR qty BETWEEN 2 AND 4" As news
Subscriber u3 Subscribe # As all
Publisher p2 Publish 60 Ontopic orders/eu Interval 3 With price=uniform(1,200) sym=choice(A,B) hot=choice(true,false)
Publisher p3 Publish 40 Ontopic /news Interval 4 With qty=randint(1,9) sym=choice(IBM,SAP) Payload xml
Publisher p3 Publish 30 Ontopic orders Interval 0 With price=uniform(1,200) qty=randint(1,9) Payload 100
Publisher p2 Publish 25 Ontopic orders/us/ny Interval 2 With price=120.5
Wait 50
Publisher p2 Publish 25 Ontopic orders/us Interval 2 With sym=A hot=false
Drain 10000
"""


def deliveries(trace: list[TraceLine]) -> Counter[tuple[object, ...]]:
    """Which events reached which subscriptions, with what was in them."""
    published = {(line["publisher"], line["n"]): line for line in of_kind(trace, "publish")}
    found: Counter[tuple[object, ...]] = Counter()
    for line in of_kind(trace, "deliver"):
        attributes = published[line["publisher"], line["n"]]["attributes"]
        typed = tuple((name, type(value), value) for name, value in sorted(attributes.items()))
        found[line["subscription"], line["publisher"], line["n"], line["topic"], typed] += 1
    return found


def test_the_same_scenario_delivers_the_same_in_both_worlds() -> None:
    real, virtual = performed(NETWORK, SCRIPT), simulated(NETWORK, SCRIPT)
    assert real.drained
    assert virtual.drained
    assert promises_kept(real.trace)
    assert promises_kept(virtual.trace)
    assert deliveries(real.trace) == deliveries(virtual.trace)
    by_subscription = Counter(line["subscription"] for line in of_kind(real.trace, "deliver"))
    assert by_subscription["all"] == 180
    assert all(0 < by_subscription[name] < 180 for name in ("dear", "big", "news"))


def test_events_are_numbered_alike_however_their_publications_interleave() -> None:
    """Numbers follow the timetables, not the timers: here many events of different lines are due at one instant."""
    script = "Subscriber u1 Subscribe # As s\n"
    for topic in range(8):
        script += f"Publisher p2 Publish 20 Ontopic t{topic} Interval 5 With x=randint(1,1000)\nWait 10\n"
    real, virtual = performed(NETWORK, script), simulated(NETWORK, script)
    assert numbers(real.trace, "publish", node="p2") == list(range(1, 161))
    assert deliveries(real.trace) == deliveries(virtual.trace)


#: Later than what goes before it, in real time too.
TEN = "Wait 50\nPublisher p Publish 10 Ontopic orders Interval 2\n"


@pytest.mark.parametrize(
    ("script", "accepted"),
    [
        pytest.param(f"Crash b1\n{TEN}", 0, id="its broker is down"),
        pytest.param(f"Isolate p\n{TEN}", 0, id="cut off"),
        pytest.param(f"Freeze b1\n{TEN}", 0, id="its broker is frozen"),
        pytest.param(f"Subscriber u1 Subscribe orders\nFreeze u1\n{TEN}", 10, id="frozen"),
        pytest.param(f"Crash b2\nAt 0 Subscriber u2 Subscribe orders\n{TEN}", 10, id="never confirmed"),
        pytest.param(
            f"Subscriber u1 Subscribe orders\nSlow u1 100\nAt 300 Subscriber u1 Disconnect\n{TEN}",
            10,
            id="unplugged",
        ),
    ],
)
def test_both_worlds_drain_alike(script: str, accepted: int) -> None:
    for world in (simulated, performed):
        result = world(PAIR, script)
        assert len(of_kind(result.trace, "accepted")) == accepted, world.__name__
        assert result.drained, world.__name__
        assert promises_kept(result.trace)


def test_both_worlds_wait_for_a_publisher_that_dials_rarely() -> None:
    network = """ProbeEvery 1500
        Site s Parent none
        Process b is broker On s URL tcp://localhost:0/b
        Process p is publisher On s URL tcp://localhost:0/p
        """
    for world in (simulated, performed):
        result = world(network, f"Crash b\n{TEN}Wait 2000\nRestart b\n")
        assert numbers(result.trace, "accepted") == list(range(1, 11)), world.__name__
        assert result.drained, world.__name__


@pytest.mark.parametrize("fault", ["Freeze p\n", "Wait 100\nFreeze p\n"])
def test_a_frozen_publisher_begins_what_it_was_told_when_it_goes_on(fault: str) -> None:
    script = f"{fault}Publisher p Publish 10 Ontopic orders Interval 20\nWait 400\nUnfreeze p\n"
    for world in (simulated, performed):
        trace = world(PAIR, script).trace
        times = [line["t"] for line in of_kind(trace, "publish")]
        assert times[0] >= of_kind(trace, "unfreeze")[0]["t"], world.__name__
        assert times[-1] - times[0] >= 0.9 * 9 * 0.02, world.__name__


@pytest.mark.parametrize(
    ("happenings", "unsubscribed", "delivered"),
    [
        ("At 500 Freeze u1\nAt 600 Subscriber u1 Unsubscribe a\nWait 1000\n", 0, 5),
        ("Subscriber u1 Unsubscribe a\n", 1, 0),
        ("Freeze u1\nAt 700 Unfreeze u1\nSubscriber u1 Unsubscribe a\n", 1, 0),
    ],
    ids=["not heard", "heard", "heard later"],
)
def test_a_subscriber_has_unsubscribed_when_it_has_heard_of_it(
    happenings: str, unsubscribed: int, delivered: int
) -> None:
    """Whoever is frozen hears nothing; if it crashes then, its next life subscribes again: the wish is not over."""
    script = f"Subscriber u1 Subscribe orders As a\n{happenings}Crash u1\nRestart u1\n"
    script += "Publisher p Publish 5 Ontopic orders Interval 1\n"
    for world in (simulated, performed):
        trace = world(PAIR, script).trace
        found = len(of_kind(trace, "unsubscribe")), len(of_kind(trace, "deliver", subscription="a"))
        assert found == (unsubscribed, delivered), world.__name__


def test_a_publisher_does_not_hear_what_is_said_after_its_crash() -> None:
    for world in (simulated, performed):
        trace = world(PAIR, "Crash p\nPublisher p Publish 10 Ontopic orders Interval 0\nWait 100\n").trace
        assert not of_kind(trace, "publish"), world.__name__
