"""`holdfast filter explain`: what a filter means, what it costs, how it is found, and how Spark says it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from holdfast.cli.failure import Failure
from holdfast.errors import FilterError
from holdfast.filters.cost import filter_cost
from holdfast.filters.limits import DEFAULT_LIMITS
from holdfast.filters.parse import parse_filter
from holdfast.filters.spark_sql import spark_sql
from holdfast.matching.explain import indexed_on

__all__ = ["add_arguments"]


def add_arguments(commands: Any) -> None:
    """`holdfast filter explain FILTER [--output json]`."""
    group = commands.add_parser("filter", help="explain a filter")
    explain = group.add_subparsers(title="commands", required=True).add_parser(
        "explain", help="canonical form, cost, what it is indexed on, the Spark SQL"
    )
    explain.add_argument("filter", metavar="FILTER", help='for example "orders/# WHERE price > 100"')
    explain.add_argument("--output", choices=["text", "json"], default="text")
    explain.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Explain one filter."""
    try:
        filter = parse_filter(options.filter)
    except FilterError as error:
        if options.output == "json":
            sys.stdout.write(json.dumps({"error": error_json(error)}, ensure_ascii=False) + "\n")
            return 2
        raise Failure(f"{error}\n\n{indented(error.pointed())}") from error
    explained = {
        "filter": str(filter),
        "cost": filter_cost(filter),
        "cost_max": DEFAULT_LIMITS.cost,
        "indexed_on": indexed_on(filter),
        "spark_sql": spark_sql(filter),
    }
    if options.output == "json":
        sys.stdout.write(json.dumps(explained, ensure_ascii=False) + "\n")
        return 0
    sys.stdout.write(f"filter      {explained['filter']}\n")
    sys.stdout.write(f"cost        {explained['cost']} of at most {DEFAULT_LIMITS.cost}\n")
    for i, line in enumerate(indexed_on(filter)):
        sys.stdout.write(f"{'indexed on' if i == 0 else '':12}{line}\n")
    sys.stdout.write(f"Spark SQL   {explained['spark_sql']}\n")
    return 0


def error_json(error: FilterError) -> dict[str, object]:
    """A refused filter, for programs."""
    return {"line": error.line, "column": error.column, "problem": error.problem, "expected": error.expected}


def indented(text: str) -> str:
    """Set off from what stands around it."""
    return "\n".join(f"    {line}" for line in text.split("\n"))
