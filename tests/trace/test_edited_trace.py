"""A trace of an edited model says so, and which edits, wherever it is shown or kept."""

import io

import pytest
import torch
from torch import nn

import regard
from regard.trace.file import load
from regard.views.explorer.rounding import Rounding, round_run
from regard.views.static.trace_figure import figure
from regard.views.static.trace_notebook import layer_html, trace_html
from regard.views.static.trace_terminal import print_trace

MUTE, BLOCK = "mute('layers.0', heads 1)", "block('layers.1', query 3, key 0)"


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(regard.MultiHead(8, heads=2) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Stack().eval()


def edited(model, **how):
    with torch.no_grad(), regard.watch(model, **how) as trace, regard.edit(model) as editor:
        editor.mute("layers.0", heads=1)
        editor.block(3, 0, "layers.1")
        model(torch.randn(1, 5, 8))
    return trace


def printed(trace, *which):
    out = io.StringIO()
    print_trace(trace, *which, file=out, width=120, colour=False)
    return out.getvalue()


def words_of(drawn):
    return " ".join(text.get_text() for legend in drawn.legends for text in [legend.get_title(), *legend.get_texts()])


def test_a_trace_knows_its_edits_and_one_without_has_none(model):
    assert edited(model).edits == [MUTE, BLOCK]
    with torch.no_grad(), regard.watch(model) as plain:
        model(torch.randn(1, 5, 8))
    assert plain.edits == []
    assert "edited" not in repr(plain) + printed(plain) + trace_html(plain) + words_of(figure(plain))


def test_only_the_runs_that_were_edited_are_called_so(model):
    x = torch.randn(1, 5, 8)
    with torch.no_grad(), regard.watch(model) as trace:
        model(x)
        with regard.edit(model) as editor:
            editor.mute("layers.0", heads=1)
            model(x)
        model(x)
    assert [run.edits for run in trace.runs] == [[], [MUTE], []]
    assert trace.edits == []


def test_an_edit_of_a_layer_that_is_not_kept_is_told_all_the_same(model):
    assert edited(model, layers="layers.2").edits == [MUTE, BLOCK]
    x = torch.randn(1, 5, 8)
    with torch.no_grad(), regard.watch(model, layers="layers.0") as trace:
        with regard.edit(model) as editor:
            editor.block(3, 0, "layers.1")
            model(x)
        model(x)
    assert [run.edits for run in trace.runs] == [[BLOCK], []]


@pytest.mark.parametrize("how", [{}, {"layers": "layers.2"}])
def test_a_file_keeps_them(model, tmp_path, how):
    edited(model).save(tmp_path / "whole.trace", **how)
    found = load(tmp_path / "whole.trace")
    assert found.edits == [MUTE, BLOCK]
    assert MUTE in repr(found)
    edited(model, to=tmp_path / "stream.trace", **how)
    assert load(tmp_path / "stream.trace").edits == [MUTE, BLOCK]


def test_what_an_edited_map_hides_is_hidden_in_its_file_too(tmp_path):
    torch.manual_seed(1)
    layer = regard.MultiHead(12, heads=3).eval()
    with torch.no_grad(), regard.watch(layer) as trace, regard.edit(layer) as editor:
        editor.block(4, 1, heads=2)
        layer(torch.randn(2, 6, 12), mask=regard.causal())
    trace.save(tmp_path / "one.trace")
    found = load(tmp_path / "one.trace")[0].weights
    wanted = torch.ones(6, 6).tril().bool().expand(2, 3, 6, 6).clone()
    wanted[:, 2, 4, 1] = False
    assert torch.equal(trace[0].weights.allowed[...].expand(2, 3, 6, 6), wanted)
    assert torch.equal(found.allowed[...].expand(2, 3, 6, 6), wanted)
    torch.testing.assert_close(found.dense(), trace[0].weights.dense())
    for precision in ("float16", "float32"):  # and in a page
        twin = round_run(trace.runs[-1], Rounding(precision), values=False).layers[0].weights
        assert torch.equal(twin.allowed[...].expand(2, 3, 6, 6), wanted)


def test_another_attention_in_the_model_counts_as_an_edit(model):
    with torch.no_grad(), regard.watch(model) as trace, regard.swap(model, attention=regard.window(1, 1)):
        model(torch.randn(1, 5, 8))
    assert trace.edits == ["swap(window(1, 1))"]


def test_every_view_in_python_says_it(model):
    trace = edited(model)
    said = f"edited: {MUTE}, {BLOCK}"
    assert said in repr(trace)
    for which in ((), (0,), (2, 1)):
        assert said in printed(trace, *which)
        assert said in words_of(figure(trace, *which)).replace("\n", " ")
    assert "edited: mute(&#x27;layers.0&#x27;, heads 1), block(" in trace_html(trace)
    assert "edited: mute(" in layer_html(trace[0])
    assert said in printed(trace, 2)  # a layer that only feels the edits of others


def test_many_edits_are_counted_and_none_is_markup(model):
    with torch.no_grad(), regard.watch(model) as trace, regard.edit(model) as editor:
        for key in range(5):
            editor.zero(4, key, heads=0)
        model(torch.randn(1, 5, 8))
    assert len(trace.edits) == 5
    assert "zero(heads 0, query 4, key 2) and 2 more" in repr(trace)
