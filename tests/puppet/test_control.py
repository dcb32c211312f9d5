from __future__ import annotations

import msgspec
import pytest

from holdfast.puppet.control import (
    Answer,
    Begin,
    Completed,
    CutOff,
    Failed,
    Listen,
    Listening,
    Mend,
    Order,
    Perform,
    Report,
    Reported,
    Start,
    Stop,
    Traffic,
    WhenSettled,
    WriteStatus,
    decode_answer,
    decode_order,
    encode,
)
from holdfast.scenarios.drain import Standing

ORDERS: list[Order] = [
    Listen(0, False),
    Listen(3330, True),
    Start({}, [], [], [], [], None),
    Start({"a": "localhost:1", "ä": "[::1]:2"}, [7], [9], ["a", "b"], [3, 4], 2**62),
    Begin(2**62, 1),
    WhenSettled(True, 2),
    Perform(17, 2**62, 3),
    CutOff(["ä"], 4),
    Mend(["ä"], 5),
    WriteStatus(6),
    Report(7),
    Stop(),
]
ANSWERS: list[Answer] = [
    Listening(3330),
    Failed("cannot listen\non it"),
    Completed(3),
    Reported(4, Standing(True, False, False, ("b1",)), [Traffic("b1", 2, 3)]),
]


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_is_one_line_that_reads_back(order: Order) -> None:
    line = encode(order)
    assert line.index(b"\n") == len(line) - 1
    assert decode_order(line) == order


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_one_line_that_reads_back(answer: Answer) -> None:
    line = encode(answer)
    assert line.index(b"\n") == len(line) - 1
    assert decode_answer(line) == answer


@pytest.mark.parametrize("line", [b"", b"{}", b'{"say":"Dance"}', encode(Stop()), encode(Perform(1, 2, 3))])
def test_what_is_no_answer_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_answer(line)
