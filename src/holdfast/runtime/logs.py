"""What an operator reads: one JSON object per line, or a transcript for people.

Holdfast logs through ``logging`` under the name ``holdfast``; a process that wants the lines calls ``write_to``,
an application that uses the client as a library does what it likes. The text of a record says what happened and is
the same each time; what differs stands in its fields. So a record can be counted by its text, and hostile peers
cannot fill a disk: ``OF_A_TEXT_MAX`` of each text pass in a second, and ``RECORDS_MAX`` of all that are no errors;
what was suppressed is counted, and the next record that passes says so.

As text, the columns are time, level, node, sign, what happened, and the fields. The sign is ``=`` for a change of
state; with ``transcribe`` and level debug, which is not rate-limited, also ``<`` for what came in and ``>`` for what
went out::

    12:00:01.250 warning b1 = peer given up, too-slow  peer='slow' address='127.0.0.1:4711' reason='…'
    12:00:01.251 debug   b1 < received  peer='b2' messages='Publications, Heartbeat×2'
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from holdfast.clock import SECOND, Instant
from holdfast.runtime import clock
from holdfast.runtime.log_writer import LogWriter

__all__ = [
    "FORMATS",
    "LEVELS",
    "JsonLines",
    "RateLimit",
    "Transcript",
    "bug",
    "log",
    "transcribed",
    "write_to",
]

LOGGER: Final = logging.getLogger("holdfast")
LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FORMATS: Final = ("json", "text")

#: Records that pass in a second, of one text and of all that are no errors.
OF_A_TEXT_MAX: Final = 10
RECORDS_MAX: Final = 200

#: Texts that are counted apart; the rest share one count.
TEXTS_MAX: Final = 1_000

#: A field is cut to this many characters: some of them come from strangers.
FIELD_CHARS_MAX: Final = 500


def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
    """Something an operator may want to know; ``text`` without what differs from time to time, ``fields`` with it."""
    LOGGER.log(LEVELS[level], "%s", text, extra={"text": text, "fields": fields})


def transcribed(sign: str, peer: str, messages: Iterable[object]) -> dict[str, str]:
    """The fields of a record about messages: which way they went, and how many there were of each kind."""
    counts = Counter(type(message).__name__ for message in messages)
    said = ", ".join(name if count == 1 else f"{name}×{count}" for name, count in counts.items())
    return {"sign": sign, "peer": peer, "messages": said}


def bug(text: str, error: BaseException, fields: Mapping[str, Any]) -> None:
    """Something that cannot happen; with the traceback."""
    LOGGER.error("%s", text, exc_info=error, extra={"text": text, "fields": fields})


def write_to(
    stream: TextIO | LogWriter,
    *,
    form: str = "json",
    level: str = "info",
    has_room: Callable[[], bool] = lambda: True,
) -> logging.Handler:
    """Write the records of this process to a stream, rate-limited; returns the handler, to be closed at the end.

    While the stream has no room, records are suppressed.

    :raises ValueError: for a form or a level that does not exist.
    """
    if form not in FORMATS:
        raise ValueError(f"the log format {form!r}: expected {' or '.join(FORMATS)}")
    if level not in LEVELS:
        raise ValueError(f"the log level {level!r}: expected one of {', '.join(LEVELS)}")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else Transcript())
    handler.addFilter(RateLimit(has_room=has_room))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(LEVELS[level])
    LOGGER.propagate = False
    return handler


@dataclass(slots=True)
class _Second:
    """What passed in the second that began at ``start``, and what did not since something last passed."""

    start: Instant
    passed: int = 0
    suppressed: int = 0

    def may_pass(self, now: Instant, maximum: int) -> bool:
        if now - self.start >= SECOND:
            self.start, self.passed = now, 0
        if self.passed >= maximum:
            self.suppressed += 1
            return False
        self.passed += 1
        return True

    def take_suppressed(self) -> int:
        suppressed, self.suppressed = self.suppressed, 0
        return suppressed


class RateLimit(logging.Filter):
    """Lets only so many records pass in a second."""

    def __init__(
        self, now: Callable[[], Instant] = clock.now, has_room: Callable[[], bool] = lambda: True
    ) -> None:
        super().__init__()
        self._now = now
        self._has_room = has_room
        self._all = _Second(now())
        self._texts: dict[str, _Second] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record passes."""
        if not self._has_room():
            self._all.suppressed += 1
            return False
        if record.levelno <= logging.DEBUG:
            return True  # who asks for everything gets everything
        now = self._now()
        text = getattr(record, "text", record.msg)
        if text not in self._texts and len(self._texts) >= TEXTS_MAX:
            text = ""
        of_text = self._texts.setdefault(text, _Second(now))
        if not of_text.may_pass(now, OF_A_TEXT_MAX):
            return False
        if record.levelno < logging.ERROR and not self._all.may_pass(now, RECORDS_MAX):
            return False
        if suppressed := of_text.take_suppressed() + self._all.take_suppressed():
            record.suppressed = suppressed
        return True


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = {name: _short(value) for name, value in getattr(record, "fields", {}).items()}
    if suppressed := getattr(record, "suppressed", 0):
        fields["suppressed"] = suppressed
    if record.exc_info and record.exc_info[1]:
        fields["traceback"] = logging.Formatter().formatException(record.exc_info)
    return fields


def _short(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= FIELD_CHARS_MAX else text[:FIELD_CHARS_MAX] + "…"


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


class JsonLines(logging.Formatter):
    """One JSON object per record, in ASCII: no byte of a stranger's reaches a terminal as it is."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fixed = {
            "time": _time(record).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "text": record.getMessage(),
        }
        return json.dumps({**_fields(record), **fixed})


class Transcript(logging.Formatter):
    """One line per record, for people."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and a traceback below it if there is one."""
        fields = _fields(record)
        node = fields.pop("node", "-")
        sign = fields.pop("sign", "=")
        traceback = fields.pop("traceback", None)
        time = _time(record).strftime("%H:%M:%S.%f")[:-3]
        said = " ".join(f"{name}={value!r}" for name, value in fields.items())
        line = f"{time} {record.levelname.lower():<7} {_plain(node)} {sign} {_plain(record.getMessage())}"
        return line + (f"  {said}" if said else "") + (f"\n{traceback}" if traceback else "")


def _plain(text: object) -> str:
    return "".join(c if c.isprintable() else "·" for c in str(text))
