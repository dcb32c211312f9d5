"""Markup as text: elements whose contents are escaped, so that no name or number can become a tag.

What is made is well-formed XML and HTML at once: every element is closed, every attribute quoted.
"""

from __future__ import annotations

from html import escape

__all__ = ["Markup", "element", "plain_text"]

#: Elements that have no contents, and no end tag in HTML.
VOID = frozenset({"meta", "br", "hr", "line", "rect", "circle", "path", "col"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def plain_text(text: object) -> Markup:
    """Text as it is to be read."""
    return text if isinstance(text, Markup) else Markup(escape(str(text), quote=False))


def element(kind: str, /, *contents: object, **attributes: object) -> Markup:
    """One element. ``class_`` is ``class``, ``text_anchor`` is ``text-anchor``; None leaves an attribute out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if kind in VOID:
        assert not contents
        return Markup(f"<{kind}{written}/>")
    return Markup(f"<{kind}{written}>{''.join(map(plain_text, contents))}</{kind}>")
