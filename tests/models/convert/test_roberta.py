"""RoBERTa of another library: the same answers, whatever its padding id is, and the same tensors back."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ModelError, PositionError
from regard.models import BertConfig
from regard.models.convert import convert_config, convert_weights, export_config, export_weights, from_transformers
from regard.models.convert.roberta import ROBERTA
from tests.models.convert.common import ERROR, must_be_same, shaken
from tests.models.convert.encoders import (
    ARCHITECTURES,
    CONTEXT,
    HIDDEN,
    LABELS,
    LAYERS,
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
@given(drawn=sizes("Roberta"), batch=st.integers(1, 4))
def test_answers_equal_those_of_transformers_whatever_the_config(dtype, drawn, batch):
    architecture, options, length = drawn
    theirs = make(architecture, **options).to(dtype)
    ours = from_transformers(*parts(theirs))
    ids, types, real = draw_batch(theirs, batch, length)
    must_agree(ours(ids, types), run(theirs, ids, types, real), real, ERROR[dtype])


@pytest.mark.parametrize("architecture", ARCHITECTURES["Roberta"])
def test_weights_come_back_bit_for_bit_and_folders_are_read(architecture, tmp_path):
    theirs = make(architecture)
    given, state = parts(theirs)
    config = convert_config("roberta", given)
    ours = convert_weights(ROBERTA, state, config)
    must_be_same(export_weights(ROBERTA, ours, config), state)
    assert export_config("roberta", config)["architectures"] == [architecture]
    theirs.save_pretrained(tmp_path)
    must_be_same(from_transformers(tmp_path).state_dict(), ours)


@pytest.mark.parametrize("head", ["none", "masked_words", "classify", "tags", "span"])
def test_a_model_of_ours_runs_in_transformers(head):
    config = BertConfig(
        vocab_size=V, width=M, heads=H, layers=LAYERS, context=CONTEXT, hidden=HIDDEN, token_types=1, pad=3,
        after_pad=True, head=head, labels=LABELS, pooler=head == "none", head_dense=True, tied=False,
    )  # fmt: skip
    ours = shaken(config.build()).double()
    given = export_config("roberta", config)
    theirs = make(given["architectures"][0], **given).double()
    theirs.load_state_dict(export_weights(ROBERTA, ours.state_dict(), config))
    ids, types, real = draw_batch(theirs)
    must_agree(ours(ids, types), run(theirs, ids, types, real), real, 1e-9)


def test_a_pooler_beside_a_head_that_does_not_need_it_is_kept():
    theirs = make("RobertaForMaskedLM").double()
    given, state = parts(theirs)
    extra = {"roberta.pooler.dense.weight": torch.ones(M, M), "roberta.pooler.dense.bias": torch.ones(M)}
    ours = from_transformers(given, state | extra)
    assert ours.config.pooler
    ids, types, real = draw_batch(theirs)
    must_agree(ours(ids, types), run(theirs, ids, types, real), real, 1e-9)


def test_positions_begin_after_the_padding_id_and_end_with_the_table():
    ours = from_transformers(*parts(make("RobertaModel", pad_token_id=3)))
    assert ours.longest == CONTEXT - 4
    ids = torch.full((2, ours.longest), 5)
    ours(ids)
    with pytest.raises(PositionError, match=r"28 tokens came, but this model reads at most 27; shorten the input"):
        ours(torch.full((2, ours.longest + 1), 5))


def test_what_does_not_belong_is_named():
    given, state = parts(make("RobertaForMaskedLM"))
    with pytest.raises(ModelError, match=r"have 1 tensors .* 'lm_head\.more'"):
        from_transformers(given, state | {"lm_head.more": torch.ones(3)})
    with pytest.raises(ModelError, match=r"lack 1 tensors .* 'lm_head\.dense\.bias'"):
        from_transformers(given, {name: one for name, one in state.items() if name != "lm_head.dense.bias"})
    with pytest.raises(ModelError, match=r"architecture='RobertaForMultipleChoice'"):
        convert_config("roberta", given | {"architectures": ["RobertaForMultipleChoice"]})
    with pytest.raises(ModelError, match="surprise=3, which the table of 'roberta' does not know"):
        convert_config("roberta", given | {"surprise": 3})
    with pytest.raises(ModelError, match="head='pretrain', which no architecture of the family 'roberta' is"):
        export_config("roberta", BertConfig(
            V, M, H, LAYERS, hidden=HIDDEN, after_pad=True, head_dense=True, head="pretrain"
        ))  # fmt: skip
