"""Which seeds a swarm runs: as its command line says, or as long as there is time."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Final

__all__ = ["seeds_of", "seeds_until", "swarm_parser"]

#: So many runs leave some hundred megabytes.
COLLECT_EVERY: Final = 50


def swarm_parser(module: str, description: str) -> argparse.ArgumentParser:
    """A parser that asks for seeds; what else there is to ask is the swarm's own."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--count", type=int, default=1, help="how many seeds (default: 1, with its transcript)"
    )
    return parser


def seeds_of(options: argparse.Namespace) -> Iterator[int]:
    """The seeds that were asked for."""
    return seeds_until(range(options.seed, options.seed + options.count), lambda: False)


def seeds_until(seeds: Iterable[int], is_time_up: Callable[[], bool]) -> Iterator[int]:
    """Seeds until there are no more, or the clock given in says so.

    Garbage is collected now and then between two of them: collecting it during the runs took a quarter of their time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for done, seed in enumerate(seeds, 1):
            if is_time_up():
                return
            yield seed
            if done % COLLECT_EVERY == 0:
                gc.collect()
    finally:
        if was_enabled:
            gc.enable()
