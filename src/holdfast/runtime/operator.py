"""The operator's hand on a running broker: what is asked of its admin port is done by the core, and waited for.

::

    POST /subscriptions/seek   {"name": NAME, "to": "now" | "earliest" | TIME | TOKEN}
    POST /subscriptions/advance {"name": NAME, "upto": TOKEN}    as seek, and never back
    POST /subscriptions/end    {"name": NAME}
    POST /streams/forget       {"broker": NAME, "stream": NAME | null}

A wish is answered when it is on disk: 200; 409 with the reason, if it cannot be; 504 if that is not known in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final, Literal, TypeVar

import msgspec

from holdfast.broker.effect import Operated
from holdfast.broker.input import End, ForgetBroker, Operate, Seek
from holdfast.messages.ticks import ORIGIN
from holdfast.runtime.admin import Action, Answer
from holdfast.streams.checkpoint_token import PREFIX, InvalidToken, Token

__all__ = ["InvalidStart", "Operator", "seek_to", "start_in"]

#: What takes longer is not waited for: the disk is full, or slow beyond hope.
WITHIN_S: Final = 3.0
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class InvalidStart(ValueError):
    """No place in a stream."""


def start_in(text: str) -> Literal["now", "earliest"] | datetime | Token:
    """Where in a stream a text says to begin: ``now``, ``earliest``, a time with its zone, or a token.

    :raises InvalidStart: if it says nothing of the kind.
    """
    match text:
        case "now" | "earliest":
            return text
    if text.startswith(PREFIX):
        try:
            return Token.parse(text)
        except InvalidToken as error:
            raise InvalidStart(str(error)) from error
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        expected = f"now, earliest, a time such as 2026-01-31T12:00:00Z, or a token ({PREFIX}...)"
        raise InvalidStart(f"{text[:60]!r} is no place in a stream; expected {expected}") from None
    if at.tzinfo is None:
        raise InvalidStart(f"{text} has no time zone; expected one, such as {at.isoformat()}Z for UTC")
    return at


def seek_to(durable: str, to: str) -> Seek:
    """The wish that a durable subscription go on from what a text says.

    :raises InvalidStart: if it says nothing of the kind.
    """
    match start_in(to):
        case "now":
            return Seek(durable)
        case "earliest":
            return Seek(durable, ORIGIN)
        case Token() as token:
            return Seek(durable, None, {pubend: place.tick for pubend, place in token.items()})
        case at:
            return Seek(durable, max(ORIGIN, (at - _EPOCH) // timedelta(microseconds=1) - 1))


class _Seek(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    to: str


class _Advance(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    upto: str


class _End(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class _Forget(msgspec.Struct, forbid_unknown_fields=True):
    broker: str
    stream: str | None = None


_Wish = TypeVar("_Wish", _Seek, _Advance, _End, _Forget)


class Operator:
    """Of one broker; ``submit`` gives its core an input. All of it belongs to the loop."""

    def __init__(self, submit: Callable[[Operate], None]) -> None:
        self._submit = submit
        self._last = 0
        self._waiting: dict[int, asyncio.Future[str | None]] = {}

    @property
    def actions(self) -> dict[str, Action]:
        """For the admin port."""
        return {
            "/subscriptions/seek": self._seek,
            "/subscriptions/advance": self._advance,
            "/subscriptions/end": self._end,
            "/streams/forget": self._forget,
        }

    def on_effect(self, effect: Operated) -> None:
        """The core has answered."""
        waiting = self._waiting.pop(effect.ticket, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(effect.problem)

    async def _seek(self, body: bytes) -> Answer:
        wish = _read(body, _Seek)
        if isinstance(wish, Answer):
            return wish
        try:
            return await self._do(seek_to(wish.name, wish.to))
        except InvalidStart as error:
            return Answer.text(HTTPStatus.BAD_REQUEST, str(error))

    async def _advance(self, body: bytes) -> Answer:
        wish = _read(body, _Advance)
        if isinstance(wish, Answer):
            return wish
        try:
            token = Token.parse(wish.upto)
        except InvalidToken as error:
            return Answer.text(HTTPStatus.BAD_REQUEST, str(error))
        places = {pubend: place.tick for pubend, place in token.items()}
        return await self._do(Seek(wish.name, None, places, forward=True))

    async def _end(self, body: bytes) -> Answer:
        wish = _read(body, _End)
        return wish if isinstance(wish, Answer) else await self._do(End(wish.name))

    async def _forget(self, body: bytes) -> Answer:
        wish = _read(body, _Forget)
        return wish if isinstance(wish, Answer) else await self._do(ForgetBroker(wish.broker, wish.stream))

    async def _do(self, action: Seek | End | ForgetBroker) -> Answer:
        self._last += 1
        ticket = self._last
        waiting = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        self._submit(Operate(ticket, action))
        try:
            problem = await asyncio.wait_for(waiting, WITHIN_S)
        except TimeoutError:
            late = f"it is not on disk after {WITHIN_S:g} s, and may be later; see the broker's log"
            return Answer.text(HTTPStatus.GATEWAY_TIMEOUT, late)
        finally:
            self._waiting.pop(ticket, None)
        return (
            Answer.text(HTTPStatus.OK, "done")
            if problem is None
            else Answer.text(HTTPStatus.CONFLICT, problem)
        )


def _read(body: bytes, kind: type[_Wish]) -> _Wish | Answer:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        return Answer.text(HTTPStatus.BAD_REQUEST, f"the body is not what was expected: {error}")
