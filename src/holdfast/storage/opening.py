"""What a folder holds: the log's segments in order, and everything about them that is not as it should be.

Nothing is changed here; a writer then cuts the torn tail, a reader of another process lets it be. Sealed segments
are taken at their footers' word unless they are to be scrubbed; what is damaged within them is found when it is
read. The last segment is read through, and so is any other without a whole footer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from holdfast.errors import EnvironmentsFault
from holdfast.storage.damage import Cut, Damage
from holdfast.storage.files import Files
from holdfast.storage.manifest import MANIFEST, Manifest, read_manifest
from holdfast.storage.segment import Segment, sealed_segment
from holdfast.storage.segment_format import (
    SEGMENT_HEADER_BYTES,
    SegmentHeader,
    base_of,
    name_of,
    read_segment_header,
    seed_of,
)
from holdfast.storage.survey import Survey, scrub
from holdfast.storage.view import LogView

__all__ = ["Findings", "NoLog", "examine"]


class NoLog(EnvironmentsFault):
    """A folder that holds no log, or nothing by which one could be read."""


@dataclass(slots=True)
class Findings:
    """A log as it lies on the disk.

    ``survey`` is that of its last segment, if that is not sealed; ``leftovers`` are files with nothing that was not
    chopped, which may be gone at any moment.
    """

    manifest: Manifest
    view: LogView
    damages: list[Damage] = field(default_factory=list)
    survey: Survey | None = None
    cut: Cut | None = None
    leftovers: list[str] = field(default_factory=list)


def examine(
    files: Files, *, deep: bool = False, unsynced: bool = True, known: dict[str, Segment] | None = None
) -> Findings:
    """Find out what the files hold.

    ``deep`` reads every block; ``unsynced`` counts in what the last commit wrote, without knowing that it was stable;
    ``known`` are segments that a reader knows already and will not look into again.

    :raises NoLog: if there is no log.
    :raises UnknownFormat: if a newer Holdfast wrote it.
    """
    return _Examination(files, deep=deep, unsynced=unsynced, known=known or {}).findings


class _Examination:
    def __init__(self, files: Files, *, deep: bool, unsynced: bool, known: dict[str, Segment]) -> None:
        self._files = files
        self._deep = deep
        self._unsynced = unsynced
        self._known = known
        self._damages: list[Damage] = []
        data = files.read(MANIFEST)  # before the names: a segment it knows of has been there for a while
        bases = sorted(base for name in files.names() if (base := base_of(name)) is not None)
        headers = [(base, self._header(base)) for base in bases]
        manifest = (read_manifest(data) if data is not None else None) or self._manifest_by(headers, data)
        self.findings = Findings(manifest, LogView(files, [], manifest.chopped), self._damages)
        ours = [(base, header) for base, header in headers if self._is_ours(base, header)]
        kept = max((base for base, header in ours if header and base - 1 <= manifest.chopped), default=0)
        self.findings.leftovers = [name_of(base) for base, _ in ours if base < kept]
        self._go_through([(base, header) for base, header in ours if base >= kept])

    def _header(self, base: int) -> SegmentHeader | None:
        name = name_of(base)
        return read_segment_header(self._files.read(name, 0, SEGMENT_HEADER_BYTES) or b"", name)

    def _manifest_by(self, headers: list[tuple[int, SegmentHeader | None]], data: bytes | None) -> Manifest:
        """What can be said without a manifest."""
        found = next((header for _, header in headers if header), None)
        if found is None:
            raise NoLog(
                "no manifest and no segment of a log" if data is None else "a broken manifest and no segment"
            )
        problem = "the manifest is missing" if data is None else "the manifest is broken"
        problem += "; where the log was chopped is not known"
        self._damages.append(Damage(MANIFEST, 0, len(data or b""), 0, 0, problem))
        return Manifest(found.identity, chopped=found.base - 1)

    def _is_ours(self, base: int, header: SegmentHeader | None) -> bool:
        """Whether a segment belongs here; one whose header is broken may, and the seed of its blocks will tell."""
        if header is None or header == (self.findings.manifest.identity, base):
            return True
        problem = "a segment of another log, or renamed; it is not served"
        self._damages.append(Damage(name_of(base), 0, self._files.size(name_of(base)) or 0, 0, 0, problem))
        return False

    def _go_through(self, ours: list[tuple[int, SegmentHeader | None]]) -> None:
        view = self.findings.view
        manifest = self.findings.manifest
        last = manifest.chopped
        for base, header in ours:
            if header is None:
                problem = "the segment's header is broken"
                self._damages.append(Damage(name_of(base), 0, SEGMENT_HEADER_BYTES, 0, 0, problem))
        bases = [base for base, _ in ours]
        for base, following in zip_longest(bases, bases[1:]):
            if view.segments and base <= last:
                problem = "the segment begins before the one before it ends; it is not served"
                self._damages.append(
                    Damage(name_of(base), 0, self._files.size(name_of(base)) or 0, 0, 0, problem)
                )
                continue
            segment = self._segment(base, following)
            if segment.after > last:
                missing = (last + 1, segment.after)
                segment.missing = Damage(name_of(last + 1), 0, 0, *missing, "a segment is missing here")
                self._damages.append(segment.missing)
            view.segments.append(segment)
            last = max(last, segment.last)
        is_gone = not bases or bases[-1] < manifest.base
        end = max(manifest.last, manifest.base if is_gone else 0)
        if end > last:
            problem = "the end of the log is missing"
            view.missing_at_end = Damage(name_of(manifest.base), 0, 0, last + 1, end, problem)
            self._damages.append(view.missing_at_end)

    def _segment(self, base: int, following: int | None) -> Segment:
        """A segment by its footer, by what was known of it, or by what is found in it."""
        known = self._known.get(name_of(base))
        if known is not None and known.is_sealed:
            return known
        identity = self.findings.manifest.identity
        segment = sealed_segment(self._files, identity, base)
        if segment is not None:
            if self._deep:
                self._damages += scrub(self._files, segment)
            return segment
        segment = known or Segment(base, seed_of(identity, base), last=base - 1)
        if following is None:
            self._survey_last(segment)
        else:
            survey = Survey(self._files, segment, mark=0, through=following - 1, last=False)
            self._damages += survey.damages
        return segment

    def _survey_last(self, segment: Segment) -> None:
        manifest = self.findings.manifest
        mark, through = (manifest.size, manifest.last) if manifest.base == segment.base else (0, 0)
        survey = Survey(self._files, segment, mark=mark, through=through, last=True)
        if self._unsynced:
            self.findings.cut = survey.take_unsynced()
        self._damages += survey.damages
        self.findings.survey = survey
