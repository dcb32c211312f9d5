"""`holdfast derive` under kill -9: ``python tests/real_derive.py KILLS SEED``.

The example of docs/derive.md, with real brokers that are published to at both ends while the command runs, in small
batches. It is killed with all its processes in the middle of batches, and started again; with an odd seed the brokers
are killed with it. At the end it is interrupted as by Ctrl-C, and a durable subscriber has had every window once, with
what a plain computation of all that was accepted has in it [issue 6 §6].

The last line of a good run has its counts, for ``tools/soak.py``.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import NamedTuple

import holdfast
from durable_brokers import Brokers, brokers_in
from holdfast.cli.lake_view import moment_of
from real_pipeline import NAMES, PATIENCE_S, kill_driver, wait_until
from tested_spark import LITTLE

MANUAL = Path(__file__).parents[1] / "docs" / "derive.md"
WINDOW = 5_000_000  #: of the manual's query, in ticks
ROUND_EVENTS = 60  #: published before each driver, at both brokers together


class Order(NamedTuple):
    """An event that was accepted."""

    tick: int
    sym: str
    total: float


def block(kind: str) -> str:
    """The first one of the manual that is marked so."""
    found = re.search(rf"^```{kind}\n(.*?)^```$", MANUAL.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


async def performed(kills: int, seed: int, folder: Path) -> list[str]:
    """Drivers that are killed so often, and one that is not; what is wrong at the end."""
    streams = f"[durable]\nvouch_every_ms = 500\n{block('toml')}"
    with brokers_in(folder, {"b1": None, "b2": "b1"}, streams=streams, readers=True) as brokers:
        await brokers.start(*NAMES)
        await _subscribe(brokers)
        (folder / "turnover.sql").write_text(block("sql"))
        (folder / "spark-defaults.conf").write_text(
            "".join(f"{name.replace('__', '.')} {text}\n" for name, text in LITTLE.items())
        )
        random, orders = Random(seed), []
        for at in range(kills):
            orders += await _publish(brokers, random, at)
            problem = await _killed(brokers, folder, random)
            if problem is not None:
                return [problem]
            if seed % 2:
                for name in NAMES:
                    brokers.kill(name)
                await brokers.start(*NAMES)
        orders += await _publish(brokers, random, kills)
        return await _finished(brokers, folder, _expected(orders))


async def _subscribe(brokers: Brokers) -> None:
    """Have both streams kept, for the command and for whoever reads the results at the end."""
    async with holdfast.connect(brokers.url("b1"), name="end") as network:
        for name, filter in (("keeper", "orders/#"), ("end", "turnover/#")):
            async with network.subscribe(filter, durable=name):
                pass


async def _publish(brokers: Brokers, random: Random, at: int) -> list[Order]:
    found: list[Order] = []
    for name in NAMES:
        async with holdfast.connect(brokers.url(name), name=f"p-{name}-{at}") as network:
            for _ in range(ROUND_EVENTS // len(NAMES)):
                sym, price, qty = (
                    random.choice(("IBM", "SAP")),
                    float(random.randint(1, 30)),
                    random.randint(0, 3),
                )
                receipt = await network.publish("orders/x", {"price": price, "qty": qty, "sym": sym})
                assert receipt.tick is not None
                if qty > 0:
                    found.append(Order(receipt.tick, sym, price * qty))
    return found


def _expected(orders: list[Order]) -> Counter[str]:
    """What the manual's query is to give, computed plainly."""
    windows: dict[tuple[int, str], list[float]] = defaultdict(list)
    for tick, sym, total in orders:
        windows[tick - tick % WINDOW, sym].append(total)
    return Counter(
        _shown(f"turnover/{sym}", moment_of(at), moment_of(at + WINDOW), len(totals), sum(totals))
        for (at, sym), totals in windows.items()
        if sum(totals) > 100
    )


def _shown(topic: str, start: object, end: object, orders: object, total: object) -> str:
    return f"{topic} {start} {end} {orders} {total}"


def _started(brokers: Brokers, folder: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "holdfast.cli.main",
        "derive",
        str(folder / "turnover.sql"),
        "--into",
        "turnover",
    ]
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--network", str(brokers.file), "--every", "0.2", "--batch", "20"],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_CONF_DIR": str(folder)},
        )


async def _killed(brokers: Brokers, folder: Path, random: Random) -> str | None:
    """Start it, and kill it in a batch that is planned and not done; what was wrong before that."""
    checkpoint = folder / "turnover.checkpoint"
    done = max((int(each.name) for each in (checkpoint / "commits").glob("[0-9]*")), default=-1)
    number = done + random.randint(1, 3)

    def is_amid() -> bool:
        return (checkpoint / "offsets" / str(number)).exists()

    driver = _started(brokers, folder)
    try:
        await wait_until(lambda: is_amid() or driver.poll() is not None)
        if driver.poll() is not None:
            return f"the driver ended: {(folder / 'driver.log').read_text()[-3000:]}"
    finally:
        kill_driver(driver)
    return None


async def _finished(brokers: Brokers, folder: Path, expected: Counter[str]) -> list[str]:
    """Start it, take the results as a durable subscriber, interrupt it; what is wrong."""
    driver = _started(brokers, folder)
    try:
        found = await _received(brokers, expected.total())
        driver.send_signal(signal.SIGINT)
        await wait_until(lambda: driver.poll() is not None)
    finally:
        kill_driver(driver)
    problems = [f"too few: {each}" for each in (expected - found).elements()]
    problems += [f"too many: {each}" for each in (found - expected).elements()]
    said = (folder / "driver.log").read_text()
    if driver.returncode != 130 or "Traceback" in said:
        problems.append(f"it ended with {driver.returncode}: {said[-3000:]}")
    if problems:
        return problems
    (folder / "turnover.sql").write_text(block("sql").replace("> 100", "> 99"))
    changed = _started(brokers, folder)
    await wait_until(lambda: changed.poll() is not None)
    said = (folder / "driver.log").read_text().rstrip().rpartition("\n")[2]
    is_refused = (
        changed.returncode == 2 and "line 6 was 'HAVING total > 100' and is 'HAVING total > 99'" in said
    )
    return [] if is_refused else [f"a changed query ended with {changed.returncode}: {said}"]


async def _received(brokers: Brokers, count: int) -> Counter[str]:
    """So many results, and whatever else comes within two seconds."""
    found: Counter[str] = Counter()
    async with (
        holdfast.connect(brokers.url("b2"), name="end") as network,
        network.subscribe("turnover/#", durable="end") as items,
    ):
        try:
            while True:
                async with asyncio.timeout(PATIENCE_S if found.total() < count else 2):
                    item = await anext(items)
                assert isinstance(item, holdfast.Event), item
                fields = (item.attributes[name] for name in ("window_start", "window_end", "orders", "total"))
                found[_shown(item.topic, *fields)] += 1
        except TimeoutError:
            return found


def main(kills: int, seed: int) -> int:
    """One run; its exit status."""
    with tempfile.TemporaryDirectory(prefix="holdfast-derive-") as folder:
        problems = asyncio.run(performed(kills, seed, Path(folder)))
    if problems:
        print("\n".join([f"seed {seed}:", *problems[:50]]), file=sys.stderr)  # noqa: T201
        return 1
    print(f"counts: {json.dumps({'runs': 1, 'kills': kills, 'events': ROUND_EVENTS * (kills + 1)})}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
