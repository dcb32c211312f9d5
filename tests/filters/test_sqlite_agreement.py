"""The evaluator and SQLite say the same of every condition of the shared part; see ``sqlite_twin``.

HOLDFAST_EXAMPLES sets how many examples are drawn; each is four conditions over six rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import pytest
from hypothesis import given

from drawn_filters import Seeded, Source
from examples import examples
from holdfast.events.event import make_event
from holdfast.filters.evaluate import compile_condition
from holdfast.filters.expression import Condition, Filter, Operator
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.filters.topic import ANYTHING
from holdfast.matching.naive import NaiveIndex
from sqlite_twin import COLUMNS, Row, SqliteTwin, Translation, a_row, a_shared_condition
from strategies import drawn

CONDITIONS, ROWS = 4, 6
Question = tuple[list[Condition], list[Row]]


def a_question(source: Source) -> Question:
    """Conditions, and rows to ask them of."""
    return [a_shared_condition(source) for _ in range(CONDITIONS)], [a_row(source) for _ in range(ROWS)]


def truths(conditions: Sequence[Condition], rows: Sequence[Row]) -> list[list[bool | None]]:
    """What the evaluator says: for each row the truth of each condition."""
    evaluated = [compile_condition(condition) for condition in conditions]
    return [[evaluate(Subject(make_event("t", row))) for evaluate in evaluated] for row in rows]


@pytest.fixture(scope="module")
def twin() -> Iterator[SqliteTwin]:
    sqlite = SqliteTwin()
    yield sqlite
    sqlite.close()


@examples(150)
@given(question=drawn(a_question))
def test_the_evaluator_and_sqlite_agree_on_true_false_and_unknown(
    twin: SqliteTwin, question: Question
) -> None:
    conditions, rows = question
    assert truths(conditions, rows) == twin.truths(conditions, rows)


@examples(30)
@given(question=drawn(a_question))
def test_the_plain_index_matches_the_rows_that_sqlite_selects(twin: SqliteTwin, question: Question) -> None:
    """From the text of the filters on, by the way ``holdfast match`` goes."""
    conditions, rows = question
    index = NaiveIndex()
    for condition in conditions:
        index.add(parse_filter(str(Filter(ANYTHING, condition))))
    selected = [[i for i, value in enumerate(row) if value] for row in twin.truths(conditions, rows)]
    assert index.match([make_event("t", row) for row in rows]) == selected


@pytest.mark.parametrize("name", COLUMNS)
def test_is_null_is_true_of_what_is_absent_in_both(twin: SqliteTwin, name: str) -> None:
    quoted = f'"{name}"'
    texts = [f"{quoted} IS NULL", f"{quoted} IS NOT NULL", f"NOT {quoted} IS NULL", f"{quoted} = {quoted}"]
    conditions = [c for text in texts if (c := parse_filter(f"# WHERE {text}").condition)]
    rows: list[Row] = [{}, {name: COLUMNS[name][1][0]}]
    expected = [[True, False, False, None], [False, True, True, True]]
    assert truths(conditions, rows) == twin.truths(conditions, rows) == expected


# Both must be able to disagree


class TwoValuedNot(Translation):
    """Takes unknown for false under NOT."""

    def negation(self, operand: str) -> str:
        return f"(NOT coalesce({operand}, 0))"


class NoUnknownInLists(Translation):
    """NULL is in no list."""

    def member(self, operand: str, values: list[str]) -> str:
        return f"coalesce({super().member(operand, values)}, 0)"


class FloatingDivision(Translation):
    """``7 / 2`` is 3.5."""

    def arithmetic(self, left: str, operator: Operator, right: str) -> str:
        return super().arithmetic(f"(1.0 * {left})" if operator is Operator.DIVIDE else left, operator, right)


class AbsentIsZero(Translation):
    """Arithmetic takes NULL for 0."""

    def arithmetic(self, left: str, operator: Operator, right: str) -> str:
        return super().arithmetic(f"coalesce({left}, 0)", operator, right)


FAULTY = {
    "two-valued NOT": lambda: SqliteTwin(TwoValuedNot),
    "no unknown in IN": lambda: SqliteTwin(NoUnknownInLists),
    "floating division": lambda: SqliteTwin(FloatingDivision),
    "absent is zero": lambda: SqliteTwin(AbsentIsZero),
    "LIKE without case": lambda: SqliteTwin(case_sensitive=False),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_planted_fault_is_found(fault: str) -> None:
    faulty = FAULTY[fault]()
    source = Seeded(Random(1))
    questions = (a_question(source) for _ in range(150))  # as many as the test above draws
    found = any(truths(*question) != faulty.truths(*question) for question in questions)
    faulty.close()
    assert found


def test_true_false_and_unknown_are_all_common(twin: SqliteTwin) -> None:
    """A test of agreement is worth what its questions are: more than a tenth of the answers of each kind."""
    source = Seeded(Random(2))
    answers = [value for _ in range(200) for row in twin.truths(*a_question(source)) for value in row]
    assert len(answers) == 200 * CONDITIONS * ROWS
    for value in (True, False, None):
        assert answers.count(value) > len(answers) / 10
