# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Records of a log by columns, compiled: one pass over their bytes, and one over each column that is wanted.

The same as ``alike_pure``, and held against it by the same tests. The first record that is packed our way is the model;
all that have its names and types are read with it, and those that have not are tried again, with one of them for a model.

Nothing is copied before it stands in its column: a part of a record is remembered by its address. So the pieces of
memory that records lie in are kept for as long as anything is that was read of them.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np
import pyarrow as pa

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static inline uint16_t holdfast_u16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
    static inline uint32_t holdfast_u32(const uint8_t *p) {
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    }
    static inline uint64_t holdfast_u64(const uint8_t *p) {
        return (uint64_t)holdfast_u32(p) << 32 | holdfast_u32(p + 4);
    }
    static inline void holdfast_put(uint8_t *to, uint64_t number, int width) {
        for (int i = 0; i < width; i++) { to[i] = (uint8_t)number; number >>= 8; }
    }
    """
    uint16_t u16 "holdfast_u16"(const uint8_t *p) noexcept nogil
    uint32_t u32 "holdfast_u32"(const uint8_t *p) noexcept nogil
    uint64_t u64 "holdfast_u64"(const uint8_t *p) noexcept nogil
    void put "holdfast_put"(uint8_t *to, uint64_t number, int width) noexcept nogil

ctypedef const uint8_t *Place

cdef enum Kind:
    BOOLEAN
    INTEGER
    FLOAT
    TEXT
    BYTES

cdef list TYPES = [bool, int, float, str, bytes]

#: Where things stand that every event has: among the columns of numbers, and among those of spans.
cdef enum:
    NUMBER = 0
    TIME = 1
    PUBLISHER = 0
    TOPIC = 1
    CONTENT_TYPE = 2
    PAYLOAD = 3
    NUMBERS_OF_ALL = 2
    SPANS_OF_ALL = 4

cdef uint8_t RECORD = 0x93  #: an array of three: publisher, number, event
cdef uint8_t EVENT = 0x96  #: of six: topic, scalars, bytes, content type, payload, time
cdef uint8_t NIL = 0xC0
cdef uint8_t FALSE = 0xC2
cdef uint8_t TRUE = 0xC3
cdef uint8_t DOUBLE = 0xCB

# Of a Variant (``variant``).
cdef uint8_t V_TRUE = 1 << 2
cdef uint8_t V_FALSE = 2 << 2
cdef uint8_t V_INT64 = 6 << 2
cdef uint8_t V_DOUBLE = 7 << 2
cdef uint8_t V_BINARY = 15 << 2
cdef uint8_t V_STRING = 16 << 2
cdef uint8_t V_OBJECT = 2
cdef int64_t V_SHORT_MAX = 63
cdef int64_t SPAN_BYTES_MAX = 2**31 - 1  #: of a column, whose offsets are of 32 bits

cdef struct Span:
    Place start
    int64_t length


# One thing at a place, in its shortest form only; then the place is behind it.

cdef inline bint is_utf8(Place p, Place end) noexcept nogil:
    cdef uint64_t word
    while True:
        while end - p >= 8:
            memcpy(&word, p, 8)
            if word & <uint64_t>0x8080808080808080:
                break
            p += 8
        while p < end and p[0] < 0x80:
            p += 1
        if p == end:
            return True
        if p[0] < 0xC2:
            return False
        if p[0] < 0xE0:
            if end - p < 2 or not is_more(p + 1, 1):
                return False
            p += 2
        elif p[0] < 0xF0:
            if end - p < 3 or not is_more(p + 1, 2):
                return False
            if (p[0] == 0xE0 and p[1] < 0xA0) or (p[0] == 0xED and p[1] > 0x9F):
                return False
            p += 3
        elif p[0] < 0xF5:
            if end - p < 4 or not is_more(p + 1, 3):
                return False
            if (p[0] == 0xF0 and p[1] < 0x90) or (p[0] == 0xF4 and p[1] > 0x8F):
                return False
            p += 4
        else:
            return False


cdef inline bint is_more(Place p, int count) noexcept nogil:
    """Bytes that continue a character."""
    for i in range(count):
        if p[i] & 0xC0 != 0x80:
            return False
    return True


cdef inline bint take_text(Place *at, Place end, Span *found) noexcept nogil:
    cdef Place p = at[0]
    cdef uint8_t tag
    cdef int64_t length
    if p >= end:
        return False
    tag = p[0]
    if 0xA0 <= tag < 0xC0:
        length = tag & 31
        p += 1
    elif tag == 0xD9 and end - p >= 2 and p[1] > 31:
        length = p[1]
        p += 2
    elif tag == 0xDA and end - p >= 3 and u16(p + 1) > 0xFF:
        length = u16(p + 1)
        p += 3
    elif tag == 0xDB and end - p >= 5 and u32(p + 1) > 0xFFFF:
        length = u32(p + 1)
        p += 5
    else:
        return False
    if end - p < length:
        return False
    found.start, found.length = p, length
    at[0] = p + length
    return is_utf8(p, p + length)


cdef inline bint take_bytes(Place *at, Place end, Span *found) noexcept nogil:
    cdef Place p = at[0]
    cdef uint8_t tag
    cdef int64_t length
    if end - p < 2:
        return False
    tag = p[0]
    if tag == 0xC4:
        length = p[1]
        p += 2
    elif tag == 0xC5 and end - p >= 3 and u16(p + 1) > 0xFF:
        length = u16(p + 1)
        p += 3
    elif tag == 0xC6 and end - p >= 5 and u32(p + 1) > 0xFFFF:
        length = u32(p + 1)
        p += 5
    else:
        return False
    if end - p < length:
        return False
    found.start, found.length = p, length
    at[0] = p + length
    return True


cdef inline bint take_integer(Place *at, Place end, int64_t *found) noexcept nogil:
    cdef Place p = at[0]
    cdef int64_t left = end - p
    cdef int64_t number
    cdef uint8_t tag
    if left < 1:
        return False
    tag = p[0]
    if tag < 0x80:
        found[0] = tag
        at[0] = p + 1
        return True
    if tag >= 0xE0:
        found[0] = <int8_t>tag
        at[0] = p + 1
        return True
    if tag == 0xCC and left >= 2:
        number = p[1]
        p += 2
        if number < 0x80:
            return False
    elif tag == 0xCD and left >= 3:
        number = u16(p + 1)
        p += 3
        if number <= 0xFF:
            return False
    elif tag == 0xCE and left >= 5:
        number = u32(p + 1)
        p += 5
        if number <= 0xFFFF:
            return False
    elif tag == 0xCF and left >= 9:
        number = <int64_t>u64(p + 1)
        p += 9
        if number <= <int64_t>0xFFFFFFFF:  # below zero too, if it is none of ours
            return False
    elif tag == 0xD0 and left >= 2:
        number = <int8_t>p[1]
        p += 2
        if number >= -32:
            return False
    elif tag == 0xD1 and left >= 3:
        number = <int16_t>u16(p + 1)
        p += 3
        if number >= -128:
            return False
    elif tag == 0xD2 and left >= 5:
        number = <int32_t>u32(p + 1)
        p += 5
        if number >= -32768:
            return False
    elif tag == 0xD3 and left >= 9:
        number = <int64_t>u64(p + 1)
        p += 9
        if number >= -<int64_t>0x80000000:
            return False
    else:
        return False
    found[0] = number
    at[0] = p
    return True


cdef inline int64_t take_size(Place *at, Place end) noexcept nogil:
    """That of a map; -1 if there is none."""
    cdef Place p = at[0]
    if p >= end:
        return -1
    if 0x80 <= p[0] < 0x90:
        at[0] = p + 1
        return p[0] & 15
    if p[0] == 0xDE and end - p >= 3 and u16(p + 1) > 15:
        at[0] = p + 3
        return u16(p + 1)
    return -1


cdef inline bint take_byte(Place *at, Place end, uint8_t byte) noexcept nogil:
    if at[0] >= end or at[0][0] != byte:
        return False
    at[0] += 1
    return True


cdef inline bint enter_event(Place *at, Place end, Span *publisher, int64_t *number) noexcept nogil:
    """Past what a record has before its event, which is the last of it, and into that."""
    cdef Span event
    if not take_byte(at, end, RECORD):
        return False
    if not take_text(at, end, publisher) or not take_integer(at, end, number):
        return False
    if not take_bytes(at, end, &event) or at[0] != end:
        return False
    at[0] = event.start
    return take_byte(at, end, EVENT)


cdef class CompiledRecords:
    """Some records, in the pieces of memory they lie in: what ``alike.Engine`` asks for."""

    cdef list _pieces
    cdef Py_buffer *_buffers
    cdef int _held
    cdef int64_t _count
    cdef Place *_starts
    cdef int64_t *_lengths

    def __cinit__(self, pieces):
        cdef int64_t count = sum([len(piece) for piece in pieces])
        cdef int64_t i = 0
        cdef uint32_t length
        cdef Place at
        cdef const uint32_t[::1] lengths
        self._pieces = list(pieces)
        self._count = count
        self._buffers = <Py_buffer *>malloc(max(1, len(self._pieces)) * sizeof(Py_buffer))
        self._starts = <Place *>malloc(max(1, count) * sizeof(Place))
        self._lengths = <int64_t *>malloc(max(1, count) * sizeof(int64_t))
        if self._buffers == NULL or self._starts == NULL or self._lengths == NULL:
            raise MemoryError
        for piece in self._pieces:
            PyObject_GetBuffer(piece.content, &self._buffers[self._held], PyBUF_SIMPLE)
            self._held += 1
            assert piece.start + piece.size <= self._buffers[self._held - 1].len, "records beyond their memory"
            at = <Place>self._buffers[self._held - 1].buf + <int64_t>piece.start
            lengths = piece.lengths
            for length in lengths:
                self._starts[i] = at
                self._lengths[i] = length
                at += length
                i += 1

    def __dealloc__(self):
        cdef int i
        for i in range(self._held):
            PyBuffer_Release(&self._buffers[i])
        free(self._buffers)
        free(self._starts)
        free(self._lengths)

    def __len__(self):
        return self._count

    def record(self, int64_t which):
        """One of them, by itself."""
        if not 0 <= which < self._count:
            raise IndexError(which)
        return PyBytes_FromStringAndSize(<const char *>self._starts[which], self._lengths[which])

    def read(self, which):
        """Those that are alike, or None; others, that may be alike among themselves; and those that are odd."""
        cdef const int64_t[::1] numbers = which
        cdef int64_t i
        for i in range(numbers.shape[0]):
            found = CompiledAlike(self)
            if found._take_model(numbers[i]):
                others = found._take(numbers[i:])
                return found, [others] if len(others) else [], which[:i]
        return None, [], which


cdef class CompiledAlike:
    """Events with the names and types of one of them, the model: what ``alike.Alike`` asks for."""

    cdef CompiledRecords _records
    cdef readonly object which
    cdef readonly dict kinds
    cdef dict _places  #: by name, where it stands among the attributes
    cdef list _names  #: of each attribute, as it is packed
    cdef int64_t _count  #: events
    cdef int64_t _room  #: for so many
    cdef int _scalars
    cdef int _attributes
    cdef bint _has_time
    cdef Kind *_kinds
    cdef int *_columns  #: of each attribute: among the numbers, or among the spans
    cdef Place *_packed  #: the packed names
    cdef int64_t *_packed_lengths
    cdef int64_t *_numbers  #: column by column; doubles as their bits
    cdef Span *_spans  #: column by column

    def __cinit__(self, records):
        self._records = records

    def __dealloc__(self):
        free(self._kinds)
        free(self._columns)
        free(self._packed)
        free(self._packed_lengths)
        free(self._numbers)
        free(self._spans)

    # Reading

    cdef bint _take_model(self, int64_t which) except -1:
        """Take names and types of a record; whether it is packed our way."""
        cdef Place at = self._records._starts[which]
        cdef Place end = at + self._records._lengths[which]
        cdef Place before
        cdef Span span
        cdef int64_t number, size
        cdef list kinds = []
        self._names, self.kinds = [], {}
        if not enter_event(&at, end, &span, &number) or not take_text(&at, end, &span):
            return False
        for are_bytes in (False, True):
            size = take_size(&at, end)
            if size < 0:
                return False
            for _ in range(size):
                before = at
                if not take_text(&at, end, &span):
                    return False
                self._names.append(PyBytes_FromStringAndSize(<const char *>before, at - before))
                name = PyBytes_FromStringAndSize(<const char *>span.start, span.length).decode()
                kind = self._model_kind(&at, end)
                if name in self.kinds or kind < 0 or (kind == BYTES) != are_bytes:
                    return False
                self.kinds[name] = TYPES[kind]
                kinds.append(kind)
            if not are_bytes:
                self._scalars = size
        if not take_text(&at, end, &span) or not take_bytes(&at, end, &span) or at >= end:
            return False
        self._has_time = at[0] != NIL
        self._arrange(kinds)
        return True

    cdef int _model_kind(self, Place *at, Place end) noexcept:
        cdef Span span
        cdef int64_t number
        if at[0] >= end:
            return -1
        if at[0][0] == TRUE or at[0][0] == FALSE:
            at[0] += 1
            return BOOLEAN
        if at[0][0] == DOUBLE:
            at[0] += 9
            return FLOAT if at[0] <= end else -1
        if take_integer(at, end, &number):
            return INTEGER
        if take_text(at, end, &span):
            return TEXT
        if take_bytes(at, end, &span):
            return BYTES
        return -1

    cdef int _arrange(self, list kinds) except -1:
        """Say which column each attribute has."""
        cdef int count = len(kinds), i
        self._attributes = count
        self._kinds = <Kind *>malloc(max(1, count) * sizeof(Kind))
        self._columns = <int *>malloc(max(1, count) * sizeof(int))
        self._packed = <Place *>malloc(max(1, count) * sizeof(Place))
        self._packed_lengths = <int64_t *>malloc(max(1, count) * sizeof(int64_t))
        if self._kinds == NULL or self._columns == NULL or self._packed == NULL or self._packed_lengths == NULL:
            raise MemoryError
        cdef int numbers = NUMBERS_OF_ALL, spans = SPANS_OF_ALL
        for i in range(count):
            self._kinds[i] = kinds[i]
            self._packed[i] = <Place><const char *>self._names[i]
            self._packed_lengths[i] = len(self._names[i])
            if self._kinds[i] == TEXT or self._kinds[i] == BYTES:
                self._columns[i] = spans
                spans += 1
            else:
                self._columns[i] = numbers
                numbers += 1
        self._places = {name: i for i, name in enumerate(self.kinds)}
        return 0

    cdef object _take(self, const int64_t[::1] which):
        """Read those of these records that are like the model; the others are returned."""
        cdef int64_t room = which.shape[0], i, others_count = 0
        cdef int spans = SPANS_OF_ALL, numbers = NUMBERS_OF_ALL
        for i in range(self._attributes):
            if self._kinds[i] == TEXT or self._kinds[i] == BYTES:
                spans += 1
            else:
                numbers += 1
        self._room = room
        self._numbers = <int64_t *>malloc(room * numbers * sizeof(int64_t))
        self._spans = <Span *>malloc(room * spans * sizeof(Span))
        if self._numbers == NULL or self._spans == NULL:
            raise MemoryError
        found, others = np.empty(room, np.int64), np.empty(room, np.int64)
        cdef int64_t[::1] found_view = found, others_view = others
        cdef CompiledRecords records = self._records
        with nogil:
            for i in range(room):
                if self._take_one(records._starts[which[i]], records._lengths[which[i]], self._count):
                    found_view[self._count] = which[i]
                    self._count += 1
                else:
                    others_view[others_count] = which[i]
                    others_count += 1
        self.which = found[: self._count]
        return others[:others_count]

    cdef bint _take_one(self, Place at, int64_t length, int64_t row) noexcept nogil:
        """Read one record into a row; whether it is like the model. What is not is read again by another."""
        cdef Place end = at + length
        cdef int64_t *numbers = self._numbers + row
        cdef Span *spans = self._spans + row
        cdef int64_t room = self._room
        cdef int i
        if not enter_event(&at, end, spans + PUBLISHER * room, numbers + NUMBER * room):
            return False
        if not take_text(&at, end, spans + TOPIC * room):
            return False
        if take_size(&at, end) != self._scalars:
            return False
        for i in range(self._scalars):
            if not self._take_attribute(i, &at, end, numbers, spans):
                return False
        if take_size(&at, end) != self._attributes - self._scalars:
            return False
        for i in range(self._scalars, self._attributes):
            if not self._take_attribute(i, &at, end, numbers, spans):
                return False
        if not take_text(&at, end, spans + CONTENT_TYPE * room):
            return False
        if not take_bytes(&at, end, spans + PAYLOAD * room):
            return False
        if self._has_time:
            if not take_integer(&at, end, numbers + TIME * room):
                return False
        elif not take_byte(&at, end, NIL):
            return False
        return at == end

    cdef inline bint _take_attribute(
        self, int i, Place *at, Place end, int64_t *numbers, Span *spans
    ) noexcept nogil:
        cdef int64_t length = self._packed_lengths[i]
        cdef int64_t column = self._columns[i] * self._room
        cdef Kind kind = self._kinds[i]
        if end - at[0] <= length or memcmp(at[0], self._packed[i], length):
            return False
        at[0] += length
        if kind == INTEGER:
            return take_integer(at, end, numbers + column)
        if kind == TEXT:
            return take_text(at, end, spans + column)
        if kind == BYTES:
            return take_bytes(at, end, spans + column)
        if kind == FLOAT:
            if end - at[0] < 9 or at[0][0] != DOUBLE:
                return False
            numbers[column] = <int64_t>u64(at[0] + 1)
            at[0] += 9
            return True
        if at[0][0] != TRUE and at[0][0] != FALSE:
            return False
        numbers[column] = at[0][0] == TRUE
        at[0] += 1
        return True

    # Columns

    def publishers(self):
        """Of Arrow, as all of these."""
        return self._span_column(PUBLISHER, pa.string())

    def numbers(self):
        """Those of the publishers."""
        return self._number_column(NUMBER, pa.int64())

    def topics(self):
        """Texts."""
        return self._span_column(TOPIC, pa.string())

    def content_types(self):
        """Texts."""
        return self._span_column(CONTENT_TYPE, pa.string())

    def payloads(self):
        """Bytes."""
        return self._span_column(PAYLOAD, pa.binary())

    @property
    def times(self):
        """Of numpy, in nanoseconds; None if they have none."""
        if not self._has_time:
            return None
        return np.frombuffer(self._number_column(TIME, pa.int64()).buffers()[1], np.int64)

    def attribute(self, name):
        """One that these events have."""
        cdef int i = self._places[name]
        cdef int column = self._columns[i]
        if self._kinds[i] == TEXT:
            return self._span_column(column, pa.string())
        if self._kinds[i] == BYTES:
            return self._span_column(column, pa.binary())
        if self._kinds[i] == INTEGER:
            return self._number_column(column, pa.int64())
        if self._kinds[i] == FLOAT:
            return self._number_column(column, pa.float64())
        return self._boolean_column(column)

    cdef object _number_column(self, int column, kind):
        buffer = pa.allocate_buffer(self._count * 8)
        cdef size_t address = buffer.address
        memcpy(<void *>address, self._numbers + column * self._room, self._count * 8)
        return pa.Array.from_buffers(kind, self._count, [None, buffer])

    cdef object _boolean_column(self, int column):
        buffer = pa.allocate_buffer((self._count + 7) // 8)
        cdef size_t address = buffer.address
        cdef uint8_t *bits = <uint8_t *>address
        cdef int64_t *numbers = self._numbers + column * self._room
        cdef int64_t i
        memset(bits, 0, (self._count + 7) // 8)
        for i in range(self._count):
            bits[i >> 3] |= <uint8_t>(numbers[i] << (i & 7))
        return pa.Array.from_buffers(pa.bool_(), self._count, [None, buffer])

    cdef object _span_column(self, int column, kind):
        cdef Span *spans = self._spans + column * self._room
        cdef int64_t size = 0, i
        for i in range(self._count):
            size += spans[i].length
        if size > SPAN_BYTES_MAX:
            raise OverflowError("a column of more than two gigabytes")
        offsets, data = pa.allocate_buffer((self._count + 1) * 4), pa.allocate_buffer(size)
        cdef size_t offsets_address = offsets.address, data_address = data.address
        cdef int32_t *bound = <int32_t *>offsets_address
        cdef uint8_t *to = <uint8_t *>data_address
        with nogil:
            bound[0] = 0
            for i in range(self._count):
                memcpy(to, spans[i].start, spans[i].length)
                to += spans[i].length
                bound[i + 1] = bound[i] + <int32_t>spans[i].length
        return pa.Array.from_buffers(kind, self._count, [None, offsets, data])

    # Variants

    def variants(self, encoder):
        """Values and metadata, as the encoder makes them of each event."""
        names = encoder.names(tuple(self.kinds))
        values = self._variant_values([self._places[name] for name in names.ordered], names.size + names.ids, names.bits)
        return values, pa.repeat(pa.scalar(names.metadata, pa.binary()), self._count)

    cdef object _variant_values(self, list ordered, bytes head, int bits):
        cdef int fields = len(ordered), i
        cdef int64_t row, size = 0
        cdef int64_t *sizes = <int64_t *>malloc(max(1, self._count) * sizeof(int64_t))
        cdef int *order = <int *>malloc(max(1, fields) * sizeof(int))
        cdef size_t offsets_address, data_address
        cdef int32_t *bound
        cdef uint8_t *to
        cdef Place head_bytes = <Place><const char *>head
        cdef int64_t head_length = len(head)
        try:
            if sizes == NULL or order == NULL:
                raise MemoryError
            for i in range(fields):
                order[i] = ordered[i]
            for row in range(self._count):
                sizes[row] = self._fields_size(order, fields, row)
                size += 1 + head_length + (fields + 1) * width_of(sizes[row]) + sizes[row]
            if size > SPAN_BYTES_MAX:
                raise OverflowError("a column of more than two gigabytes")
            offsets, data = pa.allocate_buffer((self._count + 1) * 4), pa.allocate_buffer(size)
            offsets_address, data_address = offsets.address, data.address
            bound, to = <int32_t *>offsets_address, <uint8_t *>data_address
            with nogil:
                bound[0] = 0
                for row in range(self._count):
                    to[0] = <uint8_t>(V_OBJECT | (width_of(sizes[row]) - 1) << 2 | bits)
                    memcpy(to + 1, head_bytes, head_length)
                    to = self._put_fields(to + 1 + head_length, width_of(sizes[row]), order, fields, row)
                    bound[row + 1] = <int32_t>(to - <uint8_t *>data_address)
        finally:
            free(sizes)
            free(order)
        return pa.Array.from_buffers(pa.binary(), self._count, [None, offsets, data])

    cdef int64_t _fields_size(self, int *order, int fields, int64_t row) noexcept nogil:
        cdef int64_t size = 0, length
        cdef int i
        cdef Kind kind
        for i in range(fields):
            kind = self._kinds[order[i]]
            if kind == BOOLEAN:
                size += 1
            elif kind == INTEGER or kind == FLOAT:
                size += 9
            else:
                length = self._spans[self._columns[order[i]] * self._room + row].length
                size += length + (1 if kind == TEXT and length <= V_SHORT_MAX else 5)
        return size

    cdef uint8_t *_put_fields(self, uint8_t *table, int width, int *order, int fields, int64_t row) noexcept nogil:
        """Offsets, and values behind them; where they end."""
        cdef uint8_t *values = table + (fields + 1) * width
        cdef uint8_t *to = values
        cdef int64_t place
        cdef Span *span
        cdef Kind kind
        cdef int i
        for i in range(fields):
            put(table + i * width, to - values, width)
            kind = self._kinds[order[i]]
            place = self._columns[order[i]] * self._room + row
            if kind == BOOLEAN:
                to[0] = V_TRUE if self._numbers[place] else V_FALSE
                to += 1
            elif kind == INTEGER or kind == FLOAT:
                to[0] = V_INT64 if kind == INTEGER else V_DOUBLE
                put(to + 1, <uint64_t>self._numbers[place], 8)
                to += 9
            else:
                span = self._spans + place
                if kind == TEXT and span.length <= V_SHORT_MAX:
                    to[0] = <uint8_t>(span.length << 2 | 1)
                    to += 1
                else:
                    to[0] = V_STRING if kind == TEXT else V_BINARY
                    put(to + 1, <uint64_t>span.length, 4)
                    to += 5
                memcpy(to, span.start, span.length)
                to += span.length
        put(table + fields * width, to - values, width)
        return to


cdef inline int width_of(int64_t greatest) noexcept nogil:
    return 1 if greatest < 1 << 8 else 2 if greatest < 1 << 16 else 3 if greatest < 1 << 24 else 4
