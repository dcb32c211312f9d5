"""A promise that was not kept: its kind, the rule that found it, and the line of the trace that shows it.

It is a flat row, so that both engines can make it, sort it and compare it; what a person reads is made of the row by
``words``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["KINDS", "RULES", "Violation"]

#: The words of contracts.md §6, in its order.
KINDS: Final = (
    "lost",
    "duplicate",
    "misorder",
    "wrong",
    "late",
    "unexplained",
    "total-order",
    "no-interest",
    "unaccepted",
)

#: What each rule says, of the fields of its row.
RULES: Final = {
    "missing": "{event} never reached {subscriber} for {subscription}",
    "passed": "{event} was passed over: {subscriber} was told of what comes behind it for {subscription}",
    "again": "{subscriber} got {event} again for {subscription}",
    "published": "{event} was published before",
    "placed": "{event} stands at tick {tick} of {pubend}, and at {against}",
    "taken": "{event} stands at tick {tick} of {pubend}, and so does {against}",
    "fifo": "{subscriber} got {event} after {against} for {subscription}",
    "logged": "{event} was logged at tick {tick} of {pubend}, behind {against}",
    "tick": "{subscriber} got {event} at tick {tick} of {pubend} after tick {against} for {subscription}",
    "behind": "{subscriber} was told up to tick {tick} of {pubend} again, from {against} on, for {subscription}",
    "foreign": "{event} came to {subscriber} for {subscription}, and it was {against} who wrote so",
    "unpublished": "{event} came to {subscriber} for {subscription}, and was never published",
    "early": "{event} came to {subscriber} for {subscription} before it was published",
    "topic": "{event} came to {subscriber} for {subscription} with another topic than {against}",
    "position": "{event} came to {subscriber} for {subscription} as tick {tick} of {pubend}",
    "unasked": "{event} came to {subscriber} for {subscription}, which nobody had asked for",
    "unmatched": "{event} came to {subscriber} for {subscription} and does not match {against}",
    "ended": "{event} came to {subscriber} for {subscription} after that had ended",
    "hole": "{subscriber} was told nothing of {pubend} between {against} for {subscription}",
    "empty": "{subscriber} was told of {pubend} from {against} up to tick {tick}, which is nothing, for {subscription}",
    "lagging": "{subscriber} was told of {pubend} up to {against} for {subscription}, and tick {tick} is logged",
    "sequencers": "events are in the log {pubend}, too, and not only in {against}",
    "link": "{event} went over {against}, beyond which nobody had asked for it",
    "refused": "{event} was never accepted",
}


class Violation(NamedTuple):
    """One row of the verdict; text is empty, and numbers are -1, where there is nothing to say."""

    run: str
    kind: str
    node: str  #: who wrote the line that shows it
    i: int  #: and its position
    subscriber: str
    subscription: str
    publisher: str
    n: int
    pubend: str
    tick: int
    rule: str
    against: str  #: what the line contradicts
    t: float

    @property
    def words(self) -> str:
        """A sentence."""
        fields = self._asdict()
        return RULES[self.rule].format(event=f"{self.publisher}#{self.n}", **fields)
