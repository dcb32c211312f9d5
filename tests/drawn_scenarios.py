"""Configurations and scripts drawn by Hypothesis, of everything the language can say, supported yet or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st

from holdfast.clock import MILLISECOND
from holdfast.filters.parse import parse_filter
from holdfast.scenarios import unsupported
from holdfast.scenarios.commands import (
    At,
    ClockShift,
    Command,
    Crash,
    Cut,
    Disconnect,
    Drain,
    Expel,
    Freeze,
    Heal,
    Isolate,
    Leave,
    Publish,
    Reconnect,
    Restart,
    SetLink,
    Slow,
    Status,
    Subscribe,
    Unfreeze,
    Unsubscribe,
    Wait,
)
from holdfast.scenarios.distributions import Choice, Constant, Distribution, RandInt, Uniform
from holdfast.scenarios.script import Script
from holdfast.scenarios.subscriptions import settle_subscriptions
from holdfast.scenarios.topology import Configuration, Link, LinkQuality, Process, Site
from strategies import filters

TIMES = st.integers(0, 20_000 * MILLISECOND)
PERIODS = st.integers(1, 100 * MILLISECOND)
SHARES = st.sampled_from((0.0, 0.05, 0.5, 1.0, 1e-7, 1 / 3))
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"), max_size=6)
TOPICS = st.sampled_from(("/p00-0", "orders/eu", "a b", "é", '"', "Interval", "x/Ontopic"))
#: Filters whose words are also those of the scenario language.
WORDY_FILTERS = st.sampled_from(
    (
        "orders WHERE as = 'As big'",
        "orders WHERE durable",
        'a/+ WHERE "As" > 1 OR durable',
        "a WHERE note = 'x As y Durable'",
        "As",
        "Durable WHERE s LIKE 'it''s As %'",
    )
)


@contextmanager
def everything_supported() -> Iterator[None]:
    """The language as it will be, with nothing refused for not existing yet."""
    with pytest.MonkeyPatch.context() as patch:
        for table in ("SETTINGS", "PROCESSES", "COMMANDS"):
            patch.setattr(unsupported, table, {})
        yield


def qualities() -> st.SearchStrategy[LinkQuality]:
    """What a link may do."""
    return st.builds(LinkQuality, TIMES, TIMES, SHARES, SHARES, SHARES)


@st.composite
def configurations(draw: st.DrawFn) -> Configuration:
    """A tree of one to five sites with a broker and some clients on each."""
    count = draw(st.integers(1, 5))
    sites = [Site("s0", None)]
    sites += [Site(f"s{i}", f"s{draw(st.integers(0, i - 1))}") for i in range(1, count)]
    processes = [
        Process(f"b{i}", "broker", f"s{i}", f"tcp://localhost:{3330 + i}/broker") for i in range(count)
    ]
    kinds = draw(st.lists(st.sampled_from(("publisher", "subscriber", "archive")), max_size=4))
    for i, kind in enumerate(("publisher", "subscriber", *kinds)):
        site = draw(st.sampled_from(sites)).name
        url = draw(st.sampled_from(("tcp://127.0.0.1:0/", "tcp://[::1]:0", "tcp://some.host:0/a/b?c")))
        processes.append(Process(f"c{i}", kind, site, url))  # type: ignore[arg-type]
    names = [*(site.name for site in sites[1:]), *(process.name for process in processes[count:])]
    links = [
        Link("b0", draw(st.sampled_from(names)), draw(qualities()), draw(st.booleans()))
        for _ in range(draw(st.integers(0, 2)))
    ]
    order = draw(st.permutations(sites))
    return Configuration(
        tuple(order), tuple(draw(st.permutations(processes))), tuple(links), **draw(settings())
    )


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    """Some settings, each with any legal value; a total order is one of what is logged."""
    drawn: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "routing": st.sampled_from(("filter", "flooding")),
                "ordering": st.sampled_from(("NO", "FIFO", "TOTAL")),
                "logging": st.sampled_from(("full", "light")),
                "guarantee": st.sampled_from(("best-effort", "reliable", "durable", "archived")),
                "delta": st.integers(0, 3),
                "seed": st.integers(0, 2**63 - 1),
                "acknowledge": st.sampled_from(("dack", "conf", "none")),
                "refill": st.booleans(),
                "aggregation": st.booleans(),
                "failover_after_ns": st.none() | PERIODS,
                "heartbeat_ns": PERIODS,
                "probe_every_ns": PERIODS,
                "dack_every_ns": PERIODS,
                "retain_ns": st.none() | PERIODS,
                "pubends": st.integers(1, 9),
            },
        )
    )
    if drawn.get("ordering") == "TOTAL" and drawn.get("guarantee") not in ("durable", "archived"):
        drawn["guarantee"] = "durable"
    return drawn


def literals() -> st.SearchStrategy[bool | int | float | str]:
    """Constants of With, and text that looks like one."""
    texts = st.sampled_from(
        ("IBM", "1", "-2.5", "true", "1e5", "9" * 30, "1e999", "a b", 'say "x"', "", "x=y", "f(x)")
    )
    return (
        st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts
        | WORDS
    )


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    """Anything an attribute can be drawn from."""
    kind = draw(st.sampled_from((Constant, Choice, Uniform, RandInt)))
    if kind is Constant:
        return Constant(draw(literals()))
    if kind is Choice:
        return Choice(tuple(draw(st.lists(literals(), min_size=1, max_size=4))))
    if kind is Uniform:
        bounds = st.integers(-(10**6), 10**6)
        low, high = sorted((draw(bounds), draw(bounds)))
        return Uniform(Decimal(low) / 100, Decimal(high) / 100)
    low, high = sorted((draw(st.integers(-(2**63), 2**63 - 1)), draw(st.integers(-(2**63), 2**63 - 1))))
    return RandInt(low, high)


@st.composite
def publishes(draw: st.DrawFn, publisher: str = "c0") -> Publish:
    """A Publish command."""
    names = st.sampled_from(("price", "Payload", "a b", 'q"', "é", "x.y"))
    attributes = draw(st.dictionaries(names, distributions(), max_size=3))
    payload = draw(st.none() | st.just("xml") | st.integers(0, 2000))
    return Publish(
        publisher,
        draw(st.integers(1, 20)),
        draw(TOPICS),
        draw(TIMES),
        tuple(attributes.items()),
        payload,  # type: ignore[arg-type]
        line=draw(st.integers(1, 9)),
    )


@st.composite
def filter_texts(draw: st.DrawFn) -> str:
    """Filters as somebody might write them, on one line."""
    text = draw(WORDY_FILTERS | filters().map(str))
    return text.replace("\n", " ")


@st.composite
def scripts(draw: st.DrawFn, configuration: Configuration) -> Script:
    """A script for this network, subscriptions settled."""
    commands: list[Command] = []
    targets: list[tuple[str, str]] = []
    for i in range(draw(st.integers(0, 8))):
        command = draw(_command(configuration, i))
        if isinstance(command, Subscribe):
            targets.append((command.subscriber, command.subscription or command.text))
        if isinstance(command, Status) and targets:
            command = Unsubscribe(*targets.pop(draw(st.integers(0, len(targets) - 1))))
        if not isinstance(command, Wait | Drain) and draw(st.booleans()):
            command = At(draw(TIMES), command)  # type: ignore[arg-type]
        commands.append(command)
    errors: list[Any] = []
    settled = settle_subscriptions(Script.of(commands).commands, "drawn", errors)
    assert not errors
    return Script(settled)


@st.composite
def _command(draw: st.DrawFn, configuration: Configuration, number: int) -> Command:
    processes = [process.name for process in configuration.processes]
    places = [*processes[1:], *(site.name for site in configuration.sites)]
    a = draw(st.sampled_from(places))
    b = next(name for name in places if configuration.node(name) != configuration.node(a))
    process = draw(st.sampled_from(processes))
    subscriber = draw(st.sampled_from([each.name for each in configuration.of_kind("subscriber")]))
    sites = st.sampled_from([site.name for site in configuration.sites])
    makers: list[Callable[[], Command]] = [
        lambda: draw(_subscribes(subscriber, number, configuration.guarantee)),
        Status,
        lambda: draw(publishes()),
        lambda: Disconnect(subscriber),
        lambda: Reconnect(subscriber, draw(st.none() | sites)),
        lambda: Slow(subscriber, draw(TIMES)),
        lambda: Wait(draw(TIMES)),
        lambda: Drain(draw(TIMES)),
        *(partial(kind, process) for kind in (Crash, Restart, Freeze, Unfreeze, Leave, Expel)),
        lambda: Cut(a, b),
        lambda: Isolate(a),
        lambda: Heal(a, draw(st.sampled_from((None, b)))),
        lambda: SetLink(Link(a, b, draw(qualities()), draw(st.booleans()))),
        lambda: ClockShift(process, draw(st.integers(-(10**12), 10**12))),
    ]
    # Subscriptions twice: they have the most to say.
    return draw(st.sampled_from([makers[0], *makers]))()


@st.composite
def _subscribes(draw: st.DrawFn, subscriber: str, number: int, guarantee: str) -> Subscribe:
    text = draw(filter_texts())
    name = draw(st.sampled_from(("", f"name{number}", f"a.b-{number}")))
    return Subscribe(
        subscriber, text, parse_filter(text), name, guarantee == "durable" and draw(st.booleans())
    )
