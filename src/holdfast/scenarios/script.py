"""From the text of a script to its commands, every name checked against the configuration.

The commands are those of contracts.md §4; ``commands`` has them one by one. A bad script is refused with everything
that is wrong with it: first all lines that cannot be read, name what is not there, or ask for what does not exist
yet; and if there are none, all that speak of a subscription in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from holdfast.clock import SECOND
from holdfast.errors import InvalidEvent
from holdfast.events.event import DEFAULT_LIMITS, make_event
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
    Join,
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
from holdfast.scenarios.configuration import read_link, read_process
from holdfast.scenarios.distributions import largest_value, read_attributes
from holdfast.scenarios.filter_clause import read_filter_before_clauses, read_whole_filter
from holdfast.scenarios.language import Line, ScenarioError, lines_of, read_each, together
from holdfast.scenarios.subscriptions import settle_subscriptions
from holdfast.scenarios.topology import Configuration, Kind, Link
from holdfast.scenarios.unsupported import refused_command
from holdfast.scenarios.validation import objections, objections_to_link

__all__ = ["COMPLETION_MAX_NS", "FINAL_DRAIN_NS", "PUBLISH_COUNT_MAX", "Script", "parse_script"]

PUBLISH_COUNT_MAX: Final = 1_000_000_000

#: How long a script waits for a command to complete before it goes on.
COMPLETION_MAX_NS: Final = 5 * SECOND
#: How long the end of a script waits for everything to arrive.
FINAL_DRAIN_NS: Final = 10 * SECOND


@dataclass(frozen=True, slots=True)
class Script:
    """Commands in the order of the file. ``str()`` puts each on its own line number, so that draws stay the same."""

    commands: tuple[Command, ...]

    @classmethod
    def of(cls, commands: Iterable[Command]) -> Script:
        """A script of commands made elsewhere, written on the lines from 1 on."""
        return cls(tuple(_on_line(command, line) for line, command in enumerate(commands, start=1)))

    @property
    def steps(self) -> list[Command]:
        """What runs one after the other."""
        return [command for command in self.commands if not isinstance(command, At)]

    @property
    def timed(self) -> list[At]:
        """What runs at its own time, the earliest first; at one time, in the order of the file."""
        return sorted(
            (command for command in self.commands if isinstance(command, At)), key=lambda at: at.at_ns
        )

    def network(self, configuration: Configuration) -> Configuration:
        """Everybody who is ever there: those of the configuration, and those who join."""
        for command in self.commands:
            inner = command.command if isinstance(command, At) else command
            if isinstance(inner, Join):
                configuration = configuration.joined_by(inner.process)
        return configuration

    def __str__(self) -> str:
        lines: list[str] = []
        for command in self.commands:
            assert command.line > len(lines), "commands stand on ascending lines: see Script.of"
            lines.extend([""] * (command.line - 1 - len(lines)))
            lines.append(str(command))
        return "".join(f"{line}\n" for line in lines)


def _on_line(command: Command, line: int) -> Command:
    if isinstance(command, At):
        return replace(command, command=replace(command.command, line=line), line=line)
    return replace(command, line=line)


def parse_script(text: str, file: str, configuration: Configuration) -> Script:
    """Read a script for this network; ``file`` is what errors call it.

    :raises ScenarioError: naming everything that is wrong; nothing else is ever raised.
    """
    errors: list[ScenarioError] = []
    commands = read_each(lines_of(text, file), _Reader(configuration).read, errors)
    if not errors:
        script = Script(settle_subscriptions(commands, file, errors))
    if errors:
        raise together(errors)
    return script


class _Reader:
    """One line after the other; ``configuration`` grows with every Join."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.rules: Mapping[str, Callable[[Line], Command]] = {
            "Subscriber": self.subscriber,
            "Publisher": self.publisher,
            "Slow": self.slow,
            "Wait": lambda line: Wait(line.milliseconds("Wait"), line=line.number),
            "Status": lambda line: Status(line=line.number),
            "Drain": lambda line: Drain(line.milliseconds("Drain"), line=line.number),
            "At": self.at,
            "Crash": lambda line: Crash(self.process(line), line=line.number),
            "Restart": lambda line: Restart(self.process(line), line=line.number),
            "Freeze": lambda line: Freeze(self.process(line), line=line.number),
            "Unfreeze": lambda line: Unfreeze(self.process(line), line=line.number),
            "Join": self.join,
            "Leave": lambda line: Leave(self.process(line), line=line.number),
            "Expel": lambda line: Expel(self.process(line), line=line.number),
            "Cut": self.cut,
            "Isolate": lambda line: Isolate(self.place(line), line=line.number),
            "Heal": self.heal,
            "Link": lambda line: SetLink(self.checked(read_link(line), line), line=line.number),
            "Clock": self.clock,
        }

    def read(self, line: Line) -> Command:
        command = self.command(line)
        line.end()
        refused = refused_command(command, self.configuration)
        if refused is not None:
            line.fail(*refused)
        return command

    def command(self, line: Line) -> Command:
        for keyword, rule in self.rules.items():
            if line.take_keyword(keyword):
                return rule(line)
        line.unexpected(f"one of {', '.join(self.rules)}")

    # Names

    def process(self, line: Line, kind: Kind | None = None) -> str:
        expected = f"the name of a {kind or 'process'}"
        name = line.name(expected)
        try:
            process = self.configuration.process(name)
        except KeyError:
            line.fail(f"there is no process {name}", expected)
        if kind is not None and process.kind != kind:
            line.fail(f"{name} is a {process.kind}", expected)
        return name

    def place(self, line: Line) -> str:
        expected = "the name of a site or a process"
        name = line.name(expected)
        try:
            self.configuration.node(name)
        except KeyError:
            line.fail(f"there is no process {name}, and no site {name} with a broker", expected)
        return name

    def checked(self, link: Link, line: Line) -> Link:
        for _, problem, expected in objections_to_link(link, self.configuration):
            line.fail(problem, expected)
        return link

    # Clients

    def subscriber(self, line: Line) -> Command:
        subscriber = self.process(line, "subscriber")
        match line.keyword("Subscribe", "Unsubscribe", "Disconnect", "Reconnect"):
            case "Subscribe":
                return self.subscribe(line, subscriber)
            case "Unsubscribe":
                target, _ = read_whole_filter(line)
                return Unsubscribe(subscriber, target, line=line.number)
            case "Disconnect":
                return Disconnect(subscriber, line=line.number)
            case _:
                return self.reconnect(line, subscriber)

    def subscribe(self, line: Line, subscriber: str) -> Command:
        text, filter = read_filter_before_clauses(line)
        name = line.name("the name of a subscription") if line.take_keyword("As") else ""
        durable = line.take_keyword("Durable")
        if durable and self.configuration.guarantee != "durable":
            problem = f"nothing is kept for anybody under Guarantee {self.configuration.guarantee}"
            line.fail(problem, "Guarantee durable, or a subscription without Durable")
        line.end(
            "Durable or the end of the line" if name and not durable else "As, Durable or the end of the line"
        )
        return Subscribe(subscriber, text, filter, name, durable, line=line.number)

    def reconnect(self, line: Line, subscriber: str) -> Command:
        site: str | None = None
        if line.take_keyword("On"):
            site = line.name("the name of a site")
            try:
                self.configuration.broker_of(site)
            except KeyError:
                line.fail(f"there is no site {site} with a broker", "the name of a site")
        return Reconnect(subscriber, site, line=line.number)

    def slow(self, line: Line) -> Command:
        return Slow(self.process(line, "subscriber"), line.milliseconds("Slow"), line=line.number)

    def publisher(self, line: Line) -> Command:
        publisher = self.process(line, "publisher")
        line.keyword("Publish")
        count = line.integer("a number of events", 1, PUBLISH_COUNT_MAX)
        line.keyword("Ontopic")
        topic = line.word("a topic")
        line.keyword("Interval")
        interval_ns = line.milliseconds("Interval")
        attributes = read_attributes(line) if line.take_keyword("With") else ()
        payload = self.payload(line) if line.take_keyword("Payload") else None
        line.end("the end of the line" if payload is not None else "With, Payload or the end of the line")
        try:
            make_event(topic, {name: largest_value(drawn) for name, drawn in attributes}, publisher=publisher)
        except InvalidEvent as error:
            line.fail(f"no such event can be published: {error}", "a topic and attributes within the limits")
        return Publish(publisher, count, topic, interval_ns, attributes, payload, line=line.number)

    def payload(self, line: Line) -> int | Literal["xml"]:
        if line.take_keyword("xml"):
            return "xml"
        return line.integer("xml or a number of bytes", 0, DEFAULT_LIMITS.payload_bytes)

    # The course of the script, processes, links

    def at(self, line: Line) -> Command:
        at_ns = line.milliseconds("At")
        command = self.command(line)
        if isinstance(command, At | Wait | Drain):
            line.fail(f"{type(command).__name__} cannot stand behind At", "a command that does not wait")
        return At(at_ns, command, line=line.number)

    def join(self, line: Line) -> Command:
        line.keyword("Process")
        process = read_process(line)
        joined = self.configuration.joined_by(process)
        for _, problem, expected in objections(joined, {}):
            line.fail(problem, expected)
        self.configuration = joined
        return Join(process, line=line.number)

    def cut(self, line: Line) -> Command:
        link = self.checked(Link(self.place(line), self.place(line)), line)
        return Cut(link.a, link.b, line=line.number)

    def heal(self, line: Line) -> Command:
        a = self.place(line)
        if line.is_at_end():
            return Heal(a, line=line.number)
        link = self.checked(Link(a, self.place(line)), line)
        return Heal(link.a, link.b, line=line.number)

    def clock(self, line: Line) -> Command:
        process = self.process(line)
        line.keyword("Shift")
        return ClockShift(process, line.milliseconds("Shift", signed=True), line=line.number)
