"""MessagePack read by columns: one place in each of many messages, and all of them are moved on at once.

Messages of one kind have the same parts in the same order, only their values differ. So a part is read of all of them
by a few calls of numpy, however many there are, and no object is made of it. Where they turn out to be of several kinds
(``Unlike``) they have to be divided, and each kind is read from its beginning.

Only what is packed the way our own encoder does it is read, every number and every length in its shortest form: whoever
has the values has the bytes. Everything else is odd, and left to a decoder that looks at each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from holdfast.storage.records import Records

__all__ = [
    "BOOLEAN",
    "BYTES",
    "FLOAT",
    "INTEGER",
    "NIL",
    "ODD",
    "TEXT",
    "Cursors",
    "Messages",
    "Spans",
    "Unlike",
]

#: What a byte announces.
ODD, NIL, BOOLEAN, INTEGER, FLOAT, TEXT, BYTES, MAP = range(8)

_NIL, _FALSE, _TRUE, _FLOAT = 0xC0, 0xC2, 0xC3, 0xCB
_SMALL_MAP, _SMALL_MAP_MAX = 0x80, 15
_SMALL_TEXT, _SMALL_TEXT_MAX = 0xA0, 31
_NEGATIVE = 0xE0  #: from here on a byte is a number below zero
_TEXT_8 = 0xD9


class _Form(NamedTuple):
    """How a number stands behind the byte that announces it, and between which values that is its shortest form."""

    kind: str
    least: int
    most: int


class _Forms:
    """Those of numbers that mean the same, by the byte that announces them."""

    def __init__(self, forms: dict[int, _Form]) -> None:
        self.by_tag = forms
        self.widths = np.zeros(256, np.int64)  #: of what comes behind a byte
        for tag, form in forms.items():
            self.widths[tag] = np.dtype(form.kind).itemsize


_INTEGERS: Final = _Forms(
    {
        0xCC: _Form(">u1", 1 << 7, (1 << 8) - 1),
        0xCD: _Form(">u2", 1 << 8, (1 << 16) - 1),
        0xCE: _Form(">u4", 1 << 16, (1 << 32) - 1),
        0xCF: _Form(">i8", 1 << 32, (1 << 63) - 1),
        0xD0: _Form(">i1", -(1 << 7), -(1 << 5) - 1),
        0xD1: _Form(">i2", -(1 << 15), -(1 << 7) - 1),
        0xD2: _Form(">i4", -(1 << 31), -(1 << 15) - 1),
        0xD3: _Form(">i8", -(1 << 63), -(1 << 31) - 1),
    }
)
_TEXTS: Final = _Forms(
    {
        _TEXT_8: _Form(">u1", _SMALL_TEXT_MAX + 1, (1 << 8) - 1),
        0xDA: _Form(">u2", 1 << 8, (1 << 16) - 1),
        0xDB: _Form(">u4", 1 << 16, (1 << 32) - 1),
    }
)
_BYTES: Final = _Forms(
    {
        0xC4: _Form(">u1", 0, (1 << 8) - 1),
        0xC5: _Form(">u2", 1 << 8, (1 << 16) - 1),
        0xC6: _Form(">u4", 1 << 16, (1 << 32) - 1),
    }
)
_MAPS: Final = _Forms({0xDE: _Form(">u2", _SMALL_MAP_MAX + 1, (1 << 16) - 1)})

_KINDS: Final = np.full(256, ODD, np.int8)
_KINDS[_NIL] = NIL
_KINDS[[_FALSE, _TRUE]] = BOOLEAN
_KINDS[_FLOAT] = FLOAT
_KINDS[[*range(_SMALL_MAP), *range(_NEGATIVE, 256), *_INTEGERS.by_tag]] = INTEGER
_KINDS[[*range(_SMALL_TEXT, _SMALL_TEXT + _SMALL_TEXT_MAX + 1), *_TEXTS.by_tag]] = TEXT
_KINDS[list(_BYTES.by_tag)] = BYTES
_KINDS[[*range(_SMALL_MAP, _SMALL_MAP + _SMALL_MAP_MAX + 1), *_MAPS.by_tag]] = MAP

_WORD: Final = 8  #: bytes that are compared at once
_BEHIND: Final = bytes(2 * _WORD)  #: so that a number can be read wherever a message ends


class Unlike(Exception):
    """Messages that cannot be read together; they are together with those that have the same number, unless ``ODD``."""

    def __init__(self, kinds: Any) -> None:
        super().__init__()
        self.kinds = kinds


class Messages:
    """Messages, one behind the other in one piece of memory."""

    def __init__(self, pieces: Sequence[Records]) -> None:
        self.records = Records.joined(pieces, _BEHIND)
        content = self.records.content
        assert isinstance(content, bytes), "they were joined"
        self.data = content
        self.ends = np.cumsum(np.frombuffer(self.records.lengths, np.uint32), dtype=np.int64)
        self.starts = np.concatenate([[0], self.ends[:-1]])
        self._views: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.ends)

    def numbers(self, kind: str) -> Any:
        """As if a number of this kind stood at every byte."""
        found = self._views.get(kind)
        if found is None:
            count = len(self.data) - _WORD
            found = self._views[kind] = np.ndarray((count,), np.dtype(kind), self.data, strides=(1,))
        return found


class Spans(NamedTuple):
    """Bytes of each message; those of one lie behind those of the message before."""

    data: bytes
    starts: Any
    ends: Any

    def array(self) -> Any:
        """An Arrow array of them: every second of the pieces that their bounds cut the memory into."""
        count = len(self.starts)
        bounds = np.empty(2 * count, np.int32)
        bounds[0::2], bounds[1::2] = self.starts, self.ends
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.data)]
        pieces = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
        return pieces.take(pa.array(np.arange(0, 2 * count, 2)))


class Cursors:
    """A place in each of some messages. Whatever is read must be whole, and of one kind.

    Every method raises ``Unlike`` if it is not, and all but ``peek`` and ``finish`` move on.
    """

    def __init__(self, messages: Messages, which: Any) -> None:
        self._messages = messages
        self._bytes = messages.numbers(">u1")
        self._at = messages.starts[which]
        self._ends = messages.ends[which]
        self._tags: Any = None  #: the bytes that come next, once they were looked at

    def peek(self) -> int:
        """What kind of thing comes next: none that is odd."""
        self._tags = self._bytes[self._at]
        kinds = _KINDS[self._tags]
        kind = int(kinds[0])
        if kind == ODD or (kinds != kind).any():
            raise Unlike(kinds)
        return kind

    def skip(self, constant: bytes) -> None:
        """These very bytes."""
        is_there = self._passed(constant)
        if not is_there.all():
            self.refuse(~is_there)

    def name(self) -> str:
        """A text that is the same in all.

        :raises UnicodeDecodeError: if it is none.
        """
        first, data = int(self._at[0]), self._messages.data
        tag, length = data[first], data[first + 1]
        if tag == _TEXT_8 and length > _SMALL_TEXT_MAX:
            start = first + 2
        elif _SMALL_TEXT <= tag <= _SMALL_TEXT + _SMALL_TEXT_MAX:
            start, length = first + 1, tag - _SMALL_TEXT
        else:
            self.refuse()
        is_there = self._passed(data[first : start + length])
        if not is_there.all():
            raise Unlike(is_there.astype(np.int8) + 1)  # those like the first, and the others: none is odd
        return data[start : start + length].decode()

    def size(self) -> int:
        """That of a map, the same in all."""
        tags = self._next(MAP)
        sizes = self._numbers(tags, tags.astype(np.int64) - _SMALL_MAP, _MAPS)
        if (sizes != sizes[0]).any():
            raise Unlike(sizes + 1)
        return int(sizes[0])

    def nils(self) -> None:
        """Nothing, in all."""
        self._next(NIL)
        self._move(self._at + 1)

    def booleans(self) -> Any:
        """Of numpy."""
        found = self._next(BOOLEAN) == _TRUE
        self._move(self._at + 1)
        return found

    def floats(self) -> Any:
        """Of numpy, of 8 bytes."""
        self._next(FLOAT)
        found = self._messages.numbers(">f8")[self._at + 1].astype(np.float64)
        self._move(self._at + 9)
        return found

    def integers(self) -> Any:
        """Of numpy, of 8 bytes."""
        tags = self._next(INTEGER)
        return self._numbers(tags, tags.view(np.int8).astype(np.int64), _INTEGERS)

    def texts(self) -> Spans:
        """Whether they are UTF-8 is not looked at."""
        tags = self._next(TEXT)
        return self._spans(self._numbers(tags, tags.astype(np.int64) - _SMALL_TEXT, _TEXTS))

    def binaries(self) -> Spans:
        """Bytes."""
        tags = self._next(BYTES)
        return self._spans(self._numbers(tags, tags.astype(np.int64), _BYTES))

    def enter(self, inner: Spans) -> None:
        """Go on within bytes that are the last of each message."""
        if (inner.ends != self._ends).any():
            self.refuse(inner.ends != self._ends)
        self._at, self._tags = inner.starts, None

    def finish(self) -> None:
        """There is nothing more."""
        if (self._at != self._ends).any():
            self.refuse(self._at != self._ends)

    def refuse(self, which: Any = None) -> NoReturn:
        """Some, or all, are odd."""
        kinds = np.full(len(self._at), ODD, np.int8)
        if which is not None:
            kinds[~which] = ODD + 1
        raise Unlike(kinds)

    def _numbers(self, tags: Any, small: Any, forms: _Forms) -> Any:
        """What these bytes stand for, if they do not announce one of the forms; else what comes behind them."""
        at = self._at + 1
        first = int(tags[0])
        if (tags == first).all():
            form = forms.by_tag.get(first)
            if form is None:
                self._move(at)
                return small
            self._move(at + forms.widths[first])
            found, is_odd = self._formed(form, at)
            if is_odd.any():
                self.refuse(is_odd)
            return found
        self._move(at + forms.widths[tags])
        for tag in np.flatnonzero(np.bincount(tags, minlength=256)):
            form = forms.by_tag.get(int(tag))
            if form is not None:
                which = tags == tag
                small[which], is_odd = self._formed(form, at[which])
                if is_odd.any():
                    which[which] = is_odd
                    self.refuse(which)
        return small

    def _formed(self, form: _Form, at: Any) -> tuple[Any, Any]:
        """The numbers that stand there, and which of them could be shorter."""
        found = self._messages.numbers(form.kind)[at].astype(np.int64)
        return found, (found < form.least) | (found > form.most)

    def _passed(self, constant: bytes) -> Any:
        """Where these bytes came next."""
        at = self._at
        self._move(at + len(constant))
        words = self._messages.numbers("<u8")
        is_there = np.ones(len(at), bool)
        for start in range(0, len(constant), _WORD):
            part = constant[start : start + _WORD]
            found = words[at + start] & np.uint64((1 << 8 * len(part)) - 1)
            is_there &= found == np.uint64(int.from_bytes(part, "little"))
        return is_there

    def _spans(self, lengths: Any) -> Spans:
        starts = self._at
        self._move(starts + lengths)
        return Spans(self._messages.data, starts, self._at)

    def _next(self, kind: int) -> Any:
        """The bytes that announce something of this kind."""
        if self._tags is None:
            self.peek()
        if _KINDS[self._tags[0]] != kind:
            self.refuse()
        return self._tags

    def _move(self, at: Any) -> None:
        beyond = at > self._ends
        if beyond.any():
            self.refuse(beyond)
        self._at, self._tags = at, None
