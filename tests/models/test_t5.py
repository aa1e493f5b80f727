"""T5 by itself: with and without caches, padding, decoding as transformers does, its folder, watched and edited."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.errors import ShapeError
from regard.models import T5, T5Config, store
from regard.models.decoder_state import DecoderState
from regard.models.kinds import kind_of
from tests.models.convert.test_t5 import make as make_theirs

V, M, H, D, ENCODERS, DECODERS, HIDDEN, B, S, N = 23, 12, 3, 5, 2, 4, 20, 5, 14, 16
LENGTHS = [S, 4, 9, 2, 13]
VERSIONS = {
    "1.0": {},
    "1.1": {"activation": "geglu_tanh", "tied": False, "scaled": False},
}


def make(**options):
    sizes = {"hidden": HIDDEN, "head_width": D, "buckets": 8, "furthest": 11} | options
    model = T5Config(V, M, H, ENCODERS, DECODERS, **sizes).build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


def draw_batch():
    source, target = torch.randint(2, V, (B, S)), torch.randint(2, V, (B, N))
    for row, length in enumerate(LENGTHS):
        source[row, length - 1], source[row, length:] = 1, 0
    target[:, 0] = 0
    return source, target


@pytest.mark.parametrize("version", VERSIONS)
@torch.no_grad()
def test_step_by_step_equals_the_whole_target(version):
    model = make(**VERSIONS[version])
    source, target = draw_batch()
    wanted, steps = model(source, target), model.begin(source)
    assert isinstance(steps, DecoderState)
    found = [steps(part) for part in target.split([1, 1, 3, 1, 9, 1], 1)]
    assert_close(torch.stack(found, 1), wanted[:, [0, 1, 4, 5, 14, 15]], rtol=1e-10, atol=1e-10)
    assert steps.attention().shape == (B, S)
    assert_close(steps.attention().sum(1), torch.ones(B).double())
    assert steps.attention()[source == 0].eq(0).all()


@torch.no_grad()
def test_rows_of_a_padded_batch_equal_single_sentences():
    model = make()
    source, target = draw_batch()
    together = model(source, target)
    for row, length in enumerate(LENGTHS):
        alone = model(source[row : row + 1, :length], target[row : row + 1])
        assert_close(together[row : row + 1], alone, rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_rows_may_change_places_and_be_repeated_between_steps():
    model = make()
    source, target = draw_batch()
    index = torch.tensor([3, 0, 0, 4])
    steps = model.begin(source)
    steps(target[:, :3])
    steps.reorder(index)
    found = steps(target[index, 3:6])
    assert_close(found, model(source[index], target[index, :6])[:, -1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("version", VERSIONS)
@torch.no_grad()
def test_greedy_and_beams_write_what_transformers_writes(version):
    options = {} if version == "1.0" else {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    theirs = make_theirs(**options, num_decoder_layers=ENCODERS)  # their cache counts the layers of the encoder
    ours = regard.models.convert.from_transformers(theirs.config.to_dict(), theirs.state_dict())
    source, _ = draw_batch()
    how = {"attention_mask": (source != 0).long(), "max_new_tokens": 9, "do_sample": False}
    limits = regard.Limits(longest=9, begin=0, end=None)
    wanted = theirs.generate(source, **how, eos_token_id=None, num_beams=1)
    assert [one.ids for one in regard.greedy(ours.begin(source), B, limits=limits)] == wanted[:, 1:].tolist()
    wanted = theirs.generate(source, **how, eos_token_id=None, num_beams=3)
    found = regard.beam(ours.begin(source), B, beams=3, limits=limits)
    assert [best[0].ids for best in found] == wanted[:, 1:].tolist()


def test_gradients_reach_every_weight():
    for options in VERSIONS.values():
        model = make(**options).train()
        model(*draw_batch()).square().sum().backward()
        assert [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()] == []


@torch.no_grad()
def test_biases_of_distances_stand_once_and_follow_the_model():
    model = make()
    names = [name for name in model.state_dict() if "bias" in name]
    assert names == ["encoder_bias.embedding.weight", "decoder_bias.embedding.weight"]
    source, target = draw_batch()
    twin = copy.deepcopy(model)
    twin.decoder_bias.embedding.weight[3] += 1
    assert (twin(source, target) - model(source, target)).abs().max() > 1e-3
    model.load_state_dict(twin.state_dict())
    assert_close(twin(source, target), model(source, target), rtol=0, atol=0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_folder_of_ours_keeps_it(version, tmp_path):
    model = make(**VERSIONS[version]).float()
    store.write(tmp_path, model, model.config, {})
    again = store.read(tmp_path)
    assert isinstance(again, T5)
    assert again.config == model.config
    assert (kind_of(again).name, kind_of(again).reads) == ("t5", "pair")
    assert kind_of(again).looks_across(again)
    batch = draw_batch()
    assert_close(again(*batch), model(*batch), rtol=0, atol=0)


@torch.no_grad()
def test_watching_hears_every_layer_verified_with_its_biases():
    model = make()
    source, target = draw_batch()
    plain = model(source, target)
    with regard.watch(model) as trace:
        watched = model(source, target)
    assert torch.equal(plain, watched)
    assert [layer.name for layer in trace.layers][:3] == [
        "encoder.blocks.0.attention", "encoder.blocks.1.attention", "decoder.blocks.0.self_attention",
    ]  # fmt: skip
    assert len(trace.layers) == ENCODERS + 2 * DECODERS
    assert {proof.status for proof in trace.verify()} == {"verified"}
    x = model.encoder.blocks[0].around_attention.norm(model.source_embed.weight[source])
    first = model.encoder.blocks[0].attention
    q, k = (to(x).unflatten(-1, (H, D)).transpose(1, 2) for to in (first.to_q, first.to_k))
    place = torch.arange(S)
    scores = q @ k.mT + model.encoder_bias.block(place, place)
    scores = scores.masked_fill((source == 0)[:, None, None], -torch.inf)
    assert_close(trace.layers[0].weights.dense(), scores.softmax(-1), rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_muting_heads_is_zeroing_their_columns_of_the_output_projection():
    model = make()
    twin = copy.deepcopy(model)
    twin.decoder.blocks[2].cross_attention.to_out.weight.unflatten(1, (H, -1))[:, [0, 2]] = 0
    source, target = draw_batch()
    with regard.edit(model) as editor:
        editor.mute("decoder.blocks.2.cross_attention", heads=[0, 2])
        found = model(source, target)
    assert_close(found, twin(source, target), rtol=1e-10, atol=1e-10)
    assert (found - model(source, target)).abs().max() > 1e-4
    ranked = regard.importance(model, (source, target), progress=False)
    assert len(ranked.rows) == H * (ENCODERS + 2 * DECODERS)


def test_bad_input_is_refused_in_one_sentence():
    model = make()
    source, target = draw_batch()
    with pytest.raises(ShapeError, match="an id of the source is 23, but this model knows 23 tokens there"):
        model(torch.full((1, 3), V), target[:1])
    with pytest.raises(ShapeError, match="a source of 5 rows and a target of 2 came"):
        model(source, target[:2])
    with pytest.raises(ShapeError, match="row 1 of the source is padding alone"):
        model.begin(torch.tensor([[5, 6], [0, 0]]))
    with pytest.raises(ShapeError, match="decoder_layers is 0"):
        T5Config(V, M, H, ENCODERS, 0).build()
