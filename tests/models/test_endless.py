"""Writing without end in a window with sinks: positions are counted among the keys that are held (Xiao et al. 2023)."""

import pytest
import torch
from torch.testing import assert_close

import regard
from tests.models.causal_models import CONFIGS, draw_ids, shaken

ROTARY = ["gpt rotary", "gpt attention alone", "llama", "llama scaled", "llama biases", "qwen3"]


@torch.no_grad()
def read_naively(model, ids, window, sinks):
    """The logits after each token of one row; every step turns all keys that are held anew, by their place."""
    held = [([], []) for _ in model.blocks]
    result = []
    for token in ids[0].tolist():
        x = model.embed(torch.tensor([token]))  # 1 m
        for block, (keys, values) in zip(model.blocks, held):
            attention = block.attention
            y = block.around_attention.norm(x)
            q, k, v = (
                project(y).unflatten(-1, (heads, -1))[0]
                for project, heads in (
                    (attention.to_q, attention.heads),
                    (attention.to_k, attention.kv_heads),
                    (attention.to_v, attention.kv_heads),
                )
            )
            if attention.q_norm is not None:
                q, k = attention.q_norm(q), attention.k_norm(k)
            keys.append(k)
            values.append(v)
            turned = attention.positions(torch.stack(keys, 1), 0)  # g k d
            asked = attention.positions(q[:, None], len(keys) - 1)  # h 1 d
            share = attention.heads // attention.kv_heads
            scores = asked @ turned.repeat_interleave(share, 0).mT * attention.head_width**-0.5
            mix = scores.softmax(-1) @ torch.stack(values, 1).repeat_interleave(share, 0)  # h 1 d
            x = x + attention.to_out(mix.flatten()[None])
            if hasattr(block, "feed_forward"):
                x = block.around_feed_forward(x, block.feed_forward)
            if len(keys) > sinks + window:
                del keys[sinks], values[sinks]
        result.append(model.norm(x) @ model.head_weight.T)
    return torch.stack(result, 1)


@torch.no_grad()
@pytest.mark.parametrize("engine", ["plain", "lean"])
@pytest.mark.parametrize("name", ROTARY)
def test_sinks_stand_right_before_the_window(name, engine):
    model = shaken(CONFIGS[name].build())
    ids = draw_ids(1, 37)
    wanted = read_naively(model, ids, window=6, sinks=3)
    for cuts in ([1] * 37, [4, *[1] * 33], [13, 1, 1, 9, 13]):
        state = model.begin(ids, window=6, sinks=3, engine=engine)
        after = torch.cumsum(torch.tensor(cuts), 0) - 1
        got = torch.stack([state(part) for part in ids.split(cuts, 1)], 1)
        assert_close(got, wanted[:, after])


@torch.no_grad()
def test_a_window_without_sinks_is_the_mask_of_that_window():
    for name in (*ROTARY, "gpt alibi", "gpt none"):
        model = shaken(CONFIGS[name].build())
        ids = draw_ids(2, 23)
        cache = model.make_cache(window=6)
        parts = [model(part, cache) for part in ids.split([1, 9, 1, 1, 5, 6], 1)]
        with regard.swap(model, attention=regard.causal() & regard.window(6, 0)):
            wanted = model(ids)
        assert_close(torch.cat(parts, 1), wanted)


@torch.no_grad()
@pytest.mark.parametrize("engine", ["plain", "lean"])
def test_a_text_goes_on_far_beyond_the_context(engine):
    model = shaken(CONFIGS["llama"].build())
    state = model.begin(draw_ids(2, 5), window=8, sinks=2, engine=engine)
    [*texts] = regard.greedy(state, 2, limits=regard.Limits(longest=300, end=None, never=()))
    assert [len(text.ids) for text in texts] == [300, 300]


@torch.no_grad()
def test_alibi_counts_the_keys_that_are_held():
    model = shaken(CONFIGS["gpt alibi"].build())
    ids = draw_ids(1, 19)
    state = model.begin(ids, window=5, sinks=2)
    got = torch.stack([state(part) for part in ids.split(1, 1)], 1)
    assert got.isfinite().all()
    one_pass = model(ids[:, :8])
    assert_close(got[:, :8], one_pass)
    assert not state.repeatable
