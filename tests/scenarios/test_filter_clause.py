"""Where a filter ends that nobody quoted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn_scenarios import WORDY_FILTERS, filter_texts
from examples import examples
from holdfast.filters.parse import parse_filter
from holdfast.scenarios.filter_clause import read_filter_before_clauses, read_whole_filter
from holdfast.scenarios.language import Line, ScenarioError, quoted


def read(text: str) -> tuple[str, str]:
    """The filter, and what is left."""
    line = Line("script", 4, text)
    found, filter = read_filter_before_clauses(line)
    assert filter == parse_filter(found)
    return found, line.rest()


@pytest.mark.parametrize(
    ("text", "filter", "rest"),
    [
        ("/p00-0", "/p00-0", ""),
        ("orders/# WHERE price > 100 As big", "orders/# WHERE price > 100", "As big"),
        ("orders/# WHERE price > 100 as big durable", "orders/# WHERE price > 100", "as big durable"),
        ("orders/# DURABLE", "orders/#", "DURABLE"),
        ("orders/#   WHERE  price > 100  Durable", "orders/#   WHERE  price > 100", "Durable"),
        ('"orders/# WHERE price > 100" As big', "orders/# WHERE price > 100", "As big"),
        ('"a WHERE ""x y"" = 1"', 'a WHERE "x y" = 1', ""),
        ('a WHERE "x y" = 1 As big', 'a WHERE "x y" = 1', "As big"),
        # The words in strings and quoted names
        ("a WHERE s = 'x As big'", "a WHERE s = 'x As big'", ""),
        ("a WHERE s = 'x As big' As big", "a WHERE s = 'x As big'", "As big"),
        ("a WHERE s = 'it''s As big'", "a WHERE s = 'it''s As big'", ""),
        ("a WHERE s = 'x Durable' Durable", "a WHERE s = 'x Durable'", "Durable"),
        ('a WHERE "x As y" = \'"\'', 'a WHERE "x As y" = \'"\'', ""),
        ("it's WHERE x = 1 As big", "it's WHERE x = 1", "As big"),
        # The words as attributes
        ("a WHERE durable", "a WHERE durable", ""),
        ("a WHERE NOT durable Durable", "a WHERE NOT durable", "Durable"),
        ("a WHERE as = as As as", "a WHERE as = as", "As as"),
        ("a WHERE as AND durable", "a WHERE as AND durable", ""),
        ("a WHERE x = as", "a WHERE x = as", ""),
        # The words as topics
        ("As", "As", ""),
        ("As As As", "As", "As As"),
        ("Durable Durable", "Durable", "Durable"),
    ],
)
def test_a_bare_filter_ends_where_its_clauses_begin(text: str, filter: str, rest: str) -> None:
    assert read(text) == (filter, rest)


@examples(150)
@given(
    filter_texts(),
    st.sampled_from(("", " As name", " Durable", " As as Durable", "  aS durable")),
    st.booleans(),
)
def test_a_filter_is_found_whatever_follows_it(text: str, clauses: str, quote: bool) -> None:
    bare = not quote and text == text.strip() and not text.startswith('"')
    assert read((text if bare else quoted(text)) + clauses) == (text, clauses.strip())


@given(WORDY_FILTERS)
def test_without_clauses_the_filter_is_all_of_the_line(text: str) -> None:
    line = Line("script", 4, text + "  ")
    assert read_whole_filter(line) == (text, parse_filter(text))
    assert line.is_at_end()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "script, line 4: the line ends; expected a filter"),
        ("a WHERE x != 3 As big", "the filter, column 11: unexpected '!='; expected '<>'"),
        ("a WHERE As big", "the filter, column 8: unexpected end of the filter; expected a condition"),
        ("a WHERE s = 'x As big", "the filter, column 13: the string does not end; expected a closing '"),
        ("a WHERE (s = 'x As y'", "the filter, column 9: the parenthesis is not closed"),
        ("a WHERE x = 1 As", "the filter, column 15: unexpected 'As'; expected AND, OR or the end"),
        ("a/#/b As big", "the filter, column 4: levels after '#'"),
        ('"a WHERE x ! 3" As big', "the filter, column 11: unexpected '!'; expected NOT"),
        ('"a', "a quote is not closed"),
    ],
)
def test_a_bad_filter_is_refused_with_its_own_column(text: str, says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        read(text)
    assert says in str(refused.value)
