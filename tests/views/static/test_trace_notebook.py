"""A trace in a notebook: small, static, and nothing in it is more than text."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.tokens import Tokens
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace
from regard.trace.record.weights import from_weights
from regard.views.static.trace_notebook import encode_png, layer_html, trace_html
from tests.views.traces import decoder, translator

HOSTILE = "</script><img onerror=alert(1) src=x>&\"'\u2028"


class Reader(HTMLParser):
    """What a browser would see."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.text, self.open = [], "", []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def pictures(page: str) -> list[np.ndarray]:
    return [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        for data in re.findall(r'src="data:image/png;base64,([^"]*)"', page)
    ]


def hostile() -> Trace:
    weights = regard.attend(*[torch.randn(1, 2, 3, 4)] * 3).weights
    tokens = (Tokens((HOSTILE, "b", "c")),)
    layer = Layer(HOSTILE, "self", weights, queries=tokens, keys=tokens)
    return Trace([Run([layer], notes=[HOSTILE])], notes=[HOSTILE], model=HOSTILE)


@pytest.mark.parametrize("page", [lambda t: trace_html(t), lambda t: layer_html(t[0])], ids=["trace", "layer"])
def test_hostile_text_stays_text(page):
    read = Reader(page(hostile()))
    assert {tag for tag, _ in read.tags} <= {"div", "b", "br", "table", "thead", "tbody", "tr", "th", "td", "code"} | {
        *("ul", "li", "small", "img", "p")
    }
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    assert all(a["src"].startswith("data:image/png;base64,") for tag, a in read.tags if tag == "img")
    assert "</script><img onerror=alert(1)" in read.text
    assert not read.open


def test_a_trace_lists_its_layers_with_their_heads():
    page = trace_html(translator())
    read = Reader(page)
    for words in ("Translator", "6 layers", "decoder.1.cross", "cross", "4 × 5", "computed from q and k"):
        assert words in read.text
    assert len(pictures(page)) == 6


def test_a_thumbnail_is_darker_where_the_weight_is_larger():
    trace = from_weights(torch.tensor([[1.0, 0.0], [0.4, 0.6]]))
    (picture,) = pictures(layer_html(trace[0]))
    half = picture.shape[0] // 2
    dark = [255 - int(picture[y, x].mean()) for y in (half - 9, half + 9) for x in (half - 9, half + 9)]
    assert np.argsort(dark).tolist() == [1, 2, 3, 0]


def test_what_may_not_be_looked_at_is_striped():
    (picture,) = pictures(layer_html(decoder(tokens=8, heads=1, mask=regard.causal())[0]))
    size = picture.shape[0] // 8
    corner, own = picture[:size, -size:], picture[:size, :size]
    assert len(np.unique(corner.reshape(-1, 3), axis=0)) == 2
    assert len(np.unique(own.reshape(-1, 3), axis=0)) == 1


def test_a_layer_shows_its_tokens_and_strongest_looks():
    read = Reader(layer_html(translator()["decoder.1.cross"]))
    for words in (
        "cross-attention",
        "queries: <s> 猫 坐 。",
        "keys: The cat sat </s> <pad>",
        "<s> → sat 1.00",
        "head 2",
    ):
        assert words in read.text


def test_large_traces_stay_small():
    page = trace_html(decoder(tokens=150, heads=20, layers=30, names=False))
    assert len(page) < 400_000
    assert "6 more layers" in page
    assert " and 4 more" in page
    assert len(pictures(page)) == 24


def test_an_empty_trace_is_shown_too():
    assert "0 layers" in Reader(trace_html(Trace())).text


def test_a_picture_is_a_png_that_others_read():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert (np.asarray(Image.open(io.BytesIO(encode_png(pixels)))) == pixels).all()
