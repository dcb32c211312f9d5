"""What can go wrong between a log and a row, each under a code that travels from a reader to Spark."""

from __future__ import annotations

from holdfast.errors import CallersFault, EnvironmentsFault, HoldfastError

__all__ = [
    "BadOption",
    "BadRequest",
    "BadRow",
    "CannotPublish",
    "CannotRead",
    "Gap",
    "NoPubend",
    "NoSubscription",
    "NotInstalled",
    "NotStable",
    "ReaderUnreachable",
    "code_of",
    "told",
]


class BadOption(CallersFault):
    """An option of the source that is unknown, does not go with the others, or has no meaning; named."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"option {option}: {problem}")
        self.option = option


class NotInstalled(CallersFault):
    """Packages of the extra ``spark`` that are missing here."""


class BadRequest(CallersFault):
    """A request that no reader can answer, now or later."""


class BadRow(CallersFault):
    """A row that cannot be an event."""


class CannotPublish(EnvironmentsFault):
    """Rows a broker will not have, or of which it does not say that it has them."""


class NoPubend(CallersFault):
    """A pubend that is not at the broker that was asked."""


class NoSubscription(EnvironmentsFault):
    """The durable subscription of a query cannot be had, or is not the query's any more."""


class NotStable(EnvironmentsFault):
    """Ticks that are not known to be on disk for good."""


class Gap(EnvironmentsFault):
    """Ticks in a range that are gone, for whoever wants to hear of that as a failure (``onGap=fail``)."""


class CannotRead(EnvironmentsFault):
    """What a disk would not give."""


class ReaderUnreachable(EnvironmentsFault):
    """A reader that does not answer, or not as one does."""


_KINDS: dict[str, type[HoldfastError]] = {
    "request": BadRequest,
    "pubend": NoPubend,
    "stable": NotStable,
    "gap": Gap,
    "disk": CannotRead,
}


def code_of(error: HoldfastError) -> str:
    """The code under which an error travels."""
    return next((code for code, kind in _KINDS.items() if isinstance(error, kind)), "disk")


def told(code: str, problem: str) -> HoldfastError:
    """The error a reader has told of."""
    return _KINDS.get(code, CannotRead)(problem)
