"""Llama of another library: the same logits, the same tensors back, and what we cannot express is refused by name."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close
from transformers import LlamaConfig, LlamaForCausalLM

from regard.errors import ModelError
from regard.models import LlamaConfig as OurConfig
from regard.models.convert import convert_config, convert_weights, export_config, export_weights, from_transformers
from regard.models.convert.llama import LLAMA
from tests.models.convert.common import ERROR, must_be_same, shaken, write_greedily
from tests.trace.checkpoints import stories260k

V, M, H, KV, LAYERS, T, HIDDEN = 29, 24, 4, 2, 3, 17, 20


def make(**options):
    sizes = {
        "vocab_size": V,
        "hidden_size": M,
        "intermediate_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": H,
        "num_key_value_heads": KV,
        "max_position_embeddings": T,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    return shaken(LlamaForCausalLM(LlamaConfig(**sizes | options)))


class Angles(nn.Module):
    """Cosines and sines as theirs, in float64 from the formula: theirs are rounded to float32 in between."""

    def __init__(self, width, base):
        super().__init__()
        self.width, self.base = width, base

    def forward(self, x, position_ids):
        frequencies = 1 / self.base ** (torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        angle = position_ids[..., None].double() * torch.cat((frequencies, frequencies))
        return angle.cos(), angle.sin()


def in_float64(theirs):
    """Their model without its two detours through float32: norms of torch, and angles from the formula."""
    config = theirs.config
    theirs.double()
    for module in list(theirs.modules()):
        for name, child in module.named_children():
            if type(child).__name__ == "LlamaRMSNorm":
                norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps, dtype=torch.float64)
                norm.weight = child.weight
                setattr(module, name, norm)
    theirs.model.rotary_emb = Angles(config.head_dim, config.rope_parameters["rope_theta"])
    return theirs


def parts(theirs):
    return theirs.config.to_dict(), theirs.state_dict()


@st.composite
def configs(draw):
    heads = draw(st.integers(1, 3)) * (kv := draw(st.integers(1, 3)))
    return {
        "num_attention_heads": heads,
        "num_key_value_heads": draw(st.sampled_from([kv, heads, 1])),
        "hidden_size": heads * 2 * draw(st.integers(1, 4)),
        "intermediate_size": draw(st.integers(1, 40)),
        "vocab_size": draw(st.integers(2, 40)),
        "num_hidden_layers": draw(st.integers(1, 3)),
        "max_position_embeddings": draw(st.integers(1, 30)),
        "tie_word_embeddings": draw(st.booleans()),
        "rms_norm_eps": draw(st.sampled_from([1e-6, 1e-5, 0.1])),
        "rope_parameters": {"rope_type": "default", "rope_theta": draw(st.sampled_from([10000.0, 5e5, 37.0]))},
        **dict.fromkeys(("attention_bias", "mlp_bias"), draw(st.booleans())),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=15)
@given(sizes=configs(), batch=st.integers(1, 3))
def test_logits_equal_those_of_transformers_whatever_the_config(dtype, sizes, batch):
    theirs = make(**sizes)
    theirs = theirs if dtype == torch.float32 else in_float64(theirs)
    ours = from_transformers(*parts(theirs))
    ids = torch.randint(sizes["vocab_size"], (batch, sizes["max_position_embeddings"]))
    assert ours(ids).dtype == dtype
    assert_close(ours(ids), theirs(ids).logits, rtol=ERROR[dtype], atol=ERROR[dtype])


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_weights_come_back_bit_for_bit(tied):
    given, state = parts(make(tie_word_embeddings=tied))
    config = convert_config("llama", given)
    ours = convert_weights(LLAMA, state, config)
    assert ours["blocks.2.attention.to_k.weight"].shape == (M // H * KV, M)
    must_be_same(export_weights(LLAMA, ours, config), state)
    must_be_same(convert_weights(LLAMA, export_weights(LLAMA, ours, config), config), ours)


def test_a_model_of_ours_runs_in_transformers():
    config = OurConfig(vocab_size=V, width=M, heads=H, kv_heads=KV, layers=LAYERS, context=T, hidden=HIDDEN)
    ours = shaken(config.build()).double()
    theirs = LlamaForCausalLM(LlamaConfig(**export_config("llama", config)))
    theirs.load_state_dict(export_weights(LLAMA, ours.state_dict(), config))
    ids = torch.randint(V, (5, 11))
    theirs = theirs.double().eval()
    theirs.load_state_dict(export_weights(LLAMA, ours.state_dict(), config))
    assert_close(in_float64(theirs)(ids).logits, ours(ids), rtol=1e-9, atol=1e-9)


def test_a_folder_of_transformers_becomes_our_model(tmp_path):
    theirs = make(tie_word_embeddings=True)
    theirs.save_pretrained(tmp_path)
    ids = torch.randint(V, (5, 11))
    assert_close(from_transformers(tmp_path)(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)


def test_configs_of_older_versions_mean_the_same():
    given = make().config.to_dict()
    wanted = convert_config("llama", given)
    older = {name: value for name, value in given.items() if name not in ("rope_parameters", "head_dim", "mlp_bias")}
    assert convert_config("llama", older | {"rope_theta": 10000.0, "rope_scaling": None}) == wanted
    assert convert_config("llama", older | {"torch_dtype": "float16", "pretraining_tp": 2}) == wanted
    smol = {"is_llama_config": True, "rope_interleaved": False, "transformers.js_config": {"dtype": "q4"}}
    assert convert_config("llama", older | smol) == wanted
    with pytest.raises(ModelError, match="rope_interleaved=True"):
        convert_config("llama", older | {"rope_interleaved": True})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rms_norm_eps": "small"}, "rms_norm_eps='small', wanted float"),
        (
            {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}},
            "rope_type='yarn', .* with 'default', 'linear'",
        ),
        ({"rope_parameters": {"rope_type": "dynamic"}}, "rope_type='dynamic', .* only be made with 'default'"),
        ({"rope_scaling": {"type": "linear"}, "rope_parameters": None}, "rope_type='linear' without factor"),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 4.0}}, "rope_type='llama3' without low_freq_factor"),
        ({"rope_parameters": {"rope_type": "default", "beta_fast": 3}}, "beta_fast=3, which the table of 'llama'"),
        ({"partial_rotary_factor": 0.5}, r"partial_rotary_factor=0\.5"),
        ({"hidden_act": "gelu"}, "hidden_act='gelu', .* only be made with 'silu'"),
        ({"sliding_window": 4}, "sliding_window=4, which the table of 'llama' does not know"),
    ],
)
def test_a_config_that_we_cannot_express_is_refused_by_its_key(change, sentence):
    given = make().config.to_dict()
    convert_config("llama", given)
    with pytest.raises(ModelError, match=sentence):
        convert_config("llama", given | change)


def test_a_tensor_that_does_not_belong_is_named():
    given, state = parts(make())
    with pytest.raises(ModelError, match=r"have 1 tensors .* 'model\.layers\.0\.self_attn\.q_norm\.weight'"):
        from_transformers(given, state | {"model.layers.0.self_attn.q_norm.weight": torch.ones(M // H)})
    with pytest.raises(ModelError, match=r"'model\.layers\.1\.self_attn\.k_proj\.weight' came with shape \(24, 24\)"):
        from_transformers(given, state | {"model.layers.1.self_attn.k_proj.weight": torch.ones(M, M)})
    del state["lm_head.weight"]
    with pytest.raises(ModelError, match=r"lack 1 tensors .* 'lm_head\.weight'"):
        from_transformers(given, state)


def test_the_story_teller_gives_the_logits_of_transformers():
    theirs, tokenizer = stories260k()
    given, state = parts(theirs)
    ours = from_transformers(given, state)
    assert ours.config.norm_eps == 1e-5
    ids = torch.tensor([tokenizer.encode("Once upon a time, there was a little girl").ids])
    assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)
    written = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False)
    assert torch.equal(write_greedily(ours, ids, 20), written)
