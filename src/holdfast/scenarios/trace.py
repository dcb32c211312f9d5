"""The trace of a run: JSON Lines, written by every process, merged into one, read by the checkers and the audit.

A line has ``t`` (seconds since the start of the script), ``i`` (its position among the lines of its node, from 1,
across restarts), ``node``, ``kind`` and the fields of its kind (``trace_fields``), in that order: equal traces are
equal bytes, and a digest tells whether two runs were the same. Bytes among attributes are ``{"base64": ...}``, which
nothing else can be mistaken for, since nested values are refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, TypeAlias

import msgspec

from holdfast.errors import CallersFault
from holdfast.events.value import Value, shown
from holdfast.scenarios.topology import Configuration
from holdfast.scenarios.trace_fields import COMMON, FIELDS

__all__ = ["TraceError", "TraceLine", "digest", "encode_line", "merge", "read_trace", "run_fields"]

#: A line as read: the fields under their names, attributes with real bytes.
TraceLine: TypeAlias = Mapping[str, Any]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class TraceError(CallersFault):
    """A trace that cannot be read: file, line from 1, and why."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}, line {line}: {problem}")
        self.file = file
        self.line = line
        self.problem = problem


def run_fields(configuration: Configuration, world: str) -> dict[str, Any]:
    """The fields of a trace's first line."""
    return {
        "guarantee": configuration.guarantee,
        "order": configuration.ordering,
        "delta": configuration.delta,
        "routing": configuration.routing,
        "seed": configuration.seed,
        "world": world,
        "tree": configuration.tree(),
    }


def encode_line(t: float, i: int, node: str, kind: str, fields: Mapping[str, Any]) -> bytes:
    """One line, with its newline. The fields must be exactly those of the kind."""
    table = FIELDS.get(kind)
    assert table is not None, f"there is no kind {kind!r} of trace line"
    assert fields.keys() == table.keys(), f"{kind}: fields {sorted(fields)}, not {sorted(table)}"
    assert isfinite(t)
    line: dict[str, Any] = {"t": float(t), "i": i, "node": node, "kind": kind}
    for name in table:
        line[name] = fields[name]
    if kind == "publish":
        line["attributes"] = {name: _plain(value) for name, value in line["attributes"].items()}
    return _encode(line) + b"\n"


def _plain(value: Value) -> object:
    assert not isinstance(value, float) or isfinite(value)
    return {"base64": base64.b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def read_trace(lines: Iterable[bytes | str], file: str = "trace") -> list[TraceLine]:
    """The lines of a trace, each complete and of the right types; blank lines are skipped.

    :raises TraceError: at the first line that is not.
    """
    return [
        _read_line(text, file, number)
        for number, text in enumerate(lines, start=1)
        if not text.isspace() and text
    ]


def _read_line(text: bytes | str, file: str, number: int) -> TraceLine:
    try:
        line = _decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise TraceError(file, number, f"not JSON: {error}") from None
    if not isinstance(line, dict):
        raise TraceError(file, number, "not an object")
    kind = line.get("kind")
    table = FIELDS.get(kind) if isinstance(kind, str) else None
    if table is None:
        raise TraceError(file, number, f"kind is {shown(str(kind))}; expected one of {', '.join(FIELDS)}")
    if kind == "publish" and isinstance(line.get("attributes"), dict):
        line["attributes"] = {name: _value(one) for name, one in line["attributes"].items()}
    forms = {**COMMON, **table}
    for name, form in forms.items():
        if name not in line:
            raise TraceError(file, number, f"{kind} has no {name}; expected {form.expected}")
        if not form.fits(line[name]):
            raise TraceError(file, number, f"{name} of {kind} will not do; expected {form.expected}")
    if len(line) > len(forms):
        extra = next(name for name in line if name not in forms)
        raise TraceError(file, number, f"{kind} has a field {shown(extra)}; expected {', '.join(forms)}")
    return line


def _value(value: object) -> object:
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error:
            return value  # nested, and so refused
    return value


def merge(traces: Iterable[Iterable[TraceLine]]) -> list[TraceLine]:
    """The lines of several nodes as one trace: by time, node and position, ``run`` first and ``end`` last."""
    place = {"run": 0, "end": 2}
    lines = [line for trace in traces for line in trace]
    return sorted(lines, key=lambda line: (place.get(line["kind"], 1), line["t"], line["node"], line["i"]))


def digest(trace: Iterable[TraceLine]) -> str:
    """SHA-256, in hexadecimal, of the trace as ``encode_line`` writes it."""
    sha = hashlib.sha256()
    for line in trace:
        fields = {name: value for name, value in line.items() if name not in COMMON}
        sha.update(encode_line(line["t"], line["i"], line["node"], line["kind"], fields))
    return sha.hexdigest()
