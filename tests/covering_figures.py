"""How good the covering relation is, in two figures.

*Recognised*: of pairs in which one filter was made from the other by narrowing it, the share ``covers`` says yes to.
*Violations*: events that break a yes: the special filter matches and the general one does not. There must be none.

For figures over more pairs than a test has time for: ``python tests/covering_figures.py [pairs [seed]]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from time import perf_counter
from typing import TypeAlias

from drawn_events import an_event
from drawn_filters import ALL, Parts, Seeded, Source, a_filter
from holdfast.filters.covering import covers
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import Filter
from holdfast.filters.normal import NEVER, normalise
from holdfast.filters.subject import Subject
from narrowing import narrow

Covers: TypeAlias = Callable[[Filter, Filter], bool]
EVENTS_PER_PAIR = 20


def measure(seed: int, pairs: int, parts: Parts = ALL, covers: Covers = covers) -> tuple[int, int]:
    """How many narrowed pairs are recognised, and of how many."""
    drawn = narrowed_pairs(Seeded(Random(seed)), pairs, parts)
    verdicts = [covers(general, special) for general, special in drawn]
    return sum(verdicts), len(verdicts)


def narrowed_pairs(source: Source, count: int, parts: Parts = ALL) -> Iterator[tuple[Filter, Filter]]:
    """Pairs of a filter and one made from it by narrowing; without those that are equal or match nothing any more."""
    for _ in range(count):
        general = a_filter(source, parts)
        special = narrow(general, source, parts)
        if special != general and normalise(special.condition) != NEVER:
            yield general, special


@dataclass
class Soundness:
    """What came of trying to break the relation."""

    claims: int = 0  #: pairs of which it said yes
    trials: int = 0  #: events that the special filter of such a pair matched
    violations: list[tuple[Filter, Filter, Subject]] = field(default_factory=list)


def soundness(seed: int, pairs: int, parts: Parts = ALL, covers: Covers = covers) -> Soundness:
    """Try events on every pair that is said to cover: pairs at random, narrowed ones, and those the wrong way round."""
    source, found = Seeded(Random(seed)), Soundness()
    for number in range(pairs):
        one = a_filter(source, parts)
        other = narrow(one, source, parts) if number % 3 else a_filter(source, parts)
        # Twice narrowed from one filter: neither covers the other, though they are much alike.
        sibling = narrow(one, source, parts)
        for general, special in ((one, other), (other, one), (sibling, other)):
            if covers(general, special):
                found.claims += 1
                _try_to_break(general, special, source, found)
    return found


def _try_to_break(general: Filter, special: Filter, source: Source, found: Soundness) -> None:
    matches_general, matches_special = compile_filter(general), compile_filter(special)
    for _ in range(EVENTS_PER_PAIR):
        subject = Subject(an_event(source, [special, general]))
        if matches_special(subject):
            found.trials += 1
            if not matches_general(subject):
                found.violations.append((general, special, subject))


def main() -> None:
    """Print both figures; the exit status is 1 if a yes was wrong."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    out = sys.stdout.write
    out(f"seed {seed}, {pairs} pairs\n")
    started = perf_counter()
    recognised, total = measure(seed, pairs)
    spent = perf_counter() - started
    out(
        f"recognised {recognised} of {total} narrowed pairs: {recognised / total:.2%} ({spent:.1f} s with drawing)\n"
    )
    found = soundness(seed, pairs)
    out(
        f"violations {len(found.violations)} in {found.claims} pairs said to cover, {found.trials} matching events\n"
    )
    for general, special, subject in found.violations[:10]:
        out(f"  VIOLATION {general}\n        does not cover {special}\n        for {subject.event}\n")
    sys.exit(1 if found.violations else 0)


if __name__ == "__main__":
    main()
