"""Many who read under few durable names, on real processes: ``python tests/real_names.py KILLS SEED [--tokens]``.

What ``names_swarm`` does in memory, with three or four broker processes that are killed with -9, or frozen, while
clients present the same few names at any of them, leave, give up, are ousted and end what they read. Most clients know
several brokers, and go to the next when they lose one. Its promises are the swarm's.

A failing run prints its seed; the last line of a good one has its counts, for ``tools/soak.py``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import holdfast
from durable_brokers import PATIENCE_S, Brokers, brokers_in, verified
from holdfast.client.aio import Connecting
from names_swarm import Broken, Kind, Names, Session
from names_world import STEP_S

TREES: tuple[dict[str, str | None], ...] = (
    {"b1": None, "b2": "b1", "b3": "b2"},
    {"b1": None, "b2": "b1", "b3": "b1", "b4": "b1"},
)

STREAM = """
[[stream]]
name = "orders"
topics = ["orders/#"]
guarantee = "durable"
"""


class Real:
    """Broker processes, in real time."""

    links: Sequence[tuple[str, str]] = ()
    patience = 2 * PATIENCE_S

    def __init__(self, brokers: Brokers, names: Sequence[str], lasts: float) -> None:
        self._brokers = brokers
        self.brokers = names
        self.lasts = lasts
        self.kills = 0

    @property
    def now(self) -> float:
        return time.monotonic()

    def connect(self, brokers: Sequence[str], name: str) -> Connecting:
        return holdfast.connect(
            [self._brokers.url(each) for each in brokers], name=name, timeout=self.patience
        )

    def kept(self, broker: str) -> int:
        kept = self._brokers.status(broker)["durable"]["subscriptions"]
        return int(kept["here"] + kept["away"] + kept["ending"])

    async def turn(self) -> None:
        await asyncio.sleep(STEP_S)

    async def step(self) -> None:
        await asyncio.sleep(STEP_S)

    def crash(self, broker: str) -> None:
        self._brokers.kill(broker)
        self.kills += 1

    def restart(self, broker: str) -> None:
        self._brokers.spawn(broker)

    def freeze(self, broker: str) -> None:
        self._brokers.freeze(broker)

    def unfreeze(self, broker: str) -> None:
        self._brokers.unfreeze(broker)

    async def wait_up(self) -> None:
        """Until all that were started listen."""
        for name in self.brokers:
            await self._brokers.wait_for("listening", name)

    def cut(self, a: str, b: str) -> None:
        raise AssertionError("there are no links to be cut")

    def heal(self, a: str, b: str) -> None:
        raise AssertionError("there are no links to be cut")

    def has(self, broker: str, name: str) -> bool:
        raise AssertionError("there is no operator")

    def remove(self, broker: str, name: str) -> None:
        raise AssertionError("there is no operator")


class RealNames(Names):
    """One run; it begins again until there were so many kills."""

    def __init__(self, world: Real, rng: Random, kills: int, kind: Kind) -> None:
        super().__init__(world, rng, kind)
        self._real = world
        self._kills = kills

    async def _act(self) -> None:
        while self._real.kills < self._kills:
            await super()._act()

    async def _heal(self) -> None:
        await super()._heal()
        await self._real.wait_up()

    def _known_to(self, session: Session) -> list[str]:
        known = super()._known_to(session)
        return known if self.rng.random() < 0.7 else known[:1]


def performed(
    kills: int, seed: int, folder: Path, lasts: float = 12.0, *, tokens: bool = False
) -> Counter[str]:
    """One run, of so many seconds, and again until there were so many kills.

    :raises Broken: if a promise was not kept.
    """
    rng = Random(f"{seed} real names")
    tree = rng.choice(TREES)
    with brokers_in(folder, tree, streams=STREAM) as brokers:

        async def perform() -> Counter[str]:
            await brokers.start(*tree)
            kind = Kind(with_faults=True, several=True, tokens=tokens)
            return await RealNames(world, rng, kills, kind).run()

        world = Real(brokers, list(tree), lasts)
        counts = asyncio.run(perform())
        for name in tree:
            brokers.stop(name)
        for log in (log for name in tree for log in brokers.logs(name)):
            status, said = verified(log)
            if status:
                raise Broken(said)
    return counts + Counter(kills=world.kills)


def main(arguments: list[str]) -> int:
    """One run; its exit status."""
    kills, seed = (int(each) for each in arguments if each != "--tokens")
    with tempfile.TemporaryDirectory(prefix="holdfast-names-") as folder:
        try:
            counts = performed(kills, seed, Path(folder), tokens="--tokens" in arguments)
        except BaseException:  # whatever it is, with its seed
            sys.stderr.write(f"seed {seed}\n")
            raise
    sys.stdout.write(f"counts: {json.dumps(counts)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
