from __future__ import annotations

import random

import pytest

from holdfast.puppet.control import Reported, Traffic
from holdfast.puppet.drain import are_at_rest, is_consistent
from holdfast.scenarios.drain import Standing


def report(*sessions: tuple[str, int, int]) -> Reported:
    return Reported(1, Standing(), [Traffic(*session) for session in sessions])


AT_REST = {"a": report(("b", 3, 2)), "b": report(("a", 2, 3), ("c", 1, 1)), "c": report(("b", 1, 1))}


def test_two_equal_rounds_in_which_everything_sent_was_received_prove_rest() -> None:
    assert is_consistent(AT_REST)
    assert are_at_rest(AT_REST, AT_REST)


def test_a_process_alone_is_at_rest() -> None:
    assert are_at_rest({"a": report()}, {"a": report()})


@pytest.mark.parametrize(
    "changed",
    [
        {"a": report(("b", 4, 2))},  # one message is under way
        {"a": report()},  # only one end knows of the session: it is being lost
        {"c": report(("b", 1, 1), ("frozen", 1, 1))},  # the other end does not report
        {"a": report(("b", 3, 2), ("b", 1, 1))},  # a session is about to be replaced
    ],
)
def test_no_rest_is_seen_where_something_is_under_way(changed: dict[str, Reported]) -> None:
    assert not is_consistent(AT_REST | changed)
    assert not are_at_rest(AT_REST | changed, AT_REST | changed)


def test_a_connection_on_which_nobody_has_introduced_himself_is_no_session_yet() -> None:
    """Somebody dials a frozen process, say: it accepts, and never answers."""
    dialling = AT_REST | {"c": report(("", 1, 0), ("", 1, 0), ("b", 1, 1))}
    assert are_at_rest(dialling, dialling)
    assert are_at_rest(AT_REST, dialling)


def test_one_round_proves_nothing() -> None:
    assert not are_at_rest(None, AT_REST)


def test_two_rounds_between_which_something_passed_prove_nothing() -> None:
    later = AT_REST | {"a": report(("b", 4, 2)), "b": report(("a", 2, 4), ("c", 1, 1))}
    assert is_consistent(later)
    assert not are_at_rest(AT_REST, later)


def test_two_rounds_of_different_processes_prove_nothing() -> None:
    assert not are_at_rest(AT_REST, {"a": report()})


class Gossips:
    """Processes that answer messages with others, for a while, and report one by one while that goes on."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = [f"n{i}" for i in range(rng.randint(2, 4))]
        self.flying: list[tuple[str, str, int]] = []  #: from, to, hops left
        self.sent: dict[tuple[str, str], int] = {}
        self.received: dict[tuple[str, str], int] = {}
        for _ in range(rng.randint(1, 3)):
            self.send(rng.choice(self.names), rng.randint(1, 4))

    def send(self, sender: str, hops: int) -> None:
        receiver = self.rng.choice([name for name in self.names if name != sender])
        self.sent[sender, receiver] = self.sent.get((sender, receiver), 0) + 1
        self.flying.append((sender, receiver, hops))

    def go_on(self) -> None:
        for _ in range(self.rng.randint(0, 5)):
            if self.flying:
                sender, receiver, hops = self.next_to_arrive()
                self.received[sender, receiver] = self.received.get((sender, receiver), 0) + 1
                for _ in range(self.rng.choice([0, 1, 3]) if hops > 1 else 0):
                    self.send(receiver, hops - 1)

    def next_to_arrive(self) -> tuple[str, str, int]:
        """Any session, but each in its order."""
        link = self.rng.choice(self.flying)[:2]
        return self.flying.pop(next(i for i, message in enumerate(self.flying) if message[:2] == link))

    def round(self) -> dict[str, Reported]:
        reports = {}
        for name in self.rng.sample(self.names, len(self.names)):
            self.go_on()
            others = sorted(other for other in self.names if other != name)
            sessions = [
                (other, self.sent.get((name, other), 0), self.received.get((other, name), 0))
                for other in others
            ]
            reports[name] = report(*sessions)
        return reports


def test_rest_is_never_seen_while_a_message_is_under_way_and_always_in_the_end() -> None:
    fooled_by_sums = 0
    for seed in range(1_000):
        gossips = Gossips(random.Random(seed))
        earlier = gossips.round()
        while True:
            sums = [(t.sent, t.received) for each in earlier.values() for t in each.sessions]
            fooled_by_sums += sum(sent - received for sent, received in sums) == 0 and bool(gossips.flying)
            assert not (is_consistent(earlier) and gossips.flying), f"seed {seed}"
            later = gossips.round()
            if are_at_rest(earlier, later):
                break
            earlier = later
        assert not gossips.flying, f"seed {seed}"
    assert fooled_by_sums, "counting session by session would not be needed"
