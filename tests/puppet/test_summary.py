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


def test_sessions_that_were_lost_are_counted_and_the_verdict_says_what_is_not_owed_then() -> None:
    summary = summarise(simulated(CHAIN, f"{SCRIPT}Crash b2\nRestart b2\nWait 2000\n").trace)
    assert not summary.owes_everything
    assert int(dict(rows(summary, wall_seconds=1))["sessions lost"]) > 0
    assert (
        verdict([], owes_everything=False) == "promises kept; with faults, or undrained, no delivery is owed"
    )
    assert verdict([Violation("lost", "p#1")], owes_everything=False).startswith("promises broken: 1\n")
    assert summarise(simulated(CHAIN, SCRIPT).trace).owes_everything


def test_what_the_script_disconnects_is_no_lost_session() -> None:
    summary = summarise(simulated(CHAIN, "Subscriber u3 Disconnect\n").trace)
    assert summary.sessions_lost == 0


def test_a_verdict_names_what_was_broken_and_how_much_more_there_is() -> None:
    assert verdict([]) == "promises kept"
    many = verdict([Violation("lost", f"p#{n}") for n in range(VIOLATIONS_SHOWN_MAX + 5)])
    assert many.splitlines()[0] == f"promises broken: {VIOLATIONS_SHOWN_MAX + 5}"
    assert many.splitlines()[1] == "lost: p#0"
    assert many.splitlines()[-1] == "… and 5 more"
