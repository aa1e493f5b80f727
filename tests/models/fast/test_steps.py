"""Compiled kernels against the modules in float64: every field, any way of cutting a text into calls, any batch."""

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

from regard.errors import CacheError, ShapeError
from regard.models import LlamaConfig
from tests.models.causal_models import CONFIGS, V, draw_ids, shaken

pytest.importorskip("numba", reason="needs numba: pip install 'regard[fast]'")
from regard.models.fast.decoder import KernelDecoder
from regard.models.fast.state import FastState
from regard.models.fast.weights import StoredWeights, store_parameters

LLAMAS = {name: config for name, config in CONFIGS.items() if isinstance(config, LlamaConfig)}
UNEVEN = {
    "one head": LlamaConfig(vocab_size=V, width=18, heads=1, layers=2, context=40, hidden=7),
    "many heads": LlamaConfig(vocab_size=V, width=70, heads=35, layers=1, context=40, hidden=133, kv_heads=7),
    "wide": LlamaConfig(vocab_size=V, width=96, heads=2, layers=2, context=40, hidden=80, tied=True, rope_base=99.0),
}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def both(config):
    """The modules in float64, and the same weights for kernels."""
    exact = shaken(config.build())
    model = deepcopy(exact).float()
    return exact, StoredWeights(config, store_parameters(model))


@torch.no_grad()
def logits_of(exact, ids):
    return exact(ids).float()


@pytest.mark.parametrize("config", {**LLAMAS, **UNEVEN}.values(), ids={**LLAMAS, **UNEVEN})
def test_steps_give_what_one_pass_of_the_modules_gives(config):
    exact, weights = both(config)
    ids = draw_ids(1, 23)
    expected, decoder, at = logits_of(exact, ids), KernelDecoder(weights, 1), 0
    for count in (5, 1, 1, 3, 1, 11, 1):
        assert_close(decoder.read(ids[:, at : at + count]), expected[:, at + count - 1], **TOLERANCE)
        at += count
    assert_close(KernelDecoder(weights, 1).read_all(ids), expected[0], **TOLERANCE)


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_a_text_longer_than_one_call_and_one_split_of_the_cache_gives_the_same(name):
    exact, weights = both(CONFIGS[name])
    ids = draw_ids(1, 711)
    expected, decoder = logits_of(exact, ids), KernelDecoder(weights, 1)
    decoder.read(ids[:, :700])
    for at in range(700, 711):
        assert_close(decoder.read(ids[:, at : at + 1]), expected[:, at], **TOLERANCE)


def test_rows_of_different_lengths_give_what_each_gives_alone():
    exact, weights = both(CONFIGS["llama"])
    texts = [draw_ids(1, length, seed=length) for length in (3, 9, 1, 6, 4)]
    pads = torch.tensor([9 - text.shape[1] for text in texts])
    prompt = torch.cat([torch.nn.functional.pad(text, (9 - text.shape[1], 0)) for text in texts])
    state, following = FastState(weights, prompt, pads), draw_ids(5, 4, seed=77)
    first = state(state.take_prompt(5, 9))
    steps = [state(following[:, i : i + 1]) for i in range(4)]
    for row, text in enumerate(texts):
        alone = logits_of(exact, torch.cat((text, following[row : row + 1]), 1))[0, text.shape[1] - 1 :]
        assert_close(torch.stack([first[row], *(step[row] for step in steps)]), alone, **TOLERANCE)


def test_rows_can_be_reordered_and_what_was_read_taken_back():
    exact, weights = both(CONFIGS["qwen2"])
    ids, more = draw_ids(3, 8), draw_ids(4, 2, seed=9)
    state, index = FastState(weights, ids), torch.tensor([2, 0, 0, 1])
    state(ids)
    state.reorder(index)
    for _ in range(2):
        assert_close(state(more), logits_of(exact, torch.cat((ids[index], more), 1))[:, -1], **TOLERANCE)
        assert state.seen == 10
        state.crop(8)
    with pytest.raises(CacheError, match="crop to 9 tokens came, but 8 were seen"):
        state.crop(9)


def test_the_number_of_threads_changes_no_bit():
    _, weights = both(CONFIGS["llama biases"])
    ids, before, results = draw_ids(1, 300), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            decoder = KernelDecoder(weights, 1)
            decoder.read(ids)
            results.append(decoder.read(ids[:, :1]))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_several_python_threads_may_write_at_once():
    _, weights = both(CONFIGS["qwen3"])
    texts = [draw_ids(1, 30, seed=seed) for seed in range(8)]

    def write(ids):
        decoder = KernelDecoder(weights, 1)
        return torch.cat([decoder.read(ids[:, i : i + 1]) for i in range(ids.shape[1])])

    alone = [write(ids) for ids in texts]
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(write, texts))
    finally:
        torch.set_num_threads(before)
    for one, other in zip(alone, together):
        assert torch.equal(one, other)


def test_tokens_that_cannot_be_read_are_refused():
    _, weights = both(CONFIGS["llama"])
    state = FastState(weights, draw_ids(2, 3))
    with pytest.raises(ShapeError, match="3 rows are to be written, but the prompt has 2"):
        state.take_prompt(3, 1)
    with pytest.raises(ShapeError, match=r"ids of shape \(3, 1\) came for 2 rows"):
        state(draw_ids(3, 1))
    with pytest.raises(ShapeError, match=f"an id is {V}, but this model knows {V} tokens"):
        state(torch.full((2, 1), V))
    with pytest.raises(ShapeError, match="there is no token to begin with"):
        FastState(weights, draw_ids(1, 0))
