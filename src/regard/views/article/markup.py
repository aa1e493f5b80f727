"""Elements of a page, made so that a text is always a text: what is not `Markup` is escaped."""

from collections.abc import Iterable
from html import escape


class Markup(str):
    """A piece of a page that is markup already, as only `element` and `join` make it."""

    __slots__ = ()


def as_markup(text: str) -> Markup:
    r"""The text as a page has it; markup stays as it is. NUL and half a surrogate pair, which no page holds, are marks.

    >>> as_markup("</p> & \0"), as_markup(element("b", "x"))
    ('&lt;/p&gt; &amp; ␀', '<b>x</b>')
    """
    if isinstance(text, Markup):
        return text
    return Markup(escape(text.replace("\0", "␀").encode("utf-8", "replace").decode()))


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """An element with its children; `class_` is the attribute `class`.

    >>> element("p", "1 < 2, ", element("b", "so"), class_="note", title='"')
    '<p class="note" title="&quot;">1 &lt; 2, <b>so</b></p>'
    """
    named = "".join(f' {name.rstrip("_")}="{as_markup(str(value))}"' for name, value in attributes.items())
    return Markup(f"<{tag}{named}>{join(children)}</{tag}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    """The parts one after the other.

    >>> join(["a", element("b", "c")], " < ")
    'a &lt; <b>c</b>'
    """
    return Markup(as_markup(between).join(map(as_markup, parts)))
