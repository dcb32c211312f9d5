"""Checkpoint tokens: values that only advance, and a text that cannot be mistaken [R1.6, R1.8, B1.10]."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.streams.checkpoint_token import InvalidToken, Place, Token

numbers = st.integers(0, 2**63 - 1)
places = st.builds(Place, numbers, numbers)
tokens = st.dictionaries(st.text(max_size=20), places, max_size=5).map(Token)


@given(tokens)
def test_a_text_is_the_token(token: Token) -> None:
    assert Token.parse(str(token)) == token
    assert hash(Token.parse(str(token))) == hash(token)


@given(tokens)
def test_equal_tokens_have_one_text(token: Token) -> None:
    again = Token(dict(reversed(list(token.items()))))
    assert (str(again), hash(again)) == (str(token), hash(token))


@given(tokens, st.data())
def test_no_other_text_is_a_token(token: Token, data: st.DataObject) -> None:
    """One character changed, left out, added or moved to another case, or the end cut off."""
    text = str(token)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from(string.printable))
    for changed in (
        text[:at] + other + text[at + 1 :],
        text[:at] + text[at + 1 :],
        text[:at] + other + text[at:],
        text[:at],
    ):
        if changed != text:
            with pytest.raises(InvalidToken):
                Token.parse(changed)


@given(tokens, st.text(max_size=5), places)
def test_a_place_never_goes_back(token: Token, pubend: str, place: Place) -> None:
    advanced = token.advanced(pubend, place)
    assert advanced.get(pubend, Place(0, 0)) == max(place, token.get(pubend, Place(0, 0)))
    assert {**advanced, pubend: None} == {**token, pubend: None}


def test_a_later_incarnation_is_later_whatever_its_tick() -> None:
    token = Token({"e": Place(1, 900)}).advanced("e", Place(2, 5))
    assert token["e"] == Place(2, 5)
    assert token.advanced("e", Place(1, 901)) is token


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with hf1."),
        ("hf2.AAAA", "another version, or no token"),
        ("hf1.", "checksum"),
        ("hf1.AAAAA", "not whole"),
        ("hf1.AAAA AAAA", "do not belong there"),
        ("x" * (1 << 21), "at most 1048576 characters"),
    ],
)
def test_what_is_no_token_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(InvalidToken, match=said):
        Token.parse(text)


@pytest.mark.parametrize(
    ("given", "kind"), [(None, "null"), (5, "an int"), (b"hf1.", "bytes"), ([], "an array")]
)
def test_a_token_is_read_from_text_only(given: Any, kind: str) -> None:
    with pytest.raises(InvalidToken, match=f"a token is read from text, not from {kind}"):
        Token.parse(given)


def test_a_token_is_not_made_of_its_text() -> None:
    text: Any = str(Token())
    with pytest.raises(InvalidToken, match="a token is made of places, not of text"):
        Token(text)


def test_a_token_is_short() -> None:
    assert len(str(Token({"orders@b1": Place(1, 1_700_000_000_000_000)}))) < 60
