"""The command `holdfast`: one file per command, each with its arguments and its work.

Exit status 0 when the work was done, 1 when it could not be done, 2 when something handed in was wrong, 130 when
interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import holdfast
from holdfast.cli.failure import Failure, Trouble

__all__ = ["main"]

#: In the order of the help; each is a module of this package.
COMMANDS: Final = (
    "demo",
    "init",
    "up",
    "broker",
    "pub",
    "sub",
    "status",
    "stream",
    "subscription",
    "network",
    "filter",
    "match",
    "log",
    "puppet",
    "bench",
)


def parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The arguments of the command that is called, or of all of them where none is: a broker needs no benchmarks."""
    top = argparse.ArgumentParser(prog="holdfast", description=(holdfast.__doc__ or "").split("\n")[0])
    top.add_argument("--version", action="version", version=f"holdfast {holdfast.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS:
        import_module(f"holdfast.cli.{command}").add_arguments(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        parser(given).print_help(sys.stderr)
        return 2
    options = parser(given).parse_args(given)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except Failure as failure:
        sys.stderr.write(f"holdfast: {failure}\n")
        return 2
    except Trouble as trouble:
        sys.stderr.write(f"holdfast: {trouble}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.exit(main())
