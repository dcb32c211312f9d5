"""The exception tree, split first by whose fault it is.

::

    HoldfastError
    ├── CallersFault
    │   ├── InvalidEvent        an event breaks a rule or a limit
    │   ├── FilterError         a filter is malformed, outside the language, or over a cap
    │   ├── BadAddress          runtime/addresses: no address, or one that is not safe to listen on
    │   ├── NetworkFileError    runtime/network_document: a network.toml, with all its faults and their lines
    │   ├── ScenarioError       scenarios/language: a configuration or script, likewise
    │   ├── TraceError          scenarios/trace: a line that is no line of a trace; pipeline/audit/traces: likewise
    │   ├── ChronicleError      pipeline/audit/chronicle: a run without its beginning, or its end
    │   ├── BadLine             pipeline/cost/stretches: a line of a history that is no event
    │   ├── BadResult           bench/result: a file that is no result of an experiment
    │   ├── BadOption, BadRow, BadRequest, NoPubend    pipeline/errors: of Spark's source and sink, or of a log reader
    │   ├── NotInstalled        pipeline/errors: packages that are missing
    │   ├── BadQuery, OtherCheckpoint    pipeline/derive/errors: a query that cannot be derived, or not from there
    │   ├── NoTable, ForeignTable, OtherType   pipeline/lake/errors: of a table; BadDeclaration   runtime/declarations
    │   ├── InvalidBatch        storage/block: records whose indexes do not increase, or that are too large
    │   └── InvalidUrl, InvalidOption, Closed                    client/errors; InvalidToken  streams/checkpoint_token
    ├── PeersFault
    │   ├── InvalidDocument     a payload that says it is XML and cannot be read as such
    │   ├── MalformedEvent      bytes that are not those of an event, or break a limit
    │   └── MalformedFrame      bytes that are no frame of ours, or too large, or out of turn
    ├── EnvironmentsFault
    │   ├── NetworksFault       client/errors: Refused, Unknown, TokenAhead, TakenOver, Unreachable, TimedOut …
    │   ├── CannotListen        runtime/broker_process: an address that cannot be had
    │   ├── NoSpark             pipeline/spark_session: no Java, or a Spark that does not start
    │   ├── DiskFull, DiskFailed    storage/files: no room / nobody knows what was written
    │   ├── NoLog, UnknownFormat, DamagedRecord, FileGone    storage: what a folder or a file of a log turned out to be
    │   ├── NotStable, Gap, CannotRead, ReaderUnreachable    pipeline/errors: between a log and a row
    │   ├── CannotPublish       pipeline/errors: rows that a broker does not have
    │   ├── LakeBusy, LakeFailed    pipeline/lake/errors: a table that somebody else writes, or nobody can
    │   ├── Derailed            pipeline/derive/errors: a query that has ended by itself
    │   ├── CannotExecute       pipeline/preflight: executors that lack something
    │   ├── CannotPack          pipeline/packing: a package that executors need and that is not here
    │   ├── CannotStore         runtime/disk: a folder of ours that cannot be read or written now
    │   └── DamagedFile         runtime/disk: a file of ours that cannot be read back
    └── DriverFailed            runtime/driver: a bug of ours stopped a node

Every exception carries what a program needs as fields; its text is for people. Whatever else escapes from
Holdfast is a bug.
"""

from __future__ import annotations

__all__ = [
    "CallersFault",
    "EnvironmentsFault",
    "FilterError",
    "HoldfastError",
    "InvalidDocument",
    "InvalidEvent",
    "MalformedEvent",
    "MalformedFrame",
    "PeersFault",
]


class HoldfastError(Exception):
    """The root of everything Holdfast raises on purpose."""


class CallersFault(HoldfastError):
    """The caller handed in something that can never work."""


class PeersFault(HoldfastError):
    """Somebody else's bytes are not what they claim to be."""


class EnvironmentsFault(HoldfastError):
    """The network, a disk or a process is not there, or not as it should be."""


class InvalidEvent(CallersFault):
    """An event breaks a rule or a limit; ``field`` names the part, ``limit`` the setting, if one was hit.

    ``column``, from 1, is the place in the text it was read from, where that is no JSON.
    """

    def __init__(
        self, field: str, problem: str, *, limit: str | None = None, column: int | None = None
    ) -> None:
        super().__init__(f"{field}: {problem}" + (f" (limit {limit})" if limit else ""))
        self.field = field
        self.problem = problem
        self.limit = limit
        self.column = column


class FilterError(CallersFault):
    """A filter that is refused: where (line and column from 1), why, and what was expected there."""

    def __init__(self, problem: str, *, text: str, offset: int, expected: str | None = None) -> None:
        self.problem = problem
        self.expected = expected
        self.text = text
        self.offset = min(offset, len(text))
        before = text[: self.offset]
        self.line = before.count("\n") + 1
        self.column = self.offset - (before.rfind("\n") + 1) + 1
        super().__init__(f"line {self.line}, column {self.column}: {self.summary}")

    @property
    def summary(self) -> str:
        """The problem and what was expected, without the place."""
        return f"{self.problem}; expected {self.expected}" if self.expected else self.problem

    def pointed(self, width: int = 72) -> str:
        """The offending line with a caret under the place, cut to ``width`` around it."""
        line = self.text.split("\n")[self.line - 1].rstrip("\r").expandtabs(1)
        at = self.column - 1
        start = max(0, at - width // 2)
        excerpt = "".join(c if c.isprintable() else "·" for c in line[start : start + width])
        return f"{excerpt}\n{' ' * (at - start)}^"


class InvalidDocument(PeersFault):
    """A payload that cannot be read as XML, or that breaks a limit on documents."""

    def __init__(self, problem: str, *, limit: str | None = None) -> None:
        super().__init__(problem + (f" (limit {limit})" if limit else ""))
        self.problem = problem
        self.limit = limit


class MalformedEvent(PeersFault):
    """Bytes that should be an event and are not, or an event that breaks a rule or a limit."""


class MalformedFrame(PeersFault):
    """Bytes that are no frame of the protocol; the connection they came on cannot go on."""
