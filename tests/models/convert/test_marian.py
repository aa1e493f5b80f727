"""Marian of another library as our translator: the same logits, the same tensors back, and refusals by name."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close
from transformers import MarianConfig, MarianMTModel

from regard.errors import ModelError
from regard.models import TranslatorConfig
from regard.models.convert import convert_config, convert_weights, export_config, export_weights, from_transformers
from regard.models.convert.marian import MARIAN, make_waves
from tests.models.convert.common import ERROR, must_be_same, shaken

V, M, H, ENCODERS, DECODERS, HIDDEN, CONTEXT, B, S, T = 23, 12, 3, 2, 4, 20, 31, 5, 7, 6


def make(*, heads=H, hidden=HIDDEN, **options):
    sizes = {
        "vocab_size": V,
        "d_model": M,
        "encoder_layers": ENCODERS,
        "decoder_layers": DECODERS,
        "max_position_embeddings": CONTEXT,
        "scale_embedding": True,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
        "forced_eos_token_id": None,
        **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), heads),
        **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), hidden),
    }
    theirs = MarianMTModel(MarianConfig(**sizes | options))
    waves = [stack.embed_positions.weight.clone() for stack in (theirs.model.encoder, theirs.model.decoder)]
    assert waves[0].abs().sum() > 0
    shaken(theirs)
    for stack, wave in zip((theirs.model.encoder, theirs.model.decoder), waves, strict=True):
        stack.embed_positions.weight.data.copy_(wave)
    return theirs


def parts(theirs):
    return theirs.config.to_dict(), theirs.state_dict()


def logits(theirs, source, target):
    return theirs(source, attention_mask=(source != 0).long(), decoder_input_ids=target).logits


def draw_batch(source_size=V, target_size=V):
    source, target = torch.randint(1, source_size, (B, S)), torch.randint(1, target_size, (B, T))
    for row in range(1, B):
        source[row, S - row :] = 0
    return source, target


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=15)
@given(
    head=st.integers(1, 6),
    heads=st.integers(1, 4),
    hidden=st.integers(1, 40),
    target=st.none() | st.integers(2, 40),
    options=st.fixed_dictionaries(
        {
            "encoder_layers": st.integers(1, 3),
            "decoder_layers": st.integers(1, 3),
            "activation_function": st.sampled_from(["relu", "gelu"]),
            "vocab_size": st.integers(2, 40),
            "max_position_embeddings": st.integers(S, 40),
        }
    ),
    tied=st.booleans(),
)
def test_logits_equal_those_of_transformers_whatever_the_config(dtype, head, heads, hidden, target, options, tied):
    apart = {"decoder_vocab_size": target, "share_encoder_decoder_embeddings": False} if target else {}
    theirs = make(
        d_model=head * heads, heads=heads, hidden=hidden, **options, **apart, tie_word_embeddings=tied or not target
    )
    ours = from_transformers(*parts(theirs))
    if dtype == torch.float64:  # their waves are kept in float32
        config = convert_config("marian", theirs.config.to_dict())
        for stack in (theirs.double().model.encoder, theirs.model.decoder):
            stack.embed_positions.weight.data = make_waves(config)
        ours = from_transformers(*parts(theirs))
    source, written = draw_batch(options["vocab_size"], target or options["vocab_size"])
    assert_close(ours(source, written), logits(theirs, source, written), rtol=ERROR[dtype], atol=ERROR[dtype])


@pytest.mark.parametrize(
    ("shared", "tied"), [(True, True), (False, True), (False, False)], ids=["one table", "two tables", "three tables"]
)
def test_weights_come_back_bit_for_bit(shared, tied):
    given, state = parts(make(share_encoder_decoder_embeddings=shared, tie_word_embeddings=tied))
    config = convert_config("marian", given)
    ours = convert_weights(MARIAN, state, config)
    again = export_weights(MARIAN, ours, config)
    waves = [name for name in state if "embed_positions" in name]
    assert len(waves) == 2
    for name in waves:
        assert_close(again.pop(name), state.pop(name), rtol=0, atol=1e-6)
    must_be_same(again, state)


def test_a_model_of_ours_runs_in_transformers():
    options = {"order": "post", "shared": True, "hidden": HIDDEN, "decoder_layers": DECODERS, "context": CONTEXT}
    config = TranslatorConfig(V, V, width=M, heads=H, layers=ENCODERS, **options)
    ours = shaken(config.build()).double()
    theirs = MarianMTModel(MarianConfig(**export_config("marian", config), decoder_start_token_id=0)).double().eval()
    theirs.load_state_dict(export_weights(MARIAN, ours.state_dict(), config))
    source, target = draw_batch()
    assert_close(logits(theirs, source, target), ours(source, target), rtol=1e-9, atol=1e-9)


def test_what_our_config_leaves_open_must_be_said_to_be_exported():
    config = TranslatorConfig(V, V, width=M, heads=H, layers=ENCODERS, order="post", hidden=HIDDEN)
    with pytest.raises(ModelError, match=r"leaves decoder_layers open, .* give one"):
        export_config("marian", config)


def test_a_folder_of_transformers_becomes_our_model(tmp_path):
    theirs = make()
    theirs.save_pretrained(tmp_path)
    source, target = draw_batch()
    assert_close(from_transformers(tmp_path)(source, target), logits(theirs, source, target), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scale_embedding": False}, "scale_embedding=False, .* only be made with True"),
        ({"activation_function": "swish"}, "activation_function='swish'"),
        (
            {"decoder_attention_heads": 4},
            r"different encoder_attention_heads and decoder_attention_heads \(3 and 4\), .* one heads for both",
        ),
        ({"decoder_ffn_dim": 8}, r"different encoder_ffn_dim and decoder_ffn_dim \(20 and 8\)"),
        ({"normalize_before": True}, "normalize_before=True"),
        ({"pad_token_id": None}, "pad_token_id=None, wanted int"),
    ],
)
def test_a_config_that_we_cannot_express_is_refused_by_its_key(change, sentence):
    given = make().config.to_dict()
    convert_config("marian", given)
    with pytest.raises(ModelError, match=sentence):
        convert_config("marian", given | change)
    del given["scale_embedding"]  # which then is False
    with pytest.raises(ModelError, match="scale_embedding=False"):
        convert_config("marian", given)


def test_what_was_learned_where_ours_has_nothing_is_refused_by_name():
    given, state = parts(make())
    with pytest.raises(ModelError, match=r"'final_logits_bias' has values of its own \(.* up to 0\.5\)"):
        from_transformers(given, state | {"final_logits_bias": torch.full((1, V), 0.5)})
    half = {name: tensor.half() for name, tensor in state.items()}
    from_transformers(given, half)
    with pytest.raises(ModelError, match=r"'final_logits_bias' has values of its own \(.* up to 0\.001\)"):
        from_transformers(given, half | {"final_logits_bias": torch.full((1, V), 1e-3, dtype=torch.float16)})
    name = "model.encoder.embed_positions.weight"
    with pytest.raises(ModelError, match=f"'{name}' has values of its own"):
        from_transformers(given, state | {name: state[name] + 0.1})
    with pytest.raises(ModelError, match=r"came with shape \(30, 12\), but by the config it is \(31, 12\)"):
        from_transformers(given, state | {name: state[name][1:]})
    with pytest.raises(ModelError, match=r"'model\.shared\.weight' and 'model\.encoder\.embed_tokens\.weight' differ"):
        from_transformers(given, state | {"model.shared.weight": torch.ones(V, M)})
