"""What is to be written to the filtering log of a pubend, and how far that is on disk [BZA §4.2].

Who matched what is gathered and noted from time to time; nobody waits for it but who comes back. A disk that is full
refuses a note with all that were built on it: they are kept, in order, and noted again later. Silence needs no note:
where nothing waits to be noted, everything that was looked at counts as on disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from holdfast.messages.ticks import ORIGIN, Tick
from holdfast.streams.storing import NoteMatches

__all__ = ["Notes"]

#: A tick, and the numbers of the readers it matched.
Record = tuple[Tick, Sequence[int]]


class Notes:
    """Those of one pubend. Its length: how many events somebody matched who has to be noted."""

    def __init__(self, pubend: str) -> None:
        self._pubend = pubend
        self._upto: Tick = ORIGIN  #: up to here matches are noted, or being noted, or among the records
        self._records: list[Record] = []  #: to be noted
        self._notes: deque[NoteMatches] = deque()  #: those that are not stable yet
        self._refusals = 0
        self._is_refused = False  #: the disk would not take them: they are to be noted again
        self.problem: str | None = None  #: why, if it still does not

    def __len__(self) -> int:
        return len(self._records)

    @property
    def is_stable(self) -> bool:
        """Whether everything that matched is on disk."""
        return not self._records and not self._notes

    def begin(self, tick: Tick) -> None:
        """Everything up to a tick is noted, or nobody's."""
        self._upto = tick

    def first(self) -> NoteMatches:
        """To be written before anything matches, so that there is a filtering log: one that is missing was lost."""
        return NoteMatches(self._pubend, (), self._upto, self._refusals)

    def add(self, records: Sequence[Record], upto: Tick) -> None:
        """Somebody matched these, and nobody anything else up to a tick."""
        self._records += records
        self._upto = upto

    def next_note(self) -> NoteMatches | None:
        """What was added since the last one, to be written now; None if it has to wait for room."""
        records, self._records = self._records, []
        note = NoteMatches(self._pubend, records, self._upto, self._refusals)
        self._notes.append(note)
        return None if self._is_refused else note

    def on_stable(self, upto: Tick) -> Tick:
        """What was noted up to a tick is on disk; up to where everything is."""
        self.problem = None
        while self._notes and self._notes[0].upto <= upto:
            self._notes.popleft()
        return max(upto, self._upto) if self.is_stable else upto

    def on_refused(self, reason: str) -> bool:
        """The disk would not take what was noted. Whether that is news."""
        is_news, self.problem = self.problem is None, reason
        self._refusals += 1
        self._is_refused = True
        return is_news

    def again(self) -> list[NoteMatches]:
        """What the disk may take by now; if all that was refused is gone, an empty one, to hear whether it would."""
        if not self._is_refused:
            return []
        self._is_refused = False
        if not self._notes:
            self.next_note()
        self._notes = deque(replace(note, refusals=self._refusals) for note in self._notes)
        return list(self._notes)
