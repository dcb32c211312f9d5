"""`holdfast network plan`: what would stop if some of a network failed, said before it does."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.text import Text

from holdfast.cli.console import OutputConsole
from holdfast.cli.failure import Failure
from holdfast.cli.network_plan import Plan, WhatIf
from holdfast.cli.targets import add_set_argument, loaded_network, network_file
from holdfast.runtime.network_survival import Failures, Link, link

__all__ = ["add_arguments"]


def add_arguments(commands: Any) -> None:
    """`holdfast network plan [FILE] [--down BROKER|BROKER:BROKER] [--set KEY=VALUE] [--output text|json]`."""
    command = commands.add_parser("network", help="what would stop if some of a network failed")
    actions = command.add_subparsers(title="actions", required=True)
    plan = actions.add_parser(
        "plan",
        help="for every set of failures that delta allows, and the first beyond",
        description="Says what at most delta failed brokers and links would stop, and what the first sets beyond"
        " would; or with --down, what those failures would. Status 1 if some of --down parts brokers that are up.",
    )
    default = network_file()
    plan.add_argument("network", type=Path, nargs="?", default=default, metavar="FILE", help=f"[{default}]")
    add_set_argument(plan)
    plan.add_argument(
        "--down",
        action="append",
        default=[],
        metavar="BROKER|BROKER:BROKER",
        help="a broker or link that has failed; repeatable",
    )
    plan.add_argument("--output", choices=["text", "json"], default="text")
    plan.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show the plan, or what some failures would stop."""
    network = loaded_network(options)
    plan = Plan(network)
    shown: Plan | WhatIf = plan
    if options.down:
        shown = WhatIf(plan, _failures(plan, options.down))
    if options.output == "json":
        sys.stdout.write(json.dumps(shown.as_json(), ensure_ascii=False) + "\n")
    else:
        console = OutputConsole()
        for line in shown.lines():
            indent = "  " if line.startswith("- ") else ""
            console.print(Text(fill(line, console.width, subsequent_indent=indent, break_on_hyphens=False)))
    return 1 if isinstance(shown, WhatIf) and shown.silent else 0


def _failures(plan: Plan, given: list[str]) -> Failures:
    """What ``--down`` names.

    :raises Failure: for what is no broker or link of the network.
    """
    brokers: set[str] = set()
    links: set[Link] = set()
    tree = plan.survival.tree
    for name in given:
        one, colon, other = name.partition(":")
        if not colon and name in tree.brokers:
            brokers.add(name)
        elif colon and link(one, other) in tree.links:
            links.add(link(one, other))
        else:
            expected = "two neighbouring brokers" if colon else ", ".join(tree.brokers)
            raise Failure(
                f"--down {name}: there is no such {'link' if colon else 'broker'}; expected {expected}"
            )
    return Failures(frozenset(brokers), frozenset(links))
