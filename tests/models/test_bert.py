"""The encoder by itself: padding, heads, refusals, its folder, and what watching and editing see of it."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.errors import DtypeError, MaskError, PositionError, ShapeError
from regard.models import Bert, BertConfig, store
from regard.models.bert_config import HEADS
from regard.models.kinds import kind_of

V, M, H, LAYERS, HIDDEN, CONTEXT, TYPES, LABELS, B, T = 23, 12, 3, 2, 20, 17, 4, 5, 6, 9
LENGTHS = [T, 4, 7, 1, 8, 2]


def make(**options):
    """Weights far from where they start, so that nothing hides behind a zero or a one."""
    sizes = {"hidden": HIDDEN, "context": CONTEXT, "token_types": TYPES, "labels": LABELS} | options
    model = BertConfig(V, M, H, LAYERS, **sizes).build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


def draw_batch(pad=0):
    ids, types = torch.randint(4, V, (B, T)), torch.randint(TYPES, (B, T))
    for row, length in enumerate(LENGTHS):
        ids[row, length:] = pad
    return ids, types


def single(answer, row, length):
    """One row of an answer without its padding."""
    if isinstance(answer, tuple):
        return tuple(single(one, row, length) for one in answer)
    return answer[row, :length] if answer.shape[:2] == (B, T) else answer[row]


@pytest.mark.parametrize("after_pad", [False, True], ids=["BERT", "RoBERTa"])
@pytest.mark.parametrize("head", HEADS)
def test_rows_of_a_padded_batch_equal_single_texts(head, after_pad):
    model = make(head=head, after_pad=after_pad, pad=2)
    ids, types = draw_batch(pad=2)
    together = model(ids, types)
    for row, length in enumerate(LENGTHS):
        alone = model(ids[row : row + 1, :length], types[row : row + 1, :length])
        alone = tuple(one[0] for one in alone) if isinstance(alone, tuple) else alone[0]
        assert_close(single(together, row, length), alone, rtol=1e-10, atol=1e-10)


def test_lengths_and_masks_say_what_is_padding_where_the_ids_do_not():
    model = make()
    ids, types = draw_batch()
    wanted = model(ids, types)
    other = torch.where(ids == 0, 5, ids)
    for how in ({"lengths": LENGTHS}, {"lengths": torch.tensor(LENGTHS)}, {"mask": regard.padding(LENGTHS)}):
        found = model(other, types, **how)
        for row, length in enumerate(LENGTHS):
            assert_close(found[row, :length], wanted[row, :length], rtol=1e-10, atol=1e-10)
    assert (model(other, types)[1, :4] - wanted[1, :4]).abs().max() > 1e-3  # they are texts of their own now
    with pytest.raises(MaskError, match="a length is 10, but there are only 9 keys"):
        model(other, lengths=[10] * B)


def test_the_state_of_a_token_depends_on_what_comes_after_it():
    model = make()
    ids = torch.randint(4, V, (1, T))
    changed = ids.clone()
    changed[0, -1] = 4 + (ids[0, -1] - 3) % (V - 4)
    assert (model(ids) - model(changed))[0, 0].abs().max() > 1e-3


def test_token_types_are_zero_unless_given():
    model = make()
    ids, types = draw_batch()
    assert_close(model(ids), model(ids, torch.zeros_like(types)), rtol=0, atol=0)
    assert (model(ids) - model(ids, types)).abs().max() > 1e-3


def test_the_head_of_masked_words_answers_for_some_positions_alone():
    model = make(head="masked_words")
    ids, _ = draw_batch()
    chosen = torch.rand(B, T) < 0.3
    assert_close(model.apply_head(model.hidden(ids)[chosen]), model(ids)[chosen], rtol=1e-12, atol=1e-12)


def test_gradients_reach_every_weight_that_the_answer_needs():
    for head in HEADS:
        model = make(head=head, embed_width=7).train()
        answer = model(*draw_batch())
        sum(one.square().sum() for one in (answer if isinstance(answer, tuple) else (answer,))).backward()
        still = [name for name, weight in model.named_parameters() if weight.grad is None]
        assert still == [], head


@pytest.mark.parametrize("head", HEADS)
def test_a_folder_of_ours_keeps_it(head, tmp_path):
    model = make(head=head, embed_width=7, after_pad=True, head_dense=head == "classify").float()
    store.write(tmp_path, model, model.config, {})
    again = store.read(tmp_path)
    assert isinstance(again, Bert)
    assert again.config == model.config
    assert kind_of(again).name == "bert"
    ids, types = draw_batch()
    assert_close(again(ids, types), model(ids, types), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("error", "call", "sentence"),
    [
        (ShapeError, lambda m: m(torch.tensor([[5, V]])), "an id of the input is 23, but this model knows 23 tokens"),
        (DtypeError, lambda m: m(torch.ones(2, 3)), r"the input came as torch\.float32, wanted whole numbers"),
        (ShapeError, lambda m: m(torch.tensor([5, 6])), r"came with shape \(2,\), wanted \(b, t\)"),
        (ShapeError, lambda m: m(torch.ones(2, 0).long()), r"came with shape \(2, 0\), wanted \(b, t\)"),
        (ShapeError, lambda m: m(torch.tensor([[0, 5]])), "the input has id 0 before other ids, .* move it there"),
        (ShapeError, lambda m: m(torch.tensor([[5, 5], [0, 0]])), "row 1 of the input is padding alone"),
        (PositionError, lambda m: m(torch.full((1, 18), 5)), "18 tokens came, but this model reads at most 17"),
        (ShapeError, lambda m: m(torch.tensor([[5, 6]]), torch.tensor([[0]])), r"token types of shape \(1, 1\) came"),
        (ShapeError, lambda m: m(torch.tensor([[5]]), torch.tensor([[4]])), "an id of the token types is 4"),
        (ShapeError, lambda m: m.pool(torch.ones(1, 2, M).double()), "has no pooler; make it with pooler=True"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(error, call, sentence):
    with pytest.raises(error, match=sentence):
        call(make())


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"head": "mood"}, ValueError, "head is 'mood'; choose one of 'none', 'masked_words'"),
        ({"labels": 0}, ShapeError, "labels is 0"),
        ({"pool_activation": "swish"}, ValueError, "activation of a head is 'swish'; choose one of 'relu'"),
        ({"head": "masked_words", "head_activation": "?"}, ValueError, r"activation of a head is '\?'"),
        ({"width": 13}, ShapeError, "width 13 does not split into 3 equal heads"),
    ],
)
def test_a_config_that_is_no_model_is_refused(change, error, sentence):
    with pytest.raises(error, match=sentence):
        replace(BertConfig(V, M, H, LAYERS), **change).build()


def test_watching_hears_every_layer_verified_and_nobody_looks_at_padding():
    model = make(head="masked_words")
    ids, types = draw_batch()
    with torch.no_grad():
        plain = model(ids, types)
        with regard.watch(model) as trace:
            watched = model(ids, types)
    assert torch.equal(plain, watched)
    assert [layer.name for layer in trace.layers] == ["blocks.0.attention", "blocks.1.attention"]
    assert [proof.status for proof in trace.verify()] == ["verified", "verified"]
    for layer in trace.layers:
        weights = layer.weights.dense()
        assert weights.shape == (B, H, T, T)
        assert_close(weights.sum(-1), torch.ones(B, H, T).double())
        assert weights.masked_select((ids == 0)[:, None, None]).eq(0).all()
        assert weights.masked_select((ids != 0)[:, None, None]).gt(0).all()


def test_muting_heads_is_zeroing_their_columns_of_the_output_projection():
    model, twin = make(head="classify"), make(head="classify")
    twin.load_state_dict(model.state_dict())
    ids, types = draw_batch()
    with torch.no_grad():
        twin.blocks[1].attention.to_out.weight.unflatten(1, (H, -1))[:, [0, 2]] = 0
        with regard.edit(model) as editor:
            editor.mute("blocks.1.attention", heads=[0, 2])
            found = model(ids, types)
        assert_close(found, twin(ids, types), rtol=1e-10, atol=1e-10)
        assert (found - model(ids, types)).abs().max() > 1e-3


def test_blocking_a_key_is_masking_it_in_that_layer():
    model = make()
    ids = torch.randint(4, V, (1, T))
    with torch.no_grad():
        with regard.edit(model) as editor:
            for layer in range(LAYERS):
                editor.block(None, 3, f"blocks.{layer}.attention")
            found = model(ids)
        seen = torch.ones(1, 1, 1, T, dtype=torch.bool)
        seen[..., 3] = False
        assert_close(found, model(ids, mask=seen), rtol=1e-10, atol=1e-10)


def test_census_and_importance_run_over_it():
    model = make(head="masked_words").float()
    ids = torch.randint(4, V, (B, T))
    heads = regard.census(model, [row.tolist() for row in ids], progress=False)
    assert len(heads.rows) == LAYERS * H
    ranked = regard.importance(model, ids, progress=False)
    assert {(row["layer"], row["head"]) for row in ranked.rows} == {
        (f"blocks.{layer}.attention", head) for layer in range(LAYERS) for head in range(H)
    }
    assert ranked.rows[0]["kl"] >= ranked.rows[-1]["kl"] > 0


def test_heads_of_a_model_without_a_head_are_ranked_by_how_far_its_states_move():
    model = make()
    ids = torch.randint(4, V, (B, T))
    ranked = regard.importance(model, ids, progress=False)
    twin = make()
    twin.load_state_dict(model.state_dict())
    first = ranked.rows[0]
    with torch.no_grad():
        layer = twin.get_submodule(first["layer"])
        layer.to_out.weight.unflatten(1, (H, -1))[:, first["head"]] = 0
        moved = float((twin(ids) - model(ids)).norm() / model(ids).norm())
    assert first["relative"] == pytest.approx(moved)
    with regard.edit(model) as editor:
        editor.mute(first["layer"], heads=[first["head"]])
        assert editor.run(ids).kl is None
    assert regard.importance(make(head="tags"), ids, progress=False).rows[0]["kl"] > 0
