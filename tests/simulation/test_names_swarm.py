"""Many clients under few durable names, as many seeds as fit into the time; and a broken broker is caught."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

import holdfast
from holdfast.broker.durable import moving
from holdfast.broker.durable.endings import Endings
from holdfast.broker.durable.greeting import Greeting
from holdfast.broker.durable.moving import Moving
from holdfast.broker.durable.reader import Reader
from holdfast.broker.durable.readers import Readers
from holdfast.broker.durable.records import EndedRow
from holdfast.broker.durable.wishes import Wishes
from holdfast.broker.hosting import Hosting
from holdfast.client.aio import Subscription
from holdfast.client.item import LoggedEvent
from holdfast.messages.durable import Fetched, Moved, Stand
from holdfast.messages.publications import Publication
from holdfast.messages.subscriptions import NO_SEAT, Seat
from holdfast.streams.constream import Constream
from names_swarm import Broken, Kind, run_seed
from swarm_time import for_seconds

SECONDS = 3.0
RUNS_MIN = 3

PLAIN, FAULTY = Kind(), Kind(with_faults=True)
NARROW = Kind(with_faults=True, narrow=True)
SKEWED = Kind(with_faults=True, narrow=True, skewed=True)
SEVERAL = Kind(with_faults=True, several=True)
ALONE = Kind(with_faults=True, several=True, alone=True)
RELEASED = Kind(released=True)
CLOSE = Kind(narrow=True, released=True)
REMOVED = Kind(narrow=True, released=True, removed=True)
TOKENS, TOTAL = Kind(tokens=True), Kind(total=True)
TOKENS_CLOSE = Kind(narrow=True, released=True, tokens=True)
TOKENS_AUTO = Kind(narrow=True, released=True, tokens=True, auto=True)

#: Seeds that found something, each in its time: who was never answered; what was told to two; what was ended and came
#: again; two that had begun the same, of which one was forgotten; what was held for somebody, and given up; an answer
#: from before it had moved; who went on after an interruption with one of two, or when another had come; what was
#: ended at one broker, and then begun anew at another that had not heard so; who was ousted by where it had been;
#: what was asked for and had begun before anybody was told so; what was left where it had been, and let go of before
#: it was in place again where it went; where it had stood before an end, told to who came after that; what another
#: broker had been told of, and was given up by a log that came into being meanwhile; what was known to be silence, and
#: was not any more for the next who came with an older token; who left, and waited for an answer that another got; what
#: was silence, and acknowledged; what was new to one who had come, and given up where it was not in place.
ONCE_FAILED = (
    (1, PLAIN),
    (7, PLAIN),
    (39, PLAIN),
    (1225, PLAIN),
    (3282, PLAIN),
    (30, FAULTY),
    (61, FAULTY),
    (92, FAULTY),
    (95, FAULTY),
    (285, FAULTY),
    (504, FAULTY),
    (544, FAULTY),
    (1178, FAULTY),
    (1950, FAULTY),
    (2134, FAULTY),
    (4135, FAULTY),
    (5740, FAULTY),
    (7015, FAULTY),
    (8520, FAULTY),
    (10045, FAULTY),
    (6139, NARROW),
    (6877, NARROW),
    (1205, SEVERAL),
    (207, ALONE),
    (1442, ALONE),
    (1643, ALONE),
    (3651, ALONE),
    (153, RELEASED),
    (218, RELEASED),
    (83, REMOVED),
    (236, REMOVED),
    (997, REMOVED),
    (1284, REMOVED),
    (376, CLOSE),
    (65, TOKENS_CLOSE),
    (254, TOKENS_CLOSE),
    (1633, TOKENS_CLOSE),
    (20, TOKENS_AUTO),
    (24, TOKENS_AUTO),
    (285, TOKENS_AUTO),
)


@pytest.mark.parametrize(
    "kind",
    [
        PLAIN,
        FAULTY,
        SKEWED,
        ALONE,
        Kind(with_faults=True, several=True, narrow=True),
        RELEASED,
        Kind(with_faults=True, several=True, released=True, removed=True),
        TOKENS,
        Kind(with_faults=True, several=True, narrow=True, released=True, tokens=True),
        Kind(narrow=True, released=True, tokens=True, slow=True),
        TOKENS_AUTO,
        Kind(with_faults=True, several=True, tokens=True, total=True),
    ],
)
def test_no_seed_breaks_a_promise(kind: Kind) -> None:
    is_time_up = for_seconds(SECONDS, RUNS_MIN)
    for seed in count(1_000_000):
        if is_time_up():
            break
        run_seed(seed, kind)


@pytest.mark.parametrize(("seed", "kind"), ONCE_FAILED)
def test_what_failed_once_does_not_fail_again(seed: int, kind: Kind) -> None:
    run_seed(seed, kind)


# A broken broker is caught

let_go, logged_event = Readers._let_go, LoggedEvent.of
SECOND_US = 1_000_000


def nothing(*_: Any, **__: Any) -> None:
    """What it does instead."""


def nowhere(self: Greeting, reader: Any) -> dict[str, Any]:
    return {}


def none(self: Readers, name: str) -> list[Any]:
    return []


def farthest(one: tuple[int, int], other: tuple[int, int]) -> int:
    return max(one[1], other[1])


def since_it_came(stand: Stand, *, is_first: bool) -> tuple[int, int]:
    return min(stand.start, stand.released), stand.released


def never(self: Seat, other: Seat) -> bool:
    return False


def always(self: Seat, other: Seat) -> bool:
    return other.taken_on > 0


def given_away(self: Readers, reader: Reader, reason: str) -> None:
    let_go(self, reader, reason)
    if reader.durable is not None and reason.startswith("another client reads"):
        epoch = reader.durable.epoch
        self.endings.owe(reader.name, sorted(reader.moved_from.keys() - reader.unmerged.keys()), epoch, epoch)


def only_here(self: Readers, name: str, reason: str, seat: Seat = NO_SEAT) -> None:
    if name in self.durable:
        self._let_go(self.durable[name], reason)


def unasked(self: Moving, reader: Reader, letter: Fetched) -> None:
    del reader.unmerged[letter.origin]


def moved(self: Endings, name: str, broker: str, over: EndedRow) -> None:
    self._network.post(Moved(broker, self._me, name, over.epoch))


def skipping(self: Constream, subscriber: int, position: int) -> int:
    return max(position, self.latest_delivered)


def late() -> Callable[[Subscription], holdfast.Token]:
    """A token that is always one behind."""
    tokens: dict[Subscription, holdfast.Token] = {}

    def last_but_one(subscription: Subscription) -> holdfast.Token:
        token = subscription._shelf.token
        before = tokens.get(subscription, token)
        tokens[subscription] = token
        return before

    return last_but_one


def earlier(publication: Publication, pubend: str, incarnation: int, tick: int) -> LoggedEvent:
    """An event of one publisher comes behind those of others that are behind it in the log."""
    return logged_event(publication, pubend, incarnation, tick - SECOND_US * (publication.publisher == "p1"))


@pytest.mark.parametrize(
    ("where", "what", "broken", "seed", "kind", "problem"),
    [
        (Wishes, "oust", nothing, 4, PLAIN, "do not end"),
        (Endings, "owe", nothing, 5, PLAIN, "left over|long before"),
        (Greeting, "stands", nowhere, 0, PLAIN, "Gap|long before|committed"),
        (Readers, "_elsewhere", none, 7, PLAIN, "were not read"),
        (Endings, "_say", moved, 8520, FAULTY, "nobody reads"),
        (moving, "joined", farthest, 64, FAULTY, "nobody reads"),
        (moving, "had", since_it_came, 1205, SEVERAL, "nobody reads"),
        (Moving, "_merge", unasked, 30, FAULTY, "nobody reads"),
        (Seat, "is_after", never, 5740, FAULTY, "Gap"),
        (Seat, "is_after", always, 1, FAULTY, "nobody came"),
        (Moving, "_stays", lambda *_: False, 207, ALONE, "nobody came"),
        (Hosting, "_on_reading", lambda *_: [], 0, PLAIN, "do not end"),
        (Readers, "_let_go", given_away, 153, RELEASED, "Gap"),
        (Wishes, "_is_over", lambda *_: False, 236, REMOVED, "Gap"),
        (Readers, "end", only_here, 0, Kind(removed=True), "left over"),
        (Constream, "skip", skipping, 0, TOKENS, "were not read"),
        (Subscription, "token", property(late()), 0, TOKENS, "25 has its effect after 25"),
        (LoggedEvent, "of", earlier, 0, TOTAL, "of p1 comes behind what follows it"),
    ],
)
def test_a_broken_broker_is_caught(
    monkeypatch: pytest.MonkeyPatch,
    where: Any,
    what: str,
    broken: Any,
    seed: int,
    kind: Kind,
    problem: str,
) -> None:
    monkeypatch.setattr(where, what, broken)
    with pytest.raises(Broken, match=problem):
        run_seed(seed, kind)
