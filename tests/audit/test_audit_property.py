"""Random small edits of clean traces: the audit and a brute force agree on every violation, row by row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_twin import Found, Twin
from audited import NETWORKS, Trace, clean, verdict_on
from examples import examples

DROPPED = (
    "deliver",
    "deliver",
    "deliver",
    "accepted",
    "silence",
    "publish",
    "forward",
    "subscribed",
    "unsubscribed",
)
CHANGES: dict[str, tuple[Any, ...]] = {
    "deliver": ("n", "tick", "topic", "subscription", "publisher", "t"),
    "accepted": ("n", "tick", "publisher"),
    "silence": ("after", "upto"),
    "publish": ("n", "topic", "t"),
    "forward": ("n", "to"),
}
VALUES: dict[str, tuple[Any, ...]] = {
    "topic": ("a", "b", "c"),
    "subscription": ("dear", "all", "brief", "none"),
    "publisher": ("p", "q"),
    "to": ("b1", "b2", "b3", "u"),
}


@st.composite
def edits(draw: st.DrawFn, trace: Trace) -> None:
    """One small thing that is not as it was."""
    action = draw(st.sampled_from(("drop", "drop", "copy", "swap", "change", "change", "undrained")))
    if action == "undrained":
        trace[-1]["drained"] = False
        return
    kind = draw(st.sampled_from(tuple(CHANGES) if action == "change" else DROPPED))
    lines = [line for line in trace if line["kind"] == ("deliver" if action in ("copy", "swap") else kind)]
    if not lines:
        return
    line = draw(st.sampled_from(lines))
    if action == "drop":
        trace.remove(line)
    elif action == "copy":
        trace.insert(trace.index(line), dict(line))
    elif action == "swap":
        other = draw(st.sampled_from(lines))
        for name in draw(
            st.sampled_from((("publisher", "n", "topic", "pubend", "tick"), ("publisher", "n"), ("tick",)))
        ):
            line[name], other[name] = other[name], line[name]
    else:
        name = draw(st.sampled_from(CHANGES[kind]))
        if name in VALUES:
            line[name] = draw(st.sampled_from(VALUES[name]))
        else:
            line[name] += draw(st.sampled_from((-2, -1, 1, 2, 10**6)))


def about(trace: Trace) -> set[Found]:
    return {
        (each.kind, each.node, each.i, each.subscriber, each.subscription, each.publisher, each.n)
        for each in verdict_on(trace).violations
    }


@pytest.mark.parametrize("network", NETWORKS)
@examples(15)
@given(st.data())
def test_the_audit_and_a_brute_force_agree_on_edited_traces(network: str, data: st.DataObject) -> None:
    trace = clean(network)
    for _ in range(data.draw(st.integers(1, 4))):
        data.draw(edits(trace))
    assert about(trace) == Twin(trace).found()
