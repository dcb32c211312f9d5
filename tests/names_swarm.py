"""Many who want to read under few names: ``python tests/names_swarm.py SEEDS CHUNK [OPTION…]``.

Durable subscriptions whose places the brokers keep, in a network in this process and in its own time: clients without a
token present the same names at any broker, one after the other or at once, leave, are ousted, give up before they are
confirmed, or end what they read. With ``--faults`` brokers crash and freeze and links are cut meanwhile, for a while;
with ``--several`` clients know several brokers, and go to the next when they lose one; with ``--narrow`` there are few
brokers, one name, little time and slow links, and more is ended, so that the same things meet in many orders. With
``--skewed`` a broker's clock is wrong. With ``--alone`` nobody comes under a name while it is read: then nobody is
ousted, whatever breaks. With ``--released`` there are several logs, with silence in them, that are released while it
runs; with ``--removed`` an operator removes subscriptions by their names, at any broker that has them, or had them.
With ``--tokens`` those who present a name are one application, whose database has its token: who comes loads it, and
from then on nobody else has effects (``SqliteCheckpoint``). There each event has its effect once, and in order. With
``--total`` the stream is in total order, and whoever reads sees the events of all publishers as they are in its log.
With ``--slow`` who reads has room for little and takes its time, so that moves meet those who catch up. With ``--auto``
some commit by the way, silence included, which a database with the token of the last event knows nothing of.
``tests/real_names.py`` is the same on real processes.

Of every subscription, from its first confirmation to its end: each event that was accepted meanwhile is read by
somebody, by each in order; nobody waits for ever; and when everything is over no broker keeps any of it. Where all
brokers hear of each other nobody reads what a client that had left before had committed, or what was accepted long
before the subscription was asked for (R1.2, R1.32, B1.9).

A failing run prints its seed; the last line of a good one has its counts, for ``tools/soak.py``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any

import holdfast
from holdfast import memory
from holdfast.broker.durable import own
from holdfast.client.item import Gap, LoggedEvent
from names_publisher import MATCHING, Publisher
from names_world import InMemory, World, let_pass

STREAMS: dict[str, tuple[str, str]] = {"orders": ("orders/#", "durable")}
TOTAL: dict[str, tuple[str, str, str]] = {"orders": ("orders/#", "durable", "total")}
TREES: tuple[dict[str, str | None], ...] = (
    {"b1": None},
    {"b1": None, "b2": "b1"},
    {"b1": None, "b2": "b1", "b3": "b2"},
    {"b1": None, "b2": "b1", "b3": "b1", "b4": "b1"},
)
WIDE_S, NARROW_S = 12.0, 4.0  #: so long things happen
SKEW_S = 0.7  #: a clock may be wrong
HISTORY_S = 8.0  #: a broker where nobody reads goes on from what it heard last, for some seconds
KEPT_S = 10.0  #: so long an event is kept for whoever its log has not heard of
KEPT_RELEASED_S = 1.0  #: and where logs are to be released while it runs
TOTAL_PUBLISHERS, PUBLISHERS_MAX = 3, 4
REMOVAL_S = 0.1  #: who comes sooner after a removal may have come before it


class Broken(AssertionError):
    """A promise that was not kept."""


class _TooLate(Exception):
    """Another program has loaded the checkpoint since."""


Numbers = Mapping[str, int]  #: of events, by their publishers


@dataclass
class Checkpoint:
    """An application's: its token, and the effects that were in one transaction with it."""

    token: holdfast.Token | None = None
    program: Session | None = None  #: who has loaded it last
    #: the last event of each publisher that had its effect
    last: dict[str, int] = field(default_factory=dict)
    had_gap: set[str] = field(default_factory=set)  #: something may be missing behind that


@dataclass
class Subscription:
    """What is promised under a name, from when it is asked for until it is ended."""

    asked_after: Numbers  #: the last events accepted a while before
    is_raced: bool = False  #: several began it at once, at several brokers: for a moment all of them have it
    owed_after: Numbers | None = None  #: the last events published before it was confirmed
    #: and logs that its broker could not reach then: nothing was owed from there, for now
    cut_off: frozenset[str] = frozenset()
    read: set[tuple[str, int]] = field(default_factory=set)  #: by anybody
    committed: dict[str, int] = field(default_factory=dict)  #: and committed, by those who have left
    is_removed: bool = False  #: nothing is owed any more to those who have come until then
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

    def missing(self, publisher: Publisher, upto: int) -> Sequence[int]:
        """What is owed and was not read."""
        if self.owed_after is None or self.is_removed:
            return []
        return publisher.missing(self.owed_after.get(publisher.name, 0), upto, self.read)


@dataclass
class Session:
    """A client that presents a name."""

    client: str
    name: str
    broker: str
    of: Subscription
    begins_after: Numbers  #: what was committed when it came
    has_rivals: bool = False  #: there were others when it came
    is_in: bool = False
    is_over: bool = False
    is_to_leave: bool = False
    is_to_end: bool = False
    is_ended: bool = False
    was_joined: bool = False  #: another broker had begun it, too, and there it goes on
    got: dict[str, int] = field(default_factory=dict)  #: the last event of each publisher
    #: After that, or before: something of these may be missing.
    had_gap: set[str] = field(default_factory=set)
    committed: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)  #: and of each log
    confirmed_after: Numbers = field(default_factory=dict)  #: the last events published before
    cut_off: frozenset[str] = frozenset()  #: logs that its broker could not reach then
    task: asyncio.Task[None] | None = None
    waits: asyncio.Future[Any] | None = None


@dataclass(frozen=True)
class Kind:
    """Of run."""

    with_faults: bool = False
    several: bool = False  #: clients know more than one broker
    narrow: bool = False
    skewed: bool = False  #: a broker's clock is wrong
    alone: bool = False  #: nobody comes under a name while it is read
    released: bool = False  #: several logs, with silence in them, that are released while it runs
    removed: bool = False  #: an operator removes some by their names
    tokens: bool = False  #: who presents a name brings the application's token
    total: bool = False  #: there is one log, at the root
    slow: bool = False  #: who reads has room for little, and takes its time
    auto: bool = False  #: what was read is committed by the way, and when it is left, silence included

    @property
    def kept_s(self) -> float:
        """So long an event is kept for whoever its log has not heard of."""
        return KEPT_RELEASED_S if self.released else KEPT_S

    @classmethod
    def of(cls, options: Sequence[str]) -> Kind:
        """As it is asked for."""
        return cls(*(f"--{each.name.removeprefix('with_')}" in options for each in fields(cls)))


class Names:
    """One run."""

    def __init__(self, world: World, rng: Random, kind: Kind) -> None:
        self.world = world
        self.rng = rng
        self.counts: Counter[str] = Counter()
        self.kind = kind
        #: Brokers may not have heard of each other.
        self.is_troubled = kind.with_faults and len(world.brokers) > 1
        self.troubled: dict[str, None] = {}  #: brokers that are down or frozen
        self.publishers: list[Publisher] = []
        self.publishing: list[asyncio.Task[None]] = []
        self.subscriptions: dict[str, Subscription] = {}
        self.sessions: list[Session] = []
        #: Nobody comes before: whether it came after the removal is not clear.
        self.removed_until: dict[str, float] = {}
        #: Who was on its way when one was removed begins it again; who was cut off, where it was, and behind a gap.
        self.begun_again: set[str] = set()
        self.names = ["n0"] if kind.narrow else [f"n{i}" for i in range(self.rng.randint(1, 3))]
        self.failures: list[BaseException] = []
        self.is_over = False

    # Everybody, at once

    async def run(self) -> Counter[str]:
        for _ in range(TOTAL_PUBLISHERS if self.kind.total else 1):
            self._start_publisher()
        try:
            await self._act()
            await self._heal()
            await self._part()
            await self._end_all()
        finally:
            await self._close([*self.publishing, *(each.task for each in self.sessions if each.task)])
        self.counts["runs"] += 1
        self.counts["events"] += sum(each.accepted for each in self.publishers)
        return self.counts

    async def _close(self, tasks: list[asyncio.Task[None]]) -> None:
        for session in self.sessions:
            session.is_to_leave = True
        for task in tasks:
            task.cancel()
        closing = asyncio.gather(*tasks, return_exceptions=True)
        while not closing.done():
            await self.world.step()

    async def _pass(self, seconds: float) -> None:
        until = self.world.now + seconds
        while self.world.now < until:
            await self.world.step()
            if self.failures:
                raise self.failures[0]

    async def _until(self, is_done: Callable[[], bool], what: Callable[[], str]) -> None:
        until = self.world.now + self.world.patience
        while not is_done():
            if self.world.now > until:
                raise Broken(f"{what()}, {self.world.patience:g} s after everything was well again")
            await self._pass(0.2)

    def _start_publisher(self) -> None:
        name = f"p{len(self.publishers) or ''}"
        publisher = Publisher(name, self.world, self.rng, has_silence=self.kind.released)
        self.publishers.append(publisher)
        self.publishing.append(asyncio.create_task(publisher.publish(lambda: self.is_over)))

    # What happens

    async def _act(self) -> None:
        await self._pass(0.5)
        until = self.world.now + self.world.lasts
        while self.world.now < until:
            for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
                self._act_once()
            await self._pass(self.rng.choice((0.0, 0.01, 0.03, 0.1, 0.5, 1.5)))

    def _act_once(self) -> None:
        here = [each for each in self.sessions if not each.is_over]
        if self.kind.released and len(self.publishers) < PUBLISHERS_MAX and self.rng.random() < 0.05:
            self._start_publisher()
            return
        if self.kind.removed and self.rng.random() < 0.12:
            self._remove(self.rng.choice(self.names))
            return
        draw = self.rng.random()
        if self.kind.with_faults and draw < (0.85 if self.kind.alone else 0.15):
            self._trouble()
        elif draw < 0.6 or not here:
            self._present(self.rng.choice(self.names))
        elif draw < (0.8 if self.kind.narrow else 0.95 if self.kind.alone else 0.9):
            self._leave(self.rng.choice(here))
        else:
            chosen = self.rng.choice(here)
            is_alone = all(each is chosen or each.name != chosen.name for each in here)
            if is_alone and not chosen.is_to_leave:
                chosen.is_to_end = True
                self._wake(chosen)

    def _present(self, name: str) -> Session | None:
        if any(each.name == name and each.is_to_end and not each.is_over for each in self.sessions):
            return None  # whether it is the old one or a new one nobody could say
        if self.kind.alone and any(each.name == name and not each.is_over for each in self.sessions):
            return None
        if self.world.now < self.removed_until.get(name, 0.0):
            return None
        of = self.subscriptions.setdefault(name, Subscription(self._accepted_before(HISTORY_S)))
        broker = self.rng.choice(self.world.brokers)
        session = Session(f"c{len(self.sessions)}", name, broker, of, dict(of.committed))
        others = [each for each in self.sessions if each.of is of and not each.is_over]
        session.has_rivals = bool(others)
        if of.owed_after is None and any(each.broker != session.broker for each in others):
            of.is_raced = True
        session.task = asyncio.create_task(self._watched(session))
        session.task.add_done_callback(lambda _: self._over(session))
        self.sessions.append(session)
        self.counts["sessions"] += 1
        return session

    def _accepted_before(self, seconds: float) -> Numbers:
        return {each.name: each.accepted_before(self.world.now - seconds) for each in self.publishers}

    def _remove(self, name: str) -> None:
        """An operator does; brokers that are down or frozen hear of it late, and so may who reads it there."""
        up = [each for each in self.world.brokers if not {each, f"{each}?"} & self.troubled.keys()]
        brokers = [each for each in up if self.world.has(each, name)]
        if not brokers:
            return
        self.world.remove(self.rng.choice(brokers), name)
        self.counts["removed"] += 1
        self.removed_until[name] = self.world.now + REMOVAL_S + (SKEW_S if self.kind.skewed else 0.0)
        if name in self.subscriptions:
            self.subscriptions[name].is_removed = True
            left = [each for each in self.sessions if each.name == name and not each.is_over]
            if any(self.kind.with_faults or not each.is_in for each in left):
                self.begun_again.add(name)
            self._forget_removed(name)

    def _forget_removed(self, name: str) -> None:
        """Once nobody is there any more who came before, or may have: who comes now asks for another."""
        of = self.subscriptions.get(name)
        if of is not None and of.is_removed and all(each.is_over for each in self.sessions if each.of is of):
            del self.subscriptions[name]

    def _leave(self, session: Session) -> None:
        session.is_to_leave = True
        self._wake(session)
        if not session.is_in and session.task is not None and not session.is_to_end:
            self.counts["gave up"] += 1
            session.task.cancel()

    def _wake(self, session: Session) -> None:
        if session.waits is not None and not session.waits.done():
            session.waits.cancel()

    def _trouble(self) -> None:
        """Something breaks, or is mended."""
        self.counts["faults"] += 1
        kind = self.rng.choice(("crash", "freeze", "cut", "mend"))
        broker = self.rng.choice(self.world.brokers)
        if kind == "mend" or self.troubled:
            self._mend()
        elif kind == "cut" and self.world.links:
            link = self.rng.choice(self.world.links)
            self.world.cut(*link)
            self.troubled["/".join(link)] = None
        elif kind == "freeze":
            self.world.freeze(broker)
            self.troubled[f"{broker}?"] = None
        else:
            self.world.crash(broker)
            self.troubled[broker] = None

    def _mend(self) -> None:
        for each in self.troubled:
            if "/" in each:
                a, _, b = each.partition("/")
                self.world.heal(a, b)
            elif each.endswith("?"):
                self.world.unfreeze(each[:-1])
            else:
                self.world.restart(each)
        self.troubled.clear()

    # A session

    async def _watched(self, session: Session) -> None:
        try:
            await self._session(session)
        except asyncio.CancelledError:
            if session.is_in:
                raise
        except _TooLate:
            pass
        except holdfast.TakenOver as taken:
            self.counts["ousted"] += 1
            session.was_joined = "begun" in str(taken)
            if session.of.is_removed and "ended" in str(taken):
                return
            later = self.sessions[self.sessions.index(session) + 1 :]
            has_come = session.has_rivals or any(each.name == session.name for each in later)
            if not has_come and not session.was_joined:
                self.failures.append(Broken(f"{session.name} at {session.broker}: nobody came, but {taken}"))
        except holdfast.Refused as refused:
            if not self.kind.with_faults or "does not answer" not in str(refused):
                self.failures.append(refused)
            self.counts["refused"] += 1
        except BaseException as error:  # what a run must not hide
            self.failures.append(error)

    def _over(self, session: Session) -> None:
        session.is_over = True
        of = session.of
        if session.is_ended:
            self.begun_again.discard(session.name)
            if self.subscriptions.get(session.name) is of:
                del self.subscriptions[session.name]
        else:
            for name, n in session.committed.items():
                of.committed[name] = max(of.committed.get(name, 0), n)
        self._forget_removed(session.name)

    async def _session(self, session: Session) -> None:
        topics = MATCHING if self.kind.released else "orders/#"
        how: dict[str, Any] = {"durable": session.name, "timeout": self.world.patience}
        checkpoint = session.of.checkpoint
        pause = self.rng.choice((0.0, 0.02, 0.06)) if self.kind.slow else 0.0
        if self.kind.slow:
            how["buffer"] = self.rng.choice((1, 4, 30))
        is_auto = self.kind.auto and self.rng.random() < 0.5
        if is_auto:
            how["acknowledge"] = "auto"
        if self.kind.tokens:
            checkpoint.program = session
            how["start"] = checkpoint.token or "now"
        async with (
            self.world.connect(self._known_to(session), session.client) as client,
            client.subscribe(topics, **how) as items,
        ):
            session.is_in = True
            self.counts["confirmed"] += 1
            session.confirmed_after = {each.name: each.published for each in self.publishers}
            session.cut_off = frozenset(each for one in items.partial for each in one.fragment)
            if not self.kind.tokens:
                self._begin(session)
            while not session.is_to_leave and not session.is_to_end:
                session.waits = asyncio.ensure_future(items.get())
                try:
                    item = await session.waits
                except asyncio.CancelledError:
                    continue
                if pause and not self.is_over:
                    await let_pass(self.world, pause)
                if self.kind.tokens and checkpoint.program is not session:
                    self.counts["came too late"] += 1
                    if is_auto:  # by an error, or it would be done with this item
                        raise _TooLate
                    session.is_to_leave = True
                    continue
                self._take(session, item)
                if self.kind.tokens:
                    self._have_effect(session, item)
                    checkpoint.token = items.token
                if session.got and not is_auto and self.rng.random() < 0.5:
                    await items.commit(item, timeout=self.world.patience)
                    session.committed.update(self._got_from(session, item.pubend))
            if session.is_to_end:
                await items.unsubscribe(timeout=self.world.patience)
                session.is_ended = True
                self.counts["ended"] += 1

    def _begin(self, session: Session) -> None:
        """What a subscription is owed begins where the first who reads it was confirmed."""
        if session.of.owed_after is None:
            session.of.owed_after, session.of.cut_off = session.confirmed_after, session.cut_off

    def _have_effect(self, session: Session, item: Any) -> None:
        """In the application's own transaction, with its token."""
        self._begin(session)
        checkpoint = session.of.checkpoint
        if isinstance(item, Gap):
            checkpoint.had_gap.update(each.name for each in self.publishers if each.is_in(item.pubend))
            return
        publisher = next(each for each in self.publishers if each.name == item.publisher)
        last = checkpoint.last.get(publisher.name)
        is_next = last is None or item.n == publisher.next_after(last)
        if last is not None and (item.n <= last or not (is_next or publisher.name in checkpoint.had_gap)):
            raise Broken(f"{session.name} at {session.broker}: {item.n} has its effect after {last}")
        checkpoint.last[publisher.name] = item.n
        checkpoint.had_gap.discard(publisher.name)

    def _known_to(self, session: Session) -> list[str]:
        """Brokers that it tries, one after the other, beginning with its own."""
        others = [each for each in self.world.brokers if each != session.broker] if self.kind.several else []
        return [session.broker, *others]

    def _got_from(self, session: Session, pubend: str) -> Numbers:
        there = [each.name for each in self.publishers if each.is_in(pubend)]
        return {name: session.got[name] for name in there if name in session.got}

    def _take(self, session: Session, item: Any) -> None:
        of, who = session.of, f"{session.name} at {session.broker}"
        if isinstance(item, Gap):
            if not (self.is_troubled or (self.kind.with_faults and session.name in self.begun_again)):
                raise Broken(f"{who}: {item}")
            session.had_gap.update(each.name for each in self.publishers if each.is_in(item.pubend))
            self.counts["gaps"] += 1  # if somebody was owed what is in it, it will be missed
            if item.pubend in of.cut_off:
                of.read.update(self._forgotten(item))
            return
        assert isinstance(item, LoggedEvent), item
        publisher = next(each for each in self.publishers if each.name == item.publisher)
        name, n = publisher.name, item.n
        self.counts["deliveries"] += 1
        if item.tick <= session.last.get(item.pubend, 0):
            raise Broken(f"{who}: {n} of {name} comes behind what follows it in {item.pubend}")
        session.last[item.pubend] = item.tick
        if name in session.got:
            got = session.got[name]
            if n <= got or (n != publisher.next_after(got) and name not in session.had_gap):
                raise Broken(f"{who}: {n} after {got} of {name}")
            session.had_gap.discard(name)
        elif not of.is_removed:  # else it may be another by now
            self._check_first(session, publisher, n)
        session.got[name] = n
        of.read.add((name, n))

    def _check_first(self, session: Session, publisher: Publisher, n: int) -> None:
        """What it reads first of a publisher."""
        of, who = session.of, f"{session.name} at {session.broker} begins with {n} of {publisher.name}"
        committed, asked_after = (
            session.begins_after.get(publisher.name, 0),
            of.asked_after.get(publisher.name, 0),
        )
        if n <= committed and not (of.is_raced or self.is_troubled):
            raise Broken(f"{who}, and {committed} was committed when it came")
        if n <= asked_after and not (self.kind.with_faults or session.name in self.begun_again):
            raise Broken(f"{who}, and {asked_after} was accepted long before anybody asked")
        if not self.kind.with_faults and of.missing(publisher, n - 1):
            raise Broken(f"{who}, and {of.missing(publisher, n - 1)} were not read")

    def _forgotten(self, gap: Gap) -> Iterator[tuple[str, int]]:
        """What a gap tells of that was so old that its log had to forget it."""
        old = self._accepted_before(self.kind.kept_s)
        for publisher in self.publishers:
            for n in publisher.told_of(gap, old[publisher.name]):
                yield publisher.name, n

    # The end

    async def _heal(self) -> None:
        self._mend()
        await self._pass(1.0)

    async def _part(self) -> None:
        """Everybody leaves, whatever they wait for."""
        for each in self.sessions:
            if not each.is_over and not each.is_to_end:
                self._leave(each)
        await self._until(lambda: all(each.is_over for each in self.sessions), self._waiting)
        self.is_over = True
        for publishing in self.publishing:
            await self._until(publishing.done, lambda: "a publisher waits")
            publishing.result()

    def _waiting(self) -> str:
        waiting = [(each.name, each.broker, each.is_in) for each in self.sessions if not each.is_over]
        return f"sessions that do not end: {waiting}"

    async def _end_all(self) -> None:
        """Somebody reads what is left of each, and ends it."""
        for name in self.names:
            await self._end(name)
        await self._until(lambda: not list(self._left()), lambda: f"left over: {list(self._left())}")

    async def _end(self, name: str) -> None:
        """Two brokers that could not hear of each other may both have begun it: then it goes back, for another."""
        session = self._present(name)
        assert session is not None
        of, where = session.of, f"{name} at {session.broker}"
        await self._until(lambda: session.is_in or session.is_over, lambda: f"{where} is not confirmed")
        await self._until(
            lambda: session.is_over or not any(self._missing(of).values()),
            lambda: f"of {where} nobody reads {self._missing(of)}",
        )
        session.is_to_end = True
        self._wake(session)
        await self._until(lambda: session.is_over, lambda: f"{where} cannot be ended")
        if not session.is_ended:
            if not self.kind.with_faults and not session.was_joined:
                raise Broken(f"{where} was ousted, and nobody else came")
            await self._end(name)

    def _missing(self, of: Subscription) -> Mapping[str, Sequence[int]]:
        missing = {each.name: of.missing(each, each.accepted) for each in self.publishers}
        return {name: numbers for name, numbers in missing.items() if numbers}

    def _left(self) -> Iterator[str]:
        for broker in self.world.brokers:
            kept = self.world.kept(broker)
            if kept:
                yield f"{kept} at {broker}"


@contextmanager
def keeping(seconds: float) -> Iterator[None]:
    """Logs keep so long what everybody has had."""
    before = own.KEEP
    setattr(own, "KEEP", round(seconds * 1_000_000))  # noqa: B010 - it is final, but for this
    try:
        yield
    finally:
        setattr(own, "KEEP", before)  # noqa: B010


def run_seed(seed: int, kind: Kind) -> Counter[str]:
    """One run, in memory.

    :raises Broken: if a promise was not kept.
    """
    rng = Random(seed)
    tree = rng.choice(TREES[1:3] if kind.narrow else TREES)
    delay = rng.choice((0.0, 0.001, 0.02, 0.15) if kind.narrow else (0.0, 0.001, 0.02))
    with (
        keeping(kind.kept_s),
        memory.Network(
            f"names-{seed}",
            tree=tree,
            streams=TOTAL if kind.total else STREAMS,
            stepped=True,
            seed=seed,
            delay=delay,
        ) as net,
    ):
        if kind.skewed:
            net.shift_clock(rng.choice(net.brokers), rng.choice((-SKEW_S, SKEW_S)))
        world = InMemory(net, tree, lasts=NARROW_S if kind.narrow else WIDE_S)
        return asyncio.run(Names(world, rng, kind).run())


def main(arguments: list[str]) -> int:
    options = [each for each in arguments if each.startswith("--")]
    size, chunk = (int(each) for each in arguments if each not in options)
    counts: Counter[str] = Counter()
    for seed in range(chunk * size, (chunk + 1) * size):
        try:
            counts += run_seed(seed, Kind.of(options))
        except BaseException:  # whatever it is, with its seed
            sys.stderr.write(" ".join([f"seed {seed}", *options, "\n"]))
            raise
    sys.stdout.write(f"counts: {json.dumps(counts)}\n")
    return 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
