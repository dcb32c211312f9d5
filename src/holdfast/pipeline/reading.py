"""How a range of ticks is read: page by page, from whoever has the pubend when it is.

A page is taken as a whole and the connection is over before its rows are handed on. So a query that is slow keeps no
reader waiting, and a reader that dies costs a task no more than the page that was on its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.pipeline.options import Gaps, Options
from holdfast.pipeline.origin import Origin
from holdfast.pipeline.origins import Origins
from holdfast.pipeline.pages import Page
from holdfast.pipeline.planning import TickRange
from holdfast.pipeline.requests import ReadRequest

__all__ = ["Task", "ahead", "pages", "task_of"]


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
        request = ReadRequest(
            self.origins.stream,
            wanted.pubend,
            wanted.after,
            wanted.upto,
            self.columns,
            self.attributes,
            self.filter,
            self.gaps,
            self.silence,
        )
        for page in ahead(pages(self.origins.of(wanted.pubend), request)):
            yield from page.batches


def pages(origin: Origin, request: ReadRequest, rows_max: int | None = None) -> Iterator[Page]:
    """The pages of a range, one after the other; with a limit only until there are so many rows.

    :raises HoldfastError: as the origin does.
    """
    covered, told, rows = request.after, request.told, 0
    while covered < request.upto and (rows_max is None or rows < rows_max):
        page = origin.page(msgspec.structs.replace(request, after=covered, told=told))
        assert page.covered > covered
        covered, told = page.covered, page.told
        rows += sum(batch.num_rows for batch in page.batches)
        yield page


def ahead(items: Iterator[Page]) -> Iterator[Page]:
    """The same pages; while one is worked on the next is on its way."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (page := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield page


def task_of(options: Options, origins: Origins) -> Task:
    """The tasks that options ask for."""
    columns, attributes = options.shape
    return Task(origins, columns, attributes, options.filter, options.gaps, options.silence)
