"""Every kind of violation, planted into the trace of a real run, is found and named; clean ones are clean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from audited import NETWORKS, PLANTED, Trace, clean, lines_of, verdict_on
from holdfast.pipeline.audit.local import audit_lines
from holdfast.pipeline.audit.violation import KINDS

CASES = [
    pytest.param(kind, plant, network, id=f"{plant.__name__}-{network}")
    for kind, plant, networks in PLANTED
    for network in networks
]


@pytest.mark.parametrize("network", NETWORKS)
def test_a_clean_trace_is_clean(network: str) -> None:
    verdict = verdict_on(clean(network))
    assert not verdict.counts, [each.words for each in verdict.violations]
    assert verdict.is_kept
    assert not verdict.notes
    assert verdict.lines["deliver"] > 50


@pytest.mark.parametrize(("kind", "plant", "network"), CASES)
def test_a_planted_violation_is_found_and_named(
    kind: str, plant: Callable[[Trace], str], network: str
) -> None:
    trace = clean(network)
    besides = plant(trace)
    verdict = verdict_on(trace)
    assert kind in verdict.counts
    assert {*verdict.counts} <= {kind, *besides.split()}
    assert not verdict.is_kept
    assert all(each.words for each in verdict.violations)


def test_every_kind_of_the_contract_is_planted() -> None:
    assert {kind for kind, _, _ in PLANTED} == {*KINDS}


def test_runs_are_judged_together_and_kept_apart() -> None:
    """What one run lost another has not: the violation names its run."""
    lines = []
    for run in ("one", "two", "three"):
        trace = clean("reliable")
        if run == "two":
            assert PLANTED[0][1](trace)
        lines += lines_of(trace, run)
    verdict = audit_lines(lines)
    assert verdict.runs == 3
    assert verdict.counts == {"lost": 1}
    assert [each.run for each in verdict.violations] == ["two"]
