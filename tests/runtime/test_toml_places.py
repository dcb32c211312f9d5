"""Every key that tomllib finds has a line, and it is the line the key stands on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.toml_places import Path, line_of, places


def paths(value: object, path: Path = ()) -> Iterator[Path]:
    """What tomllib found in a document, as paths."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from paths(inner, (*path, position))


DOCUMENTS = [
    "",
    "# nothing\n\n",
    'a = 1 # b = 2\n"b c" = 2\n\'d.e\' = 3\nf.g."h i" = 4',
    "[a]\nb = 1\n\n[a.c]\nd = 2\n[ e . 'f g' ]\nh = 3\n",
    "[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = 3\n[[a.e]]\nf = 4\n[[a.e]]\nf = 5\n[[a]]\n[[a.e]]\nf = 6\n",
    "a = \"\"\"\nb = 1\n[c]\n\"\"\"\nd = '''\ne = 2\n'''\nf = 3\n",
    'a = \'\'\'x\'\'\'\'\nb = """y"""""\nc = 1\n',
    'a = "x \\" # y = 1"\nb = \'\\\'\nc = "\\\\"\nd = 1\n',
    "a = [\n  1, # one ]\n  [2,\n 3],\n  {b = 4, c.d = [5]},\n]\ne = 6\n",
    "a = {}\nb = []\nc = { d = { e = '}' }, f = [1, 2] }\n",
    "a = 1979-05-27 07:32:00\nb = 1.5e3\nc = 0xff\nd = inf\n",
    "a = 1\r\n[b]\r\nc = 2\r\n[[d]]\r\ne = [\r\n1,\r\n2]\r\n",
    '"\\u0061" = 1\n"" = 2\n',
]


@pytest.mark.parametrize("text", DOCUMENTS)
def test_every_path_tomllib_finds_has_a_place_and_there_are_no_others(text: str) -> None:
    assert set(places(text)) == set(paths(tomllib.loads(text)))


def test_lines_are_those_of_the_keys() -> None:
    text = 'x = """\n\n"""\n[[broker]]\nname = "a"\n# name\n[[broker]]\n\n"name" = "b"\nports = [\n1,\n2]\n'
    assert places(text) == {
        ("x",): 1,
        ("broker",): 4,
        ("broker", 0): 4,
        ("broker", 0, "name"): 5,
        ("broker", 1): 7,
        ("broker", 1, "name"): 9,
        ("broker", 1, "ports"): 10,
        ("broker", 1, "ports", 0): 11,
        ("broker", 1, "ports", 1): 12,
    }


def test_what_is_missing_has_the_line_of_what_it_is_missing_from() -> None:
    found = places("a = 1\n\n[b]\nc = 1\n")
    assert line_of(found, ("b", "d")) == 3
    assert line_of(found, ("e", "f")) == 1
    assert line_of({}, ("a",)) == 1


names = st.text("ab.# \"'=[]", min_size=1, max_size=4)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '\\"') + '"'


@given(st.lists(st.tuples(st.booleans(), names, st.lists(names, unique=True, max_size=4)), max_size=6))
def test_keys_written_one_per_line_are_found_on_their_lines(
    tables: list[tuple[bool, str, list[str]]],
) -> None:
    lines: list[str] = []
    expected: dict[Path, int] = {}
    arrays: dict[str, int] = {}
    for repeated, name, keys in tables:
        if (not repeated and (name,) in expected) or (
            repeated and (name,) in expected and name not in arrays
        ):
            continue  # TOML has a table once
        path: Path = (name,)
        lines.append(f"[[{quoted(name)}]]" if repeated else f"[{quoted(name)}]")
        expected.setdefault(path, len(lines))
        if repeated:
            arrays[name] = arrays.get(name, -1) + 1
            path = (name, arrays[name])
            expected[path] = len(lines)
        for key in keys:
            lines.append(f"{quoted(key)} = {quoted(key)} # {key}")
            expected[*path, key] = len(lines)
    text = "\n".join(lines)
    assert set(expected) == set(paths(tomllib.loads(text)))
    assert places(text) == expected
