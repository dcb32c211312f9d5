"""The page: one HTML file that needs nothing else, light or dark as the reader's system is, on a screen or a phone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from holdfast.bench.result import BadResult, Result
from holdfast.report.article import article, state_of, table
from holdfast.report.markup import Markup, element
from holdfast.report.papers import Library, Paper, library

__all__ = ["page"]

LEAD = """Holdfast builds one publish/subscribe network out of five papers. This page repeats their experiments: what \
each paper asked, what it found, and what we find when we ask the same of Holdfast. Machines have changed, so it is \
shapes and ratios that are to be compared: what stays level, what rises, what is how many times what."""

WORDS = [
    ("event", "what a publisher says: a topic, some named values, a payload"),
    ("subscription", "a filter: which events somebody wants"),
    ("broker", "a process that passes events on; brokers form a tree"),
    ("δ (delta)", "how many brokers or links in a row may fail without anybody noticing more than a delay"),
    ("durable", "accepted means on disk; who was away gets what it missed"),
    (
        "simulator",
        "the same broker code in virtual time: every run gives the same numbers, and processors cost nothing",
    ),
]


def page(results: Mapping[str, Result]) -> str:
    """The whole file.

    :raises BadResult: if a result is of no experiment, or not what it should be.
    """
    books = library()
    known = {each.id for each in books.experiment}
    for name in results:
        if name not in known:
            raise BadResult(
                f"{name}: no experiment of the report; expected one of {', '.join(sorted(known))}"
            )
    body = element(
        "main",
        element("header", element("h1", "Five papers, repeated"), element("p", LEAD, class_="lead")),
        _overview(books, results),
        _words(),
        *(_section(paper, books, results) for paper in books.paper),
        element("footer", "Made by ", element("code", "holdfast report"), _made(results)),
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "Holdfast: five papers, repeated"),
        element("style", Markup((files("holdfast.report") / "page.css").read_text(encoding="utf-8"))),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', body), lang='en')}\n"


def _overview(books: Library, results: Mapping[str, Result]) -> Markup:
    claims = [claim for result in results.values() for claim in result.checks]
    figures = (
        (f"{len(results)} of {len(books.experiment)}", "experiments measured"),
        (f"{sum(claim.holds for claim in claims)} of {len(claims)}", "claims hold"),
    )
    tiles = [element("p", element("strong", number), f" {words}", class_="tile") for number, words in figures]
    rows = [_row(books, paper, results) for paper in books.paper]
    return element("nav", element("div", *tiles, class_="tiles"), *rows)


def _row(books: Library, paper: Paper, results: Mapping[str, Result]) -> Markup:
    links = []
    for experiment in books.of(paper):
        state, words = state_of(experiment, results.get(experiment.id))
        label = [element("span", experiment.id, class_="id"), f" {experiment.question}"]
        links.append(
            element(
                "li",
                element("a", *label, href=f"#{experiment.id}"),
                " ",
                element("span", words, class_=f"chip {state}"),
            )
        )
    return element(
        "div", element("h2", f"{paper.authors} [{paper.key}]"), element("ul", *links), class_="contents"
    )


def _words() -> Markup:
    items = [part for word, meaning in WORDS for part in (element("dt", word), element("dd", meaning))]
    return element(
        "details",
        element("summary", "Six words you need"),
        element("dl", *items),
        class_="words",
        open="open",
    )


def _section(paper: Paper, books: Library, results: Mapping[str, Result]) -> Markup:
    return element(
        "section",
        element("h2", paper.title),
        element("p", f"{paper.authors} [{paper.key}]. ", paper.about),
        element("p", f"Theirs was measured on {paper.machines}.", class_="note"),
        *(article(each, results.get(each.id)) for each in books.of(paper)),
    )


def _made(results: Mapping[str, Result]) -> Markup:
    if not results:
        return Markup(": nothing was measured.")
    rows = [[each.experiment, each.measured, each.machine, each.command] for each in results.values()]
    return element("div", table(["experiment", "measured", "machine", "command"], rows))
