"""The disk of a broker: does what its core asks for (``storing``) on files and tables, and says what became of it.

There are *lanes*, so that nobody waits for what he need not wait for: a commit of the logs does not hold up who
reads them, nor the tables. Each lane is used by one thread only and has its own order; between lanes there is none, and
whoever needs one waits for the answer. What has come to a lane meanwhile is one turn, and shares its syncs. Threads are
the runtime's (``runtime.real_store``), in the simulator a turn takes a moment (``simulator.store``).

    events-<pubend>     the log of a pubend of ours       events: appended, chopped       reads: read
    staged              what is staged for epochs         events: appended, chopped       reads: read
    matches-<pubend>    a filtering log                   tables: noted, read, chopped
    tables              everything else                   tables: saved, whole at start
    the lake            what logs have given up           lake: read; if there is one
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Protocol
from urllib.parse import unquote

from holdfast.messages.ticks import ORIGIN, Lost, Tick
from holdfast.storage.files import DiskFailed, DiskFull, Files
from holdfast.storage.log import LogSettings
from holdfast.storage.tables import Change, Tables
from holdfast.streams.ends import (
    EVENTS,
    MATCH_ENDS,
    MATCHES,
    PUBENDS,
    folder_of,
    match_end,
    read_ends,
    read_row,
)
from holdfast.streams.staged import runs_in
from holdfast.streams.store_events import DAMAGED, EventsLane, log_state
from holdfast.streams.store_lake import Lake, LakeLane
from holdfast.streams.store_matches import MatchesLane
from holdfast.streams.store_reads import ReadsLane, Row
from holdfast.streams.storing import (
    STAGED,
    AppendEvents,
    ChopEvents,
    ChopMatches,
    DiskInput,
    ForgetMatches,
    LogState,
    NoteMatches,
    ReadEvents,
    ReadLake,
    ReadMatches,
    Recovered,
    Save,
    Saved,
    SaveFailed,
    StagedState,
    TryEvents,
)

__all__ = ["LANES", "Folders", "Lane", "Store"]


class Lane(Enum):
    """Who does it."""

    EVENTS = "events"
    READS = "reads"
    LAKE = "lake"
    TABLES = "tables"


#: Every kind of effect a store carries out, and on which lane.
LANES: Final[Mapping[type, Lane]] = {
    AppendEvents: Lane.EVENTS,
    TryEvents: Lane.EVENTS,
    ChopEvents: Lane.EVENTS,
    ReadEvents: Lane.READS,
    ReadLake: Lane.LAKE,
    NoteMatches: Lane.TABLES,
    ReadMatches: Lane.TABLES,
    ChopMatches: Lane.TABLES,
    ForgetMatches: Lane.TABLES,
    Save: Lane.TABLES,
}


class Folders(Protocol):
    """Where logs are kept, each in a folder of its own."""

    def names(self) -> list[str]:
        """All folders, sorted."""

    def files(self, name: str) -> Files:
        """The files of a folder, which comes into being when something is written; always the same object.

        :raises DiskFailed: if it cannot be had.
        """


class Store:
    """Everything a broker keeps, and the ``lake`` behind it, if there is one.

    ``identity`` gives 16 random bytes, to name a log that is new; ``limit_of`` how large that of a pubend may become.

    To be used: ``recover``, once; ``turn``, for each lane from one thread; ``close``, when no turn is under way.
    """

    def __init__(
        self,
        folders: Folders,
        tables: Tables,
        identity: Callable[[], bytes],
        settings: LogSettings | None = None,
        lake: Lake | None = None,
        limit_of: Callable[[str], int | None] = lambda _: None,
    ) -> None:
        self._folders = folders
        self._tables = tables
        self._tables_failure: DiskFailed | None = None
        self._rows: dict[str, Row] = {}  #: of the table of pubends
        self._ends: dict[str, int] = {}  #: how many records of filtering logs the tables know of
        settings = settings or LogSettings()
        self._events = EventsLane(
            self._files_of(EVENTS), identity, lambda pubend: settings.within(limit_of(pubend))
        )
        self._reads = ReadsLane(self._events.logs, self._rows)
        self._lake = None if lake is None else LakeLane(lake, self._rows)
        self._matches = MatchesLane(self._files_of(MATCHES), identity, settings)

    def _files_of(self, kind: str) -> Callable[[str], Files]:
        return lambda pubend: self._folders.files(folder_of(kind, pubend))

    # Starting

    def recover(self) -> Recovered:
        """Open what there is, and say what it holds.

        :raises NoLog, UnknownFormat, DiskFailed: if some of it cannot be read: a broker must not start without it.
        """
        tables = {name: self._tables.read(name) for name in self._tables.names()}
        ends = read_ends(tables)
        tables.pop(MATCH_ENDS, None)
        self._rows.update(ends.rows)
        self._ends = ends.matches
        logs = {pubend: self._log_state(pubend, ends.events) for pubend in self._found(EVENTS)}
        for pubend in self._rows:
            if pubend not in logs:
                end = ends.events[pubend]
                logs[pubend] = LogState(end, (), [Lost(ORIGIN, end, DAMAGED)] if end else [], ())
        matches = {
            pubend: self._matches.open(pubend, self._ends.get(pubend, 0)) for pubend in self._found(MATCHES)
        }
        return Recovered(tables, logs, matches, self._staged())

    def _staged(self) -> StagedState:
        if STAGED not in self._folders.names() or not self._folders.files(STAGED).names():
            return StagedState()
        log = self._events.open(STAGED).log
        return StagedState(log.last_index, list(runs_in(log.view)))

    def _found(self, prefix: str) -> list[str]:
        """The pubends of all folders of a kind in which something is; one may have been made and no more."""
        return [
            unquote(name.removeprefix(prefix))
            for name in self._folders.names()
            if name.startswith(prefix) and self._folders.files(name).names()
        ]

    def _log_state(self, pubend: str, ends: Mapping[str, Tick]) -> LogState:
        upto = self._rows.get(pubend, Row()).upto
        return log_state(self._events.open(pubend), upto, ends.get(pubend, ORIGIN))

    # Working

    def turn(self, lane: Lane, effects: Sequence[Any]) -> list[DiskInput]:
        """Carry out what has come to a lane, and say what became of it. Whatever is raised is a bug."""
        if lane is Lane.EVENTS:
            return self._events.turn(effects)
        if lane is Lane.READS:
            return [*self._reads.turn(effects)]
        if lane is Lane.LAKE:
            assert self._lake is not None, "a lake is read where there is none"
            return [*self._lake.turn(effects)]
        saves = [effect for effect in effects if isinstance(effect, Save)]
        others = effects if not saves else [effect for effect in effects if not isinstance(effect, Save)]
        inputs = self._matches.turn(others)
        return inputs + self._save(saves) if saves else inputs

    def rest(self, lane: Lane, *, is_idle: bool = True) -> list[DiskInput]:
        """When the answers of a turn were handed on: carry out what nobody waits for, and say what became of it.

        ``is_idle``: nothing has come to the lane since. Whatever is raised is a bug.
        """
        if lane is Lane.EVENTS:
            return self._events.rest(is_idle=is_idle)
        if lane is Lane.TABLES and is_idle:
            self._matches.rest()
        return []

    def _save(self, saves: Sequence[Save]) -> list[DiskInput]:
        """All in one transaction; the last number stands for all."""
        changes = [change for save in saves for change in save.changes]
        ends = self._matches.ends
        news = [match_end(pubend, end) for pubend, end in ends.items() if self._ends.get(pubend) != end]
        try:
            if self._tables_failure is not None:
                raise self._tables_failure
            self._tables.apply([*changes, *news])
        except DiskFull as error:
            return [SaveFailed(save.number, str(error), is_final=False) for save in saves]
        except DiskFailed as failure:
            self._tables_failure = failure
            return [SaveFailed(save.number, str(failure), is_final=True) for save in saves]
        self._ends = ends
        self._learn(changes)
        return [Saved(saves[-1].number)]

    def _learn(self, changes: Sequence[Change]) -> None:
        """What pubends say of their logs, for those who read them."""
        for table, pubend, value in changes:
            if table == PUBENDS:
                if value is None:
                    self._rows.pop(pubend, None)
                else:
                    self._rows[pubend] = read_row(value)

    # Ending

    def close(self) -> None:
        """Write down where everything ends, so that the next start is quick and would miss a lost tail."""
        self._events.close()
        self._matches.close()
