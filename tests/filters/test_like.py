"""LIKE against a plain reference, and its speed on strings that would make a backtracking matcher despair."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counted_calls import work_of
from drawn_filters import a_like, like_text
from examples import examples
from holdfast.filters.like import BadEscape, LikePattern, like_covers
from strategies import drawn

#: What a place of a pattern can be, apart from a character.
ONE, ANY = "_", "%"


def reference_places(pattern: str, escape: str | None) -> list[tuple[str, bool]]:
    """Characters, each with whether it is a wildcard."""
    places: list[tuple[str, bool]] = []
    at = 0
    while at < len(pattern):
        escaped = pattern[at] == escape
        at += escaped
        places.append((pattern[at], not escaped and pattern[at] in (ONE, ANY)))
        at += 1
    return places


def reference(pattern: str, escape: str | None, string: str) -> bool:
    """Dynamic programming over prefixes: ``ends[i]`` says whether the places so far match ``string[:i]``."""
    ends = [True] + [False] * len(string)
    for char, wild in reference_places(pattern, escape):
        if wild and char == ANY:
            ends = [any(ends[: i + 1]) for i in range(len(ends))]
        else:
            ends = [False] + [ends[i] and (wild or string[i] == char) for i in range(len(string))]
    return ends[-1]


# So few characters that a string often matches almost, and pieces of a pattern can overlap in it.
PATTERNS = st.text(st.sampled_from("ab%%_"), max_size=8)
STRINGS = st.text(st.sampled_from("ab"), max_size=8) | st.text(st.sampled_from("ab%_"), max_size=14)


@examples(400)
@given(PATTERNS, STRINGS)
def test_a_pattern_matches_what_the_reference_matches(pattern: str, string: str) -> None:
    assert LikePattern(pattern).matches(string) == reference(pattern, None, string)


@examples(250)
@given(
    drawn(lambda source: a_like(source) + a_like(source)),
    st.sampled_from(["!", "\\", "%", "_", "a", "😀"]),
    st.text(st.sampled_from("abc%_!\\😀"), max_size=10),
)
def test_an_escaped_pattern_matches_what_the_reference_matches(
    places: list[str | None], escape: str, string: str
) -> None:
    pattern = like_text(places, escape)
    assert LikePattern(pattern, escape).matches(string) == reference(pattern, escape, string)


@examples(150)
@given(st.text(max_size=12), st.text(max_size=3), st.text(max_size=3))
def test_any_characters_match_themselves_and_nothing_is_a_regular_expression(
    string: str, before: str, after: str
) -> None:
    pattern = "".join(f"!{c}" if c in "%_!" else c for c in string)
    assert LikePattern(pattern, "!").matches(string)
    assert LikePattern(f"%{pattern}%", "!").matches(before + string + after)
    assert LikePattern(pattern, "!").matches(before + string + after) == (before + string + after == string)


@pytest.mark.parametrize(
    ("pattern", "escape", "yes", "no"),
    [
        ("", None, [""], ["a", " "]),
        ("abc", None, ["abc"], ["", "ab", "abcd", "ABC", "xabc", "abc\n"]),
        ("%", None, ["", "a", "a\nb"], []),
        ("%%", None, ["", "a"], []),
        ("_", None, ["a", "\n", "😀"], ["", "ab"]),
        ("_%", None, ["a", "ab"], [""]),
        ("%_", None, ["a", "ab"], [""]),
        ("a%", None, ["a", "ab"], ["", "ba", "A"]),
        ("%a", None, ["a", "ba"], ["", "ab"]),
        ("%a%", None, ["a", "bab"], ["", "b"]),
        ("a%a", None, ["aa", "aba"], ["a", "ab"]),  # the two may not share a character
        ("ab%ba", None, ["abba", "abxba"], ["aba"]),
        ("%ab%ab%", None, ["abab", "xabyabz"], ["ab", "aab"]),
        ("%ab%b", None, ["abb", "xabxb"], ["ab", "xab"]),
        ("a%ab%", None, ["aab", "axabx"], ["ab", "abx"]),
        ("%a_%_b", None, ["axyb"], ["axb", "aab"]),
        ("_a_", None, ["bab", "aaa"], ["ab", "abab"]),
        ("%_a%", None, ["ba", "aa", "xxa"], ["a", "ab"]),
        ("a_%_b", None, ["axyb", "axxxb"], ["axb", "ab"]),
        ("%a_c%d_f%", None, ["abcdef", "xaacxdxfx"], ["adcf", "dxfaxc"]),
        ("100!%", "!", ["100%"], ["100", "1000", "100!%"]),
        ("!_!!", "!", ["_!"], ["a!", "_"]),
        ("%%a", "%", ["%a"], ["a", "xa", "%%a"]),
        ("a\\%b", None, ["a\\b", "a\\xb"], ["a%b"]),  # without ESCAPE a backslash is a character
        ("ß", None, ["ß"], ["SS", "ss"]),
        ("é", None, ["é"], ["e\u0301"]),  # by code point, not by what it looks like
        ("_", None, [], ["e\u0301"]),
    ],
)
def test_the_whole_string_is_matched_with_its_case(
    pattern: str, escape: str | None, yes: list[str], no: list[str]
) -> None:
    like = LikePattern(pattern, escape)
    assert [string for string in yes if not like.matches(string)] == []
    assert [string for string in no if like.matches(string)] == []


@pytest.mark.parametrize(
    ("pattern", "escape", "at"),
    [
        ("!", "!", 0),
        ("a!", "!", 1),
        ("!!!", "!", 2),
        ("!a", "!", 0),
        ("%!b", "!", 1),
        ("%a", "%", 0),
        ("__", "a", None),
    ],
)
def test_an_escape_character_may_precede_only_a_wildcard_or_itself(
    pattern: str, escape: str, at: int | None
) -> None:
    if at is None:
        LikePattern(pattern, escape)
        return
    with pytest.raises(BadEscape) as caught:
        LikePattern(pattern, escape)
    assert caught.value.at == at


@pytest.mark.parametrize(
    ("pattern", "escape", "shape", "prefix"),
    [
        ("", None, "exact", ""),
        ("abc", None, "exact", "abc"),
        ("a!%", "!", "exact", "a%"),
        ("%", None, "prefix", ""),
        ("%%%", None, "prefix", ""),
        ("abc%", None, "prefix", "abc"),
        ("abc%%", None, "prefix", "abc"),
        ("a!_%", "!", "prefix", "a_"),
        ("abc%d", None, "general", "abc"),
        ("ab_c", None, "general", "ab"),
        ("ab_%", None, "general", "ab"),
        ("_", None, "general", ""),
        ("%a%", None, "general", ""),
    ],
)
def test_shape_and_prefix(pattern: str, escape: str | None, shape: str, prefix: str) -> None:
    like = LikePattern(pattern, escape)
    assert (like.shape, like.prefix) == (shape, prefix)


@examples(250)
@given(PATTERNS, STRINGS)
def test_shape_and_prefix_say_what_matches(pattern: str, string: str) -> None:
    like = LikePattern(pattern)
    matched = like.matches(string)
    if like.shape == LikePattern.EXACT:
        assert matched == (string == like.prefix)
    elif like.shape == LikePattern.PREFIX:
        assert matched == string.startswith(like.prefix)
    else:
        assert not matched or string.startswith(like.prefix)


@examples(250)
@given(PATTERNS, PATTERNS, st.lists(STRINGS, max_size=8))
def test_a_pattern_that_covers_another_matches_all_it_matches(
    one: str, other: str, strings: list[str]
) -> None:
    general, special = LikePattern(one), LikePattern(other)
    if like_covers(general.parts, special.parts):
        # Beside strings at large, those the special pattern matches: every % as nothing and as something.
        for string in [*strings, *(other.replace("%", run).replace("_", "b") for run in ("", "a", "ba"))]:
            assert general.matches(string) >= special.matches(string)


@given(PATTERNS)
def test_a_pattern_covers_itself_and_is_covered_by_anything(pattern: str) -> None:
    parts = LikePattern(pattern).parts
    assert like_covers(parts, parts)
    assert like_covers(LikePattern("%").parts, parts)


# Time

#: Pairs of a pattern and a piece; a string of such pieces makes the pattern almost match at every place.
HARD = [
    ("%a%a%a%a%b", "a"),
    ("%a_a_a_a%b", "a"),
    ("%a_a_a_a%", "aaaaaab"),
    ("_%_%_%_%b", "a"),
    ("%a_b%", "a"),
    ("%" + "a_" * 20 + "b%", "a"),
    ("%" + "a" * 40 + "b%", "a"),
    ("%" + "ab" * 20 + "c%", "ab"),
    ("%a_%b_%c_%d_%e%", "abcd"),
    ("a" + "%_a" * 30 + "%b%", "a"),
    ("%" * 50 + "a_c" + "%" * 50 + "z", "abc"),
    ("%" + "_" * 200 + "b%", "a"),
]


@pytest.mark.parametrize(("pattern", "piece"), HARD)
def test_the_steps_for_twice_the_string_are_at_most_twice_as_many(pattern: str, piece: str) -> None:
    """Counted: ``_Segment.find`` makes one call per character it looks at, and nothing else in ``matches`` loops."""
    like = LikePattern(pattern)
    short, long = (piece * (length // len(piece)) for length in (5_000, 10_000))
    one, two = work_of(lambda: like.matches(short)).calls, work_of(lambda: like.matches(long)).calls
    assert two <= 2 * one + 50
    assert two <= len(long) + 10 * len(pattern) + 50  # each character at most once


@pytest.mark.parametrize(("pattern", "piece"), HARD)
def test_the_time_for_twice_the_string_is_at_most_2_3_times_as_long(pattern: str, piece: str) -> None:
    """Timed too, since ``str.find`` loops where no count sees it.

    The least CPU time of several rounds, so that other processes and interruptions do not count; what is faster than
    a clock can tell apart from nothing passes. 40 000 characters take some milliseconds; a matcher that goes back, or
    a quadratic ``find``, would take seconds.
    """
    like = LikePattern(pattern)
    short, long = (piece * (length // len(piece)) for length in (20_000, 40_000))

    def least(string: str, rounds: int) -> float:
        times = []
        for _ in range(rounds):
            began = time.process_time()
            like.matches(string)
            times.append(time.process_time() - began)
        return min(times)

    for rounds in (3, 10, 30):  # more only if the first few were disturbed
        one, two = least(short, rounds), least(long, rounds)
        if two <= 2.3 * one + 0.0005:
            return
    pytest.fail(f"{pattern}: {one * 1e3:.2f} ms for 20 000 characters, {two * 1e3:.2f} ms for 40 000")
