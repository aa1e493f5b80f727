"""A notebook that is saved, exported or has lost its kernel shows what was seen; nothing in it waits or runs."""

import re
from html.parser import HTMLParser

import pytest

from regard.views.explorer.still import AGAIN, still_html
from tests.views.static.test_picture import executed
from tests.views.traces import translator

pytest.importorskip("anywidget")
WIDGET = "application/vnd.jupyter.widget-view+json"
SETUP = """
import torch, regard
torch.manual_seed(0)
layer = regard.MultiHead(12, heads=3)
with torch.no_grad(), regard.watch(layer, ["<script>alert(1)</script>", "b", "猫", "d", "e"]) as trace:
    _ = layer(torch.randn(1, 5, 12))
"""


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def notebook():
    return executed(SETUP, "trace.see()", "trace.see(0, head=2)", "widget = trace.see(); None")


def test_a_cell_holds_a_still_picture_before_the_explorer(notebook):
    _, (_, *shown, none) = notebook
    assert none == []  # only what is shown is drawn
    for still, live in shown:
        assert WIDGET not in still.data  # else a notebook would choose the explorer, kernel or not
        assert AGAIN in still.data["text/html"]
        assert live.data[WIDGET]["model_id"]
        assert live.data["text/plain"] == "(explorer)"
    assert "&lt;script" in shown[1][0].data["text/html"]


def test_it_is_small_and_only_text_and_pictures(notebook):
    _, (_, *shown, _) = notebook
    for still, _ in shown:
        text = still.data["text/html"]
        assert len(text) < 60_000
        found = Tags(text)
        assert {tag for tag, _ in found.tags} <= {
            *("div", "b", "table", "thead", "tr", "th", "tbody", "td", "code", "img", "br", "small", "ul", "li", "p")
        }
        for _, about in found.tags:
            assert not [name for name in about if name.startswith("on")]
            assert about.get("src", "data:image/png;base64,").startswith("data:image/png;base64,")
        assert any(tag == "img" for tag, _ in found.tags)


def test_the_largest_models_stay_small_too():
    trace = translator()
    many = type(trace)([type(trace.runs[-1])(trace.layers * 20)], model="large")
    text = still_html(many, -1, "ab12")
    assert f"… {len(many) - 12} more layers" in text
    assert len(text) < 60_000
    assert re.search(r'class="regard-still regard-still-ab12"', text)


def test_an_exported_notebook_shows_it(notebook):
    exporters = pytest.importorskip("nbconvert.exporters")
    text, _ = exporters.HTMLExporter().from_notebook_node(notebook[0])
    assert text.count('class="regard-still ') == 2
    assert "<script>alert(1)" not in text
    words, _ = exporters.MarkdownExporter().from_notebook_node(notebook[0])
    assert AGAIN in words
