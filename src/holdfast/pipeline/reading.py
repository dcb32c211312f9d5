"""How a task reads its range of ticks: page by page, from whoever has the pubend when it does.

A page is taken as a whole and the connection is over before its rows are handed on. So a query that is slow keeps no
reader waiting, and a reader that dies costs a task no more than the page that was on its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.pipeline.options import Gaps, Options
from holdfast.pipeline.origins import Origins
from holdfast.pipeline.planning import TickRange
from holdfast.pipeline.requests import ReadRequest

__all__ = ["Task", "task_of"]


@dataclass(frozen=True, slots=True)
class Task:
    """What all tasks of a query have in common."""

    origins: Origins
    columns: tuple[str, ...]
    attributes: dict[str, str]
    filter: str | None
    gaps: Gaps
    silence: bool

    def rows(self, wanted: TickRange) -> Iterator[Any]:
        """The record batches of a range.

        :raises HoldfastError: as ``pages.read_page``, and ``ReaderUnreachable``.
        """
        origin = self.origins.of(wanted.pubend)
        covered = told = wanted.after
        while covered < wanted.upto:
            page = origin.page(
                ReadRequest(
                    self.origins.stream,
                    wanted.pubend,
                    covered,
                    wanted.upto,
                    self.columns,
                    self.attributes,
                    self.filter,
                    self.gaps,
                    self.silence,
                    told,
                )
            )
            assert page.covered > covered
            covered, told = page.covered, page.told
            yield from page.batches


def task_of(options: Options, origins: Origins) -> Task:
    """The tasks that options ask for."""
    columns, attributes = options.shape
    return Task(origins, columns, attributes, options.filter, options.gaps, options.silence)
