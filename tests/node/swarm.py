"""Random trees of bare nodes under random faults.

*Calm* faults keep to the guarantee: at most δ nodes or links are down at a time, and between two waves the network
settles. Then nothing may be lost. *Wild* faults do not: then nothing may be repeated, reordered or made up, whatever
else happens; and after healing everything must work again. With *churn* subscriptions come and go all the while.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from random import Random

from harness import Net, role_of

from holdfast.identity import EventId
from holdfast.messages.overlay import Role
from holdfast.node.settings import Acknowledge
from holdfast.simulator.transcript import Transcript


def random_tree(random: Random, brokers: int, clients: int) -> str:
    paths = []
    for i in range(1, brokers):
        # Long ways matter more than wide trees: mostly the last few are built on.
        parent = random.randrange(max(0, i - random.choice((1, 1, 1, 2, 4))), i)
        paths.append(f"B{parent:02}-B{i:02}")
    for i in range(clients):
        kind = "P" if i % 2 == 0 else "S"
        home = random.randrange(brokers)
        paths.append(f"B{home:02}-{kind}{i:02}")
    return " ".join(paths) or "B00-P00"


class Run:
    """One seed: a tree, a workload, faults, and what must hold."""

    def __init__(
        self,
        seed: int,
        *,
        wild: bool = False,
        transcript: Transcript | None = None,
        delta: int | None = None,
        churn: bool = False,
    ) -> None:
        self.seed = seed
        self.churn = churn
        self.wild = wild
        self.random = random = Random(f"{seed} {wild}")
        self.delta = random.choice((0, 1, 1, 2, 2, 3)) if delta is None else delta
        brokers = random.randint(2, 14)
        self.tree = random_tree(random, brokers, random.randint(2, 8))
        self.net = Net(
            self.tree,
            self.delta,
            acknowledge=random.choice((Acknowledge.DACK, Acknowledge.DACK, Acknowledge.CONF)),
            seed=seed,
            transcript=transcript,
            dack_every_ms=random.choice((100, 300, 1000)),
            relayed_bytes=Random(f"room {seed}").choice((60, 200, 1 << 25)),
        )
        self.brokers = [name for name in self.net.edges if role_of(name) is Role.BROKER]
        self.publishers = [name for name in self.net.edges if role_of(name) is Role.PUBLISHER]
        self.subscribers = [name for name in self.net.edges if role_of(name) is Role.SUBSCRIBER]
        self.filters: dict[tuple[str, int], int | None] = {}
        self.next_number = dict.fromkeys(self.subscribers, 1)
        self.final: dict[str, int] = {}  #: by publisher, its last number before the last publications of all
        self.faults: list[str] = []
        self.down: dict[str, Callable[[], None]] = {}

    def run(self) -> None:
        net, random = self.net, self.random
        for name in self.subscribers:
            for _ in range(1, random.randint(2, 3)):
                self.subscribe(name)
        net.run(2000)
        waves = random.randint(1, 4)
        for _ in range(waves):
            self.wave()
        self.quiet(12_000)
        self.final = {name: net.memories[name].numbers for name in self.publishers}
        self.publish_all()
        self.quiet(9_000)

    def subscribe(self, name: str) -> None:
        number = self.next_number[name]
        self.next_number[name] += 1
        which = self.filters[name, number] = self.random.choice((None, 0, 1))
        self.net.subscribe(name, number, "#" if which is None else f"# WHERE k = {which}")

    def change_mind(self) -> None:
        """Somebody subscribes, or does not any more."""
        if not self.churn or not self.subscribers or self.random.random() < 0.8:
            return
        name = self.random.choice(self.subscribers)
        wishes = list(self.net.memories[name].wishes)
        if wishes and self.random.random() < 0.5:
            self.net.unsubscribe(name, self.random.choice(wishes))
        else:
            self.subscribe(name)

    def publish_all(self) -> None:
        for name in self.publishers:
            if self.net.world.nodes[name].is_up:
                self.net.publish(name, self.random.randint(1, 3), k=self.random.choice((0, 1)))

    def quiet(self, ms: int) -> None:
        self.net.run(ms)

    def busy(self, ms: int) -> None:
        """Let time pass while everybody publishes."""
        end = self.net.now + ms
        while self.net.now < end:
            self.net.run(self.random.randint(5, 60))
            self.change_mind()
            name = self.random.choice(self.publishers)
            if self.net.world.nodes[name].is_up:
                self.net.publish(name, self.random.randint(1, 3), k=self.random.choice((0, 1)))

    def wave(self) -> None:
        random = self.random
        most = self.delta if not self.wild else max(1, self.delta + 2)
        count = random.randint(0, most)
        self.busy(random.randint(50, 400))
        for _ in range(count):
            self.fail()
            if random.random() < 0.7:
                self.busy(random.randint(1, 1500))
        self.busy(random.randint(1, 2500))
        for what in list(self.down):
            self.repair(what)
            if random.random() < 0.7:
                self.busy(random.randint(1, 1500))
        self.busy(random.randint(50, 400))
        self.quiet(4500 if not self.wild else random.randint(0, 4500))

    def fail(self) -> None:
        random, net = self.random, self.net
        kind = random.choice(("crash", "crash", "freeze", "cut"))
        if kind == "cut":
            a = random.choice(self.brokers)
            b = random.choice(net.edges[a])
            what = f"cut {min(a, b)} {max(a, b)}"
            if what in self.down or a in self.busy_nodes() or b in self.busy_nodes():
                return
            net.cut(a, b)
            self.down[what] = lambda: net.heal(a, b)
        else:
            name = random.choice(self.brokers)
            what = f"{kind} {name}"
            if name in self.busy_nodes():
                return
            if kind == "crash":
                net.crash(name)
                if random.random() < 0.2:  # a fast restart: nobody notices in time
                    net.run(random.randint(1, 300))
                    net.restart(name)
                    self.faults.append(f"{net.now:.0f} fast {name}")
                    net.run(100)
                    return
                self.down[what] = lambda: net.restart(name)
            else:
                net.world.freeze(name)
                self.down[what] = lambda: net.world.unfreeze(name)
        self.faults.append(f"{net.now:.0f} {what}")

    def busy_nodes(self) -> set[str]:
        return {name for what in self.down for name in what.split()[1:]}

    def repair(self, what: str) -> None:
        self.faults.append(f"{self.net.now:.0f} repair {what}")
        self.down.pop(what)()

    # What must hold

    def wants(self, subscriber: str, number: int, k: int) -> bool:
        which = self.filters[subscriber, number]
        return which is None or which == k

    def problems(self) -> list[str]:
        found = [problem for name in self.subscribers for problem in self.misdelivered(name)]
        found += [problem for name in self.net.edges for problem in self.unsettled(name)]
        unaccepted = [
            str(event)
            for name in self.publishers
            for event in self.net.memories[name].published
            if event not in self.net.memories[name].accepted
        ]
        if unaccepted:
            found.append(f"not accepted: {unaccepted[:5]}")
        return found

    def misdelivered(self, name: str) -> Iterator[str]:
        """I1, I2, I4 always; I3 and I30 within the guarantee; beyond it, that the last publications came (R0.59)."""
        memory = self.net.memories[name]
        for number in range(1, self.next_number[name]):
            ids = [each.event for each in memory.deliveries if each.subscription == number]
            if len(set(ids)) != len(ids):
                yield f"{name}#{number}: a duplicate"
            for publisher in self.publishers:
                mine = [event.n for event in ids if event.publisher == publisher]
                if mine != sorted(mine):
                    yield f"{name}#{number}: {publisher} out of order: {mine}"
                ks = self.net.memories[publisher].ks
                if made_up := set(mine) - {n for n, k in ks if self.wants(name, number, k)}:
                    yield f"{name}#{number}: {publisher} made up {made_up}"
                missing = sorted(set(self.owed(name, number, publisher)) - set(mine))
                if missing and not self.wild:
                    yield f"{name}#{number}: {publisher} lost {missing}"
                elif missing and missing[-1] > self.final[publisher]:
                    yield f"{name}#{number}: {publisher} not alive again: {missing}"

    def owed(self, name: str, number: int, publisher: str) -> list[int]:
        """What was published after the full confirmation, to a subscription that was not ended."""
        full_at = self.net.full_at(name, number)
        if number not in self.net.memories[name].wishes or full_at is None:
            return []
        memory = self.net.memories[publisher]
        return [
            n
            for n, k in memory.ks
            if self.wants(name, number, k) and memory.published_at[EventId(publisher, n)] > full_at
        ]

    def unsettled(self, name: str) -> Iterator[str]:
        """I31: what is left at a node when everything should have settled."""
        net, node = self.net, self.net.node(name)
        if held := net.queue(name):
            yield f"{name} still holds {held}"
        if node.spread._rounds:
            yield f"{name} has rounds {list(node.spread._rounds)}"
        if node.spread.partitions.open or node.spread.partitions.crossings:
            yield f"{name} has partitions"
        for station in node.reach.stations.values():
            if station.distance == 1 and not station.is_open:
                yield f"{name}: {station.name} is {station.phase}"
            if station.distance > 1 and station.connection is not None:
                yield f"{name}: {station.name} is still connected"
        if role_of(name) is Role.SUBSCRIBER:
            for number in net.memories[name].wishes:
                if net.full_at(name, number) is None:
                    yield f"{name}#{number} is not wholly confirmed"
            return
        live = {f"{each}.1#{number}" for each in self.subscribers for number in net.memories[each].wishes}
        if (known := set(net.knowing()[name])) != live:
            yield f"{name} knows {sorted(known - live)} too, and not {sorted(live - known)}"


def main(arguments: list[str]) -> int:
    """``swarm.py [wild] [churn] FIRST [LAST]``: run seeds, and say what went wrong."""
    wild, churn = "wild" in arguments, "churn" in arguments
    numbers = [int(each) for each in arguments if each.isdigit()]
    bad = 0
    for seed in range(numbers[0], numbers[-1] + 1):
        run = Run(seed, wild=wild, churn=churn)
        try:
            run.run()
            problems = run.problems()
        except Exception:
            problems = [traceback.format_exc()[-1500:]]
        if problems:
            bad += 1
            sys.stdout.write(f"seed {seed} delta {run.delta} tree {run.tree}\n  faults {run.faults}\n")
            sys.stdout.writelines(f"    {problem}\n" for problem in problems[:6])
            sys.stdout.flush()
    sys.stdout.write(f"{numbers[-1] - numbers[0] + 1} seeds, {bad} bad\n")
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
