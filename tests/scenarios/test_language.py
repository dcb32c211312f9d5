"""Lines, words and numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scenarios.language import (
    NAME_CHARS_MAX,
    Line,
    ScenarioError,
    lines_of,
    milliseconds_text,
    quoted,
    read_each,
    together,
    word_text,
)


def line(text: str) -> Line:
    return Line("file", 7, text)


def test_comments_and_blank_lines_are_skipped_and_numbers_are_those_of_the_file() -> None:
    text = "\ufeffone\r\n# two\n\n   # four\n  five # not a comment\n\t\n"
    found = [(each.number, each.rest()) for each in lines_of(text, "file")]
    assert found == [(1, "one"), (5, "five # not a comment")]


def test_only_a_newline_ends_a_line() -> None:
    assert [each.text for each in lines_of("a\x0bb\u2028c\x85d", "file")] == ["a\x0bb\u2028c\x85d"]


def test_words_end_at_spaces_or_stand_in_quotes() -> None:
    words = line('  Site "a b"\t"say ""x""" "" end  ')
    assert [words.word("w") for _ in range(5)] == ["Site", "a b", 'say "x"', "", "end"]
    assert words.is_at_end()


@given(st.lists(st.text(st.characters(exclude_characters="\n")), max_size=5))
def test_words_read_back_as_they_were_written(words: list[str]) -> None:
    written = line(" ".join(map(word_text, words)))
    assert [written.word("w") for _ in words] == words
    written.end()


@given(st.text(st.characters(exclude_characters="\n")))
def test_quoted_words_read_back(word: str) -> None:
    assert line(quoted(word)).word("w") == word


def test_keywords_are_case_insensitive_and_never_quoted() -> None:
    assert line("pArEnT x").keyword("Parent") == "Parent"
    assert not line('"Parent" x').take_keyword("Parent")
    assert not line("Parents x").take_keyword("Parent")


@pytest.mark.parametrize(
    ("text", "take", "says"),
    [
        ("", lambda line: line.word("a topic"), "file, line 7: the line ends; expected a topic"),
        ('"abc', lambda line: line.word("w"), "a quote is not closed"),
        ('"abc"d', lambda line: line.word("w"), "'d' directly after a closing quote"),
        ("a", lambda line: line.keyword("On", "Off"), "unexpected 'a'; expected On or Off"),
        ("a b", lambda line: line.keyword("x", "y", "z"), "expected x, y or z"),
        ("a/b", lambda line: line.name("a site"), "'a/b' is no name; expected a site: letters"),
        ("../b", lambda line: line.name("a site"), "is no name"),
        ("->", lambda line: line.name("a site"), "is no name"),
        ("a#1", lambda line: line.name("a site"), "is no name"),
        (
            "n" * (NAME_CHARS_MAX + 1),
            lambda line: line.name("a site"),
            "has 65 characters; expected at most 64",
        ),
        (
            "1.5",
            lambda line: line.integer("Delta", 0, 9),
            "'1.5' will not do; expected Delta, a whole number",
        ),
        ("10", lambda line: line.integer("Delta", 0, 9), "from 0 to 9"),
        ("9" * 5000, lambda line: line.integer("Delta", 0, 9), "will not do"),
        ("٣", lambda line: line.integer("Delta", 0, 9), "will not do"),
        ("-1", lambda line: line.milliseconds("Wait"), "'-1' will not do; expected Wait: milliseconds"),
        ("0", lambda line: line.milliseconds("Heartbeat", positive=True), "milliseconds above 0"),
        ("1e3", lambda line: line.milliseconds("Wait"), "will not do"),
        ("0.0000001", lambda line: line.milliseconds("Wait"), "will not do"),
        ("1.01", lambda line: line.share("Loss"), "'1.01' will not do; expected Loss: a share from 0 to 1"),
        ("nan", lambda line: line.share("Loss"), "will not do"),
        ("-0.1", lambda line: line.share("Loss"), "will not do"),
        ("x", lambda line: line.end(), "unexpected 'x'; expected the end of the line"),
    ],
)
def test_what_is_not_there_is_refused_with_what_was_expected(
    text: str, take: Callable[[Line], object], says: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        take(line(text))
    assert says in str(refused.value)
    assert (refused.value.file, refused.value.line) == ("file", 7)


def test_what_was_written_moves_no_terminal() -> None:
    with pytest.raises(ScenarioError) as refused:
        line("\x1b[2J").keyword("On")
    assert str(refused.value).isprintable()


@given(st.integers(-(10**17), 10**17))
def test_times_read_back_to_the_nanosecond(ns: int) -> None:
    assert line(milliseconds_text(ns)).milliseconds("t", signed=True) == ns


def test_all_bad_lines_are_one_error_in_the_order_of_the_file() -> None:
    errors: list[ScenarioError] = []

    def read(line: Line) -> int:
        return line.integer("n", 0, 9)

    assert read_each(lines_of("1\nx\n2\ny\n\ud800\n", "file"), read, errors) == [1, 2]
    error = together(errors[::-1])
    assert [one.line for one in error.problems] == [2, 4, 5]
    assert str(error).split("\n") == [
        "file, line 2: 'x' will not do; expected n, a whole number from 0 to 9",
        "file, line 4: 'y' will not do; expected n, a whole number from 0 to 9",
        "file, line 5: character U+D800 is not allowed",
    ]
