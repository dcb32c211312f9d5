from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import FilterError
from holdfast.filters.xpath import STEPS_MAX, Kind, Path, Predicate, Step, XPathRelation, parse_xpath, walk

names = st.sampled_from(["a", "b-c", "d.e", "_f", "text", "and", "é", "क्षेत्र"])
literals = st.one_of(
    st.text(alphabet="ab '<]0", max_size=4),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0),
)


@st.composite
def steps(draw: st.DrawFn, depth: int = 2) -> tuple[Step, ...]:
    made = [
        Step(Kind.ELEMENT, draw(names | st.just("*")), draw(st.booleans()), draw(predicates(depth)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    if draw(st.booleans()):
        kind, name = draw(st.sampled_from([(Kind.ATTRIBUTE, "x"), (Kind.TEXT, "")]))
        made.append(Step(kind, name, draw(st.booleans()), draw(predicates(depth))))
    return tuple(made)


@st.composite
def predicates(draw: st.DrawFn, depth: int) -> tuple[Predicate, ...]:
    if depth == 0:
        return ()
    made = []
    for _ in range(draw(st.integers(0, 2))):
        inside = draw(st.just(()) | steps(depth - 1))
        relation = draw(st.none() | st.sampled_from(XPathRelation))
        made.append(Predicate(inside, relation, draw(literals) if relation else None))
    return tuple(made)


@given(steps().map(Path))
def test_the_canonical_text_parses_to_the_same_path(path: Path) -> None:
    assert parse_xpath(str(path)) == path


def test_every_construct_of_the_subset_is_read() -> None:
    path = parse_xpath(
        """ / a // * [ @x = 'it' ][.//b/text() >= -1.50] [c[d]] [. != "it's"] / @y [ . < .5 ] """
    )
    assert str(path) == """/a//*[@x = 'it'][.//b/text() >= -1.5][c[d]][. != "it's"]/@y[. < 0.5]"""
    assert [step.name for step in walk(path.steps)] == ["a", "*", "x", "b", "", "c", "d", "y"]
    assert [step.descendant for step in path.steps] == [False, True, False]


def test_equal_paths_print_alike_even_with_a_negative_zero() -> None:
    assert str(parse_xpath("/a[. = -0]")) == str(parse_xpath("/a[. = 0.0]")) == "/a[. = 0]"


@pytest.mark.parametrize("name", ["é", "क्षेत्र", "Ω-1.2", "a·b", "\U00010400"])
def test_names_are_those_of_xml(name: str) -> None:
    assert parse_xpath(f"/{name}/@{name}").steps[0].name == name


@pytest.mark.parametrize("name", ["1a", "-a", "×", "·a", ";"])
def test_what_is_no_name_of_xml_is_refused(name: str) -> None:
    with pytest.raises(FilterError, match="a name"):
        parse_xpath(f"/{name}")


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "paths are absolute"),
        ("a/b", 1, "paths are absolute"),
        ("/", 2, "a name"),
        ("/a/", 4, "a name"),
        ("/a///b", 5, "a name"),
        ("/a/..", 4, "not steps of the subset"),
        ("/p:a", 2, "prefix 'p:' is refused"),
        ("/child::a", 2, "axis 'child::' is not in the subset"),
        ("/a/node()", 4, "'node\\(\\)' is not in the subset"),
        ("/a/text(", 9, "'\\)'"),
        ("/a/@b/c", 6, "'@b' has no children"),
        ("/a[text()/b]", 10, "'text\\(\\)' has no children"),
        ("/a | /b", 4, "unions"),
        ("/a[1]", 4, "positions"),
        ("/a[/b]", 4, "relative"),
        ("/a[./b]", 5, "the name alone"),
        ("/a[b and c]", 6, "write \\[a\\]\\[b\\]"),
        ("/a[b or c]", 6, "joined by OR"),
        ("/a[b = ]", 8, "a number or a quoted string"),
        ("/a[b = 'x]", 8, "does not end"),
        ("/a[b = 1.2.3]", 8, "a number"),
        ("/a[b = -]", 8, "a number"),
        ("/a[b = 1e5]", 9, "']'"),
        (f"/a[b = {'9' * 400}]", 8, "too large"),
        ("/a[b", 5, "a comparison or ']'"),
        ("/a]", 3, "the end"),
    ],
)
def test_what_is_outside_the_subset_is_refused_at_its_place(text: str, column: int, problem: str) -> None:
    with pytest.raises(FilterError, match=problem) as caught:
        parse_xpath(text)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_expressions_have_a_greatest_size() -> None:
    assert len(parse_xpath("/a" * STEPS_MAX).steps) == STEPS_MAX
    with pytest.raises(FilterError, match="more than 256 steps"):
        parse_xpath("/a" * (STEPS_MAX + 1))
    with pytest.raises(FilterError, match="nested deeper"):
        parse_xpath("/a" + "[a" * 17 + "]" * 17)


def test_an_error_points_into_the_filter_around_the_expression() -> None:
    filter_text = "t WHERE XPATH '/a[''x'" + "'"
    expression = "/a['x'"
    places = [*range(15, 18), 18, 20, 21, 23]
    with pytest.raises(FilterError) as caught:
        parse_xpath(expression, filter_text, places)
    assert caught.value.text == filter_text
    assert caught.value.offset == 18


@given(st.text(alphabet="/*@.[]()=<>!'\"ab1- \n", max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        path = parse_xpath(text)
    except FilterError:
        return
    assert parse_xpath(str(path)) == path
