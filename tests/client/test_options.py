"""The options of ``subscribe``, and which error a refusal is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from math import inf, nan
from typing import Any

import pytest

from holdfast.client.effect import NotAccepted, SubscriptionRefused
from holdfast.client.errors import BadEvent, InvalidOption, OtherFilter, Refused, TokenAhead
from holdfast.client.options import Options, check_timeout
from holdfast.client.refusal import event_refusal, refusal
from holdfast.errors import FilterError, HoldfastError
from holdfast.filters.parse import parse_filter
from holdfast.identity import EventId
from holdfast.streams.checkpoint_token import Place, Token

TOKEN = Token({"s@b/1": Place(1, 7)})


@pytest.mark.parametrize(
    ("start", "tick", "token"),
    [
        ("now", None, None),
        ("earliest", 0, None),
        (TOKEN, None, TOKEN),
        (datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC), 1_000_004, None),
        (datetime(1970, 1, 1, 1, 0, 1, tzinfo=timezone(timedelta(hours=1))), 999_999, None),
        (datetime(1960, 1, 1, tzinfo=UTC), 0, None),
    ],
)
def test_where_to_begin(start: Any, tick: int | None, token: Token | None) -> None:
    options = Options(start=start)
    assert (options.start_tick, options.token) == (tick, token)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"start": datetime(2026, 1, 1)}, "start: is 2026-01-01 00:00:00, without a time zone"),
        ({"start": 12}, "start: is 12; expected 'now', 'earliest', a datetime or a Token"),
        ({"start": str(TOKEN)}, "start: is 'hf1.*expected"),
        ({"durable": "x" * 257}, "durable: has 257 bytes"),
        ({"durable": 7}, "durable: must be text"),
        ({"acknowledge": "later", "durable": "d"}, "acknowledge: is 'later'; expected 'manual' or 'auto'"),
        ({"buffer": True, "on_gap": "hide"}, "on_gap: is 'hide'"),
        ({"buffer": "3"}, "buffer: is '3'; expected a number of items"),
        ({"on_upgrade": 5}, "on_upgrade: is 5; expected something to call"),
        ({"timeout": "x"}, "timeout: is 'x'; expected seconds, or None to wait for ever"),
    ],
)
def test_what_can_never_work_is_refused_by_name(asked: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidOption, match=text):
        Options(**asked)


@pytest.mark.parametrize("timeout", [None, 0, -1, 2.5, True, inf, 10**300])
def test_so_long_one_can_wait(timeout: float | None) -> None:
    check_timeout(timeout)


@pytest.mark.parametrize("timeout", ["x", b"x", [], object(), nan, 10**400])
def test_so_long_one_cannot(timeout: object) -> None:
    with pytest.raises(InvalidOption, match=r"timeout: is .*; expected seconds, or None"):
        check_timeout(timeout)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("", Refused), ("durable", OtherFilter), ("token-ahead", TokenAhead), ("new", Refused)],
)
def test_a_refusal_by_its_code(code: str, kind: type[HoldfastError]) -> None:
    error = refusal(SubscriptionRefused(1, "that is why", code), "#")
    assert type(error) is kind
    assert str(error) == "that is why"


@pytest.mark.parametrize("text", ["a WHERE", "a WHERE x = 1 AND\n  y >", "a WHERE x ~ 2"])
def test_a_filters_error_comes_back_as_it_was(text: str) -> None:
    with pytest.raises(FilterError) as raised:
        parse_filter(text)
    error = refusal(SubscriptionRefused(1, str(raised.value), "filter"), text)
    assert isinstance(error, FilterError)
    assert (str(error), error.line, error.column) == (
        str(raised.value),
        raised.value.line,
        raised.value.column,
    )


def test_a_filters_error_without_a_place_is_one_all_the_same() -> None:
    error = refusal(SubscriptionRefused(1, "too dear", "filter"), "#")
    assert isinstance(error, FilterError)
    assert error.problem == "too dear"


@pytest.mark.parametrize(("code", "kind"), [("", Refused), ("event", BadEvent), ("new", Refused)])
def test_whose_fault_the_refusal_of_an_event_is(code: str, kind: type[Refused]) -> None:
    error = event_refusal(NotAccepted(7, "that is why", code), EventId("p", 7))
    assert type(error) is kind
    assert (error.reason, error.id) == ("that is why", EventId("p", 7))
