"""Numbers as the filter language counts: 64-bit integers, finite floats, and no value where neither fits.

``int / int`` truncates toward zero. Division by zero, overflow, and anything that is not a number give None.
"""

from __future__ import annotations

import math
from typing import Final

from holdfast.events.value import Value
from holdfast.filters.expression import Operator

__all__ = ["calculate", "negate", "plus"]

_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**63 - 1


def calculate(operator: Operator, left: Value | None, right: Value | None) -> int | float | None:
    """``left operator right``, or None."""
    if type(left) is int and type(right) is int:
        return _integers(operator, left, right)
    if (type(left) is int or type(left) is float) and (type(right) is int or type(right) is float):
        return _floats(operator, float(left), float(right))
    return None


def negate(operand: Value | None) -> int | float | None:
    """``-operand``, or None."""
    if type(operand) is int:
        return _fitting(-operand)
    return -operand if type(operand) is float else None


def plus(operand: Value | None) -> int | float | None:
    """``+operand``: the number itself, or None."""
    return operand if type(operand) is int or type(operand) is float else None


def _integers(operator: Operator, left: int, right: int) -> int | None:
    match operator:
        case Operator.ADD:
            return _fitting(left + right)
        case Operator.SUBTRACT:
            return _fitting(left - right)
        case Operator.MULTIPLY:
            return _fitting(left * right)
        case Operator.DIVIDE:
            if right == 0:
                return None
            quotient = abs(left) // abs(right)
            return _fitting(quotient if (left < 0) == (right < 0) else -quotient)


def _floats(operator: Operator, left: float, right: float) -> float | None:
    match operator:
        case Operator.ADD:
            result = left + right
        case Operator.SUBTRACT:
            result = left - right
        case Operator.MULTIPLY:
            result = left * right
        case Operator.DIVIDE:
            if right == 0:
                return None
            result = left / right
    return result if math.isfinite(result) else None


def _fitting(number: int) -> int | None:
    return number if _INT_MIN <= number <= _INT_MAX else None
