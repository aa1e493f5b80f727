"""`generate()` of models whose scores have more to them: caps, sinks, biases, attention written by hand."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import regard
from regard.trace.doors.library import is_alone
from tests.trace.test_generate import prompt, settled
from tests.trace.watched import MODES

transformers = pytest.importorskip("transformers")
GROUPED = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "a cap and windows": ("Gemma2", GROUPED | {"intermediate_size": 48, "sliding_window": 4}),
    "sinks and windows": (
        "GptOss",
        GROUPED | {"intermediate_size": 24, "num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 4},
    ),
    "slopes and bmm": ("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
}


def family(name: str) -> Any:
    start, sizes = FAMILIES[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{start}Config")(vocab_size=61, **sizes)
    return settled(getattr(transformers, f"{start}ForCausalLM")(config))


def rows(trace: regard.Trace, layer: int, length: int) -> Tensor:
    """Every row of a layer over all runs, (b, h, q, k): stitched, or one run per step where weights are stored."""
    parts = [run.layers[layer].weights.dense() for run in trace.runs]
    return torch.cat([torch.nn.functional.pad(part, (0, length - part.shape[-1])) for part in parts], 2)


@MODES
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("left", [False, True], ids=["even", "left-padded"])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_generates_rows_that_one_eager_pass_has_too(name: str, left: bool, cache: str, mode: Any) -> None:
    heard = not ("bmm" in name and mode is torch.inference_mode) or is_alone()
    model, inputs = family(name), prompt(b=2, n=6, left=left)
    how = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "cache_implementation": cache}
    with mode():
        plain = model.generate(**inputs, **how)
        with regard.watch(model) as trace:
            found = model.generate(**inputs, **how)
    assert torch.equal(plain, found)
    if not heard:  # beside other threads bmm of inference tensors is not: that is said, layer by layer
        assert not trace.layers
        assert len(trace.runs[-1].refused) == 2
        return
    seen = torch.cat([inputs["attention_mask"], torch.ones(2, 5, dtype=torch.long)], 1)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model(found[:, :-1], attention_mask=seen, output_attentions=True, use_cache=False).attentions
    assert len(trace.layers) == len(theirs) == 2, trace.runs[-1].notes
    real = seen.bool()
    for layer, right in enumerate(theirs):
        ours = rows(trace, layer, 11)
        assert ours.shape == right[..., :11].shape
        assert_close(ours.transpose(1, 2)[real], right[..., :11].transpose(1, 2)[real], atol=2e-5, rtol=1e-4)
    assert trace.verify(), trace.verify()


def test_left_padding_under_slopes_leaves_rows_as_they_were_or_shows_nothing() -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = settled(transformers.FalconForCausalLM(transformers.FalconConfig(vocab_size=61, alibi=True, **sizes)))
    inputs = prompt(b=2, n=6, left=True)
    with torch.no_grad():
        with regard.watch(model) as read:
            model(**inputs)
        with regard.watch(model) as told:
            model.generate(**inputs, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    for layer in range(2):
        before, after = read[layer].weights.dense(), told[layer].weights.dense()
        shown = after[:, :, :6, :6].sum(-1) > 0
        assert shown[:, :, -3:].all()
        assert_close(after[:, :, :6, :6][shown], before[shown])
        assert not after[:, :, :6, 6:].any()
    assert told.verify(), told.verify()
