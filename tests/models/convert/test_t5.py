"""T5 of another library, in both its versions: the same logits, the same tensors back, and refusals by name."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close
from transformers import T5Config, T5ForConditionalGeneration

from regard.errors import ModelError
from regard.models import T5Config as OurConfig
from regard.models.convert import (
    convert_config,
    convert_weights,
    export_config,
    export_weights,
    from_transformers,
    to_transformers,
)
from regard.models.convert.t5 import T5
from tests.models.convert.common import ERROR, must_be_same, shaken

V, M, H, D, ENCODERS, DECODERS, HIDDEN, B, S, T = 29, 12, 3, 5, 2, 4, 20, 6, 17, 14
VERSIONS = {"1.0": {}, "1.1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}}


def make(**options):
    sizes = {
        "vocab_size": V,
        "d_model": M,
        "d_kv": D,
        "d_ff": HIDDEN,
        "num_layers": ENCODERS,
        "num_decoder_layers": DECODERS,
        "num_heads": H,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 11,
        "decoder_start_token_id": 0,
    }
    theirs = T5ForConditionalGeneration(T5Config(**sizes | options))
    if options.get("tie_word_embeddings") is False:  # theirs makes one tensor of both until they are read
        theirs.lm_head.weight = nn.Parameter(torch.empty_like(theirs.shared.weight))
    return shaken(theirs)


def in_float64(theirs):
    """Their model without its detour through float32: norms of torch."""
    theirs.double()
    for module in list(theirs.modules()):
        for name, child in module.named_children():
            if type(child).__name__ == "T5LayerNorm":
                norm = nn.RMSNorm(len(child.weight), eps=theirs.config.layer_norm_epsilon, dtype=torch.float64)
                norm.weight = child.weight
                setattr(module, name, norm)
    return theirs


def parts(theirs):
    return theirs.config.to_dict(), theirs.state_dict()


def draw_batch(size=V):
    source, target = torch.randint(1, size, (B, S)), torch.randint(1, size, (B, T))
    for row in range(1, B):
        source[row, S - 3 * row :] = 0
    return source, target


@torch.no_grad()
def logits(theirs, source, target):
    return theirs(input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target).logits


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=25)
@given(
    ranges=st.sampled_from([(32, 128), (8, 11), (8, 20), (16, 40), (4, 7)]),
    options=st.fixed_dictionaries(
        {
            "vocab_size": st.integers(3, 40),
            "d_model": st.integers(1, 20),
            "d_kv": st.integers(1, 8),
            "d_ff": st.integers(1, 40),
            "num_layers": st.integers(1, 3),
            "num_decoder_layers": st.integers(1, 3) | st.none(),
            "num_heads": st.integers(1, 4),
            "feed_forward_proj": st.sampled_from(["relu", "gated-gelu", "gated-silu", "gelu", "gelu_new"]),
            "layer_norm_epsilon": st.sampled_from([1e-6, 1e-5, 0.1]),
            "tie_word_embeddings": st.booleans(),
        }
    ),
)
def test_logits_equal_those_of_transformers_whatever_the_config(dtype, ranges, options):
    buckets = {"relative_attention_num_buckets": ranges[0], "relative_attention_max_distance": ranges[1]}
    theirs = make(**options, **buckets)
    theirs = theirs if dtype == torch.float32 else in_float64(theirs)
    ours = from_transformers(*parts(theirs))
    assert (ours.config.tied, ours.config.scaled) == (options["tie_word_embeddings"],) * 2
    source, target = draw_batch(options["vocab_size"])
    found = ours(source, target)
    assert found.dtype == dtype
    assert_close(found, logits(theirs, source, target), rtol=ERROR[dtype], atol=ERROR[dtype])


@pytest.mark.parametrize("version", VERSIONS)
def test_weights_come_back_bit_for_bit(version):
    theirs = make(**VERSIONS[version])
    ours = from_transformers(*parts(theirs))
    must_be_same(export_weights(T5, ours.state_dict(), ours.config), theirs.state_dict())
    again = convert_weights(T5, theirs.state_dict(), ours.config)
    must_be_same(again, ours.state_dict())
    assert ours.config.activation == ("relu" if version == "1.0" else "geglu_tanh")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_of_ours_runs_in_transformers(version, tmp_path):
    newer = version == "1.1"
    config = OurConfig(
        V, M, H, ENCODERS, DECODERS, HIDDEN, D, 16, 40, tied=not newer, scaled=not newer,
        activation="geglu_tanh" if newer else "relu",
    )  # fmt: skip
    ours = shaken(config.build())
    to_transformers(ours, tmp_path)
    theirs, info = T5ForConditionalGeneration.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    source, target = draw_batch()
    assert_close(logits(theirs.eval(), source, target), ours(source, target), rtol=1e-4, atol=1e-4)
    must_be_same(from_transformers(tmp_path).state_dict(), ours.state_dict())
    assert from_transformers(tmp_path).config == config


@pytest.mark.parametrize("version", VERSIONS)
def test_a_folder_of_transformers_becomes_our_model(version, tmp_path):
    theirs = make(**VERSIONS[version])
    theirs.save_pretrained(tmp_path)
    source, target = draw_batch()
    assert_close(from_transformers(tmp_path)(source, target), logits(theirs, source, target), rtol=1e-4, atol=1e-4)


def test_configs_and_files_of_older_versions_mean_the_same():
    given, state = parts(make(**VERSIONS["1.1"]))
    wanted = from_transformers(given, state)
    new = ("scale_decoder_outputs", "dense_act_fn", "is_gated_act", "tie_word_embeddings", "num_decoder_layers")
    old = {name: value for name, value in given.items() if name not in new}
    old |= {"tie_word_embeddings": False, "num_decoder_layers": DECODERS, "n_positions": 512, "output_past": True}
    unread = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    again = from_transformers(old, state | {unread: torch.ones(8, H)})
    assert again.config == wanted.config
    must_be_same(again.state_dict(), wanted.state_dict())
    del old["num_decoder_layers"]
    assert convert_config("t5", old).decoder_layers == ENCODERS


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"feed_forward_proj": "gated-relu"},
            "feed_forward_proj='gated-relu', .* only be made with 'relu', 'gated-gelu'",
        ),
        ({"is_decoder": True}, "is_decoder=True, .* only be made with False"),
        ({"d_kv": "5"}, "d_kv='5', wanted"),
        ({"eos_token_id": [1, 2]}, r"eos_token_id=\[1, 2\], wanted int"),
        ({"surprise": 3}, "surprise=3, which the table of 't5' does not know"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_config_that_we_cannot_express_is_refused_by_its_key(change, sentence):
    given = make().config.to_dict()
    convert_config("t5", given)
    with pytest.raises(ModelError, match=sentence):
        convert_config("t5", given | change)


def test_what_does_not_belong_is_named():
    given, state = parts(make())
    name = "decoder.block.2.layer.1.EncDecAttention.k.weight"
    with pytest.raises(ModelError, match=f"lack 1 tensors of a 't5' of this config, '{name}'"):
        from_transformers(given, {other: one for other, one in state.items() if other != name})
    with pytest.raises(ModelError, match=rf"'{name}' came with shape \(15, 13\), but by the config it is \(15, 12\)"):
        from_transformers(given, state | {name: torch.ones(15, 13)})
    with pytest.raises(ModelError, match=r"have 1 tensors .* 'encoder\.block\.0\.layer\.0\.SelfAttention\.q\.bias'"):
        from_transformers(given, state | {"encoder.block.0.layer.0.SelfAttention.q.bias": torch.ones(15)})
    with pytest.raises(ModelError, match=r"'encoder\.embed_tokens\.weight' and 'shared\.weight' differ"):
        from_transformers(given, state | {"encoder.embed_tokens.weight": torch.ones(V, M)})


def test_sizes_that_ours_leaves_open_are_exported_as_numbers():
    given = export_config("t5", OurConfig(V, M, H, ENCODERS))
    assert (given["num_decoder_layers"], given["d_ff"], given["d_kv"]) == (ENCODERS, 4 * M, M // H)
