"""Models of GGUF files against transformers with the same weights; and files that are no model of ours."""

import re

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.errors import ModelError
from regard.models.gguf import GGUFFile
from regard.models.gguf.config import read_config
from regard.models.gguf.model import read_model
from regard.models.gpt2 import Gpt2
from regard.models.llama import Llama
from tests.models.gguf.converted import llama3_factors, make, to_gguf
from tests.models.gguf.files import smollm, write_gguf
from tests.trace.checkpoints import smollm2

ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
ROPE |= {"original_max_position_embeddings": 8192, "rope_theta": 500000.0}
CASES = {
    "llama": ("Llama", {}, {}),
    "tied": ("Llama", {"tie_word_embeddings": True}, {}),
    "biases": ("Llama", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 6}, {}),
    "wide heads": ("Llama", {"head_dim": 10}, {"llama.attention.key_length": 10, "llama.attention.value_length": 10}),
    "linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}},
               {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}),
    "llama 3": ("Llama", {"rope_parameters": ROPE, "head_dim": 32}, {"llama.attention.key_length": 32}),
    "mistral": ("Mistral", {"sliding_window": 5}, {"llama.attention.sliding_window": 5}),
    "qwen 2": ("Qwen2", {}, {}),
    "qwen 3": ("Qwen3", {"head_dim": 12}, {"qwen3.attention.key_length": 12, "qwen3.attention.value_length": 12}),
    "gpt 2": ("GPT2", {}, {}),
}  # fmt: skip


def written(tmp_path, theirs, more=(), **options):
    kind, keys, tensors = to_gguf(theirs)
    rope = theirs.config.to_dict().get("rope_parameters") or {}
    if rope.get("rope_type") == "llama3":
        tensors["rope_freqs.weight"] = llama3_factors(theirs.config.head_dim, rope["rope_theta"], rope["factor"])
    return write_gguf(tmp_path / "a.gguf", {**keys, **dict(more)}, tensors, architecture=kind, **options)


@pytest.mark.parametrize(("family", "fields", "more"), CASES.values(), ids=CASES)
def test_a_file_gives_the_logits_of_transformers(tmp_path, family, fields, more):
    theirs = make(family, **fields)
    ours = read_model(GGUFFile(written(tmp_path, theirs, more)))
    assert isinstance(ours, Gpt2 if family == "GPT2" else Llama)
    assert not ours.training
    ids = torch.randint(0, 23, (2, 13), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert_close(ours.double()(ids), theirs.double()(ids).logits, rtol=1e-6, atol=1e-6)


@torch.no_grad()
def test_smollm_gives_the_logits_of_transformers():
    ours, (theirs, _) = read_model(GGUFFile(smollm())), smollm2()
    ids = torch.tensor([[504, 2365, 282, 4649, 314, 7042, 28, 284, 665, 436, 253, 1762, 30]])
    assert_close(ours(ids), theirs(ids).logits, rtol=0, atol=1e-4)
    assert ours.config.tied
    assert (ours.config.norm_eps, ours.config.rope_base) == (1e-5, 1e5)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"llama.logit_scale": 0.5}, "logit_scale=0.5, which the table of 'llama' does not know"),
        ({"llama.attention.clamp_kqv": 8.0}, "attention.clamp_kqv=8.0, which the table"),
        ({"llama.rope.freq_base": float("nan")}, "rope.freq_base=nan, wanted a number"),
        ({"llama.attention.layer_norm_rms_epsilon": float("inf")}, "layer_norm_rms_epsilon=inf, wanted a number"),
        ({"llama.expert_count": 8}, "expert_count=8, but our model .* can only be made with 0"),
        ({"llama.rope.scaling.type": "yarn"}, "rope.scaling.type='yarn'"),
        ({"llama.rope.dimension_count": 2}, "rope.dimension_count=2, but a head has 4 channels"),
        ({"llama.attention.value_length": 3}, "attention.value_length=3, but a head has"),
        ({"llama.attention.head_count": [6, 6, 6]}, r"attention.head_count=\[6, 6, 6\], wanted int"),
        ({"llama.block_count": 4}, "lack 9 tensors of a 'llama' of this config, 'blk.3.attn_norm.weight' for one"),
        ({"llama.block_count": 2}, "have 9 tensors that a 'llama' of this config has not, 'blk.2.* for one"),
        ({"llama.block_count": 4000000000}, "layers is 4000000000, but the weights are 30 tensors"),
        ({"llama.embedding_length": 4000000000}, "rope.dimension_count=4, but a head has 666666666 channels"),
        ({"llama.feed_forward_length": 4000000000}, "hidden is 4000000000, but the weights are 30 tensors"),
        ({"llama.feed_forward_length": 41}, r"tensor 'blk.0.ffn_.*' came with shape"),
        ({"llama.attention.head_count_kv": 3}, r"'blk.0.attn_k.weight' came with shape"),
        ({"llama.attention.head_count": 5}, r"head"),
        ({"llama.attention.head_count": 0}, r"head"),
        (
            {"llama.vocab_size": 24},
            r"'token_embd.weight' came with shape \(23, 24\), but by the config it is \(24, 24\)",
        ),
    ],
)
def test_a_file_that_says_what_ours_cannot_be_is_refused_by_name(tmp_path, changed, sentence):
    path = written(tmp_path, make("Llama"), changed)
    with pytest.raises(ModelError, match=sentence) as told:
        read_model(GGUFFile(path))
    assert str(told.value).startswith("a.gguf: ")
    assert "\n" not in str(told.value)


def test_a_key_or_a_tensor_that_is_missing_is_named(tmp_path):
    kind, keys, tensors = to_gguf(make("Llama"))
    for key in ("block_count", "embedding_length", "attention.layer_norm_rms_epsilon", "context_length"):
        fewer = {name: value for name, value in keys.items() if name != f"llama.{key}"}
        path = write_gguf(tmp_path / "a.gguf", fewer, tensors, architecture=kind)
        with pytest.raises(ModelError, match=re.escape(f"the config has no {key}")):
            read_config(GGUFFile(path))
    for name in ("token_embd.weight", "output_norm.weight", "blk.1.ffn_gate.weight", "blk.2.attn_k.weight"):
        fewer = {other: tensor for other, tensor in tensors.items() if other != name}
        path = write_gguf(tmp_path / "a.gguf", keys, fewer, architecture=kind)
        with pytest.raises(ModelError, match=re.escape(repr(name))):
            read_model(GGUFFile(path))
    path = write_gguf(tmp_path / "a.gguf", keys, {**tensors, "blk.0.attn_sinks.weight": np.ones(6)}, architecture=kind)
    with pytest.raises(ModelError, match=r"1 tensors that .* has not, 'blk.0.attn_sinks.weight'"):
        read_model(GGUFFile(path))


@pytest.mark.parametrize("name", ["mamba", "clip", "", "gemma3"])
def test_another_architecture_is_refused_by_name(tmp_path, name):
    path = write_gguf(tmp_path / "a.gguf", {}, {"x": np.ones((2, 3))}, architecture=name)
    with pytest.raises(
        ModelError, match=f"of the architecture '{name}', which is not read here; there are: llama, qwen2"
    ):
        read_model(GGUFFile(path))


def test_frequencies_that_no_llama_3_has_are_refused(tmp_path):
    kind, keys, tensors = to_gguf(make("Llama"))
    tensors["rope_freqs.weight"] = np.array([1.0, 3.0], np.float32)
    path = write_gguf(tmp_path / "a.gguf", keys, tensors, architecture=kind)
    with pytest.raises(ModelError, match=r"'rope_freqs.weight' stretches positions as no Llama 3 does"):
        read_config(GGUFFile(path))
    tensors["rope_freqs.weight"] = np.ones(2, np.float32)
    path = write_gguf(tmp_path / "a.gguf", keys, tensors, architecture=kind)
    assert read_config(GGUFFile(path)).rope_scaling == "none"


@pytest.mark.parametrize("kind", ["F16", "Q8_0", "Q4_0", "Q4_1"])
def test_a_quantised_file_is_the_model_of_its_rounded_weights(tmp_path, kind):
    theirs = make("Llama", hidden_size=64, intermediate_size=96, num_attention_heads=4)
    architecture, keys, tensors = to_gguf(theirs)
    types = {name: kind for name, tensor in tensors.items() if tensor.ndim == 2}
    file = GGUFFile(write_gguf(tmp_path / "a.gguf", keys, tensors, architecture=architecture, types=types))
    rounded = {name: file.dequantize(name) for name in tensors}
    path = write_gguf(tmp_path / "b.gguf", keys, rounded, architecture=architecture)
    for (name, one), other in zip(
        read_model(file).state_dict().items(), read_model(GGUFFile(path)).state_dict().values()
    ):
        assert one.dtype == torch.float32
        assert torch.equal(one, other), name
