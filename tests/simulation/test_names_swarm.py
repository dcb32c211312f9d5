"""Many clients under few durable names, as many seeds as fit into the time; and a broken broker is caught."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from holdfast.broker.durable import moving
from holdfast.broker.durable.endings import Endings
from holdfast.broker.durable.greeting import Greeting
from holdfast.broker.durable.moving import Moving
from holdfast.broker.durable.reader import Reader
from holdfast.broker.durable.readers import Readers
from holdfast.broker.durable.records import EndedRow
from holdfast.broker.durable.wishes import Wishes
from holdfast.broker.hosting import Hosting
from holdfast.messages.durable import Fetched, Moved
from holdfast.messages.subscriptions import Seat
from names_swarm import Broken, run_seed
from swarm_time import for_seconds

SECONDS = 4.0
RUNS_MIN = 3

#: Seeds that found something, each in its time: who was never answered; what was told to two; what was ended and came
#: again; two that had begun the same, of which one was forgotten; what was held for somebody, and given up; an answer
#: from before it had moved; who went on after an interruption with one of two, or when another had come; what was
#: ended at one broker, and then begun anew at another that had not heard so.
ONCE_FAILED = (
    (1, False),
    (7, False),
    (39, False),
    (3282, False),
    (30, True),
    (61, True),
    (92, True),
    (95, True),
    (285, True),
    (504, True),
    (544, True),
    (1178, True),
    (1950, True),
    (2134, True),
    (4135, True),
    (5740, True),
    (7015, True),
    (8520, True),
)


@pytest.mark.parametrize("with_faults", [False, True])
def test_no_seed_breaks_a_promise(with_faults: bool) -> None:
    is_time_up = for_seconds(SECONDS, RUNS_MIN)
    for seed in count(1_000_000):
        if is_time_up():
            break
        run_seed(seed, with_faults=with_faults)


@pytest.mark.parametrize(("seed", "with_faults"), ONCE_FAILED)
def test_what_failed_once_does_not_fail_again(seed: int, with_faults: bool) -> None:
    run_seed(seed, with_faults=with_faults)


# A broken broker is caught


def nothing(*_: Any, **__: Any) -> None:
    """What it does instead."""


def nowhere(self: Greeting, reader: Any) -> dict[str, Any]:
    return {}


def here(self: Readers, name: str) -> tuple[Any, None]:
    return self.durable.get(name), None


def farthest(one: tuple[int, int], other: tuple[int, int]) -> int:
    return max(one[1], other[1])


def never(self: Seat, other: Seat) -> bool:
    return False


def always(self: Seat, other: Seat) -> bool:
    return other.taken_on > 0


def unasked(self: Moving, reader: Reader, letter: Fetched) -> None:
    del reader.unmerged[letter.origin]


def moved(self: Endings, name: str, broker: str, over: EndedRow) -> None:
    self._network.post(Moved(broker, self._me, name, over.epoch))


@pytest.mark.parametrize(
    ("where", "what", "broken", "seed", "with_faults", "problem"),
    [
        (Wishes, "oust", nothing, 4, False, "do not end"),
        (Endings, "owe", nothing, 4, False, "left over|long before"),
        (Greeting, "stands", nowhere, 0, False, "Gap|long before|committed"),
        (Readers, "_find", here, 7, False, "were not read"),
        (Endings, "_say", moved, 8520, True, "nobody reads"),
        (moving, "joined", farthest, 92, True, "nobody reads"),
        (Moving, "_merge", unasked, 30, True, "nobody reads"),
        (Seat, "is_after", never, 5740, True, "Gap"),
        (Seat, "is_after", always, 1, True, "nobody came"),
        (Hosting, "_on_reading", lambda *_: [], 0, False, "do not end"),
    ],
)
def test_a_broken_broker_is_caught(
    monkeypatch: pytest.MonkeyPatch,
    where: Any,
    what: str,
    broken: Callable[..., Any],
    seed: int,
    with_faults: bool,
    problem: str,
) -> None:
    monkeypatch.setattr(where, what, broken)
    with pytest.raises(Broken, match=problem):
        run_seed(seed, with_faults=with_faults)
