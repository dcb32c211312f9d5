"""The command `holdfast`: one file per command, each with its arguments and its work.

Exit status 0 when the work was done, 2 when something handed in was wrong, 130 when interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import holdfast
from holdfast.cli import bench, demo, filter, match
from holdfast.cli.failure import Failure

__all__ = ["main"]


def parser() -> argparse.ArgumentParser:
    """The arguments of every command."""
    top = argparse.ArgumentParser(prog="holdfast", description=holdfast.__doc__)
    top.add_argument("--version", action="version", version=f"holdfast {holdfast.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (demo, filter, match, bench):
        command.add_arguments(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except Failure as failure:
        sys.stderr.write(f"holdfast: {failure}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.exit(main())
