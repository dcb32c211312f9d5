"""A network as a scenario describes it: sites in a tree, processes on them, links between them, and its settings.

A ``Configuration`` is what the text of a configuration file says [SESDAD §4.1]; ``str()`` gives a canonical text that
reads back as an equal one. Who obeys its settings is not its affair.

Invariant, held by ``validation``: the sites form one tree; every site with processes or sites below it has exactly
one broker; all names are different; every name that is mentioned exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, TypeAlias

from holdfast.clock import MILLISECOND
from holdfast.scenarios.address import Address, address_of
from holdfast.scenarios.language import milliseconds_text

__all__ = [
    "DEFAULT_QUALITY",
    "KINDS",
    "MASTER",
    "Configuration",
    "Kind",
    "Link",
    "LinkQuality",
    "Process",
    "Site",
]

Kind: TypeAlias = Literal["broker", "publisher", "subscriber", "archive"]
KINDS: Final[tuple[Kind, ...]] = ("broker", "publisher", "subscriber", "archive")

#: The node of the trace that writes what the script does to processes and links; no process is called so.
MASTER: Final = "master"


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the tree; the root has no parent."""

    name: str
    parent: str | None
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"Site {self.name} Parent {self.parent or 'none'}"


@dataclass(frozen=True, slots=True)
class Process:
    """A broker or a client on a site. ``url`` is as given; port 0 stands for any free one."""

    name: str
    kind: Kind
    site: str
    url: str
    line: int = field(default=0, compare=False)

    @property
    def address(self) -> Address:
        """Host and port of the URL."""
        return address_of(self.url)

    def __str__(self) -> str:
        return f"Process {self.name} is {self.kind} On {self.site} URL {self.url}"


@dataclass(frozen=True, slots=True)
class LinkQuality:
    """What a link does to what crosses it, in one direction; shares are from 0 to 1."""

    delay_ns: int = 10 * MILLISECOND
    jitter_ns: int = 0
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0

    def __str__(self) -> str:
        parts = [f"Delay {milliseconds_text(self.delay_ns)}"]
        if self.jitter_ns:
            parts.append(f"Jitter {milliseconds_text(self.jitter_ns)}")
        for keyword, share in (
            ("Loss", self.loss),
            ("Duplicate", self.duplicate),
            ("Reorder", self.reorder),
        ):
            if share:
                parts.append(f"{keyword} {share!r}")
        return " ".join(parts)


DEFAULT_QUALITY: Final = LinkQuality()


@dataclass(frozen=True, slots=True)
class Link:
    """The quality of the link between two sites or processes, whole: what a line leaves out has its default."""

    a: str
    b: str
    quality: LinkQuality = DEFAULT_QUALITY
    one_way: bool = False  #: from a to b only
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"Link {self.a} {'-> ' if self.one_way else ''}{self.b} {self.quality}"


@dataclass(frozen=True)
class Configuration:
    """Everything a configuration file says. The defaults are those of contracts.md §4; None is "never"."""

    sites: tuple[Site, ...]
    processes: tuple[Process, ...]
    links: tuple[Link, ...] = ()
    routing: Literal["filter", "flooding"] = "filter"
    ordering: Literal["NO", "FIFO", "TOTAL"] = "FIFO"
    logging: Literal["full", "light"] = "light"
    guarantee: Literal["best-effort", "reliable", "durable", "archived"] = "best-effort"
    delta: int = 0
    seed: int = 0
    acknowledge: Literal["dack", "conf", "none"] = "dack"
    refill: bool = True
    aggregation: bool = False
    failover_after_ns: int | None = None
    heartbeat_ns: int = 100 * MILLISECOND
    detect_after_ns: int = 500 * MILLISECOND
    probe_every_ns: int = 200 * MILLISECOND
    dack_every_ns: int = 1000 * MILLISECOND
    retain_ns: int | None = None
    pubends: int = 1

    def __str__(self) -> str:
        from holdfast.scenarios.settings import settings_text  # the table of settings knows their spelling

        parts = (*settings_text(self), *self.sites, *self.processes, *self.links)
        return "".join(f"{part}\n" for part in parts)

    # Sites and processes

    def joined_by(self, process: Process) -> Configuration:
        """The network with one process more."""
        return replace(self, processes=(*self.processes, process))

    def with_client_on(self, name: str, site: str) -> Configuration:
        """The network with a client on another site."""
        processes = tuple(
            replace(process, site=site) if process.name == name else process for process in self.processes
        )
        return replace(self, processes=processes)

    def has(self, name: str) -> bool:
        """Whether a name stands for a process: its own, or the broker of a site."""
        return name in self._processes or name in self._brokers

    def process(self, name: str) -> Process:
        """The process of this name; KeyError if there is none."""
        return self._processes[name]

    def of_kind(self, kind: Kind) -> list[Process]:
        """The processes of one kind, in the order of the file."""
        return [process for process in self.processes if process.kind == kind]

    def broker_of(self, site: str) -> Process:
        """The broker of a site; KeyError if there is none."""
        return self._brokers[site]

    def node(self, name: str) -> str:
        """The process a name stands for: itself, or the broker of a site; KeyError if there is none."""
        return name if name in self._processes else self._brokers[name].name

    @cached_property
    def _processes(self) -> dict[str, Process]:
        return {process.name: process for process in self.processes}

    @cached_property
    def _brokers(self) -> dict[str, Process]:
        return {process.site: process for process in self.processes if process.kind == "broker"}

    # The tree of processes: brokers like their sites, clients below the broker of theirs

    def parent_of(self, name: str) -> str | None:
        """The process above this one; None for the broker at the root."""
        return self._above[name]

    def neighbours(self, name: str) -> list[str]:
        """The processes beside this one in the tree: the one above, then those below in the order of the file."""
        above = self._above[name]
        return [*([] if above is None else [above]), *self._below[name]]

    def tree(self) -> dict[str, str | None]:
        """Every process with the one above it, as the trace's first line has it."""
        return dict(self._above)

    @cached_property
    def _above(self) -> dict[str, str | None]:
        parents = {site.name: site.parent for site in self.sites}
        above: dict[str, str | None] = {}
        for process in self.processes:
            site = parents[process.site] if process.kind == "broker" else process.site
            above[process.name] = None if site is None else self._brokers[site].name
        return above

    @cached_property
    def _below(self) -> dict[str, list[str]]:
        below: dict[str, list[str]] = {process.name: [] for process in self.processes}
        for name, above in self._above.items():
            if above is not None:
                below[above].append(name)
        return below

    # Links

    def quality(self, sender: str, receiver: str) -> LinkQuality:
        """What happens between two processes in this direction; the last line that speaks of it decides."""
        return self._qualities.get((sender, receiver), DEFAULT_QUALITY)

    @cached_property
    def _qualities(self) -> dict[tuple[str, str], LinkQuality]:
        qualities: dict[tuple[str, str], LinkQuality] = {}
        for link in self.links:
            for pair in self.directions(link):
                qualities[pair] = link.quality
        return qualities

    def directions(self, link: Link) -> list[tuple[str, str]]:
        """The (sender, receiver) pairs of processes a link stands for: one or two."""
        a, b = self.node(link.a), self.node(link.b)
        return [(a, b)] if link.one_way else [(a, b), (b, a)]
