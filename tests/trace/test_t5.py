"""T5 of ours, watched and edited: self-attention of two stacks with a shared bias, and attention to the source."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.models.convert import from_transformers
from regard.models.t5 import T5Config
from tests.models.causal_models import shaken
from tests.trace.look import by_hand
from tests.trace.rounding import rounding

V, H, S, T = 31, 3, 7, 5
SIZES = {"vocab_size": V, "width": 12, "heads": H, "layers": 2, "decoder_layers": 3, "hidden": 20, "head_width": 6}
CONFIGS = {
    "first version": T5Config(**SIZES, buckets=8, furthest=6),
    "1.1": T5Config(**SIZES, activation="geglu_tanh", tied=False, scaled=False),
}
NAMES = [
    *(f"encoder.blocks.{i}.attention" for i in range(2)),
    *(f"decoder.blocks.{i}.{part}" for i in range(3) for part in ("self_attention", "cross_attention")),
]


def make(name):
    draw = torch.Generator().manual_seed(1)
    source = torch.randint(2, V, (2, S), generator=draw)
    source[:, -1], source[1, S - 3 :] = 1, torch.tensor([1, 0, 0])
    return shaken(CONFIGS[name].build()), source, torch.randint(2, V, (2, T), generator=draw)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_watched_t5_gives_the_same_and_every_map_is_the_formula(name):
    model, source, target = make(name)
    with torch.no_grad():
        plain = model(source, target)
        with regard.watch(model) as trace:
            watched = model(source, target)
    assert torch.equal(plain, watched)
    assert sorted(layer.name for layer in trace.layers) == sorted(NAMES)
    at, real = torch.arange(T), (source != 0)[:, None, None]
    for layer in trace.layers:
        across = layer.name.endswith("cross_attention")
        assert layer.kind == ("cross" if across else "self")
        keys = T if layer.name.endswith("self_attention") else S
        queries = S if layer.name.startswith("encoder") else T
        assert layer.weights.shape == (2, H, queries, keys)
        wanted = at <= at[:, None] if keys == T else real
        assert torch.equal(layer.weights.allowed[...], wanted.expand(2, H, queries, keys))
        exact = by_hand(layer)
        assert exact is not None
        assert_close(layer.weights.dense(), exact, atol=1e-13, rtol=0)
    assert trace.verify(), trace.verify()


@pytest.mark.parametrize("path", ["encoder.blocks.1.attention", "decoder.blocks.2.self", "decoder.blocks.0.cross"])
def test_muting_a_head_is_zeroing_its_columns_of_the_output_projection(path):
    model, source, target = make("first version")
    other = copy.deepcopy(model)
    layer = next(module for name, module in other.named_modules() if name in NAMES and path in name)
    with torch.no_grad():
        layer.to_out.weight[:, 6:12] = 0
        plain = model(source, target)
        with regard.edit(model) as e:
            e.mute(path, 1)
            found = model(source, target)
        assert_close(found, other(source, target), atol=1e-10, rtol=1e-10)
        assert torch.equal(model(source, target), plain)
    assert not torch.allclose(found, plain)


def test_a_watched_text_is_the_same_text_read_again(tmp_path):
    model, source, _ = make("1.1")
    limits = regard.Limits(longest=6, begin=0, end=None, never=())
    with torch.no_grad():
        plain = regard.greedy(model.begin(source), 2, limits=limits)
        with regard.watch(model) as trace:
            watched = regard.greedy(model.begin(source), 2, limits=limits)
        fed = torch.tensor([[0, *one.ids] for one in plain])
        with regard.watch(model) as read:
            model(source, fed)
    assert [one.ids for one in plain] == [one.ids for one in watched]
    trace.save(tmp_path / "kept.trace")
    kept = regard.load(tmp_path / "kept.trace")
    for name in NAMES:
        ours, right = trace[name].weights.dense(), read[name].weights.dense()
        rows, columns = ours.shape[-2:]
        assert_close(ours, right[..., :rows, :columns], atol=1e-12, rtol=0)
        assert torch.equal(kept[name].weights.dense(), ours)


def test_it_has_the_trace_of_transformers_with_the_same_weights():
    from transformers import T5Config as TheirConfig
    from transformers import T5ForConditionalGeneration

    torch.manual_seed(3)
    sizes = {"vocab_size": V, "d_model": 12, "d_kv": 6, "d_ff": 20, "num_layers": 2, "num_heads": H}
    theirs = T5ForConditionalGeneration(TheirConfig(**sizes, decoder_start_token_id=0)).eval()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    ours = from_transformers(theirs.config.to_dict(), theirs.state_dict())
    _, source, target = make("first version")
    real = source != 0
    with torch.no_grad():
        with regard.watch(ours) as mine:
            ours(source, target)
        with regard.watch(theirs) as right:
            theirs(input_ids=source, attention_mask=real.long(), decoder_input_ids=target)
    assert len(mine.layers) == len(right.layers) == 6
    for one, other in zip(mine.layers, right.layers, strict=True):
        assert one.kind == other.kind
        a, b = one.weights.dense(), other.weights.dense()
        if a.shape[-2] == S:
            a, b = (x.transpose(1, 2)[real] for x in (a, b))
        assert_close(a, b, atol=max(1e-5, rounding(other)), rtol=0)
