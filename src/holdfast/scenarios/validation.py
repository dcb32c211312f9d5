"""Whether the parts of a configuration fit together: one tree, one broker on each site, names that exist, once.

Each rule yields what breaks it with the line it stands on; all of them are asked, so that a file is mended in one go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.scenarios.language import milliseconds_text
from holdfast.scenarios.topology import MASTER, Configuration, Link, Process, Site

__all__ = ["Objection", "objections", "objections_to_link"]


class Objection(NamedTuple):
    """A rule that a line breaks."""

    line: int
    problem: str
    expected: str | None = None


def objections(configuration: Configuration, lines: dict[str, int]) -> list[Objection]:
    """All that is wrong; ``lines`` says where a setting, by its field, was given."""
    return [
        *_repeated_names(configuration),
        *_reserved_names(configuration.processes),
        *_wrong_parents(configuration.sites),
        *_misplaced_processes(configuration),
        *_sites_without_broker(configuration),
        *_shared_addresses(configuration.processes),
        *(objection for link in configuration.links for objection in objections_to_link(link, configuration)),
        *_hasty_detection(configuration, lines),
        *_total_order_of_nothing(configuration, lines),
    ]


def _repeated_names(configuration: Configuration) -> Iterator[Objection]:
    first: dict[str, Site | Process] = {}
    things: list[Site | Process] = [*configuration.sites, *configuration.processes]
    for thing in things:
        earlier = first.setdefault(thing.name, thing)
        if earlier is not thing:
            problem = f"the name {thing.name} is taken on line {earlier.line}"
            yield Objection(thing.line, problem, "names of sites and processes that are all different")


def _reserved_names(processes: tuple[Process, ...]) -> Iterator[Objection]:
    for process in processes:
        if process.name == MASTER:
            problem = f"the name {MASTER} is that of the Puppet Master in the trace"
            yield Objection(process.line, problem, "another name")


def _wrong_parents(sites: tuple[Site, ...]) -> Iterator[Objection]:
    if not sites:
        yield Objection(1, "there is no site", "a line such as: Site site0 Parent none")
        return
    roots = [site for site in sites if site.parent is None]
    for root in roots[1:]:
        problem = f"{root.name} is a second root beside {roots[0].name}"
        yield Objection(root.line, problem, "one site with Parent none")
    by_name = {site.name: site for site in sites}
    for site in sites:
        if site.parent is not None and site.parent not in by_name:
            yield Objection(site.line, f"there is no site {site.parent}", "the name of a site, or none")
    yield from _circles(sites, by_name)


def _circles(sites: tuple[Site, ...], by_name: dict[str, Site]) -> Iterator[Objection]:
    """Each circle of parents once, where it is first met."""
    settled: set[str] = set()
    for site in sites:
        way: dict[str, None] = {}
        at: Site | None = site
        while at is not None and at.name not in settled and at.name not in way:
            way[at.name] = None
            at = by_name.get(at.parent) if at.parent is not None else None
        if at is not None and at.name in way:
            circle = list(way)[list(way).index(at.name) :]
            problem = f"the parents go in a circle: {' -> '.join([*circle, at.name])}"
            line = min(by_name[name].line for name in circle)
            yield Objection(line, problem, "a way up to the site with Parent none")
        settled.update(way)


def _misplaced_processes(configuration: Configuration) -> Iterator[Objection]:
    names = {site.name for site in configuration.sites}
    brokers: dict[str, Process] = {}
    for process in configuration.processes:
        if process.site not in names:
            yield Objection(process.line, f"there is no site {process.site}", "the name of a site")
        elif process.kind == "broker" and brokers.setdefault(process.site, process) is not process:
            problem = f"{process.site} has the broker {brokers[process.site].name} already"
            yield Objection(process.line, problem, "one broker on each site")


def _sites_without_broker(configuration: Configuration) -> Iterator[Objection]:
    with_broker = {process.site for process in configuration.of_kind("broker")}
    needing: dict[str, int] = {}
    for process in configuration.processes:
        needing.setdefault(process.site, process.line)
    for site in configuration.sites:
        if site.parent is not None:
            needing.setdefault(site.parent, site.line)
    for site in configuration.sites:
        if site.name in needing and site.name not in with_broker:
            expected = f"a line such as: Process NAME is broker On {site.name} URL tcp://localhost:0/broker"
            yield Objection(needing[site.name], f"{site.name} has no broker", expected)
    if configuration.sites and not configuration.processes:
        yield Objection(configuration.sites[0].line, "there is no process", "a broker at least")


def _shared_addresses(processes: tuple[Process, ...]) -> Iterator[Objection]:
    first: dict[tuple[str, int], Process] = {}
    for process in processes:
        host, port = process.address
        earlier = first.setdefault((host.casefold(), port), process)
        if port and earlier is not process:
            problem = f"{earlier.name} listens at {host}:{port} already"
            yield Objection(process.line, problem, "a port of its own, or 0 for any free one")


def objections_to_link(link: Link, configuration: Configuration) -> Iterator[Objection]:
    """What is wrong with the ends of a link; for links of scripts too."""
    nodes: list[str] = []
    for name in (link.a, link.b):
        try:
            nodes.append(configuration.node(name))
        except KeyError:
            problem = f"there is no process {name}, and no site {name} with a broker"
            yield Objection(link.line, problem, "the name of a site or a process")
    if len(nodes) == 2 and nodes[0] == nodes[1]:
        yield Objection(link.line, f"{link.a} and {link.b} are the same", "two ends of a link")


def _hasty_detection(configuration: Configuration, lines: dict[str, int]) -> Iterator[Objection]:
    if configuration.detect_after_ns <= configuration.heartbeat_ns:
        line = lines.get("detect_after_ns") or lines.get("heartbeat_ns", 1)
        after, beat = map(milliseconds_text, (configuration.detect_after_ns, configuration.heartbeat_ns))
        problem = f"DetectAfter {after} has no effect where heartbeats come every {beat} ms"
        yield Objection(line, problem, "DetectAfter above Heartbeat")


def _total_order_of_nothing(configuration: Configuration, lines: dict[str, int]) -> Iterator[Objection]:
    """A sequencer that forgets would disagree with itself [design.md §2]."""
    if configuration.ordering == "TOTAL" and configuration.guarantee not in ("durable", "archived"):
        problem = f"there is no total order of what is not logged: Guarantee {configuration.guarantee}"
        yield Objection(lines.get("ordering", 1), problem, "Guarantee durable, or Ordering NO or FIFO")
