"""Traffic on a link beyond which nobody had asked for it: *no-interest*, at rest [I32, R0.16].

Needs the ``forward`` lines of LoggingLevel full. A publisher's own link is exempt, for its broker is told of everything
it publishes; but a reliable publisher knows who wants it [B0.27].
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from holdfast.pipeline.audit.facts import Facts
from holdfast.pipeline.audit.plan import Plan
from holdfast.pipeline.audit.quiet import Wanted, wanted_on
from holdfast.pipeline.audit.violation import Violation

__all__ = ["traffic"]


def traffic(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """Copies that nobody had asked for."""
    by_link: dict[tuple[str, str], list[Wanted]] = defaultdict(list)
    for wanted in wanted_on(plan, {(line.source, line.to) for line in facts.forwarded}):
        by_link[wanted.source, wanted.to].append(wanted)
    for line in facts.forwarded:
        publisher, n = line.event
        if line.event not in facts.published or (plan.guarantee != "reliable" and line.source == publisher):
            continue
        for wanted in by_link[line.source, line.to]:
            places = {facts.filters[text] for text in wanted.filters}
            if wanted.begin <= line.t < wanted.end and places.isdisjoint(facts.possible[line.event]):
                link = f"{line.source} -> {line.to}"
                row = (line.node, line.i, "", "", publisher, n, "", -1)
                yield Violation(plan.run, "no-interest", *row, "link", link, line.t)
