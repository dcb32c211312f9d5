"""The page is one well-formed file that loads nothing; its numbers are those of its results, or said to be missing."""

from __future__ import annotations

import re
from itertools import product

import msgspec
import pytest
from lxml import etree
from resulted import all_results, article_of, text_of, with_cell, with_data

from holdfast.bench.result import BadResult, Claim
from holdfast.bench.simulated import SIMULATED
from holdfast.report.page import page
from holdfast.report.papers import library
from holdfast.report.scale import number_text


def test_the_page_is_well_formed_and_needs_nothing_else() -> None:
    text = page(all_results())
    tree = etree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    assert {each.tag for each in tree.iter()} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "image",
    } == set()
    for each in tree.iter():
        for name, value in each.attrib.items():
            assert not str(name).startswith("on")
            assert name not in ("src", "href") or str(value).startswith("#")
    assert not re.search(r"https?://|@import|url\(", text)


def test_every_link_leads_somewhere_and_every_experiment_is_there_once() -> None:
    tree = etree.fromstring(page(all_results()).removeprefix("<!DOCTYPE html>\n"))
    ids = [each.get("id") for each in tree.iter() if each.get("id")]
    links = [each.get("href") for each in tree.iter("a")]
    assert sorted(ids) == sorted(each.id for each in library().experiment)
    assert sorted(links) == sorted(f"#{each}" for each in ids)


def test_a_changed_number_of_a_result_is_a_changed_number_of_the_page() -> None:
    results = all_results()
    before = article_of(page(results), "E1.5")
    at = results["E1.5"].summary.index(next(row for row in results["E1.5"].summary if row[0] == 25))
    results["E1.5"] = with_cell(results["E1.5"], at, "commits/s", 98_765.0)
    after = article_of(page(results), "E1.5")
    assert "98,765" not in before
    assert "98,765\N{NO-BREAK SPACE}commits/s" in text_of(after), "beside the paper's"
    assert before.count("<path") == after.count("<path")
    assert re.findall(r'd="M[^"]*"', before) != re.findall(r'd="M[^"]*"', after), "the line is another one"


def test_every_number_of_a_table_is_on_the_page() -> None:
    results = all_results()
    text = page(results)
    for name, result in results.items():
        words = text_of(article_of(text, name))
        for row, cell in product(result.summary, range(len(result.columns))):
            value = row[cell]
            assert (value if isinstance(value, str) else number_text(value)) in words
        for claim in result.checks:
            assert claim.claim in words
            assert claim.found in words


#: By experiment a column of the data that its figure shows; the figures of others show their tables.
SHOWN = {
    "E0.1": "copies in",
    "E0.2": "longest delay ms",
    "E0.3": "control frames/s",
    "E0.4": "knows all, s",
    "E0.6": "vector bytes per event",
    "E1.3": "released ms",
    "E1.6": "latestDelivered ms",
    "E2.3": "register µs",
}


@pytest.mark.parametrize(("name", "column"), SHOWN.items())
def test_figures_are_drawn_from_the_data(name: str, column: str) -> None:
    results = all_results()
    before = article_of(page(results), name)
    part = results[name].column(column)[: len(results[name].data) // 3]
    for row, value in enumerate(part):
        assert isinstance(value, (int, float))
        results[name] = with_data(results[name], row, column, value + 7)
    assert drawings(before) != drawings(article_of(page(results), name))


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("E0.5", "queued"),
        ("E1.1", "p99 ms"),
        ("E1.2", "events/s"),
        ("E1.4", "written, bytes/event"),
        ("E1.5", "commits/s"),
        ("E3.2", "copies between brokers"),
    ],
)
def test_the_others_are_drawn_from_the_table(name: str, column: str) -> None:
    results = all_results()
    before = article_of(page(results), name)
    cell = results[name].summary[1][results[name].columns.index(column)]
    assert isinstance(cell, (int, float))
    results[name] = with_cell(results[name], 1, column, cell * 1.5)
    assert drawings(before) != drawings(article_of(page(results), name))


def drawings(article: str) -> list[str]:
    found = re.findall(r"<svg.*?</svg>", article, re.DOTALL)
    assert found
    return found


def test_a_claim_that_fails_is_said_at_the_top_and_where_it_stands() -> None:
    results = all_results()
    assert "every claim holds" in text_of(article_of(page(results), "E0.1"))
    broken = [*results["E0.1"].checks, Claim("pigs fly", "they do not", False)]
    results["E0.1"] = msgspec.structs.replace(results["E0.1"], checks=broken)
    words = text_of(article_of(page(results), "E0.1"))
    assert f"1 of {len(broken)} claims missed" in words
    assert re.search(r"✗\s+pigs fly\s+they do not", words)


def test_what_is_not_measured_is_shown_with_its_command() -> None:
    text = page({})
    assert f"0 of {len(library().experiment)}" in text_of(text)
    for experiment in library().experiment:
        words = text_of(article_of(text, experiment.id))
        assert "Not measured" in words
        assert experiment.to_come or f"{experiment.command} --results FOLDER" in words
        assert "<svg" not in article_of(text, experiment.id)


def test_quick_results_are_called_that() -> None:
    results = all_results()
    assert "a quick run" not in text_of(page(results))
    results["E0.6"] = msgspec.structs.replace(results["E0.6"], size="quick")
    assert "a quick run" in text_of(article_of(page(results), "E0.6"))


def test_names_in_results_cannot_become_markup() -> None:
    results = {
        "E0.6": msgspec.structs.replace(all_results()["E0.6"], remark="<script>alert('x')</script> & co")
    }
    text = page(results)
    etree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_what_no_experiment_is_called_is_refused() -> None:
    result = msgspec.structs.replace(all_results()["E0.6"], experiment="E9.9")
    with pytest.raises(BadResult, match=r"E9\.9: no experiment of the report"):
        page({"E9.9": result})


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("E0.6", {"data_columns": ["a", "b", "c", "d", "e"]}, "no column 'events together'"),
        ("E1.1", {"columns": ["what", "p50 ms", "x", "y"]}, "has no 'p99 ms'"),
        ("E1.5", {"summary": []}, "cannot be drawn"),
        ("E1.3", {"data": []}, "cannot be drawn"),
        ("E1.5", {"summary": [["a few", 1.0, 1.0, ""]]}, "cannot be drawn"),
        ("E1.6", {"summary": [["real", 8, 25, 0.8, "", 1.01]]}, "no row with"),
        ("E0.3", {"data": [["conf", 5, 1.0, 0.0, 1.0, 1.0, 1.0]]}, "0 on a logarithmic scale"),
    ],
)
def test_a_result_without_what_its_figure_shows_is_refused(
    name: str, change: dict[str, object], problem: str
) -> None:
    results = {name: msgspec.structs.replace(all_results()[name], **change)}
    with pytest.raises(BadResult, match=problem):
        page(results)


# The data file


def test_the_papers_numbers_have_their_sources() -> None:
    books = library()
    keys = [paper.key for paper in books.paper]
    assert keys == ["KJ", "BZA", "XNET", "SESDAD", "NB"]
    for experiment in books.experiment:
        assert experiment.paper in keys
        assert "§" in experiment.source
        assert bool(experiment.command) != bool(experiment.to_come), experiment.id
        assert all(each.source for each in experiment.beside)
        assert all(len(row) == len(experiment.stated_columns) for row in experiment.stated)
        assert bool(experiment.stated) == bool(experiment.stated_note)


def test_commands_of_simulated_experiments_are_those_that_repeat_them() -> None:
    commands = {each.id: each.command for each in library().experiment if each.command}
    assert {name: commands[name] for name in SIMULATED} == SIMULATED


def test_all_that_can_be_measured_is_in_the_repository() -> None:
    assert set(all_results()) == {each.id for each in library().experiment if each.command}
