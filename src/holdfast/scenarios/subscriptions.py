"""Which subscription a line speaks of, settled from the text alone so that both worlds and the trace agree.

The k-th Subscribe of a subscriber is called by its As name, or ``subscriber#k``. Unsubscribe names a subscription of
the same subscriber, or gives a filter: then it ends the first one with that filter that no earlier line ends, those
above it before those below (which ``At`` may run first).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from holdfast.events.value import shown
from holdfast.filters.parse import parse_filter
from holdfast.scenarios.commands import At, Command, Subscribe, Unsubscribe, numbered_subscription
from holdfast.scenarios.language import ScenarioError

__all__ = ["settle_subscriptions"]


def settle_subscriptions(
    commands: Sequence[Command], file: str, errors: list[ScenarioError]
) -> tuple[Command, ...]:
    """The commands with every subscription named; what names none, or one twice, goes to ``errors``."""
    ledger = _Ledger(file, errors)
    settled = list(commands)
    for i, command in enumerate(commands):
        if isinstance(inner := _inner(command), Subscribe):
            settled[i] = _with(command, ledger.opened(inner))
    for i, command in enumerate(commands):
        if isinstance(inner := _inner(command), Unsubscribe):
            settled[i] = _with(command, ledger.closed(inner))
    return tuple(settled)


def _inner(command: Command) -> Command:
    return command.command if isinstance(command, At) else command


def _with(command: Command, inner: Subscribe | Unsubscribe) -> Command:
    return replace(command, command=inner) if isinstance(command, At) else inner


class _Ledger:
    """All subscriptions of all subscribers, in the order of the file."""

    def __init__(self, file: str, errors: list[ScenarioError]) -> None:
        self.file = file
        self.errors = errors
        self.subscriptions: dict[tuple[str, str], Subscribe] = {}
        self.counts: Counter[str] = Counter()
        self.ended: set[tuple[str, str]] = set()

    def opened(self, command: Subscribe) -> Subscribe:
        """The command with its subscription's name."""
        self.counts[command.subscriber] += 1
        if not command.subscription:
            name = numbered_subscription(command.subscriber, self.counts[command.subscriber])
            command = replace(command, subscription=name)
        earlier = self.subscriptions.setdefault((command.subscriber, command.subscription), command)
        if earlier is not command:
            problem = f"{command.subscriber} has a subscription {command.subscription} on line {earlier.line}"
            self.refuse(command.line, problem, "a name of its own for each subscription")
        return command

    def closed(self, command: Unsubscribe) -> Unsubscribe:
        """The command with the name of the subscription it ends."""
        key = (command.subscriber, command.target)
        if key not in self.subscriptions:
            found = self.with_filter(command)
            if found is None:
                problem = f"{command.subscriber} has no subscription '{shown(command.target)}' left to end"
                self.refuse(command.line, problem, "the filter or the As name of a Subscribe line")
                return command
            key = (command.subscriber, found.subscription)
        self.ended.add(key)
        return replace(command, subscription=key[1])

    def with_filter(self, command: Unsubscribe) -> Subscribe | None:
        wanted = parse_filter(command.target)
        found = [
            subscribe
            for key, subscribe in self.subscriptions.items()
            if key[0] == command.subscriber and subscribe.filter == wanted and key not in self.ended
        ]
        above = [subscribe for subscribe in found if subscribe.line < command.line]
        return next(iter(above or found), None)

    def refuse(self, line: int, problem: str, expected: str) -> None:
        self.errors.append(ScenarioError(self.file, line, problem, expected))
