"""The alignment as text and as a page: what can be read back from it, and what no text can do to it."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ShapeError
from regard.tokens.visible import columns, visible
from regard.views.alignment import Part, alignment_page, alignment_text

EVIL = {
    "script": "</script><script>alert(1)</script>",
    "image": "<img src=x onerror=alert(1)>",
    "table": "</th></tr></table>",
    "title": "</title><style>*{display:none}</style>",
    "attribute": "\" onmouseover='alert(1)' x=\"",
    "comment": "<!-- -->",
    "entity": "&lt;b&gt; &amp;",
    "format": "{title} {0} %s",
    "link": "https://example.org/?a=b",
    "NUL": "a\0b\x1b[2J",
    "direction": "\u202eabc\u2066",
    "hebrew": "שלום עולם",
    "emoji": "👩‍👩‍👧🙂",
    "half": "\ud83d",
    "long": "w" * 5000,
}
TAGS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "bdi", "div", "table", "thead", "tbody", "tr", "th",
    "td", "p",
}  # fmt: skip
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "scope", "dir", "title", "style"}


class Read(HTMLParser):
    """A page read by somebody else: every tag closed, its texts, and the numbers of its cells."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts, self.cells, self.policy = [], set(), set(), {}, [], ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.add(tag)
        self.attributes |= set(given)
        self.policy = given["content"] if given.get("http-equiv") == "Content-Security-Policy" else self.policy
        if tag == "td" and "title" in given:
            self.cells.append(given["title"])
        if tag in ("th", "td", "h1", "h2", "bdi", "title"):
            self.texts.setdefault(tag, []).append("")
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in self.texts:
            self.texts[self.open[-1]][-1] += data


def read(page):
    """The page, if nothing in it could act."""
    found = Read(page)
    assert page.startswith("<!doctype html>")
    assert found.tags <= TAGS
    assert found.attributes <= ATTRIBUTES
    assert found.policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert not re.search(r"url\(|@import|[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page)
    page.encode()  # whole characters only
    return found


def test_every_number_and_name_can_be_read_back():
    weights = np.random.default_rng(3).dirichlet(np.ones(5), size=3)
    rows, keys = ["猫", "坐", "<eos>"], ["The", "cat", "sat", ".", "<eos>"]
    found = read(alignment_page("Two & more", [Part("The cat sat.", "猫坐", rows, keys, weights)] * 2))
    np.testing.assert_allclose(np.array(found.cells, dtype=float).reshape(2, 3, 5), [weights] * 2, atol=5e-7)
    assert found.texts["th"] == [*keys, *rows] * 2
    assert found.texts["bdi"] == ["The cat sat.", "猫坐"] * 2
    assert found.texts["h1"] == found.texts["title"] == ["Two & more"]


@pytest.mark.parametrize("text", EVIL.values(), ids=EVIL)
def test_a_text_is_nothing_but_text_in_a_page(text):
    found = read(alignment_page(text, [Part(text, text, [text, "b"], ["a", text, "c"], np.full((2, 3), 1 / 3))]))
    assert found.texts["bdi"] == [visible(text), visible(text)]
    assert found.texts["h1"] == [visible(text)]
    assert len(found.cells) == 6
    shown = found.texts["th"][1]
    assert shown == visible(text) or (columns(shown) <= 32 and "…" in shown)


@given(st.text(st.characters(), max_size=30), st.text(st.characters(), max_size=30))
def test_no_text_at_all_breaks_a_page_or_the_terminal(one, other):
    read(alignment_page(one, [Part(one, other, [other], [one, other], [[0.25, 0.75]])]))
    drawn = alignment_text([[0.25, 0.75]], [other], [one, other])
    assert len(drawn.split("\n")) == 4
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u2028\u202e]", drawn)


def test_what_is_hidden_or_beyond_one_is_drawn_without_a_fault():
    page = alignment_page("edges", [Part("a", "b", ["x"], ["1", "2", "3"], [[float("nan"), 1.5, -0.5]])])
    assert read(page).cells == ["hidden", "1.500000", "-0.500000"]
    assert set(re.findall(r"142,([^)]*)\)", page)) == {"1.000", "0.000"}
    assert alignment_text([[float("nan")] * 2], ["x"], ["1", "2"]).endswith("x ← nothing")


@pytest.mark.parametrize(("rows", "keys"), [(["a"], ["b", "c"]), (["a", "b"], ["c"])])
def test_names_that_do_not_fit_their_numbers_are_refused(rows, keys):
    weights = np.full((2, 2), 0.5)
    for attempt in (
        lambda: alignment_text(weights, rows, keys),
        lambda: alignment_page("x", [Part("a", "b", rows, keys, weights)]),
    ):
        with pytest.raises(ShapeError, match=r"1 (row|column) labels came for 2"):
            attempt()


def test_a_map_too_wide_for_a_terminal_is_a_list_of_the_strongest():
    weights = np.eye(40)[::-1]
    names = [f"token{i}" for i in range(40)]
    lines = alignment_text(weights, names, names).split("\n")
    assert lines == [f"token{i} ← token{39 - i} 1.00" for i in range(40)]
    assert "█1.0" in alignment_text(weights, names, names, width=500)
    assert max(map(columns, alignment_text(np.eye(2), ["猫" * 50, "b"], ["c" * 90, "d"]).split("\n"))) < 160
