"""BERT of another library: the same answers of every head, the same tensors back, and refusals by name."""

import json

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ModelError
from regard.models import BertConfig as OurConfig
from regard.models.convert import (
    convert_config,
    convert_weights,
    export_config,
    export_weights,
    from_transformers,
    to_transformers,
)
from regard.models.convert.bert import BERT
from tests.models.convert.common import ERROR, must_be_same, shaken
from tests.models.convert.encoders import (
    ARCHITECTURES,
    CONTEXT,
    HIDDEN,
    LABELS,
    LAYERS,
    TYPES,
    H,
    M,
    V,
    draw_batch,
    make,
    must_agree,
    parts,
    run,
    sizes,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=25)
@given(drawn=sizes("Bert"), batch=st.integers(1, 4))
def test_answers_equal_those_of_transformers_whatever_the_config(dtype, drawn, batch):
    architecture, options, length = drawn
    theirs = make(architecture, **options).to(dtype)
    ours = from_transformers(*parts(theirs))
    ids, types, real = draw_batch(theirs, batch, length)
    must_agree(ours(ids, types), run(theirs, ids, types, real), real, ERROR[dtype])


@pytest.mark.parametrize("architecture", ARCHITECTURES["Bert"])
def test_weights_come_back_bit_for_bit(architecture):
    given, state = parts(make(architecture))
    config = convert_config("bert", given)
    ours = convert_weights(BERT, state, config)
    must_be_same(export_weights(BERT, ours, config), state)
    must_be_same(convert_weights(BERT, export_weights(BERT, ours, config), config), ours)
    assert export_config("bert", config)["architectures"] == [architecture]
    assert config.labels == (LABELS if "Classification" in architecture else 2)


def test_a_decoder_that_is_not_tied_comes_back_too():
    theirs = make("BertForMaskedLM", tie_word_embeddings=False)
    given, state = parts(theirs)
    assert not torch.equal(state["cls.predictions.decoder.weight"], state["bert.embeddings.word_embeddings.weight"])
    config = convert_config("bert", given)
    must_be_same(export_weights(BERT, convert_weights(BERT, state, config), config), state)


@pytest.mark.parametrize("head", ["none", "masked_words", "pretrain", "next_sentence", "classify", "tags", "span"])
def test_a_model_of_ours_runs_in_transformers(head):
    config = OurConfig(
        vocab_size=V, width=M, heads=H, layers=LAYERS, context=CONTEXT, hidden=HIDDEN, token_types=TYPES, head=head,
        labels=LABELS, pooler=head == "none",
    )  # fmt: skip
    ours = shaken(config.build()).double()
    given = export_config("bert", config)
    architecture = given["architectures"][0]
    theirs = make(architecture, **{name: value for name, value in given.items() if name != "num_labels"}).double()
    theirs.load_state_dict(export_weights(BERT, ours.state_dict(), config))
    ids, types, real = draw_batch(theirs)
    must_agree(ours(ids, types), run(theirs, ids, types, real), real, 1e-9)


@pytest.mark.parametrize("architecture", ARCHITECTURES["Bert"])
def test_a_folder_of_transformers_becomes_our_model(architecture, tmp_path):
    theirs = make(architecture)
    theirs.save_pretrained(tmp_path)
    ids, types, real = draw_batch(theirs)
    must_agree(from_transformers(tmp_path)(ids, types), run(theirs, ids, types, real), real, 1e-4)


def test_the_pooler_is_there_where_the_weights_have_one():
    theirs = make("BertModel").double()
    given, state = parts(theirs)
    ours = from_transformers(given, state)
    ids, types, real = draw_batch(theirs)
    pooled = theirs(ids, token_type_ids=types, attention_mask=real.long()).pooler_output
    torch.testing.assert_close(ours.pool(ours(ids, types)), pooled, rtol=1e-9, atol=1e-9)
    bare = {name: tensor for name, tensor in state.items() if "pooler" not in name}
    without = from_transformers(given, bare)
    assert without.pooler is None
    must_be_same(export_weights(BERT, without.state_dict(), without.config), bare)


def test_a_config_that_names_no_class_is_a_body_without_a_head():
    theirs = make("BertModel")
    given, state = parts(theirs)
    assert from_transformers(given | {"architectures": None}, state).config.head == "none"
    renamed = {f"bert.{name}": tensor for name, tensor in state.items()}
    must_be_same(from_transformers(given, renamed).state_dict(), from_transformers(given, state).state_dict())


def test_files_as_google_published_them_are_understood():
    """Norms with gamma and beta, and both heads of pre-training where the config names one."""
    theirs = make("BertForPreTraining").double()
    given, state = parts(theirs)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in state.items()
        if not name.startswith("cls.predictions.decoder")
    }
    old["bert.embeddings.position_ids"] = torch.arange(CONTEXT)[None]
    ours = from_transformers(given | {"architectures": ["BertForMaskedLM"], "position_embedding_type": "absolute"}, old)
    assert ours.config.head == "pretrain"
    ids, types, real = draw_batch(theirs)
    must_agree(ours(ids, types), run(theirs, ids, types, real), real, 1e-9)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"is_decoder": True}, "is_decoder=True, .* only be made with False"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
        (
            {"architectures": ["BertForMultipleChoice"]},
            "architecture='BertForMultipleChoice', .* 'BertModel', 'BertFor",
        ),
        ({"architectures": [["BertModel"]]}, r"architecture=\['BertModel'\]"),
        ({"hidden_act": "silu"}, "hidden_act='silu', .* 'gelu', 'gelu_new', 'gelu_pytorch_tanh', 'relu'"),
        ({"pad_token_id": None}, "pad_token_id=None, wanted int"),
        ({"layer_norm_eps": "tiny"}, "layer_norm_eps='tiny', wanted float"),
        ({"surprise": 3}, "surprise=3, which the table of 'bert' does not know"),
        ({"add_cross_attention": True}, "add_cross_attention=True"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_config_that_we_cannot_express_is_refused_by_its_key(change, sentence):
    given = make("BertForMaskedLM").config.to_dict()
    convert_config("bert", given)
    with pytest.raises(ModelError, match=sentence):
        convert_config("bert", given | change)


def test_a_tensor_that_does_not_belong_is_named():
    given, state = parts(make("BertForMaskedLM"))
    name = "bert.encoder.layer.1.attention.self.key.bias"
    with pytest.raises(ModelError, match=r"have 1 tensors .* 'classifier\.weight'"):
        from_transformers(given, state | {"classifier.weight": torch.ones(2, M)})
    with pytest.raises(ModelError, match=rf"'{name}' came with shape \(7,\), but by the config it is \(12,\)"):
        from_transformers(given, state | {name: torch.ones(7)})
    with pytest.raises(ModelError, match=f"lack 1 tensors of a 'bert' of this config, '{name}'"):
        from_transformers(given, {other: tensor for other, tensor in state.items() if other != name})
    with pytest.raises(ModelError, match=r"'cls\.predictions\.decoder\.weight' and .* differ"):
        from_transformers(given, state | {"cls.predictions.decoder.weight": torch.ones(V, M)})
    body, bare = parts(make("BertModel"))
    with pytest.raises(ModelError, match=r"lack \d+ tensors .* 'cls\.predictions"):
        from_transformers(given, bare)
    with pytest.raises(ModelError, match=r"have \d+ tensors .* 'cls\.predictions"):
        from_transformers(body, state)


def test_our_models_that_are_no_bert_are_not_exported():
    plain = {"vocab_size": V, "width": M, "heads": H, "layers": LAYERS, "hidden": HIDDEN}
    with pytest.raises(ModelError, match="after_pad=True, but every 'bert' has False"):
        export_config("bert", OurConfig(**plain, after_pad=True))
    with pytest.raises(ModelError, match="head_activation='relu', but every 'bert' has one hidden_act"):
        export_config("bert", OurConfig(**plain, head_activation="relu"))
    with pytest.raises(ModelError, match="head='discriminate', which no architecture of the family 'bert' is"):
        export_config("bert", OurConfig(**plain, head="discriminate"))


@pytest.mark.parametrize("architecture", [name for family in ARCHITECTURES.values() for name in family])
def test_their_own_reader_takes_the_folder_that_we_write(architecture, tmp_path):
    """From every family; `from_pretrained` names what is missing or not known."""
    ours = from_transformers(*parts(make(architecture)))
    to_transformers(ours, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [architecture]
    theirs, info = getattr(transformers, architecture).from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    ids, types, real = draw_batch(theirs)
    must_agree(ours(ids, types), run(theirs.eval(), ids, types, real), real, 1e-4)
