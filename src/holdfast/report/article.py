"""One experiment on the page: what was asked, what the paper found, what we found, and how to repeat it."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.bench.result import Cell, Claim, Result
from holdfast.report.figures import drawn_charts
from holdfast.report.markup import Markup, element
from holdfast.report.papers import Beside, Experiment
from holdfast.report.scale import number_text

__all__ = ["article", "state_of", "table"]


def state_of(experiment: Experiment, result: Result | None) -> tuple[str, str]:
    """A word for a class, and the words that are shown."""
    if result is None:
        return ("tocome", "not built yet") if experiment.to_come else ("missing", "not measured")
    if all(claim.holds for claim in result.checks):
        return "holds", "every claim holds"
    missed = sum(not claim.holds for claim in result.checks)
    return "missed", f"{missed} of {len(result.checks)} claims missed"


def article(experiment: Experiment, result: Result | None) -> Markup:
    """All of it.

    :raises BadResult: if the result is not what it should be.
    """
    state, words = state_of(experiment, result)
    parts = [
        element(
            "p",
            element("span", experiment.id, class_="id"),
            f" {experiment.paper}, {experiment.source} ",
            element("span", words, class_=f"chip {state}"),
            class_="kicker",
        ),
        element("h3", experiment.question),
        element("p", experiment.asked),
        element("h4", "What the paper found"),
        element("ul", *(element("li", each) for each in experiment.found)),
    ]
    if experiment.stated:
        parts.append(table(experiment.stated_columns, experiment.stated, is_exact=True))
        parts.append(element("p", experiment.stated_note, class_="note"))
    parts += _not_measured(experiment) if result is None else _measured(experiment, result)
    return element("article", *parts, id=experiment.id)


def _not_measured(experiment: Experiment) -> list[Markup]:
    if experiment.to_come:
        return [element("p", f"Not measured: it {experiment.to_come}.", class_="absent")]
    how = element("code", f"{experiment.command} --results FOLDER")
    return [element("p", "Not measured. It can be: ", how, class_="absent")]


def _measured(experiment: Experiment, result: Result) -> list[Markup]:
    parts = [element("h4", "What we found"), element("p", experiment.ours)]
    charts = [
        element("figure", drawing, element("figcaption", title)) for title, drawing in drawn_charts(result)
    ]
    if charts:
        parts.append(element("div", *charts, class_="charts"))
    if experiment.beside:
        parts.append(_beside(experiment.beside, result))
    if experiment.id == "E3.3":
        parts.append(_matrix(result))
    parts.append(_claims(result.checks))
    whole = table(result.columns, result.summary)
    summary = f"The table in full, {len(result.summary)} rows"
    parts.append(element("details", element("summary", summary), whole))
    parts.append(_provenance(result))
    return parts


def _beside(rows: Sequence[Beside], result: Result) -> Markup:
    cells = [
        [
            each.what,
            f"{'over ' if each.is_more else ''}{number_text(each.theirs)}\N{NO-BREAK SPACE}{each.unit}",
            f"{number_text(each.ours.of(result))}\N{NO-BREAK SPACE}{each.unit}",
            each.source,
        ]
        for each in rows
    ]
    return table(["", "the paper", "ours", "source"], cells)


def _claims(claims: Sequence[Claim]) -> Markup:
    """What we claim, each with a mark that is no colour alone."""
    rows = [
        element(
            "tr",
            element("td", "✓" if each.holds else "✗", class_="mark"),
            element("td", each.claim),
            element("td", each.found, class_="found"),
            class_="holds" if each.holds else "missed",
        )
        for each in claims
    ]
    head = element("tr", element("th", ""), element("th", "what is claimed"), element("th", "found"))
    return element("div", element("table", element("thead", head), element("tbody", *rows)), class_="wide")


def _matrix(result: Result) -> Markup:
    """Policies by intervals: a mark where every promise was kept."""
    intervals = list(dict.fromkeys(row["interval ms"] for row in result.summary_rows()))
    kept: dict[str, dict[Cell, str]] = {}
    for row in result.summary_rows():
        marks = kept.setdefault(f"{row['routing']}, {row['order']}", {})
        marks[row["interval ms"]] = "✓" if row["promises"] == "kept" else "✗"
    cells = [[policy, *(marks.get(each, "–") for each in intervals)] for policy, marks in kept.items()]
    return table(["routing, order", *(f"{each} ms" for each in intervals)], cells)


def _provenance(result: Result) -> Markup:
    size = "" if result.size == "full" else "; a quick run, smaller than the experiment is meant to be"
    where = f" Measured {result.measured} on {result.machine}, Holdfast {result.holdfast}{size}."
    return element(
        "div",
        element("p", result.remark, class_="note"),
        element("p", "Repeat it: ", element("code", result.command), where, class_="note"),
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, is_exact: bool = False) -> Markup:
    """A table; numbers stand to the right, with all their decimals if that is wanted; what is too wide can be moved."""
    head = element("tr", *(element("th", name) for name in columns))
    body = [
        element("tr", *(element("td", _cell(cell, is_exact), class_=_kind(cell)) for cell in row))
        for row in rows
    ]
    return element("div", element("table", element("thead", head), element("tbody", *body)), class_="wide")


def _cell(cell: Cell, is_exact: bool) -> str:
    return cell if isinstance(cell, str) else f"{cell:,}" if is_exact else number_text(cell)


def _kind(cell: Cell) -> str | None:
    return None if isinstance(cell, str) else "number"
