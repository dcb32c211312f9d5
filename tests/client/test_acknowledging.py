"""Commits on their way: one message at a time, nothing lost with a session [R1.8, B1.10]."""

from __future__ import annotations

import pytest

from holdfast.client.acknowledging import Acknowledging
from holdfast.messages.durable import Acknowledge


def test_what_is_consumed_meanwhile_goes_with_the_next_message() -> None:
    acknowledging = Acknowledging()
    assert acknowledging.next_message(7) is None
    acknowledging.commit({"a": 1}, 1)
    assert acknowledging.next_message(7) == Acknowledge(7, {"a": 1}, 1)
    for ticket in range(2, 6):
        acknowledging.commit({"a": ticket, "b": 10 - ticket}, ticket)
        assert acknowledging.next_message(7) is None
    assert not acknowledging.on_saved(5)
    assert acknowledging.on_saved(1)
    assert acknowledging.next_message(7) == Acknowledge(7, {"a": 5, "b": 8}, 5)
    assert acknowledging.on_saved(5)
    assert not acknowledging.on_saved(5)
    assert acknowledging.next_message(7) is None


def test_what_a_broken_session_left_without_an_answer_is_said_again() -> None:
    acknowledging = Acknowledging()
    acknowledging.commit({"a": 5, "b": 1}, 1)
    acknowledging.next_message(7)
    acknowledging.commit({"a": 3, "c": 2}, 2)
    acknowledging.begin_again()
    assert acknowledging.next_message(7) == Acknowledge(7, {"a": 5, "b": 1, "c": 2}, 2)
    acknowledging.begin_again()
    acknowledging.begin_again()
    assert acknowledging.next_message(7) == Acknowledge(7, {"a": 5, "b": 1, "c": 2}, 2)
    assert acknowledging.on_saved(2)
    acknowledging.begin_again()
    assert acknowledging.next_message(7) is None


@pytest.mark.parametrize("ticket", [0, 1])
def test_tickets_ascend(ticket: int) -> None:
    acknowledging = Acknowledging()
    acknowledging.commit({}, 1)
    with pytest.raises(AssertionError):
        acknowledging.commit({}, ticket)


def test_an_answer_to_nothing_is_none() -> None:
    assert not Acknowledging().on_saved(0)


def test_a_message_that_was_sent_is_not_changed_when_its_session_breaks() -> None:
    """It may still be on its way, and would acknowledge what was not consumed when it left (I17)."""
    acknowledging = Acknowledging()
    acknowledging.commit({"a": 1}, 1)
    sent = acknowledging.next_message(7)
    acknowledging.commit({"a": 5}, 2)
    acknowledging.begin_again()
    assert sent == Acknowledge(7, {"a": 1}, 1)
