"""What is read by which task: places, and ranges between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from holdfast.pipeline.errors import BadOption
from holdfast.pipeline.planning import TickRange, placed, ranges_between, token_of
from holdfast.pipeline.ranges import End
from holdfast.streams.checkpoint_token import Place, Token

ENDS = {"s@a/0": End(1, 100, 900), "s@b/0": End(3, 0, 0)}


def test_places_are_of_every_pubend() -> None:
    assert placed("earliest", ENDS, "s", "x") == {"s@a/0": 100, "s@b/0": 0}
    assert placed("latest", ENDS, "s", "x") == {"s@a/0": 900, "s@b/0": 0}
    assert placed(500, ENDS, "s", "x") == {"s@a/0": 500, "s@b/0": 500}
    token = Token({"s@a/0": Place(1, 300), "other@a/0": Place(1, 5)})
    assert placed(token, ENDS, "s", "x") == {"s@a/0": 300, "s@b/0": 0}
    with pytest.raises(BadOption, match=r"startingOffsets: the token names s@c/0, and no broker has that"):
        placed(Token({"s@c/0": Place(1, 1)}), ENDS, "s", "startingOffsets")
    assert token_of({"s@b/0": 7}, ENDS) == Token({"s@b/0": Place(3, 7)})


PLACES = st.dictionaries(st.sampled_from(["s@a/0", "s@a/1", "s@b/0"]), st.integers(0, 1_000))


@given(PLACES, PLACES, st.integers(1, 20))
def test_ranges_cover_what_is_between_once(start: dict[str, int], end: dict[str, int], least: int) -> None:
    ranges = ranges_between(start, end, least)
    assert ranges == ranges_between(dict(reversed(start.items())), dict(reversed(end.items())), least)
    found = [(pubend, tick) for pubend, after, upto in ranges for tick in range(after + 1, upto + 1)]
    wanted = [
        (pubend, tick) for pubend in sorted(end) for tick in range(start.get(pubend, 0) + 1, end[pubend] + 1)
    ]
    assert found == wanted
    assert len(ranges) >= min(least, len(wanted))
    assert all(after < upto for _, after, upto in ranges)


def test_longer_ranges_are_divided_more_often() -> None:
    ranges = ranges_between({}, {"s@a/0": 300, "s@b/0": 100}, 4)
    assert ranges == [
        TickRange("s@a/0", 0, 100),
        TickRange("s@a/0", 100, 200),
        TickRange("s@a/0", 200, 300),
        TickRange("s@b/0", 0, 100),
    ]
