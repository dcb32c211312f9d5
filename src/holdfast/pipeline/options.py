"""The options of the source [contracts.md §7], read and checked once; what has no meaning is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Literal

from holdfast.client.errors import InvalidOption
from holdfast.client.options import check_name
from holdfast.errors import FilterError, InvalidEvent
from holdfast.events.timestamp import time_from_text
from holdfast.filters.parse import parse_filter
from holdfast.messages.ticks import Tick
from holdfast.pipeline.columns import Shape, declared, shape_of
from holdfast.pipeline.errors import BadOption
from holdfast.pipeline.origin import From
from holdfast.streams.checkpoint_token import InvalidToken, Token

__all__ = ["BATCH", "STREAMING", "Options", "read_options"]

BOTH: Final = (
    "network",
    "stream",
    "filter",
    "attributes",
    "columns",
    "startingOffsets",
    "startingTimestamp",
    "minPartitions",
    "onGap",
    "failOnDataLoss",
    "emitSilence",
    "readFrom",
    "localSegments",
)
BATCH: Final = (*BOTH, "endingOffsets", "endingTimestamp")
STREAMING: Final = (*BOTH, "maxEventsPerTrigger", "maxBytesPerTrigger", "subscription", "inStep")

PARTITIONS_MAX: Final = 10_000

Gaps = Literal["fail", "row", "ignore"]
#: earliest, latest, a token, or a tick before the first that is meant.
Offset = Literal["earliest", "latest"] | Token | Tick


@dataclass(frozen=True, slots=True)
class Options:
    """What is to be read, and how."""

    network: Path
    stream: str
    shape: Shape
    filter: str | None
    start: Offset
    end: Offset
    min_partitions: int
    gaps: Gaps
    silence: bool
    local: bool
    source: From
    events_max: int | None
    bytes_max: int | None
    subscription: str | None
    is_start_given: bool  #: else a subscription that is there goes on where it is
    in_step: bool  #: batches end at one moment for all pubends (``in_step``)


def read_options(given: Mapping[str, str], allowed: tuple[str, ...]) -> Options:
    """The options of a reader, which may be those in ``allowed``; Spark does not care for capitals.

    :raises BadOption: naming the first that will not do.
    """
    said = _Said(given, allowed)
    attributes = declared(said.text["attributes"]) if "attributes" in said.text else {}
    columns = [each.strip() for each in said.text["columns"].split(",")] if "columns" in said.text else None
    default: Offset = "earliest" if allowed is BATCH else "latest"
    return Options(
        Path(said.required("network", "the path of a network.toml")),
        said.required("stream", "the name of a stream in the network file"),
        shape_of(columns, attributes),
        said.filter(),
        said.offset("starting", ("earliest", "latest"), default),
        said.offset("ending", ("latest",), "latest"),
        said.number("minPartitions", PARTITIONS_MAX) or 1,
        said.gaps(),
        said.flag("emitSilence"),
        said.flag("localSegments"),
        said.source(),
        said.number("maxEventsPerTrigger", 2**63 - 1),
        said.number("maxBytesPerTrigger", 2**63 - 1),
        said.subscription(),
        "startingOffsets" in said.text or "startingTimestamp" in said.text,
        said.in_step(columns),
    )


class _Said:
    """The text of each option, under the name it has here."""

    def __init__(self, given: Mapping[str, str], allowed: tuple[str, ...]) -> None:
        names = {name.lower(): name for name in (*BATCH, *STREAMING)}
        self.text: dict[str, str] = {}
        for key, text in given.items():
            name = names.get(key.lower())
            if name is None:
                near = get_close_matches(key.lower(), names, n=1)
                hint = f"did you mean {names[near[0]]}?" if near else f"expected one of {', '.join(allowed)}"
                raise BadOption(key, f"is not known; {hint}")
            if name not in allowed:
                kind = "streams, not for batches" if allowed is BATCH else "batches, not for streams"
                raise BadOption(name, f"is for {kind}")
            self.text[name] = text

    def required(self, name: str, what: str) -> str:
        if not self.text.get(name):
            raise BadOption(name, f"is missing; expected {what}")
        return self.text[name]

    def choice(self, name: str, offered: tuple[str, ...], default: str) -> str:
        text = self.text.get(name, default)
        if text not in offered:
            raise BadOption(name, f"is {text!r}; expected {' or '.join(offered)}")
        return text

    def flag(self, name: str) -> bool:
        return self.choice(name, ("true", "false"), "false") == "true"

    def number(self, name: str, most: int) -> int | None:
        text = self.text.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
            raise BadOption(name, f"is {text!r}; expected a whole number from 1 to {most}")
        return int(text)

    def gaps(self) -> Gaps:
        if "failOnDataLoss" in self.text:
            if "onGap" in self.text:
                raise BadOption("failOnDataLoss", "is another name for onGap, and both are given")
            return "fail" if self.choice("failOnDataLoss", ("true", "false"), "true") == "true" else "ignore"
        match self.choice("onGap", ("fail", "row", "ignore"), "fail"):
            case "row":
                return "row"
            case "ignore":
                return "ignore"
        return "fail"

    def subscription(self) -> str | None:
        """A durable name."""
        name = self.text.get("subscription")
        try:
            if name is not None:
                check_name("subscription", name)
        except InvalidOption as error:
            raise BadOption("subscription", str(error)) from error
        return name

    def in_step(self, columns: Sequence[str] | None) -> bool:
        if not self.flag("inStep"):
            return False
        if columns is not None and not {"kind", "accepted"} <= set(columns):
            raise BadOption("columns", "lacks kind or accepted, and inStep needs both")
        if self.source() == "lake":
            raise BadOption(
                "readFrom", "is lake, and inStep is true: only logs know what cannot come any more"
            )
        return True

    def source(self) -> From:
        match self.choice("readFrom", ("auto", "log", "lake"), "auto"):
            case "log":
                return "log"
            case "lake":
                return "lake"
        return "auto"

    def filter(self) -> str | None:
        text = self.text.get("filter")
        try:
            if text is not None:
                parse_filter(text)
        except FilterError as error:
            raise BadOption("filter", str(error)) from error
        return text

    def offset(self, which: str, words: tuple[Literal["earliest", "latest"], ...], default: Offset) -> Offset:
        """Of the two ways to say it one."""
        offsets, timestamp = f"{which}Offsets", f"{which}Timestamp"
        if timestamp in self.text:
            if offsets in self.text:
                raise BadOption(timestamp, f"says the same as {offsets}, and both are given")
            try:
                nanoseconds = time_from_text(timestamp, self.text[timestamp])
            except InvalidEvent as error:
                raise BadOption(timestamp, error.problem) from error
            return max(-(-nanoseconds // 1_000) - 1, 0)  # events at this moment are behind it
        text = self.text.get(offsets)
        if text is None:
            return default
        for word in words:
            if text == word:
                return word
        try:
            return Token.parse(text)
        except InvalidToken as error:
            raise BadOption(offsets, f"{error}; expected {', '.join(words)} or a token") from error
