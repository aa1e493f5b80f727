"""Llama, Mistral and Qwen of another library: one class of ours has all of their fields, and writes what they read."""

import json

import pytest
import torch
import transformers
from torch import nn
from torch.testing import assert_close

from regard.errors import ModelError
from regard.models import Gpt2Config, GPTConfig, Llama, LlamaConfig
from regard.models.convert import convert_config, export_config, from_transformers, to_transformers
from tests.models.convert.common import ERROR, shaken
from tests.trace.checkpoints import gpt_nano_sort, stories260k

V, M, H, KV, LAYERS, T, HIDDEN = 29, 24, 6, 2, 3, 17, 20
SIZES = {
    "vocab_size": V, "hidden_size": M, "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS,
    "num_attention_heads": H, "num_key_value_heads": KV, "max_position_embeddings": T,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 0.3, "high_freq_factor": 1.1,
    "original_max_position_embeddings": 11,
}  # fmt: skip
CASES = {
    "llama": ("Llama", {}),
    "llama tied": ("Llama", {"tie_word_embeddings": True, "rms_norm_eps": 0.1}),
    "llama 3": ("Llama", {"rope_parameters": LLAMA3}),
    "llama linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 300.0, "factor": 2.5}}),
    "llama wide heads": ("Llama", {"head_dim": 10}),
    "llama attention bias": ("Llama", {"attention_bias": True}),
    "llama network bias": ("Llama", {"mlp_bias": True, "num_key_value_heads": 1}),
    "mistral": ("Mistral", {"sliding_window": 5, "head_dim": 8}),
    "mistral without window": ("Mistral", {"sliding_window": None, "tie_word_embeddings": True}),
    "mistral short window": ("Mistral", {"sliding_window": 1}),
    "qwen 2": ("Qwen2", {}),
    "qwen 2 window": ("Qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    "qwen 2 window everywhere": ("Qwen2", {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0}),
    "qwen 3": ("Qwen3", {"head_dim": 14, "rms_norm_eps": 0.01}),
    "qwen 3 bias": ("Qwen3", {"attention_bias": True, "head_dim": 4, "tie_word_embeddings": True}),
    "qwen 3 window": (
        "Qwen3",
        {
            "use_sliding_window": True,
            "sliding_window": 6,
            "layer_types": ["full_attention", *["sliding_attention"] * 2],
        },
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def theirs(request):
    family, options = request.param
    config = getattr(transformers, f"{family}Config")(**SIZES | options)
    config._attn_implementation = "eager"
    torch.manual_seed(5)
    return shaken(getattr(transformers, f"{family}ForCausalLM")(config))


def parts(theirs):
    return theirs.config.to_dict(), theirs.state_dict()


class Angles(nn.Module):
    """Cosines and sines as theirs, in float64 from their own frequencies: theirs are rounded to float32 in between."""

    def __init__(self, theirs, config):
        super().__init__()
        rope = config.rope_parameters
        kind, width = rope["rope_type"], getattr(config, "head_dim", None) or M // H
        base = 1 / rope["rope_theta"] ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
        if kind == "linear":
            base = base / rope["factor"]
        if kind == "llama3":
            turns = rope["original_max_position_embeddings"] * base / (2 * torch.pi)
            low, high = rope["low_freq_factor"], rope["high_freq_factor"]
            share = ((turns - low) / (high - low)).clamp(0, 1)
            base = (1 - share) * base / rope["factor"] + share * base
        assert_close(theirs.inv_freq, base.float())
        self.frequencies = torch.cat((base, base))

    def forward(self, x, position_ids):
        angle = position_ids[..., None].double() * self.frequencies
        return angle.cos(), angle.sin()


def in_float64(theirs):
    """Their model without its detours through float32: norms of torch, angles from the formula, softmax as it comes."""
    angles = Angles(theirs.model.rotary_emb, theirs.config)
    theirs.double()
    for module in list(theirs.modules()):
        for name, child in module.named_children():
            if type(child).__name__.endswith("RMSNorm"):
                norm = nn.RMSNorm(child.weight.shape, eps=child.variance_epsilon, dtype=torch.float64)
                norm.weight = child.weight
                setattr(module, name, norm)
    theirs.model.rotary_emb = angles
    theirs.config._attn_implementation = "sdpa"  # the other way takes its softmax in float32
    return theirs


def draw_ids(rows=5, length=13):
    return torch.randint(V, (rows, length), generator=torch.Generator().manual_seed(7))


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_logits_equal_those_of_transformers(theirs, dtype):
    theirs = theirs if dtype is torch.float32 else in_float64(theirs)
    ours = from_transformers(*parts(theirs))
    assert type(ours) is Llama
    ids = draw_ids()
    assert ours(ids).dtype is dtype
    assert_close(ours(ids), theirs(ids).logits, rtol=ERROR[dtype], atol=ERROR[dtype])


@torch.no_grad()
def test_what_we_write_transformers_reads_and_so_do_we(theirs, tmp_path):
    ours = from_transformers(*parts(theirs))
    to_transformers(ours, tmp_path / "one")
    model, report = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "one", output_loading_info=True)
    assert type(model) is type(theirs) or ours.config.window is None  # without a window a Mistral is a Llama
    assert not any(report[what] for what in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ids = draw_ids()
    assert torch.equal(model.eval()(ids).logits, transformers_eager(theirs, model)(ids).logits)
    assert_close(model(ids).logits, ours(ids), rtol=1e-4, atol=1e-4)
    again = from_transformers(tmp_path / "one")
    assert again.config == ours.config
    assert torch.equal(again(ids), ours(ids))


def transformers_eager(theirs, model):
    """Their model, computing attention as the one that was read."""
    theirs.config._attn_implementation = model.config._attn_implementation
    return theirs


def test_a_config_goes_there_and_back(theirs):
    family = theirs.config.model_type
    ours = convert_config(family, theirs.config.to_dict())
    exported = export_config(family, ours)
    assert convert_config(family, exported) == ours
    assert convert_config(family, type(theirs.config)(**exported).to_dict()) == ours


@torch.no_grad()
@pytest.mark.parametrize("load", [stories260k, gpt_nano_sort])
def test_published_models_come_back_from_their_folder(load, tmp_path):
    theirs, tokenizer = load()
    ours = from_transformers(*parts(theirs))
    to_transformers(ours, tmp_path, tokenizer if hasattr(tokenizer, "to_str") else None)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    ids = torch.randint(3, (4, 6))
    assert_close(model(ids).logits, theirs(ids).logits, rtol=1e-6, atol=1e-6)
    assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)
    if hasattr(tokenizer, "to_str"):
        assert json.loads((tmp_path / "tokenizer.json").read_bytes()) == json.loads(tokenizer.to_str())


@torch.no_grad()
@pytest.mark.parametrize(
    "options",
    [
        {"activation": "gelu_tanh", "norm_eps": 0.1},
        {"positions": "rotary", "norm": "rms", "activation": "swiglu", "bias": False, "kv_heads": 2, "tied": False},
        {"positions": "rotary", "norm": "rms", "activation": "swiglu", "rotary_base": 37.0},
    ],
    ids=["as gpt2", "as llama", "as llama with biases"],
)
def test_a_gpt_that_is_built_as_one_of_them_is_written_as_such(options, tmp_path):
    ours = shaken(GPTConfig(V, M, H, LAYERS, T, hidden=HIDDEN, **options).build())
    to_transformers(ours, tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    ids = draw_ids()
    assert_close(model(ids).logits, ours(ids), rtol=1e-4, atol=1e-4)
    assert_close(from_transformers(tmp_path)(ids), ours(ids))


def test_what_transformers_has_not_is_refused(tmp_path):
    sizes = {"vocab_size": V, "width": M, "heads": H, "layers": LAYERS, "context": T, "hidden": HIDDEN}
    for config, sentence in (
        (GPTConfig(**sizes, positions="alibi"), "a GPT with positions='alibi'"),
        (GPTConfig(**{**sizes, "hidden": 0}), "hidden=0 came, but transformers has only"),
        (LlamaConfig(**sizes, qk_norm=True, mlp_bias=True), "no family of transformers has what this model has"),
        (Gpt2Config(**sizes, activation="swiglu"), "activation='swiglu', which no activation_function"),
    ):
        with pytest.raises(ModelError, match=sentence):
            to_transformers(config.build(), tmp_path / "new")
        assert not (tmp_path / "new").exists()
    with pytest.raises(ModelError, match="a model with a NoneType came, but only those with BertConfig"):
        to_transformers(nn.Linear(2, 3), tmp_path / "new")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match=r"has weights in pytorch_model\.bin already; give a new folder"):
        to_transformers(LlamaConfig(**sizes).build(), tmp_path)
    with pytest.raises(ModelError, match="the tokenizer is a dict, wanted one of transformers or tokenizers"):
        to_transformers(LlamaConfig(**sizes).build(), tmp_path / "new", {})


@pytest.mark.parametrize(
    ("family", "change", "sentence"),
    [
        ("mistral", {"attention_bias": True}, "attention_bias=True, which the table of 'mistral'"),
        ("mistral", {"sliding_window": "all"}, "sliding_window='all', wanted"),
        (
            "qwen2",
            {"layer_types": ["sliding_attention"] * 2 + ["full_attention"]},
            "layer_types=.* stand after all others",
        ),
        ("qwen2", {"layer_types": ["linear_attention"] * 3}, "layer_types="),
        ("qwen3", {"num_experts": 4}, "num_experts=4, which the table of 'qwen3'"),
        ("qwen3", {"mlp_bias": True}, "mlp_bias=True, which the table"),
        ("qwen3", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "rope_type='yarn'"),
    ],
)
def test_a_config_that_we_cannot_express_is_refused_by_its_key(family, change, sentence):
    name = {"mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}[family]
    given = getattr(transformers, f"{name}Config")(**SIZES).to_dict()
    convert_config(family, given)
    with pytest.raises(ModelError, match=sentence):
        convert_config(family, given | change)
