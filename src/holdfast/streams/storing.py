"""What a broker's core asks of its disk, and what it hears of it.

A core reads and writes nothing itself: it says what is to be done, in order, and each of these effects comes back as an
input. Nothing that must be on disk first is told to anybody before. ``streams.store`` carries them out, on a thread in
the runtime, after a moment in the simulator.

Appends of one pubend are carried out in order and shared syncs tell of several at once. When the disk was full nothing
of what was appended and not yet stable is kept; appends that were made before the core could hear of that are refused
as well: each says how many refusals its core had heard of. A core that was refused tries from time to time, so that
everybody sees when there is room again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from holdfast.intervals import Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Lost, Tick
from holdfast.storage.filtering_log import Reading
from holdfast.storage.tables import Change
from holdfast.streams.records import record_of

__all__ = [
    "STAGED",
    "AppendEvents",
    "ChopEvents",
    "ChopMatches",
    "DiskEffect",
    "DiskInput",
    "EventsChopped",
    "EventsRead",
    "EventsRefused",
    "EventsStable",
    "EventsTried",
    "ForgetMatches",
    "LakeRead",
    "LogState",
    "MatchesFailed",
    "MatchesRead",
    "MatchesStable",
    "MatchesState",
    "NoteMatches",
    "ReadEvents",
    "ReadLake",
    "ReadMatches",
    "Recovered",
    "Save",
    "SaveFailed",
    "Saved",
    "StagedRun",
    "StagedState",
    "TryEvents",
]


#: The log of what is staged for epochs. It is no pubend's, whose names have an @, and takes what theirs do: the
#: publisher of a record is an attempt, its number the place in it from 1; number 0 says whose attempt it is.
STAGED: Final = "staged"


# The logs of pubends


@dataclass(frozen=True, slots=True, eq=False)
class AppendEvents:
    """Log events; ticks ascend. The first append of a pubend makes its log."""

    pubend: str
    ticks: Sequence[Tick]
    publications: Sequence[Publication]
    refusals: int  #: how many ``EventsRefused`` of this pubend the core has heard of
    #: What is to be written, made here: who asks has just read the events, and who writes them is another processor.
    records: Sequence[bytes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", list(map(record_of, self.publications)))


@dataclass(frozen=True, slots=True)
class EventsStable:
    """The oldest ``appends`` appends are on disk. ``size``: of the log, in bytes."""

    pubend: str
    appends: int
    size: int


@dataclass(frozen=True, slots=True)
class EventsRefused:
    """None of the appends that were not stable will be; if ``is_final``, nobody knows, and none will ever be taken."""

    pubend: str
    reason: str
    is_final: bool


@dataclass(frozen=True, slots=True)
class TryEvents:
    """Look whether a log that has refused events would take some by now."""

    pubend: str


@dataclass(frozen=True, slots=True)
class EventsTried:
    """It would; or it would not, and why."""

    pubend: str
    problem: str | None


@dataclass(frozen=True, slots=True)
class ReadEvents:
    """Read what the log says of these ticks, the lowest first, with about ``limit`` events, or bytes of them."""

    pubend: str
    spans: Sequence[Span]
    limit: int
    bytes_max: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EventsRead:
    """All of ``parts`` is known: these events, what is lost, and nothing else."""

    pubend: str
    parts: Sequence[Span]
    ticks: Sequence[Tick]
    publications: Sequence[Publication]
    lost: Sequence[Lost] = ()


@dataclass(frozen=True, slots=True)
class ReadLake:
    """Read what the lake has of these ticks, which the log has given up, as ``ReadEvents``."""

    pubend: str
    spans: Sequence[Span]
    limit: int


@dataclass(frozen=True, slots=True, eq=False)
class LakeRead:
    """As ``EventsRead``; what is in neither is lost. With a ``problem`` the rest may be asked for again."""

    pubend: str
    parts: Sequence[Span] = ()
    ticks: Sequence[Tick] = ()
    publications: Sequence[Publication] = ()
    lost: Sequence[Lost] = ()
    damages: Sequence[str] = ()  #: what could be read and is not what was written: in which file, and why
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ChopEvents:
    """Forget events up to a tick."""

    pubend: str
    through: Tick


@dataclass(frozen=True, slots=True)
class EventsChopped:
    """That was done. ``segments``: of what is left, the last tick and the bytes of each part, the oldest first."""

    pubend: str
    through: Tick
    segments: Sequence[tuple[Tick, int]]


# Filtering logs, one for each pubend that is followed


@dataclass(frozen=True, slots=True, eq=False)
class NoteMatches:
    """Note the subscribers of ticks, both ascending; up to ``upto`` nothing else matched.

    The first one of a pubend makes its filtering log.
    """

    pubend: str
    records: Sequence[tuple[Tick, Sequence[int]]]
    upto: Tick
    refusals: int  #: how many ``MatchesFailed`` of this pubend the core has heard of


@dataclass(frozen=True, slots=True)
class MatchesStable:
    """Everything noted up to a tick is on disk."""

    pubend: str
    upto: Tick


@dataclass(frozen=True, slots=True)
class MatchesFailed:
    """The disk was full, or failed: nothing noted above ``upto`` was kept; it may be noted again, from there.

    The store has opened the log anew; the core may go on noting, and is refused again while there is no room.
    """

    pubend: str
    upto: Tick
    reason: str


@dataclass(frozen=True, slots=True)
class ReadMatches:
    """Read which ticks above one matched a subscriber, the first ``limit``.

    Everything up to ``noted`` has been noted and is stable: what is not in the log has not matched.
    """

    pubend: str
    subscriber: int
    after: Tick
    limit: int
    noted: Tick


@dataclass(frozen=True, slots=True)
class MatchesRead:
    """What the filtering log says."""

    pubend: str
    subscriber: int
    reading: Reading


@dataclass(frozen=True, slots=True)
class ChopMatches:
    """Forget matches up to a tick; nothing comes back."""

    pubend: str
    through: Tick


@dataclass(frozen=True, slots=True)
class ForgetMatches:
    """A subscriber is gone for good; nothing comes back."""

    pubend: str
    subscriber: int


# Tables


@dataclass(frozen=True, slots=True)
class Save:
    """Change rows, all or none; what is saved together in a turn of the disk shares a transaction."""

    number: int
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Saved:
    """That was done, and everything saved before it."""

    number: int


@dataclass(frozen=True, slots=True)
class SaveFailed:
    """There was no room, and nothing changed; if ``is_final``, the disk has failed, and nobody knows."""

    number: int
    reason: str
    is_final: bool


# Starting


@dataclass(frozen=True, slots=True, eq=False)
class LogState:
    """A pubend's log as it was found: its end, and what is missing in it."""

    last: Tick  #: of the last event that was ever stable, 0 if there was none
    tail: Sequence[tuple[Tick, Publication]]  #: the events above what the pubend's row says its marks are of
    lost: Sequence[Lost]  #: damaged ranges
    segments: Sequence[tuple[Tick, int]]


@dataclass(frozen=True, slots=True)
class MatchesState:
    """A filtering log as it was found."""

    last_timestamp: Tick
    chopped: Tick
    unsure_through: Tick
    matched: Mapping[int, Tick] = field(default_factory=dict)  #: by subscriber the tick of its last match


class StagedRun(NamedTuple):
    """Events of an attempt that were staged at once, behind a record that says whose they are, and where they stand."""

    attempt: str
    whose: bytes
    first: int  #: so many came before them
    events: int
    span: Span
    size: int  #: in bytes


class StagedState(NamedTuple):
    """The log of what is staged as it was found; ``last`` is the last index that was ever used."""

    last: int = 0
    runs: Sequence[StagedRun] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Recovered:
    """What a broker finds on its disk when it starts."""

    tables: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    logs: Mapping[str, LogState] = field(default_factory=dict)  #: by pubend
    matches: Mapping[str, MatchesState] = field(default_factory=dict)  #: by pubend
    staged: StagedState = field(default_factory=StagedState)


DiskEffect = (
    AppendEvents
    | TryEvents
    | ReadEvents
    | ReadLake
    | ChopEvents
    | NoteMatches
    | ReadMatches
    | ChopMatches
    | ForgetMatches
    | Save
)
DiskInput = (
    EventsStable
    | EventsRefused
    | EventsTried
    | EventsRead
    | LakeRead
    | EventsChopped
    | MatchesStable
    | MatchesFailed
    | MatchesRead
    | Saved
    | SaveFailed
)
