"""ELECTRA of another library: generator, discriminator and the others answer the same, and their tensors come back."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ModelError
from regard.models import BertConfig
from regard.models.convert import convert_config, convert_weights, export_config, export_weights, from_transformers
from regard.models.convert.electra import ELECTRA
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

E = 7


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=25)
@given(drawn=sizes("Electra"), batch=st.integers(1, 4))
def test_answers_equal_those_of_transformers_whatever_the_config(dtype, drawn, batch):
    architecture, options, length = drawn
    theirs = make(architecture, **options).to(dtype)
    ours = from_transformers(*parts(theirs))
    ids, types, real = draw_batch(theirs, batch, length)
    must_agree(ours(ids, types), run(theirs, ids, types, real), real, ERROR[dtype])


@pytest.mark.parametrize("width", [E, M], ids=["projected", "as wide"])
@pytest.mark.parametrize("architecture", ARCHITECTURES["Electra"])
def test_weights_come_back_bit_for_bit_and_folders_are_read(architecture, width, tmp_path):
    theirs = make(architecture, embedding_size=width)
    given, state = parts(theirs)
    config = convert_config("electra", given)
    ours = convert_weights(ELECTRA, state, config)
    must_be_same(export_weights(ELECTRA, ours, config), state)
    assert export_config("electra", config)["architectures"] == [architecture]
    theirs.save_pretrained(tmp_path)
    must_be_same(from_transformers(tmp_path).state_dict(), ours)


@pytest.mark.parametrize("head", ["none", "masked_words", "discriminate", "classify", "tags", "span"])
def test_a_model_of_ours_runs_in_transformers(head):
    config = BertConfig(
        vocab_size=V, width=M, heads=H, layers=LAYERS, context=CONTEXT, hidden=HIDDEN, token_types=TYPES, labels=LABELS,
        embed_width=E, head=head, head_dense=True, pool_activation="gelu",
    )  # fmt: skip
    ours = shaken(config.build()).double()
    given = export_config("electra", config)
    theirs = make(given["architectures"][0], **given).double()
    theirs.load_state_dict(export_weights(ELECTRA, ours.state_dict(), config))
    ids, types, real = draw_batch(theirs)
    must_agree(ours(ids, types), run(theirs, ids, types, real), real, 1e-9)


def test_the_discriminator_bends_as_the_blocks_do_and_the_generator_by_gelu():
    for architecture, bend in (("ElectraForPreTraining", "relu"), ("ElectraForMaskedLM", "gelu")):
        given = make(architecture, hidden_act="relu").config.to_dict()
        assert convert_config("electra", given).head_activation == bend


def test_what_does_not_belong_is_named():
    given, state = parts(make("ElectraForPreTraining", embedding_size=E))
    with pytest.raises(ModelError, match=r"have 1 tensors .* 'electra\.pooler\.dense\.weight'"):
        from_transformers(given, state | {"electra.pooler.dense.weight": torch.ones(M, M)})
    name = "electra.embeddings_project.bias"
    with pytest.raises(ModelError, match=f"lack 1 tensors of a 'electra' of this config, '{name}'"):
        from_transformers(given, {other: one for other, one in state.items() if other != name})
    with pytest.raises(ModelError, match=r"'electra\.embeddings_project\.weight' came with shape \(12, 8\)"):
        from_transformers(given, state | {"electra.embeddings_project.weight": torch.ones(M, 8)})
    with pytest.raises(ModelError, match=r"architecture='ElectraForMultipleChoice'"):
        convert_config("electra", given | {"architectures": ["ElectraForMultipleChoice"]})
