"""What a page holds: float16 by default. Every number equals what its bytes give, and it says how well."""

import re

import numpy as np

from tests.browser.examples import SENTENCE
from tests.browser.studio import Studio

N = len(SENTENCE)
CAUSAL = np.tril(np.ones((N, N), dtype=bool))


def softmax(scores):
    scores = np.where(CAUSAL, scores, -np.inf)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def test_a_page_in_float16_shows_what_its_bytes_give_and_says_so(tabs, page_file, trace_of):
    tab = tabs.new()
    tab.page.goto(page_file("stack", "float16").as_uri() + "#/view=map&layer=2&head=1")
    studio = Studio(tab, "page")
    studio.settled("map")
    layer = trace_of("stack").layers[2]
    q, k = (x[0, 1].half().double().numpy() for x in (layer.q, layer.k))
    held = softmax(q @ k.T / np.sqrt(q.shape[1]))
    exact = layer.weights[0, 1].dense().numpy()
    shown = np.array(studio.grid("map", "weight", N, N), dtype=float)
    np.testing.assert_allclose(shown[CAUSAL], held[CAUSAL], rtol=0, atol=1e-6)
    assert np.abs(shown - exact)[CAUSAL].max() > 1e-7, "float16 was rounded"
    said = studio.root.locator("aside.panel").inner_text()
    assert "float16" in said
    told = max(float(one) for one in re.findall(r"\d\.?\d*e-\d+|0\.0\d+", said))
    assert np.abs(shown - exact)[CAUSAL].max() <= told * 1.1
    studio.shot("page-float16")
