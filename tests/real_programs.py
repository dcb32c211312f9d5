"""Exactly once, end to end, under kill -9: ``python tests/real_programs.py TROUBLES SEED``.

    root ── left, right

Three broker processes and five programs of users (``exact_program.py``), each with a database of its own: two put
orders and events that tell of them into it, and relay these; three take what they are given and their tokens. Brokers
and programs are killed, one after the other, and started again; programs begin at any broker. Some only stand still for
a while: brokers, and consumers, while another of the same name goes on with their database. When all is told: each
table that was read into has what the orders say, once, in the order of each stream; and what is in total order stands
in the same order everywhere [issue 5 §6; R1.8, R1.10, B1.4].

A failing run prints its seed; the last line of a good one has its counts, for ``tools/soak.py``.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from durable_brokers import PATIENCE_S, Brokers, brokers_in, verified
from raw_peer import wait_until

PROGRAM = Path(__file__).with_name("exact_program.py")
PARENTS = {"root": None, "left": "root", "right": "root"}
PRODUCERS, CONSUMERS = ("shop", "bank"), ("ledger", "stock", "mail")
STREAMS = """
[[stream]]
name = "orders"
topics = ["orders/#"]
guarantee = "durable"
pubends = 2

[[stream]]
name = "audit"
topics = ["audit/#"]
guarantee = "durable"
order = "total"
"""
TOLD = "buy"  #: what consumers ask for: half of it

Rows = list[tuple[Any, ...]]


class Programs:
    """Users' programs, by name."""

    def __init__(self, folder: Path, brokers: Brokers, random: Random) -> None:
        self._folder = folder
        self._brokers = brokers
        self._random = random
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._stalled: list[tuple[Path, subprocess.Popen[bytes]]] = []
        self._lives: Counter[str] = Counter()

    def database(self, name: str) -> Path:
        return self._folder / f"{name}.sqlite"

    def start(self, name: str) -> None:
        """At any broker, and it knows another one or all of them."""
        known = self._random.sample(list(PARENTS), self._random.randint(1, len(PARENTS)))
        urls = [self._brokers.url(broker) for broker in known]
        kind = "produce" if name in PRODUCERS else "consume"
        self._lives[name] += 1
        with self._said(name).open("wb") as said:
            self._running[name] = subprocess.Popen(
                [sys.executable, str(PROGRAM), kind, str(self.database(name)), name, *urls],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
            )

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.communicate()

    def replace(self, name: str) -> None:
        """It stands still, and another is started in its place."""
        process = self._running.pop(name)
        process.send_signal(signal.SIGSTOP)
        self._stalled.append((self._said(name), process))
        self.start(name)

    def go_on(self) -> None:
        """Those that stood still do not any more."""
        for _, process in self._stalled:
            process.send_signal(signal.SIGCONT)

    def have_noticed(self) -> bool:
        """Whether all that were replaced have ended, for that reason."""
        for said, process in self._stalled:
            if process.poll() is None:
                return False
            assert "TakenOver" in said.read_text(), said.read_text()
        return True

    def close(self) -> None:
        for process in (*self._running.values(), *(each for _, each in self._stalled)):
            process.kill()
            process.communicate()
        self._running.clear()
        self._stalled.clear()

    def check(self) -> None:
        """None has ended but as it should."""
        for name, process in self._running.items():
            status = process.poll()
            assert status is None or (status == 0 and name in PRODUCERS), self._said(name).read_text()

    def has_ended(self, name: str) -> bool:
        self.check()
        return self._running[name].poll() is not None

    def rows(self, name: str, question: str) -> Rows:
        """What is in a database; nothing, if it is not made yet."""
        with closing(sqlite3.connect(self.database(name), timeout=PATIENCE_S)) as database:
            try:
                return database.execute(question).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
                return []

    def _said(self, name: str) -> Path:
        return self._folder / f"{name}-{self._lives[name]}.log"


class Run:
    """One run: so many ``troubles``, everything else drawn from the seed."""

    def __init__(self, folder: Path, brokers: Brokers, troubles: int, seed: int) -> None:
        self.random = Random(f"{seed} real programs")
        self.brokers = brokers
        self.programs = Programs(folder, brokers, self.random)
        self.troubles = troubles
        self.counted: Counter[str] = Counter()

    async def perform(self) -> None:
        """All of it; raises whatever goes wrong."""
        await self.brokers.start(*PARENTS)
        for name in CONSUMERS:
            self.programs.start(name)
        await self._until(lambda: all(self._has_begun(name) for name in CONSUMERS))
        for name in PRODUCERS:
            self.programs.start(name)
        for _ in range(self.troubles):
            await asyncio.sleep(
                self.random.uniform(0.1, 1.2)
            )  # when it happens is drawn, nothing waits for it
            await self._trouble(
                self.random.choice((*PARENTS, *PRODUCERS, *PRODUCERS, *CONSUMERS, *CONSUMERS))
            )
        for name in PRODUCERS:
            Path(f"{self.programs.database(name)}.enough").touch()
        await self._until(lambda: all(self.programs.has_ended(name) for name in PRODUCERS))
        told = sum(len(self.told(name)) for name in PRODUCERS)
        await self._until(lambda: all(len(self.read(name)) >= told for name in CONSUMERS))
        await self._until(self.programs.have_noticed)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        await wait_until(is_so, 2 * PATIENCE_S)

    async def _trouble(self, name: str) -> None:
        self.programs.check()
        stands_still = name not in PRODUCERS and self.random.random() < 0.3
        kind = "brokers" if name in PARENTS else "programs"
        self.counted[f"{'stalled' if stands_still else 'killed'} {kind}"] += 1
        if name in PARENTS:
            self.brokers.freeze(name) if stands_still else self.brokers.kill(name)
            await self._pause()
            self.brokers.unfreeze(name) if stands_still else await self.brokers.start(name)
        elif stands_still:
            self.programs.replace(name)
            await self._pause()
            self.programs.go_on()
        else:
            self.programs.kill(name)
            self.programs.start(name)

    async def _pause(self) -> None:
        """A moment, or longer than it takes to be missed."""
        await asyncio.sleep(self.random.choice((0.0, 0.1, 1.0, 4.0)))

    # What came of it

    def _has_begun(self, name: str) -> bool:
        return bool(self.programs.rows(name, "SELECT token FROM holdfast_checkpoints"))

    def told(self, name: str) -> Rows:
        """What a producer has told consumers of, in order."""
        return self.programs.rows(name, f"SELECT i, topic FROM orders WHERE side = '{TOLD}' ORDER BY i")

    def read(self, name: str) -> Rows:
        """What a consumer was given, in order."""
        return self.programs.rows(name, "SELECT publisher, i, topic FROM read ORDER BY at")

    def problems(self) -> list[str]:
        """All that is wrong; everybody is stopped by this."""
        self.programs.close()
        found: list[str] = []
        for name in CONSUMERS:
            found += [
                f"{name} was told {told}" for (told,) in self.programs.rows(name, "SELECT told FROM gaps")
            ]
            for producer in PRODUCERS:
                for stream in ("orders/", "audit/"):
                    told = [i for i, topic in self.told(producer) if topic.startswith(stream)]
                    read = [
                        i for who, i, topic in self.read(name) if who == producer and topic.startswith(stream)
                    ]
                    found += [f"{name}, {stream} of {producer}: {each}" for each in differences(told, read)]
        totals = [[row for row in self.read(name) if row[2].startswith("audit/")] for name in CONSUMERS]
        found += ["not all have the same total order"] * (totals != totals[:1] * len(totals))
        for name in PARENTS:
            self.brokers.stop(name)
            found += [said for log in self.brokers.logs(name) for status, said in [verified(log)] if status]
        return found

    def counts(self) -> dict[str, int]:
        """What it amounts to."""
        return {
            "runs": 1,
            "troubles": self.counted.total(),
            **self.counted,
            "events": sum(len(self.told(name)) for name in PRODUCERS),
            "deliveries": sum(len(self.read(name)) for name in CONSUMERS),
        }


def differences(told: list[int], read: list[int]) -> list[str]:
    """How what was read is not what was told."""
    if told == read:
        return []
    times = Counter(read)
    found = [f"{i} was read {count} times" for i, count in times.items() if count > 1]
    found += [f"{i} is missing" for i in told if i not in times]
    found += [f"{i} was not told" for i in times.keys() - set(told)]
    return found or ["not in order"]


def performed(troubles: int, seed: int, folder: Path) -> tuple[list[str], dict[str, int]]:
    """One run: what is wrong with it, and its counts."""
    with brokers_in(folder, PARENTS, streams=STREAMS) as brokers:
        run = Run(folder, brokers, troubles, seed)
        try:
            asyncio.run(run.perform())
            return run.problems(), run.counts()
        finally:
            run.programs.close()


def main(troubles: int, seed: int) -> int:
    """One run; its exit status."""
    with tempfile.TemporaryDirectory(prefix="holdfast-programs-") as folder:
        found, counts = performed(troubles, seed, Path(folder))
    if found:
        print("\n".join([f"seed {seed}, {counts}:", *found[:50]]), file=sys.stderr)  # noqa: T201
        return 1
    print(f"counts: {json.dumps(counts)}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
