"""Attributes that are drawn."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest
from hypothesis import given

from drawn_scenarios import distributions
from holdfast.scenarios.distributions import (
    Choice,
    Constant,
    Distribution,
    RandInt,
    Uniform,
    attribute_text,
    read_attributes,
)
from holdfast.scenarios.language import Line, ScenarioError


def read(text: str) -> dict[str, Distribution]:
    return dict(read_attributes(Line("script", 3, text)))


def test_forms_of_the_contract() -> None:
    assert read("price=uniform(1,200) qty=randint(1,9) sym=choice(IBM,SAP)") == {
        "price": Uniform(Decimal(1), Decimal(200)),
        "qty": RandInt(1, 9),
        "sym": Choice(("IBM", "SAP")),
    }


def test_literals_are_what_they_look_like_unless_quoted() -> None:
    text = 'a=5 b=-5.5 c=IBM d=true e=FALSE f="5" g="" h=1e3 "i j"="say ""x""" k=+.5 l=5.'
    assert {name: given.draw(Random(0)) for name, given in read(text).items()} == {
        "a": 5,
        "b": -5.5,
        "c": "IBM",
        "d": True,
        "e": False,
        "f": "5",
        "g": "",
        "h": 1000.0,
        "i j": 'say "x"',
        "k": 0.5,
        "l": 5.0,
    }
    assert type(read("a=1.0")["a"].draw(Random(0))) is float


def test_spaces_are_allowed_inside_parentheses() -> None:
    assert read('a=Choice ( 1 , "b c",2.5 )') == {"a": Choice((1, "b c", 2.5))}


def test_the_list_ends_at_the_keyword_payload_and_not_at_an_attribute_of_that_name() -> None:
    line = Line("script", 3, "Payload=5 x=1 payload 7")
    assert [name for name, _ in read_attributes(line)] == ["Payload", "x"]
    assert line.rest() == "payload 7"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the line ends; expected an attribute, such as price=uniform(1,200)"),
        ("price", "unexpected 'price'; expected an attribute"),
        ("Payload 5", "unexpected 'Payload'; expected an attribute"),
        ("=5", "expected an attribute"),
        ('""=5', "expected an attribute"),
        ("a =5", "expected an attribute"),
        ("a= 5", "a has no value; expected a literal behind a=, without a space"),
        ("a=", "a has no value"),
        ("a=1 a=2", "the attribute a stands twice"),
        ("a=99999999999999999999", "out of range"),
        ("a=1e999", "out of range"),
        ("a=uniform(1)", "the bounds of uniform will not do"),
        ("a=uniform(2,1)", "no number with two decimals in uniform(2,1)"),
        ("a=uniform(0.001,0.009)", "no number with two decimals"),
        ("a=uniform(1,x)", "the bounds of uniform will not do"),
        ('a=uniform("1",2)', "the bounds of uniform will not do"),
        (f"a=uniform(1,1{'0' * 13})", "the bounds of uniform will not do"),
        ("a=randint(1,2.5)", "the bounds of randint will not do"),
        ("a=randint(false,true)", "the bounds of randint will not do"),
        ("a=randint(9,1)", "low <= high"),
        ("a=choice()", "expected a number, true, false, a word or"),
        ("a=choice(1,)", "expected a number, true, false, a word or"),
        ("a=choice(1", "expected ',' or ')' in choice(...)"),
        ("a=choice(1)b=2", "expected a space before the next attribute"),
        ('a="b"c', "expected a space before the next attribute"),
        ('a="b', "a quote is not closed"),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        read(text)
    assert says in str(refused.value)


@given(distributions())
def test_distributions_read_back_from_their_text(distribution: Distribution) -> None:
    for name in ("x", "a b", 'q"', "="):
        found = read(attribute_text(name, distribution))
        assert found == {name: distribution}
        assert repr(found) == repr({name: distribution}), "1 and 1.0, and True, are equal and not the same"


@given(distributions())
def test_draws_are_within_bounds(distribution: Distribution) -> None:
    random = Random("seed")
    for _ in range(20):
        value = distribution.draw(random)
        match distribution:
            case Constant(constant):
                assert value is constant
            case Choice(values):
                assert value in values
            case Uniform(low, high):
                assert isinstance(value, float)
                assert low <= Decimal(repr(value)) <= high
                assert value == round(value, 2)
            case RandInt(low_int, high_int):
                assert isinstance(value, int)
                assert low_int <= value <= high_int


def test_both_bounds_of_a_range_are_drawn() -> None:
    random = Random(1)
    assert {Uniform(Decimal("0.005"), Decimal("0.03")).draw(random) for _ in range(99)} == {0.01, 0.02, 0.03}
    assert {RandInt(-1, 1).draw(random) for _ in range(99)} == {-1, 0, 1}
    assert {Choice(("a", "b")).draw(random) for _ in range(99)} == {"a", "b"}
