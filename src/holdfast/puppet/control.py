"""What the Puppet Master and its processes say to each other: one JSON object per line, on a pipe in each direction.

The master gives orders, each in its turn; a process answers. A ticket is a number of the master's: an answer gives it
back. What a process is to do in the scenario is not sent but named, by its line of the script, which it has read too.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from holdfast.scenarios.drain import Standing

__all__ = [
    "Answer",
    "Begin",
    "Completed",
    "CutOff",
    "Failed",
    "Listen",
    "Listening",
    "Mend",
    "Order",
    "Perform",
    "Report",
    "Reported",
    "Start",
    "Stop",
    "Traffic",
    "WhenSettled",
    "WriteStatus",
    "decode_answer",
    "decode_order",
    "encode",
]


class _Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True, tag_field="say"):
    pass


# Orders


class Listen(_Said, frozen=True):
    """Take the port you are dialled at, if you are; answered by ``Listening`` or ``Failed``. Always the first order."""

    port: int  #: 0: any free one
    is_again: bool  #: a life before this one used the port


class Start(_Said, frozen=True):
    """Begin to play your part. Always the second order."""

    addresses: dict[str, str]  #: where the others listen, by name, host:port
    joined: list[int]  #: lines of the Join commands that have been carried out
    moved: list[int]  #: lines of the Reconnect commands that have brought somebody to another site
    cut_off: list[str]  #: names the process is cut off from
    wishes: list[int]  #: lines of the Subscribe commands to begin with
    began: int | None  #: when the script began, if it has


class Begin(_Said, frozen=True):
    """The script begins at this instant: the zero of the trace's times."""

    at: int
    ticket: int


class WhenSettled(_Said, frozen=True):
    """Answer once connected, with everything subscribed to confirmed.

    A broker is connected when it has met its neighbours or given them up; with ``to_all``, when it has met them.
    """

    to_all: bool
    ticket: int


class Perform(_Said, frozen=True):
    """Do what this line of the script says; answered when that is complete."""

    line: int
    at: int | None  #: when a Publish begins; None: at once
    ticket: int


class CutOff(_Said, frozen=True):
    """Let nothing pass to or from these any more."""

    names: list[str]
    ticket: int


class Mend(_Said, frozen=True):
    """Let everything pass again to and from these."""

    names: list[str]
    ticket: int


class WriteStatus(_Said, frozen=True):
    """Write a ``status`` line."""

    ticket: int


class Report(_Said, frozen=True):
    """Say what you hold; answered by ``Reported``."""

    ticket: int


class Stop(_Said, frozen=True):
    """Say goodbye to everybody, and exit."""


Order: TypeAlias = (
    Listen | Start | Begin | WhenSettled | Perform | CutOff | Mend | WriteStatus | Report | Stop
)


# Answers


class Listening(_Said, frozen=True):
    """Alive, and at this port; 0: nobody dials this one."""

    port: int


class Failed(_Said, frozen=True):
    """Could not come to life."""

    problem: str


class Completed(_Said, frozen=True):
    """What the ticket was for is complete."""

    ticket: int


class Traffic(msgspec.Struct, frozen=True):
    """What has passed in one session, as ``watched`` counts it: handed over to be sent, and received."""

    peer: str  #: empty until it has introduced itself
    sent: int
    received: int


class Reported(_Said, frozen=True):
    """How the process stands, and what has passed in its sessions."""

    ticket: int
    standing: Standing
    sessions: list[Traffic]


Answer: TypeAlias = Listening | Failed | Completed | Reported

_encode = msgspec.json.Encoder().encode
_orders: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
_answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


def decode_order(line: bytes) -> Order:
    """An order; msgspec.DecodeError if it is none."""
    return _orders.decode(line)


def decode_answer(line: bytes) -> Answer:
    """An answer; msgspec.DecodeError if it is none."""
    return _answers.decode(line)


def encode(said: Order | Answer) -> bytes:
    """One line, with its newline."""
    return _encode(said) + b"\n"
