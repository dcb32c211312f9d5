from __future__ import annotations

from holdfast.puppet.summary import VIOLATIONS_SHOWN_MAX, rows, summarise, verdict
from holdfast.scenarios.checkers import Violation
from simulations import CHAIN, simulated

SCRIPT = "Subscriber u3 Subscribe orders As s\nPublisher p Publish 10 Ontopic orders Interval 20\n"


def test_a_run_is_summed_up_by_what_was_published_delivered_and_forwarded() -> None:
    told = dict(rows(summarise(simulated(CHAIN, SCRIPT).trace), wall_seconds=1.5))
    assert told.pop("virtual time").endswith(" s")
    assert told == {
        "published": "10",
        "accepted": "10",
        "delivered": "10",
        "forwarded b1 -> b2": "10",
        "forwarded b2 -> b3": "10",
        "forwarded b3 -> u3": "10",
        "drained": "yes",
        "wall time": "1.500 s",
    }


def test_a_run_that_never_began_is_nought() -> None:
    told = dict(rows(summarise([]), wall_seconds=0.25))
    assert told["published"] == "0"
    assert told["drained"] == "no"
    assert "virtual time" not in told


def test_a_verdict_names_what_was_broken_and_how_much_more_there_is() -> None:
    assert verdict([]) == "promises kept"
    many = verdict([Violation("lost", f"p#{n}") for n in range(VIOLATIONS_SHOWN_MAX + 5)])
    assert many.splitlines()[0] == f"promises broken: {VIOLATIONS_SHOWN_MAX + 5}"
    assert many.splitlines()[1] == "lost: p#0"
    assert many.splitlines()[-1] == "… and 5 more"
