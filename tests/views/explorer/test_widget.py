"""The notebook's widget: what it holds, how it answers, what it says when it cannot."""

import builtins
import json

import numpy as np
import pytest
import torch

import regard
from regard.errors import RegardError, TraceError
from regard.tokens import Tokens
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace
from regard.views.explorer import bundle as bundles
from regard.views.explorer import widget as widgets
from tests.views.traces import decoder, translator

pytest.importorskip("anywidget")
safetensors = pytest.importorskip("safetensors.numpy")


@pytest.fixture(autouse=True)
def built(tmp_path, monkeypatch):
    """A bundle that need not be built: what is in it is tested elsewhere."""
    file = tmp_path / "regard.js"
    file.write_text("export default { render() {} }")
    monkeypatch.setattr(bundles, "BUILT", file)
    bundles._read.cache_clear()
    yield file
    bundles._read.cache_clear()


def ask(widget, what, about, number=7):
    """What the widget sends when the page asks: the message, and the arrays in its buffer by name."""
    sent = []
    widget.send = lambda content, buffers=None: sent.append((content, buffers or []))
    widget._handle_custom_msg({"ask": number, "what": what, "about": about}, [])
    assert len(sent) == 1
    content, buffers = sent[0]
    return content, (safetensors.load(bytes(buffers[0])) if buffers else None)


def test_a_row_is_answered_with_the_weights_of_the_map():
    trace = decoder(tokens=6, heads=4, layers=3, mask=regard.causal())
    widget = trace.see()
    content, arrays = ask(widget, "row", {"layer": 2, "batch": 0, "head": 3, "query": 4})
    assert content == {"answer": 7}
    wanted = trace.layers[2].weights[0, 3, 4].numpy()
    np.testing.assert_allclose(arrays["weights"], wanted, rtol=0, atol=1e-6)
    assert arrays["allowed"].tolist() == [1, 1, 1, 1, 1, 0]


def test_what_cannot_be_answered_is_told_in_one_sentence():
    widget = translator().see()
    for what, about in [("row", {"layer": 99, "batch": 0, "head": 0, "query": 0}), ("nonsense", {}), ("row", {})]:
        content, arrays = ask(widget, what, about, number=11)
        assert content["answer"] == 11
        assert arrays is None
        assert len(content["error"]) > 10
        assert "\n" not in content["error"]


@pytest.mark.parametrize("content", [None, [], {}, {"ask": "1"}, {"ask": None, "what": "row"}])
def test_a_message_that_is_no_question_is_passed_over(content):
    widget = translator().see()
    sent = []
    widget.send = lambda *message: sent.append(message)
    widget._handle_custom_msg(content, [])
    assert sent == []


def test_it_opens_at_the_layer_and_head_that_were_asked_for():
    trace = translator()
    last = len(trace.layers) - 1
    assert (trace.see().layer, trace.see().head) == (-1, -1)
    assert (trace.see(layer=-1, head=2).layer, trace.see(layer=-1, head=2).head) == (last, 2)
    assert trace.see("decoder.1.cross").layer == last
    assert trace.see(head=1).layer == 0
    assert trace.see(height=321).height == 321


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"layer": 99}, "layer 99 was asked for, but there are 6"),
        ({"layer": "nowhere"}, "no layer is called 'nowhere'"),
        ({"layer": 0, "head": 3}, "head 3 was asked for, but encoder.0.self has 3; count from 0"),
        ({"head": -1}, "head -1 was asked for"),
        ({"height": 0}, "a height of 0 pixels"),
    ],
)
def test_a_place_that_is_not_there_is_refused(how, said):
    with pytest.raises(TraceError, match=said):
        translator().see(**how)


def test_an_empty_trace_has_nothing_to_see():
    with pytest.raises(TraceError, match="nothing to see"):
        Trace([]).see()


def test_tokens_of_any_kind_reach_the_page_as_plain_ascii():
    shown = ("</script>", "\u2028", "\ud83d", "a" * 10_000, "\x00", "猫", '"')
    x = torch.randn(1, 2, len(shown), 5)
    layer = Layer("one", "self", regard.attend(x, x, x).weights, queries=(Tokens(shown),), keys=(Tokens(shown),))
    text = Trace([Run([layer])]).see().info
    assert text.isascii()
    assert tuple(json.loads(text)["tokens"][0]["shown"]) == shown


def test_the_bundle_travels_with_the_widget(built):
    assert translator().see()._esm == built.read_text()


def test_a_bundle_that_is_not_built_is_named(built):
    built.unlink()
    with pytest.raises(RegardError, match=r"the explorer is not built.*make bundle"):
        translator().see()


def test_a_missing_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "anywidget":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest)

    widgets._widget_class.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RegardError, match=r"to see it in a notebook, install regard\[notebook\]"):
        translator().see()
    widgets._widget_class.cache_clear()


def test_it_says_that_it_is_there():
    widget = translator().see()
    sent = []
    widget.send = lambda *message: sent.append(message)
    widget._handle_custom_msg({"ask": 5, "what": "hello"}, [])
    assert sent == [({"answer": 5},)]
