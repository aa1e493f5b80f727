"""Edits that cannot be: one sentence each, and nothing is left behind."""

import pytest
import torch
from torch import nn

from regard.errors import WatchError
from regard.trace.change.edit import edit
from regard.trace.doors.dispatcher import DOORS
from regard.trace.watch import watch
from tests.trace.change.helpers import inputs, layer_of, under
from tests.trace.models import Stack, seeded


def test_unknown_paths_are_refused_with_those_there_are():
    with (
        edit(seeded(Stack(depth=2))) as e,
        pytest.raises(WatchError, match=r"'encoder'; there are: layers.0, layers.1"),
    ):
        e.mute("encoder")


def test_a_path_of_two_layers_is_refused_with_both():
    model = seeded(Stack(depth=2)).double()
    with pytest.raises(WatchError, match=r"'layers' fits layers.0 and layers.1; give more"):
        under(model, lambda e: e.mute("layers"), inputs())


def test_a_head_that_is_not_there_is_refused():
    with pytest.raises(WatchError, match=r"Attention has 3 heads, but head 3 was asked for; count from 0 to 2"):
        under(layer_of(), lambda e: e.mute(heads=[0, 3]), inputs())


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        ({"query": 5, "key": 0}, r"block\(query 5, key 0\) names query 5, but the longest call had 5"),
        ({"query": [0, -6]}, "names query -6, but the longest call had 5"),
        ({"key": 7}, "names key 7, but the longest call had 5; count from 0 to 4"),
        ({"query": slice(6, 9)}, "names no cell: the longest call had 5 queries and 5 keys"),
    ],
    ids=["query", "from the end", "key", "slice"],
)
def test_edges_beyond_the_end_are_refused_after_the_run(edge, words):
    with pytest.raises(WatchError, match=words):
        under(layer_of(), lambda e: e.block(**edge), inputs())
    with edit(layer_of()) as e:
        e.block(**edge)
        with pytest.raises(WatchError, match=words):
            e.run(inputs())
        e.clear()


def test_a_model_without_attention_is_told():
    with pytest.raises(WatchError, match=r"mute\(heads 1\) changed nothing: .* or it has no attention"):
        under(nn.Linear(3, 3), lambda e: e.mute(heads=1), torch.zeros(2, 3))


def test_a_model_that_did_not_run_is_told():
    never = edit(layer_of())
    never.__enter__().mute()
    with pytest.raises(WatchError, match="the model was not called in this thread inside the block"):
        never.__exit__(None, None, None)


def test_a_layer_that_computes_no_attention_is_told_with_those_that_do():
    model = seeded(Stack(depth=2)).double()
    with pytest.raises(WatchError, match=r"mute\('layers.0.out'\) met no attention; .* at: layers.0, layers.1"):
        under(model, lambda e: e.mute("layers.0.out"), inputs())


BAD = {
    "how": (lambda e: e.mute(how="loud"), "muted by zero, mean, resample, but how='loud'"),
    "reference": (lambda e: e.mute(reference=inputs()), "needs no reference"),
    "path": (lambda e: e.mute(3), "named by a part of its path, but 3 came"),
    "no path": (lambda e: e.mute([]), "no layer was named"),
    "call": (lambda e: e.mute("q#0"), "count them from 1"),
    "heads": (lambda e: e.mute(heads="first"), "heads is 'first'; give a whole number"),
    "no heads": (lambda e: e.mute(heads=[]), "heads names nothing"),
    "factor": (lambda e: e.scale(None, 0, "loud"), "factor is 'loud'; give a number"),
    "edge": (lambda e: e.block(), "block needs an edge"),
    "query": (lambda e: e.block(query=1.5), "query is 1.5; give a whole number"),
    "true": (lambda e: e.block(query=True), "query is True"),
    "weight": (lambda e: e.force(0, 0, 1.5), "weight is 1.5, but it is a share"),
    "no key": (lambda e: e.force(query=0), "forced to some key"),
    "by": (lambda e: e.replace(by="even"), "replaced by 'uniform'"),
    "negative": (lambda e: e.replace(by=torch.tensor([[-1.0]])), "some that came are below 0"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_cannot_be_meant_is_refused_in_a_sentence(bad):
    ask, words = BAD[bad]
    with edit(layer_of()) as e, pytest.raises(WatchError, match=words):
        ask(e)


RUNNING = {
    "one position": (lambda e: e.mute(how="mean"), inputs(length=1), "called for one position; give reference="),
    "one entry": (lambda e: e.mute(how="resample"), inputs(batch=1), "called with one entry; run several"),
    "map": (
        lambda e: e.replace(by=torch.ones(4, 5)),
        inputs(),
        r"\(1, 1, 4, 5\), but Attention was called with \(2, 3, 5, 5\)",
    ),
    "reference": (
        lambda e: e.mute(how="resample", reference=inputs(length=4)),
        inputs(),
        r"reference of mute\(how resample\) has \(b, h, q, e\) = \(2, 3, 4, 8\) at Attention, but the call has",
    ),
}


@pytest.mark.parametrize("bad", RUNNING)
def test_what_does_not_fit_the_call_is_refused_in_a_sentence(bad):
    ask, x, words = RUNNING[bad]
    with pytest.raises(WatchError, match=words):
        under(layer_of(), ask, x)
    assert DOORS.users == 0


def test_an_editor_is_of_no_use_after_its_block():
    layer = layer_of()
    with edit(layer) as e:
        pass
    with pytest.raises(WatchError, match="the block of this edit is over"):
        e.mute()
    with pytest.raises(WatchError, match="the block of this edit is over"):
        e.run(inputs())


def test_a_trace_without_values_gives_no_reference():
    layer = layer_of()
    with watch(layer, values=False) as trace:
        layer(inputs())
    with pytest.raises(WatchError, match="keeps no values of Attention; watch it with values=True"):
        under(layer, lambda e: e.mute(how="mean", reference=trace), inputs())


def test_edits_say_what_was_asked_for():
    with edit(layer_of()) as e:
        e.mute("q", heads=[1, 2])
        e.force(query=slice(1, None), key=-1, weight=0.5)
        assert e.edits == ["mute('q', heads [1, 2])", "force(query 1:, key -1, weight 0.5)"]
        e.clear()
        assert e.edits == []
