"""The automaton against the reference, pattern by pattern. The compiled copy, if it was built, takes the same tests."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counted_calls import work_of
from examples import examples
from holdfast.bench.xpath_workload import documents, patterns
from holdfast.events.document import Document, parse_document
from holdfast.filters.tree_pattern import selects
from holdfast.filters.xpath import Path, parse_xpath
from holdfast.matching.automaton import PatternAutomaton

Engine = Callable[..., PatternAutomaton]


def engines() -> dict[str, Engine]:
    found: dict[str, Engine] = {"pure": PatternAutomaton}
    with suppress(ImportError):
        found["compiled"] = import_module("holdfast.matching.compiled.automaton").PatternAutomaton
    return found


ENGINES = engines()


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]


def document(text: str) -> Document:
    return parse_document(text.encode())


def matching(engine: Engine, paths: list[str], text: str) -> list[str]:
    automaton = engine()
    numbers = {automaton.acquire(parse_xpath(path)): path for path in paths}
    return sorted(numbers[number] for number in automaton.match(document(text)))


# Numbers


def test_an_empty_automaton_matches_nothing(engine: Engine) -> None:
    assert engine().match(document("<a><b/></a>")) == set()
    assert len(engine()) == 0


def test_equal_paths_share_a_number_until_the_last_is_released(engine: Engine) -> None:
    automaton = engine()
    number = automaton.acquire(parse_xpath("/a[@x = 1]"))
    assert automaton.acquire(parse_xpath("/a[ @x=1.0 ]")) == number
    assert len(automaton) == 1
    automaton.release(number)
    assert automaton.match(document("<a x='1'/>")) == {number}
    automaton.release(number)
    assert automaton.match(document("<a x='1'/>")) == set()
    assert len(automaton) == 0


def test_numbers_are_dense_and_taken_again(engine: Engine) -> None:
    automaton = engine()
    numbers = [automaton.acquire(parse_xpath(f"/a{i}[b][c]")) for i in range(6)]
    assert sorted(numbers) == list(range(6))
    automaton.release(numbers[2])
    assert automaton.acquire(parse_xpath("/z")) == numbers[2]
    assert automaton.match(document("<z/>")) == {numbers[2]}


def test_a_pattern_that_can_fit_nowhere_is_kept_and_never_matches(engine: Engine) -> None:
    automaton = engine()
    void = [automaton.acquire(parse_xpath(path)) for path in ("/@x", "/text()", "//@x[a]", "/a[. < 'x']")]
    assert automaton.match(document("<a x='1'>1</a>")) == set()
    for number in void:
        automaton.release(number)
    assert len(automaton) == 0


# What matches


def test_different_patterns_of_one_linear_path_match_together(engine: Engine) -> None:
    paths = ["/a/b", "/a[b]", "/a[b][b]", "/a[b]/b"]
    assert matching(engine, paths, "<a><b/></a>") == sorted(paths)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<r><a><b/><c/></a></r>", True),
        ("<r><a><b/></a><a><c/></a></r>", False),
        ("<r><a><b/></a><a><c/></a><a><c/><b/></a></r>", True),
    ],
)
def test_branches_must_meet_in_one_element(engine: Engine, text: str, expected: bool) -> None:
    for path in ("/r/a[b]/c", "//a[b][c]", "/r//a[.//b]//c", "/*/*[b]/c", "//*[b][c]"):
        assert matching(engine, [path], text) == [path] * expected, path


def test_forks_below_forks_must_meet_too(engine: Engine) -> None:
    path = "/r/a[x]/b[y]/c"
    assert matching(engine, [path], "<r><a><x/><b><y/><c/></b></a></r>") == [path]
    assert matching(engine, [path], "<r><a><x/><b><y/></b></a><a><b><y/><c/></b></a></r>") == []
    assert matching(engine, [path], "<r><a><x/><b><y/></b><b><c/></b></a></r>") == []


def test_several_tests_of_one_value_must_hold_of_one_value(engine: Engine) -> None:
    one, each = "/a/text()[. > 1][. < 3]", "/a[text() > 1][text() < 3]"
    assert matching(engine, [one, each], "<a>0<b/>4</a>") == [each]
    assert matching(engine, [one, each], "<a>0<b/>2</a>") == sorted([one, each])
    deep = "//@x[. > 1][. < 3]"
    assert matching(engine, [deep], "<a x='0'><b x='4'/></a>") == []
    assert matching(engine, [deep], "<a x='0'><b x='2'/></a>") == [deep]


def test_all_comparisons_of_a_value_are_found(engine: Engine) -> None:
    tests = [
        "= 2",
        "= '2'",
        "= '2.0'",
        "!= 2",
        "!= '2'",
        "!= 3",
        "< 2",
        "<= 2",
        "> 2",
        ">= 2",
        "> 1",
        "< '3'",
    ]
    paths = [f"/a[@x {test}]" for test in tests]
    for value, number in (("2", 2.0), ("2.0", 2.0), ("-7", -7.0), ("none", None)):
        truth = [selects(parse_xpath(path), document(f"<a x='{value}'/>")) for path in paths]
        assert any(truth), number
        expected = sorted(path for path, true in zip(paths, truth, strict=True) if true)
        assert matching(engine, paths, f"<a x='{value}'/>") == expected


def test_names_no_pattern_mentions_are_matched_by_stars_and_passed_by_descendants(engine: Engine) -> None:
    automaton = engine()
    numbers = {path: automaton.acquire(parse_xpath(path)) for path in ("/*/*", "//b", "/a/b")}
    assert automaton.match(document("<u><v/></u>")) == {numbers["/*/*"]}
    assert automaton.match(document("<w><x><b/></x></w>")) == {numbers["/*/*"], numbers["//b"]}
    added = automaton.acquire(parse_xpath("/w/x"))  # names that were unknown a moment ago
    assert automaton.match(document("<w><x/></w>")) == {numbers["/*/*"], added}


# Agreement with the reference

NAMES = ("a", "b", "c", "*")
VALUES = ("", "1", "2", " 2 ", "2.0", "-1", "x", "1 2")
LITERALS = ("1", "2", "-1", "0.5", "'1'", "'2'", "' 2 '", "'x'", "''")


def a_document(rng: random.Random) -> Document:
    return document(an_element(rng, 5))


def an_element(rng: random.Random, depth: int) -> str:
    name = rng.choice("aaabbbccd")
    attributes = "".join(f" {x}='{rng.choice(VALUES)}'" for x in "xy" if rng.random() < 0.3)
    inside = ""
    for _ in range(rng.randint(depth > 2, 4)):
        value = rng.choice(VALUES)
        inside += (
            an_element(rng, depth - 1) if depth and rng.random() < 0.7 else rng.choice([value, "<!---->"])
        )
    return f"<{name}{attributes}>{inside}</{name}>"


def a_path(rng: random.Random) -> Path:
    return parse_xpath(rng.choice(("/", "/", "//")) + some_steps(rng, 2))


def some_steps(rng: random.Random, depth: int) -> str:
    steps = [rng.choice(NAMES) + some_predicates(rng, depth) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.3:
        steps.append(rng.choice(("@x", "@y", "text()")) + some_predicates(rng, 1))
    text = steps[0]
    for step in steps[1:]:
        text += rng.choice(("/", "/", "//")) + step
    return text


def some_predicates(rng: random.Random, depth: int) -> str:
    return "".join(a_predicate(rng, depth) for _ in range(rng.choice((0, 0, 0, 1, 1, 2)) if depth else 0))


def a_predicate(rng: random.Random, depth: int) -> str:
    inside = rng.choice(
        (".", "@x", "text()", ".//@y", some_steps(rng, depth - 1), ".//" + some_steps(rng, depth - 1))
    )
    if rng.random() < 0.5:
        return f"[{inside}]"
    return f"[{inside} {rng.choice(('=', '=', '!=', '<', '<=', '>', '>='))} {rng.choice(LITERALS)}]"


def check_history(automaton: PatternAutomaton, rng: random.Random) -> None:
    """Acquire, release and match in turn; every answer must be that of the reference."""
    held: list[tuple[Path, int]] = []
    known = [a_path(rng) for _ in range(30)]
    for _ in range(40):
        for _ in range(rng.choice((0, 0, 1, 2, 10))):
            path = rng.choice(known) if rng.random() < 0.7 else a_path(rng)
            held.append((path, automaton.acquire(path)))
        for _ in range(rng.choice((0, 0, 1, 3))):
            if held:
                automaton.release(held.pop(rng.randrange(len(held)))[1])
        for tree in [a_document(rng) for _ in range(rng.choice((1, 2)))]:
            found = automaton.match(tree)
            for path, number in held:
                assert (number in found) == selects(path, tree), str(path)
            assert found <= {number for _, number in held}
    for _, number in held:
        automaton.release(number)
    assert automaton.match(a_document(rng)) == set()


@pytest.mark.parametrize("name", list(ENGINES))
@examples(10)
@given(seed=st.integers(0, 2**32))
def test_every_pattern_matches_where_it_selects_something(name: str, seed: int) -> None:
    check_history(ENGINES[name](), random.Random(seed))


@pytest.mark.parametrize("members_max", [0, 300])
def test_forgetting_states_changes_no_answer(engine: Engine, members_max: int) -> None:
    check_history(engine(members_max=members_max), random.Random(members_max))


def test_drawn_patterns_match_often_enough_to_tell(engine: Engine) -> None:
    rng, automaton = random.Random(1), engine()
    paths = {automaton.acquire(path): path for path in (a_path(rng) for _ in range(500))}
    branching = {number for number, path in paths.items() if "][" in str(path) or "]/" in str(path)}
    found = [automaton.match(a_document(rng)) for _ in range(100)]
    assert sum(len(one) for one in found) > 0.1 * len(paths) * len(found)
    assert sum(len(one & branching) for one in found) > 0.05 * len(branching) * len(found)


def test_the_workload_of_the_paper_is_matched_right(engine: Engine) -> None:
    rng, automaton = random.Random(3), engine()
    numbered = [(path, automaton.acquire(path)) for path in patterns(rng, 600)]
    matches = 0
    for payload in documents(rng, 10):
        tree = parse_document(payload)
        expected = {number for path, number in numbered if selects(path, tree)}
        assert automaton.match(tree) == expected
        matches += len(expected)
    assert matches > 10


def test_releasing_everything_leaves_nothing_behind(engine: Engine) -> None:
    rng, automaton = random.Random(4), engine()
    for _ in range(3):
        numbers = [automaton.acquire(a_path(rng)) for _ in range(300)]
        automaton.match(a_document(rng))
        rng.shuffle(numbers)
        for number in numbers:
            automaton.release(number)
    root = automaton._root
    assert (len(automaton), root.children, root.star, root.hub, root.tests) == (0, {}, None, None, {})
    assert (automaton._names, automaton._waiting, automaton._numbers) == ({}, {}, {})
    assert sorted(automaton._free) == list(range(len(automaton._patterns)))
    assert sorted(automaton._free_atoms) == list(range(automaton._atoms))


# What it costs


def warm_calls(automaton: PatternAutomaton, trees: list[Document]) -> int:
    for tree in trees:
        automaton.match(tree)
    return work_of(lambda: [automaton.match(tree) for tree in trees]).calls


def test_patterns_that_do_not_match_cost_nothing() -> None:
    rng, automaton = random.Random(5), PatternAutomaton()
    trees = [parse_document(payload) for payload in documents(rng, 20)]
    for path in patterns(rng, 200):
        automaton.acquire(path)
    before = warm_calls(automaton, trees)
    for i in range(1000):
        automaton.acquire(parse_xpath(f"/other{i}//b[c = {i}]/d[e]"))
        automaton.acquire(parse_xpath(f"/news0/part0/other{i}[@x = '{i}'][@y > {i}]"))
    assert warm_calls(automaton, trees) < 1.05 * before


def test_value_tests_at_one_place_are_not_tried_one_by_one() -> None:
    automaton, tree = PatternAutomaton(), document("<order id='77' price='500'><item/></order>")
    for i in range(700):
        automaton.acquire(parse_xpath(f"/order[@id = '{i}']"))
        automaton.acquire(parse_xpath(f"/order[@id = {i}]/item"))
        automaton.acquire(parse_xpath(f"/order[@price > {i + 499}]"))
        automaton.acquire(parse_xpath(f"/order[@price > {i + 499}][item]"))
    assert len(automaton.match(tree)) == 4
    assert warm_calls(automaton, [tree]) < 200


def test_a_known_path_costs_one_lookup_and_an_unknown_one_a_step() -> None:
    rng, automaton = random.Random(6), PatternAutomaton()
    for path in patterns(rng, 2000):
        automaton.acquire(path)
    trees = [parse_document(payload) for payload in documents(rng, 10)]
    cold = work_of(lambda: [automaton.match(tree) for tree in trees]).calls
    assert work_of(lambda: [automaton.match(tree) for tree in trees]).calls < 0.5 * cold


def test_a_match_after_a_change_costs_no_more_than_the_first_one() -> None:
    rng = random.Random(7)
    paths = patterns(rng, 400)
    tree = parse_document(documents(rng, 1)[0])
    fresh, changing = PatternAutomaton(), PatternAutomaton()
    for path in paths:
        fresh.acquire(path)
        number = changing.acquire(path)
    first = work_of(lambda: fresh.match(tree)).calls
    for _ in range(5):
        changing.match(tree)
        changing.release(number)
        number = changing.acquire(paths[-1])
        assert work_of(lambda: changing.match(tree)).calls <= 1.1 * first


def test_states_are_forgotten_when_there_are_too_many(engine: Engine) -> None:
    rng, automaton = random.Random(8), engine(members_max=20_000)
    for path in patterns(rng, 500):
        automaton.acquire(path)
    most = 0
    for payload in documents(rng, 500):
        automaton.match(parse_document(payload))
        most = max(most, automaton._members)
    assert 20_000 < most < 30_000


def test_deep_documents_and_nested_descendants_stay_polynomial(engine: Engine) -> None:
    paths = [
        "//a" * 40 + "//b",
        "//a[.//a[.//a[.//b]]]" * 5,
        "//a[.//x][.//y]" * 5,
        "//a[@x > 1][@x < 0]//@x",
    ]
    paths.append("//a[.//a[@x = 1]][.//x]" * 4)
    text = "<a x='1'>" * 120 + "<x/>" + "</a>" * 60 + "<a>" * 100 + "<y/>" + "</a>" * 160
    expected = [path for path in paths if selects(parse_xpath(path), document(text))]
    started = time.process_time()
    assert matching(engine, paths, text) == sorted(expected)
    assert time.process_time() - started < 3.0


def test_patterns_of_the_greatest_size_need_no_deep_stack() -> None:
    automaton = PatternAutomaton()
    automaton.acquire(parse_xpath("/a" * 255 + "[b]"))
    automaton.acquire(parse_xpath("/a[b]" * 128))
    tree = document("<a>" * 255 + "<b/>" + "</a>" * 255)
    assert work_of(lambda: automaton.match(tree)).frames < 20
