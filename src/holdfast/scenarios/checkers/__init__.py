"""One file per promise, each a function from a trace to what broke it; they share no code with the brokers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf

from holdfast.scenarios.checkers.acceptance import acceptance
from holdfast.scenarios.checkers.caught_up import caught_up
from holdfast.scenarios.checkers.completeness import completeness
from holdfast.scenarios.checkers.copies import copies
from holdfast.scenarios.checkers.duplicates import duplicates
from holdfast.scenarios.checkers.exactness import exactness
from holdfast.scenarios.checkers.fifo import fifo
from holdfast.scenarios.checkers.gaps import gaps
from holdfast.scenarios.checkers.history import History
from holdfast.scenarios.checkers.no_interest import no_interest
from holdfast.scenarios.checkers.soundness import soundness
from holdfast.scenarios.checkers.tags import tags
from holdfast.scenarios.checkers.ticks import ticks
from holdfast.scenarios.checkers.total_order import total_order
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.checkers.wellformed import wellformed
from holdfast.scenarios.trace import TraceLine

__all__ = ["Violation", "check_all"]


def check_all(
    trace: Sequence[TraceLine],
    *,
    healed_at: float = -inf,
    grace_seconds: float = 1.0,
    in_flight_seconds: float = inf,
    retain_seconds: float | None = None,
    clock_seconds: float = 0.0,
    slow: Collection[str] = (),
) -> list[Violation]:
    """All that is wrong with a run: whether the trace can be believed, then safety, then liveness, then waste.

    ``healed_at`` is the time from which on liveness is claimed although something broke before (``acceptance``,
    ``completeness``), ``grace_seconds`` how long subscriptions must have stood still for traffic to be judged
    (``no_interest``, ``copies``), ``in_flight_seconds`` how long an event may be on its way when its subscription ends
    (``completeness``), ``retain_seconds`` and ``clock_seconds`` how long a durable stream keeps its events, and by how
    much its clocks were wrong, ``slow`` the subscribers that may fall behind (``gaps``).
    """
    history = History(trace)
    return [
        *wellformed(trace),
        *duplicates(history),
        *fifo(history),
        *soundness(history),
        *tags(history),
        *ticks(history),
        *exactness(history),
        *gaps(history, retain_seconds=retain_seconds, clock_seconds=clock_seconds, slow=slow),
        *total_order(history),
        *acceptance(history, healed_at=healed_at),
        *completeness(history, healed_at=healed_at, in_flight_seconds=in_flight_seconds),
        *caught_up(history),
        *no_interest(history, grace_seconds=grace_seconds),
        *copies(history, grace_seconds=grace_seconds),
    ]
