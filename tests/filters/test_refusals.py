"""What the parser refuses, word for word: every message of ``filters/parse``, ``lexer`` and ``xpath``.

The tables read as a user reads an error: the filter, and below it a caret where the error points and the message. A
message that does not fit on the line goes on below.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.errors import FilterError
from holdfast.filters.limits import FilterLimits
from holdfast.filters.parse import parse_filter
from holdfast.filters.topic import parse_pattern
from manual_examples import blocks

TOPIC_PATTERNS = r"""
WHERE a = 1
^ the topic pattern is missing; expected one before WHERE ('#' stands for every topic)
where a = 1
^ the topic pattern is missing; expected one before WHERE ('#' stands for every topic)
a b
  ^ unexpected 'b'; expected WHERE or the end of the filter
a/b WHER x = 1
    ^ unexpected 'WHER'; expected WHERE or the end of the filter
a/b, c/d
     ^ unexpected 'c'; expected WHERE or the end of the filter
a+ WHERE x = 1
 ^ '+' is not alone in its level; expected '/' around it
a/b#
   ^ '#' is not alone in its level; expected '/' around it
##
^ '#' is not alone in its level; expected '/' around it
#/
 ^ levels after '#'; expected '#' to be the last level
a/#/b
   ^ levels after '#'; expected '#' to be the last level
"""

UNFINISHED = r"""
# WHERE
       ^ unexpected end of the filter; expected a condition
# WHERE NOT
           ^ unexpected end of the filter; expected a condition
# WHERE a AND
             ^ unexpected end of the filter; expected a condition
# WHERE a OR
            ^ unexpected end of the filter; expected a condition
# WHERE a =
           ^ unexpected end of the filter; expected an attribute or a literal
# WHERE (
         ^ unexpected end of the filter; expected a condition
# WHERE (a = 1
        ^ the parenthesis is not closed; expected ')'
# WHERE ((a = 1)
        ^ the parenthesis is not closed; expected ')'
# WHERE a = (1
            ^ the parenthesis is not closed; expected ')'
# WHERE a BETWEEN
                 ^ unexpected end of the filter; expected an attribute or a literal
# WHERE a BETWEEN 1
                   ^ unexpected end of the filter; expected AND
# WHERE a BETWEEN 1 AND
                       ^ unexpected end of the filter; expected an attribute or a literal
# WHERE a NOT
             ^ unexpected end of the filter; expected BETWEEN, IN or LIKE (and IS NOT for NULL)
# WHERE a IN
            ^ unexpected end of the filter; expected '('
# WHERE a IN (
              ^ unexpected end of the filter; expected a string, a number, TRUE or FALSE
# WHERE a IN (1
               ^ unexpected end of the filter; expected ',' or ')'
# WHERE a LIKE
              ^ unexpected end of the filter; expected a pattern in single quotes
# WHERE a LIKE 'x' ESCAPE
                         ^ unexpected end of the filter; expected a character in single quotes
# WHERE a IS
            ^ unexpected end of the filter; expected NULL or NOT NULL
# WHERE a IS NOT
                ^ unexpected end of the filter; expected NULL
# WHERE SHARD
             ^ unexpected end of the filter; expected '('
# WHERE SHARD(a,
                ^ unexpected end of the filter; expected a number of shards from 1 to 65536
# WHERE SHARD(a, 4
                  ^ unexpected end of the filter; expected ')'
# WHERE SHARD(a, 4)
                   ^ unexpected end of the filter; expected '='
# WHERE SHARD(a, 4) =
                     ^ unexpected end of the filter; expected a shard from 0 to 3
# WHERE XPATH
             ^ unexpected end of the filter; expected a path in single quotes
# WHERE a = 'x
            ^ the string does not end; expected a closing ' ('' is one inside)
# WHERE a = 'it's'
                 ^ the string does not end; expected a closing ' ('' is one inside)
# WHERE "a = 1
        ^ the quoted name does not end; expected a closing " ("" is one inside)
"""

OPERATORS = r"""
# WHERE a != 1
          ^ unexpected '!='; expected '<>'
# WHERE a == 1
          ^ unknown operator '=='; expected '='
# WHERE a => 1
          ^ unknown operator '=>'; expected '>='
# WHERE a =< 1
          ^ unknown operator '=<'; expected '<='
# WHERE a >< 1
          ^ unknown operator '><'; expected '<>'
# WHERE a <=> 1
            ^ unexpected '>'; expected an attribute or a literal
# WHERE a && b
          ^ unexpected '&&'; expected AND
# WHERE a || b
          ^ unexpected '||'; expected OR
# WHERE !a
        ^ unexpected '!'; expected NOT
# WHERE a % 2 = 0
          ^ unexpected '%'; expected one of + - * /
# WHERE a ^ 2 = 4
          ^ unexpected '^'; expected an attribute, a literal or an operator
# WHERE = 1
        ^ unexpected '='; expected a condition
# WHERE a < > 1
            ^ unexpected '>'; expected an attribute or a literal
# WHERE a = b = c
              ^ unexpected '='; expected AND, OR or the end of the filter
# WHERE 1 < a < 3
              ^ unexpected '<'; expected AND, OR or the end of the filter
# WHERE * 2 = 4
        ^ unexpected '*'; expected a condition
# WHERE a = 1 AND AND b = 2
                  ^ unexpected 'AND'; expected a condition
# WHERE a = 1;
             ^ unexpected ';'; expected the end of the filter
# WHERE a = 1 -- big
              ^ unexpected '--'; expected no comment: a filter has none
# WHERE a = 1 --
              ^ unexpected '--'; expected no comment: a filter has none
# WHERE a = 1 /* big */
              ^ unexpected '/*'; expected no comment: a filter has none
# WHERE a = 1 // big
              ^ unexpected '//'; expected no comment: a filter has none
# WHERE a b
          ^ unexpected 'b'; expected an operator, AND, OR or the end
# WHERE a equals 3
          ^ unexpected 'equals'; expected an operator, AND, OR or the end
# WHERE a, b
         ^ unexpected ','; expected an operator, AND, OR or the end
# WHERE a = 1 b = 2
              ^ unexpected 'b'; expected AND, OR or the end of the filter
# WHERE a = 1 WHERE b = 2
              ^ unexpected 'WHERE'; expected AND, OR or the end of the filter
# WHERE a = 1)
             ^ unexpected ')'; expected AND, OR or the end of the filter
# WHERE (a = 1 b)
               ^ unexpected 'b'; expected AND, OR or ')'
# WHERE (1 + a b) = 2
               ^ unexpected 'b'; expected an operator, AND, OR or the end
# WHERE ()
         ^ unexpected ')'; expected a condition
"""

NULLS_NAMES_AND_KINDS = r"""
# WHERE a = NULL
            ^ NULL stands where a value must; expected an attribute or a literal (absence is tested with IS NULL)
# WHERE NULL = a
        ^ NULL stands where a value must; expected an attribute or a literal (absence is tested with IS NULL)
# WHERE a + NULL = 1
            ^ NULL stands where a value must; expected an attribute or a literal (absence is tested with IS NULL)
# WHERE a BETWEEN 1 AND NULL
                        ^ NULL stands where a value must; expected an attribute or a literal (absence is tested with
                          IS NULL)
# WHERE a IN (1, NULL)
                 ^ NULL stands where a value must; expected an attribute or a literal (absence is tested with IS NULL)
# WHERE a LIKE NULL
               ^ unexpected 'NULL'; expected a pattern in single quotes
# WHERE a NOT NULL
              ^ unexpected 'NULL'; expected BETWEEN, IN or LIKE (and IS NOT for NULL)
# WHERE a IS TRUE
             ^ unexpected 'TRUE'; expected NULL or NOT NULL
# WHERE a IS NOT 3
                 ^ unexpected '3'; expected NULL
# WHERE in = 3
        ^ unexpected 'in'; expected a condition (to name an attribute so, write "in")
# WHERE a = like
            ^ unexpected 'like'; expected an attribute or a literal (to name an attribute so, write "like")
# WHERE Shard = 3
              ^ unexpected '='; expected '(' (to name an attribute so, write "Shard")
# WHERE xpath IS NULL
              ^ unexpected 'IS'; expected a path in single quotes (to name an attribute so, write "xpath")
# WHERE SHARD(in, 4) = 0
              ^ unexpected 'in'; expected an attribute's name (to name an attribute so, write "in")
# WHERE count(a) = 1
        ^ there is no function 'count'; expected an operator after the attribute
# WHERE "a"(1) = 1
        ^ there is no function 'a'; expected an operator after the attribute
# WHERE "" = 1
        ^ a quoted name is empty; expected an attribute's name
# WHERE a.b = 1
         ^ unexpected '.'; expected quotation marks around a name with a dot: "a.b"
# WHERE größe = 1
          ^ unexpected 'ö'; expected quotation marks around a name with 'ö': "…"
# WHERE `a` = 1
        ^ unexpected '`'; expected an attribute's name, or "…" around it
# WHERE @a = 1
        ^ unexpected '@'; expected an attribute's name; payload attributes are read with XPATH '…'
# WHERE a = ?
            ^ unexpected '?'; expected a literal
# WHERE a = “x”
            ^ unexpected '“'; expected a string in ' or a name in "
# WHERE a = {1}
            ^ unexpected '{'; expected an attribute, a literal or an operator
# WHERE 5
        ^ a value stands where a condition must; expected a comparison
# WHERE 'x' AND a
        ^ a value stands where a condition must; expected a comparison
# WHERE NOT a + 1
            ^ a value stands where a condition must; expected a comparison
# WHERE (a = 1) = 2
        ^ a condition stands where a value must; expected an attribute or a literal
# WHERE 2 = (a = 1)
            ^ a condition stands where a value must; expected an attribute or a literal
# WHERE -(a = 1) = 2
         ^ a condition stands where a value must; expected an attribute or a literal
# WHERE (a = 1) IS NULL
        ^ a condition stands where a value must; expected an attribute or a literal
# WHERE 1 = SHARD(a, 4)
            ^ a condition stands where a value must; expected an attribute or a literal (to name an attribute so,
              write "SHARD")
# WHERE a = XPATH '/a'
            ^ a condition stands where a value must; expected an attribute or a literal (to name an attribute so,
              write "XPATH")
"""

PREDICATES = r"""
# WHERE a IN ()
              ^ unexpected ')'; expected a string, a number, TRUE or FALSE
# WHERE a IN (1,)
                ^ unexpected ')'; expected a string, a number, TRUE or FALSE
# WHERE a IN (b)
              ^ IN takes literals only; expected a string, a number, TRUE or FALSE
# WHERE a IN (1 2)
                ^ unexpected '2'; expected ',' or ')'
# WHERE a IN 1
             ^ unexpected '1'; expected '('
# WHERE a IN (1 + 1)
                ^ unexpected '+'; expected ',' or ')'
# WHERE a IN ('x', -'y')
                   ^ IN takes literals only; expected a string, a number, TRUE or FALSE
# WHERE a LIKE b
               ^ unexpected 'b'; expected a pattern in single quotes
# WHERE a LIKE "b%"
               ^ unexpected quoted name "b%"; expected a pattern in single quotes
# WHERE a LIKE 'x' 'y'
                   ^ unexpected string 'y'; expected AND, OR or the end of the filter
# WHERE a LIKE 'x' || 'y'
                   ^ unexpected '||'; expected OR
# WHERE a LIKE 'x' ESCAPE b
                          ^ unexpected 'b'; expected a character in single quotes
# WHERE a LIKE 'x' ESCAPE ''
                          ^ ESCAPE has 0 characters; expected one character
# WHERE a LIKE 'x' ESCAPE 'ab'
                          ^ ESCAPE has 2 characters; expected one character
# WHERE a LIKE 'x!' ESCAPE '!'
                 ^ the escape character '!' escapes nothing; expected '%', '_' or '!' after it
# WHERE a LIKE 'it''s!x' ESCAPE '!'
                     ^ the escape character '!' escapes nothing; expected '%', '_' or '!' after it
# WHERE a BETWEEN 1 OR 2
                    ^ unexpected 'OR'; expected AND
# WHERE a BETWEEN 1, 2
                   ^ unexpected ','; expected AND
# WHERE a BETWEEN (1 AND 2)
                   ^ a value stands where a condition must; expected a comparison
# WHERE SHARD(a) = 1
               ^ unexpected ')'; expected ','
# WHERE SHARD('a', 4) = 0
              ^ unexpected string 'a'; expected an attribute's name
# WHERE SHARD(a + 1, 4) = 0
                ^ unexpected '+'; expected ','
# WHERE SHARD(a, 0) = 0
                 ^ '0' is out of range; expected a number of shards from 1 to 65536
# WHERE SHARD(a, -1) = 0
                 ^ unexpected '-'; expected a number of shards from 1 to 65536
# WHERE SHARD(a, 65537) = 0
                 ^ '65537' is out of range; expected a number of shards from 1 to 65536
# WHERE SHARD(a, 4) <> 1
                    ^ unexpected '<>'; expected '='
# WHERE SHARD(a, 4) = 4
                      ^ '4' is out of range; expected a shard from 0 to 3
# WHERE SHARD(a, 4) = -1
                      ^ unexpected '-'; expected a shard from 0 to 3
"""

NUMBERS = r"""
# WHERE 1abc = 2
         ^ 'a' directly after the number '1'; expected a space or an operator
# WHERE a = 1.2.3
               ^ '.' directly after the number '1.2'; expected a space or an operator
# WHERE a = 1e
             ^ 'e' directly after the number '1'; expected a space or an operator
# WHERE a = 0x10
             ^ 'x' directly after the number '0'; expected a space or an operator
# WHERE a = 1_000
             ^ '_' directly after the number '1'; expected a space or an operator
# WHERE a = .
            ^ unexpected '.'; expected quotation marks around a name with a dot: "a.b"
# WHERE a = 1e999
            ^ '1e999' is too large; expected a finite number
# WHERE a = -1e999
             ^ '1e999' is too large; expected a finite number
# WHERE a = 9223372036854775808
            ^ '9223372036854775808' does not fit in 64 bits; expected an integer from -9223372036854775808 to
              9223372036854775807
# WHERE a = -9223372036854775809
             ^ '9223372036854775809' does not fit in 64 bits; expected an integer from -9223372036854775808 to
               9223372036854775807
# WHERE a = -(9223372036854775808)
              ^ '9223372036854775808' does not fit in 64 bits; expected an integer from -9223372036854775808 to
                9223372036854775807
"""

XPATHS = r"""
# WHERE XPATH /a
              ^ unexpected '/'; expected a path in single quotes
# WHERE XPATH "/a"
              ^ unexpected quoted name "/a"; expected a path in single quotes
# WHERE XPATH '/a' = 'b'
                   ^ unexpected '='; expected AND, OR or the end of the filter
# WHERE XPATH ''
               ^ in XPATH: unexpected end; expected '/' or '//': paths are absolute
# WHERE XPATH 'a'
               ^ in XPATH: unexpected 'a'; expected '/' or '//': paths are absolute
# WHERE XPATH 'count(/a)'
               ^ in XPATH: unexpected 'c'; expected '/' or '//': paths are absolute
# WHERE XPATH '/'
                ^ in XPATH: unexpected end; expected a name, '*', '@name' or 'text()'
# WHERE XPATH '///a'
                 ^ in XPATH: unexpected '/'; expected a name, '*', '@name' or 'text()'
# WHERE XPATH '/1a'
                ^ in XPATH: unexpected '1'; expected a name, '*', '@name' or 'text()'
# WHERE XPATH '/a b'
                  ^ in XPATH: unexpected 'b'; expected '/', '//', '[' or the end
# WHERE XPATH '/p:a'
                ^ in XPATH: prefix 'p:' is refused; expected a name without a prefix
# WHERE XPATH '/child::a'
                ^ in XPATH: axis 'child::' is not in the subset; expected '/' or '//'
# WHERE XPATH '/a/..'
                  ^ in XPATH: '.' and '..' are not steps of the subset; expected a name, '*', '@name' or 'text()'
# WHERE XPATH '/a[./b]'
                   ^ in XPATH: './' is not in the subset; expected the name alone
# WHERE XPATH '/a[//b]'
                  ^ in XPATH: a path inside [ ] is relative; expected '.', './/', '@name', 'text()', a name or '*'
# WHERE XPATH '/a[1]'
                  ^ in XPATH: positions are not in the subset; expected '.', './/', '@name', 'text()', a name or '*'
# WHERE XPATH '/a[last()]'
                  ^ in XPATH: 'last()' is not in the subset; expected a name, '*', '@name' or 'text()'
# WHERE XPATH '/a/node()'
                  ^ in XPATH: 'node()' is not in the subset; expected a name, '*', '@name' or 'text()'
# WHERE XPATH '/a/text('
                       ^ in XPATH: unexpected end; expected ')'
# WHERE XPATH '/a/text()/b'
                        ^ in XPATH: 'text()' has no children; expected it to be the last step
# WHERE XPATH '/a/@b/c'
                    ^ in XPATH: '@b' has no children; expected it to be the last step
# WHERE XPATH '/a/@*'
                   ^ in XPATH: unexpected '*'; expected an attribute's name
# WHERE XPATH '/a | /b'
                  ^ in XPATH: unions are not in the subset; expected two XPATH conditions joined by OR
# WHERE XPATH '/a['
                  ^ in XPATH: unexpected end; expected '.', './/', '@name', 'text()', a name or '*'
# WHERE XPATH '/a[b'
                   ^ in XPATH: unexpected end; expected a comparison or ']'
# WHERE XPATH '/a[b ='
                     ^ in XPATH: unexpected end; expected a number or a quoted string
# WHERE XPATH '/a[b = c]'
                      ^ in XPATH: unexpected 'c'; expected a number or a quoted string
# WHERE XPATH '/a[b = 1e3]'
                       ^ in XPATH: unexpected 'e'; expected ']'
# WHERE XPATH '/a[b = 1.2.3]'
                      ^ in XPATH: '1.2.3' is not a number; expected a number or a quoted string
# WHERE XPATH '/a[b = -]'
                      ^ in XPATH: unexpected '-'; expected a number or a quoted string
# WHERE XPATH '/a[b = ''it'''
                            ^ in XPATH: unexpected end; expected ']'
# WHERE XPATH '/a[b = ''it'
                      ^ in XPATH: the string does not end; expected a closing '
# WHERE XPATH '/a[b = "it]'
                      ^ in XPATH: the string does not end; expected a closing "
# WHERE XPATH '/a[b = ''x'' and c]'
                            ^ in XPATH: 'and' is not in the subset; expected ']'; write [a][b]
# WHERE XPATH '/a[b = ''x'' or c]'
                            ^ in XPATH: 'or' is not in the subset; expected ']'; write two XPATH conditions joined by
                              OR
# WHERE XPATH '/a[b = ''it''''s'']'
                            ^ in XPATH: unexpected '''; expected ']' (a quote inside is not doubled here: put the
                              other quotes around it)
# WHERE a = 'it''s' AND XPATH '/a[b = "it''s"]/p:c'
                                               ^ in XPATH: prefix 'p:' is refused; expected a name without a prefix
"""

TABLES = (TOPIC_PATTERNS, UNFINISHED, OPERATORS, NULLS_NAMES_AND_KINDS, PREDICATES, NUMBERS, XPATHS)


def rows(table: str) -> Iterator[tuple[str, str]]:
    """Filters with the text of their error."""
    text, message = "", ""
    for line in table.strip("\n").split("\n"):
        if line.lstrip(" ").startswith("^"):
            column = line.index("^") + 1
            message = f"line 1, column {column}: {line[column:].strip()}"
        elif line.startswith(" "):
            message += f" {line.strip()}"
        else:
            if message:
                yield text, message
            text = line
    yield text, message


REFUSED = [row for table in TABLES for row in rows(table)]


def refusal(text: str, limits: FilterLimits | None = None) -> FilterError:
    with pytest.raises(FilterError) as caught:
        parse_filter(text) if limits is None else parse_filter(text, limits)
    return caught.value


@pytest.mark.parametrize(("text", "message"), [*REFUSED, *rows(*blocks("refused"))])
def test_what_is_outside_the_language_is_refused_with_its_place_and_what_was_expected(
    text: str, message: str
) -> None:
    error = refusal(text)
    assert str(error) == message
    assert f"{error.problem}; expected {error.expected}" == message.split(": ", 1)[1]


def test_no_row_of_the_tables_is_skipped() -> None:
    filters = [line for table in TABLES for line in table.strip("\n").split("\n") if line[0] not in " ^"]
    assert [text for text, _ in REFUSED] == filters


EVERY = "('#' stands for every topic)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"line 1, column 1: the filter is empty; expected a topic pattern {EVERY}"),
        (" \n ", f"line 2, column 2: the filter is empty; expected a topic pattern {EVERY}"),
        ("#\nWHERE a = 1\n  AND b == 2", "line 3, column 9: unknown operator '=='; expected '='"),
        ("#\r\nWHERE a != 1\r\n", "line 2, column 9: unexpected '!='; expected '<>'"),
        (
            "#\n\tWHERE XPATH '/a[b = ''\n'']\n/p:c'",
            "line 4, column 2: in XPATH: prefix 'p:' is refused; expected a name without a prefix",
        ),
        (
            "#\nWHERE a LIKE '''\n!' ESCAPE '!'",
            "line 3, column 1: the escape character '!' escapes nothing; expected '%', '_' or '!' after it",
        ),
        # An error at the end stands behind the last word, not on an empty line below it.
        (
            "# WHERE a =\r\n\r\n",
            "line 1, column 12: unexpected end of the filter; expected an attribute or a literal",
        ),
        (
            "\n  WHERE a = 1",
            f"line 2, column 3: the topic pattern is missing; expected one before WHERE {EVERY}",
        ),
        (
            "# WHERE a = 'x\n'' y\n",
            "line 1, column 13: the string does not end; expected a closing ' ('' is one inside)",
        ),
    ],
)
def test_lines_and_columns_count_from_one(text: str, message: str) -> None:
    assert str(refusal(text)) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# WHERE a\0 = 1", "line 1, column 10: character U+0000 is not allowed"),
        ("a\0b", "line 1, column 2: character U+0000 is not allowed"),
        ("# WHERE a = '\ud83d'", "line 1, column 14: character U+D83D is not allowed"),
        ("\udc00", "line 1, column 1: character U+DC00 is not allowed"),
        ("# WHERE a\xa0= 1", "line 1, column 10: unexpected character U+00A0; expected a plain space"),
        (
            "# WHERE a = 1\u2003AND b",
            "line 1, column 14: unexpected character U+2003; expected a plain space",
        ),
        (
            "a/b\xa0WHERE a = 1",
            "line 1, column 4: character U+00A0 does not end the topic pattern; expected a plain space",
        ),
        (
            "#\u3000WHERE a = 1",
            "line 1, column 2: character U+3000 does not end the topic pattern; expected a plain space",
        ),
        (
            "# WHERE a\x1b = 1",
            "line 1, column 10: unexpected character U+001B; expected an attribute, a literal or an operator",
        ),
        (
            "# WHERE a '\x1b[31m\n'",
            "line 1, column 11: unexpected string '\\x1b[31m\\n'; expected an operator, AND, OR or the end",
        ),
        (
            "# WHERE XPATH '/a\x1b'",
            "line 1, column 18: in XPATH: unexpected '\\x1b'; expected '/', '//', '[' or the end",
        ),
    ],
)
def test_characters_nobody_sees_are_named_and_never_printed(text: str, message: str) -> None:
    assert str(refusal(text)) == message


DEEP = "nested too deeply; expected at most 48 levels"
HIGH = "nested too deeply; expected at most 48 operators deep"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * 65_537, "column 65537: the filter has 65537 characters; expected at most 65536"),
        ("t" * 1_025, "column 1: the topic pattern has 1025 characters; expected at most 1024"),
        ("t" + "/t" * 64, "column 1: the topic pattern has 65 levels; expected at most 64"),
        ("# WHERE " + "(" * 49 + "a" + ")" * 49, f"column 58: {DEEP}"),
        ("# WHERE a = " + "(" * 49 + "b" + ")" * 49, f"column 62: {DEEP}"),
        ("# WHERE " + "NOT " * 49 + "a", f"column 205: {DEEP}"),
        ("# WHERE a = " + "-" * 49 + "a", f"column 62: {DEEP}"),
        ("# WHERE a = " + "+ " * 49 + "5", f"column 111: {DEEP}"),
        ("# WHERE " + "NOT (" * 24 + "a = -+(b)" + ")" * 24, f"column 134: {DEEP}"),
        ("# WHERE a = b" + " + b" * 49, f"column 207: {HIGH}"),
        ("# WHERE a = b" + "*b" * 49, f"column 110: {HIGH}"),
        ("# WHERE a = -(b" + "+b" * 48 + ")", f"column 13: {HIGH}"),
        ("# WHERE a IN (" + "1," * 3_999 + "1)", "column 1: the filter costs 1002; expected at most 1000"),
        ("# WHERE a" + " AND a" * 999, "column 1: the filter costs 1001; expected at most 1000"),
        ("# WHERE a=1" + " OR NOT a=1" * 999, "column 1: the filter costs 1001; expected at most 1000"),
        ("# WHERE a LIKE '" + "_" * 15_984 + "'", "column 1: the filter costs 1001; expected at most 1000"),
        (
            "# WHERE XPATH '" + "/a" * 257 + "'",
            "column 529: in XPATH: more than 256 steps; expected a smaller expression",
        ),
        (
            "# WHERE XPATH '/a" + "[b" * 17 + "]" * 17 + "'",
            "column 51: in XPATH: predicates nested deeper than 16; expected a flatter expression",
        ),
        (
            "# WHERE XPATH '/a[b = " + "9" * 400 + "]'",
            "column 23: in XPATH: the number is too large; expected a finite number",
        ),
        (
            "# WHERE XPATH '/" + "p" * 9_000 + ":a'",
            f"column 17: in XPATH: prefix '{'p' * 59}…:' is refused; expected a name without a prefix",
        ),
        (
            "# WHERE a = " + "1" * 60_000 + "x",
            f"column 60013: 'x' directly after the number '{'1' * 23}…'; expected a space or an operator",
        ),
    ],
    ids=lambda text: text[:40],
)
def test_caps_are_stated_where_they_are_broken(text: str, message: str) -> None:
    assert str(refusal(text)) == f"line 1, {message}"


@pytest.mark.parametrize(
    "text",
    [
        "t" * 1_024,
        "t" + "/t" * 63,
        "# WHERE " + "(" * 48 + "a" + ")" * 48,
        "# WHERE " + "NOT " * 48 + "a",
        "# WHERE a = " + "-" * 48 + "a",
        "# WHERE a = b" + "+b" * 48,
        "# WHERE a IN (" + "1," * 3_991 + "1)",
        "# WHERE a" + " AND a" * 998,
        "# WHERE XPATH '" + "/a" * 249 + "'",
        "# WHERE XPATH '/a" + "[b" * 16 + "]" * 16 + "'",
        "# WHERE SHARD(a, 65536) = 65535",
        "# WHERE a = '" + "x" * (65_536 - 14) + "'",
    ],
    ids=lambda text: text[:40],
)
def test_what_stands_just_below_a_cap_is_accepted(text: str) -> None:
    parse_filter(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# WHERE a = {}", "column 13: '11111111111111111111111…' does not fit in 64 bits"),
        ("# WHERE a = -{}", "column 14: '11111111111111111111111…' does not fit in 64 bits"),
        ("# WHERE a = {}e1", "column 13: '11111111111111111111111…' is too large"),
        ("# WHERE a = 1e{}", "column 13: '1e111111111111111111111…' is too large"),
        ("# WHERE SHARD(a, {}) = 0", "column 18: '11111111111111111111111…' is out of range"),
        ("# WHERE XPATH '/a[b = {}]'", "column 23: in XPATH: the number is too large"),
    ],
)
def test_a_million_digits_are_read_without_being_computed(text: str, message: str) -> None:
    # int() of a million digits takes seconds and is refused by Python itself with a ValueError.
    error = refusal(text.format("1" * 1_000_000), FilterLimits(text_chars=2_000_000))
    assert str(error).startswith(f"line 1, {message}; expected ")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# WHERE a != 1", "# WHERE a != 1\n          ^"),
        ("# WHERE a =", "# WHERE a =\n           ^"),
        ("#\nWHERE\ta ==\t1\nAND b", "WHERE a == 1\n        ^"),
        ("# WHERE\r\na b\r\nAND c", "a b\n  ^"),
        ("# WHERE a = '\x1b' == b", "# WHERE a = '·' == b\n                ^"),
        ("# WHERE a = 'ä€😀' b", "# WHERE a = 'ä€😀' b\n                  ^"),
        ("# WHERE XPATH '/a[b = ''x'']/p:c'", "# WHERE XPATH '/a[b = ''x'']/p:c'\n" + " " * 29 + "^"),
        ("", "\n^"),
        # 72 characters around the place, not the whole line
        (
            "# WHERE a = '" + "x" * 100 + "' AND !b" + " " * 60,
            "x" * 30 + "' AND !b" + " " * 34 + "\n" + " " * 36 + "^",
        ),
    ],
)
def test_the_caret_stands_under_the_place(text: str, shown: str) -> None:
    assert refusal(text).pointed() == shown


def test_a_pattern_is_refused_by_itself_too() -> None:
    with pytest.raises(FilterError, match="line 1, column 3: '#' is not alone in its level"):
        parse_pattern("a/#b")


def test_a_filter_whose_canonical_text_would_be_too_long_is_refused_at_once() -> None:
    """Brokers pass filters on as canonical text: what the first accepts, the next must not refuse."""
    text = f"# WHERE x IN ({','.join(['1e15'] * 3_950)})"
    with pytest.raises(FilterError) as refused:
        parse_filter(text)
    assert str(refused.value).startswith("line 1, column 1: the canonical text of the filter has 79")
