"""GPT-2 of another library: the same logits, the same tensors back, and what we cannot express is refused by name."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch.testing import assert_close
from transformers import GPT2Config, GPT2LMHeadModel

from regard.errors import ModelError
from regard.models import Gpt2Config as OurConfig
from regard.models import GPTConfig
from regard.models.convert import convert_config, convert_weights, export_config, export_weights, from_transformers
from regard.models.convert.gpt2 import GPT2
from tests.models.convert.common import ERROR, must_be_same, shaken, write_greedily
from tests.trace.checkpoints import gpt_nano_sort, sort

V, M, H, LAYERS, T, HIDDEN = 29, 12, 3, 2, 17, 20


def make(**options):
    sizes = {"vocab_size": V, "n_embd": M, "n_head": H, "n_layer": LAYERS, "n_positions": T, "n_inner": HIDDEN}
    marks = {"bos_token_id": None, "eos_token_id": None, "activation_function": "gelu"}
    return shaken(GPT2LMHeadModel(GPT2Config(**sizes | marks | options)))


def parts(theirs):
    return theirs.config.to_dict(), theirs.state_dict()


sizes = st.fixed_dictionaries(
    {
        "vocab_size": st.integers(2, 40),
        "n_head": st.integers(1, 4),
        "n_layer": st.integers(1, 3),
        "n_positions": st.integers(1, 30),
        "n_inner": st.none() | st.integers(1, 50),
        "activation_function": st.sampled_from(["gelu", "relu", "gelu_new", "gelu_pytorch_tanh"]),
        "tie_word_embeddings": st.booleans(),
        "layer_norm_epsilon": st.sampled_from([1e-5, 1e-3, 0.1]),
    }
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=15)
@given(sizes=sizes, head=st.integers(1, 9), batch=st.integers(1, 3))
def test_logits_equal_those_of_transformers_whatever_the_config(dtype, sizes, head, batch):
    theirs = make(**sizes, n_embd=head * sizes["n_head"]).to(dtype)
    ours = from_transformers(*parts(theirs))
    ids = torch.randint(sizes["vocab_size"], (batch, sizes["n_positions"]))
    assert ours(ids).dtype == dtype
    assert_close(ours(ids), theirs(ids).logits, rtol=ERROR[dtype], atol=ERROR[dtype])


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_weights_come_back_bit_for_bit(tied):
    given, state = parts(make(tie_word_embeddings=tied))
    config = convert_config("gpt2", given)
    ours = convert_weights(GPT2, state, config)
    must_be_same(export_weights(GPT2, ours, config), state)
    assert ours["blocks.1.attention.to_k.weight"].shape == (M, M)
    must_be_same(convert_weights(GPT2, export_weights(GPT2, ours, config), config), ours)


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_a_model_of_ours_runs_in_transformers(tied):
    config = OurConfig(vocab_size=V, width=M, heads=H, layers=LAYERS, context=T, hidden=HIDDEN, tied=tied)
    ours = shaken(config.build()).double()
    theirs = GPT2LMHeadModel(GPT2Config(**export_config("gpt2", config), bos_token_id=None, eos_token_id=None))
    theirs.double().eval().load_state_dict(export_weights(GPT2, ours.state_dict(), config))
    ids = torch.randint(V, (3, 11))
    assert_close(theirs(ids).logits, ours(ids), rtol=1e-9, atol=1e-9)


def test_a_folder_of_transformers_becomes_our_model(tmp_path):
    theirs = make().double()
    theirs.save_pretrained(tmp_path / "one")
    theirs.save_pretrained(tmp_path / "many", max_shard_size="4KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 2
    ids = torch.randint(V, (3, 11))
    for folder in ("one", "many"):
        ours = from_transformers(tmp_path / folder)
        assert_close(ours(ids), theirs(ids).logits, rtol=1e-9, atol=1e-9)


def test_names_without_the_body_and_masks_of_old_files_are_understood():
    theirs = make().double()
    given, state = parts(theirs)
    bare = {name.removeprefix("transformer."): tensor for name, tensor in state.items() if name != "lm_head.weight"}
    bare["h.0.attn.bias"] = torch.ones(1, 1, T, T).tril()
    bare["h.1.attn.masked_bias"] = torch.tensor(-1e4)
    ids = torch.randint(V, (3, 11))
    assert_close(from_transformers(given, bare)(ids), theirs(ids).logits, rtol=1e-9, atol=1e-9)


def test_weights_of_two_dtypes_take_the_wider():
    given, state = parts(make())
    state["transformer.ln_f.weight"] = state["transformer.ln_f.weight"].double()
    assert {p.dtype for p in from_transformers(given, state).parameters()} == {torch.float64}


def test_the_sorter_gives_the_logits_of_transformers_and_sorts():
    theirs, _ = gpt_nano_sort()
    ours = from_transformers(*parts(theirs))
    assert ours.config.activation == "gelu_tanh"
    ids = torch.cartesian_prod(*[torch.arange(3)] * 6)
    assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)
    assert torch.equal(sort(theirs, ids), ids.sort(-1).values)
    assert torch.equal(write_greedily(ours, ids, 6)[:, 6:], ids.sort(-1).values)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"layer_norm_epsilon": "small"}, "layer_norm_epsilon='small', wanted float"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ({"add_cross_attention": True}, "add_cross_attention=True"),
        ({"activation_function": "quick_gelu"}, "activation_function='quick_gelu'"),
        ({"activation_function": ["gelu"]}, r"activation_function=\['gelu'\]"),
        ({"n_embd": "12"}, "n_embd='12', wanted int"),
        ({"surprise": 3}, "surprise=3, which the table of 'gpt2' does not know"),
        ({"quantization_config": {}}, "quantization_config={}, which the table"),
        ({"model_type": "llama"}, "model_type='llama', but the table of 'gpt2'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_config_that_we_cannot_express_is_refused_by_its_key(change, sentence):
    given = make().config.to_dict()
    convert_config("gpt2", given)
    with pytest.raises(ModelError, match=sentence):
        convert_config("gpt2", given | change)


def test_a_missing_key_is_named_unless_it_has_a_default():
    given = make().config.to_dict()
    del given["n_layer"]
    with pytest.raises(ModelError, match="the config has no n_layer"):
        convert_config("gpt2", given)
    few = {name: given[name] for name in ("vocab_size", "n_embd", "n_head", "n_positions", "activation_function")}
    assert convert_config("gpt2", few | {"n_layer": 5}).hidden is None


def test_sizes_that_the_weights_cannot_have_are_refused_before_anything_is_made():
    given, state = parts(make())
    for change, sentence in (
        ({"n_layer": 10**9}, "by the config layers is 1000000000, but the weights are 29 tensors"),
        ({"n_embd": 3 * 10**11}, "by the config width is 300000000000"),
        ({"n_head": 5}, "describes no model of ours: width 12 does not split into 5 equal heads"),
        ({"n_layer": -1}, "describes no model of ours: layers is -1"),
    ):
        with pytest.raises(ModelError, match=sentence):
            from_transformers(given | change, state)


def drop(state):
    del state["transformer.h.1.mlp.c_fc.bias"]


def add(state):
    state["transformer.h.1.mlp.c_more.weight"] = torch.ones(3)


def add_layer(state):
    state["transformer.h.2.ln_1.weight"] = torch.ones(M)


def turn(state):
    state["transformer.h.0.attn.c_attn.weight"] = state["transformer.h.0.attn.c_attn.weight"].T


def quantize(state):
    state["transformer.h.0.mlp.c_fc.weight"] = state["transformer.h.0.mlp.c_fc.weight"].to(torch.int8)


def untie(state):
    state["lm_head.weight"] = state["lm_head.weight"] + 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (drop, r"lack 1 tensors .* 'transformer\.h\.1\.mlp\.c_fc\.bias'"),
        (add, r"have 1 tensors .* 'transformer\.h\.1\.mlp\.c_more\.weight'"),
        (add_layer, r"have 1 tensors .* 'transformer\.h\.2\.ln_1\.weight'"),
        (
            turn,
            r"'transformer\.h\.0\.attn\.c_attn\.weight' came with shape \(36, 12\), .* is \(12, 36\)",
        ),
        (quantize, r"'transformer\.h\.0\.mlp\.c_fc\.weight' came as torch\.int8, wanted floats"),
        (untie, r"'lm_head\.weight' and 'transformer\.wte\.weight' differ"),
    ],
)
def test_a_tensor_that_does_not_belong_is_named(change, sentence):
    given, state = parts(make())
    from_transformers(given, state)
    state = dict(state)
    change(state)
    with pytest.raises(ModelError, match=sentence):
        from_transformers(given, state)


def test_our_models_that_are_no_gpt2_are_not_exported():
    sizes = {"vocab_size": V, "width": M, "heads": H, "layers": LAYERS, "context": T}
    with pytest.raises(ModelError, match="a GPTConfig came, but the table of 'gpt2' is for a Gpt2Config"):
        export_config("gpt2", GPTConfig(**sizes))
    config = OurConfig(**sizes, activation="swiglu")
    with pytest.raises(ModelError, match="activation='swiglu', which no activation_function of the family 'gpt2' is"):
        export_config("gpt2", config)
    with pytest.raises(ModelError, match=r"our Gpt2 has a tensor 'blocks\.0\.feed_forward\.to_gate\.bias'"):
        export_weights(GPT2, config.build().state_dict(), config)


def test_what_is_no_model_of_a_known_family_is_refused(tmp_path):
    with pytest.raises(ModelError, match="'mamba' is no family that has a table here; there are: gpt2, llama"):
        from_transformers({"model_type": "mamba"}, {})
    with pytest.raises(ModelError, match="a config came without weights"):
        from_transformers({"model_type": "gpt2"})
    with pytest.raises(ModelError, match=r"has no config\.json"):
        from_transformers(tmp_path)
    make().config.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="has no weights"):
        from_transformers(tmp_path)
    save_file({"transformer.wte.weight": torch.ones(V, M)}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"lack \d+ tensors of a 'gpt2'"):
        from_transformers(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read"):
        from_transformers(tmp_path)
