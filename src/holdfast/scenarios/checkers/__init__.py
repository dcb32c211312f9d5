"""One file per promise, each a function from a trace to what broke it; they share no code with the brokers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from holdfast.scenarios.checkers.acceptance import acceptance
from holdfast.scenarios.checkers.completeness import completeness
from holdfast.scenarios.checkers.copies import copies
from holdfast.scenarios.checkers.duplicates import duplicates
from holdfast.scenarios.checkers.fifo import fifo
from holdfast.scenarios.checkers.history import History
from holdfast.scenarios.checkers.no_interest import no_interest
from holdfast.scenarios.checkers.soundness import soundness
from holdfast.scenarios.checkers.tags import tags
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
) -> list[Violation]:
    """All that is wrong with a run: whether the trace can be believed, then safety, then liveness, then waste.

    ``healed_at`` is the time from which on liveness is claimed although something broke before (``acceptance``,
    ``completeness``), ``grace_seconds`` how long subscriptions must have stood still for traffic to be judged
    (``no_interest``, ``copies``), ``in_flight_seconds`` how long an event may be on its way when its subscription ends
    (``completeness``).
    """
    history = History(trace)
    return [
        *wellformed(trace),
        *duplicates(history),
        *fifo(history),
        *soundness(history),
        *tags(history),
        *acceptance(history, healed_at=healed_at),
        *completeness(history, healed_at=healed_at, in_flight_seconds=in_flight_seconds),
        *no_interest(history, grace_seconds=grace_seconds),
        *copies(history, grace_seconds=grace_seconds),
    ]
