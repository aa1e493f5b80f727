"""The encoder–decoder: against torch's own with the same weights, with and without caches, watched."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

import regard
from regard.attention.score.named import SCORES
from regard.errors import DtypeError, PositionError, ShapeError
from regard.layers import listen
from regard.models.convert import from_torch_transformer
from regard.models.decoder_state import DecoderState
from regard.models.translator import POSITIONS, TranslatorConfig

V, N, M, H, ENCODERS, DECODERS, HIDDEN, B, S, T = 23, 29, 12, 3, 2, 4, 20, 5, 7, 6


def draw_batch():
    """Sources of several lengths, padded with 0 and ended by 2; whole targets that begin with 1."""
    source, target = torch.randint(3, V, (B, S)), torch.randint(3, N, (B, T))
    for row, length in enumerate([S, 4, 6, 2, 5]):
        source[row, length - 1], source[row, length:] = 2, 0
    target[:, 0] = 1
    return source, target


def shaken(module):
    """Weights far from where they start, so that nothing hides behind a zero or a one."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.double()


def make(**options):
    sizes = {"decoder_layers": DECODERS, "hidden": HIDDEN} | options
    return shaken(TranslatorConfig(V, N, M, H, ENCODERS, **sizes).build()).eval()


def torch_twin(order):
    """`nn.Transformer` and ours with its weights. Post-norm stacks of the paper have no norm behind them."""
    how = {"batch_first": True, "norm_first": order == "pre", "dropout": 0.0}
    last = [nn.LayerNorm(M) if order == "pre" else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(M, H, HIDDEN, **how), ENCODERS, last[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(M, H, HIDDEN, **how), DECODERS, last[1])
    theirs = shaken(nn.Transformer(M, H, custom_encoder=encoder, custom_decoder=decoder, batch_first=True))
    tables = {"source_embed.weight": torch.randn(V, M), "target_embed.weight": torch.randn(N, M)}
    ours = from_torch_transformer(theirs, {name: table.double() for name, table in tables.items()}).train()
    assert ours.config.order == order
    return theirs, ours


@pytest.mark.parametrize("order", ["pre", "post"])
def test_logits_and_gradients_equal_those_of_torch_with_the_same_weights(order):
    theirs, ours = torch_twin(order)
    source, target = draw_batch()
    found = ours(source, target)
    embed, unembed = (ours.source_embed.weight.detach().clone(), ours.target_embed.weight.detach().clone())
    embed.requires_grad_()
    unembed.requires_grad_()
    hidden, later = source == 0, torch.ones(T, T, dtype=torch.bool).triu(1)
    wanted = theirs(
        F.embedding(source, embed) * M**0.5, F.embedding(target, unembed) * M**0.5, tgt_mask=later,
        src_key_padding_mask=hidden, memory_key_padding_mask=hidden,
    ) @ unembed.T  # fmt: skip
    assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    (found * found.detach().cos()).sum().backward()
    (wanted * wanted.detach().cos()).sum().backward()
    assert_close(ours.source_embed.weight.grad, embed.grad, rtol=1e-9, atol=1e-9)
    assert_close(ours.target_embed.weight.grad, unembed.grad, rtol=1e-9, atol=1e-9)
    for mine, their in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        for block, layer in zip(mine.blocks, their.layers, strict=True):
            assert_close(block.feed_forward.to_hidden.weight.grad, layer.linear1.weight.grad, rtol=1e-9, atol=1e-9)
            own = block.attention if mine is ours.encoder else block.self_attention
            packed = torch.cat([to.weight.grad for to in (own.to_q, own.to_k, own.to_v)])
            assert_close(packed, layer.self_attn.in_proj_weight.grad, rtol=1e-9, atol=1e-9)


def test_positions_are_added_to_embeddings_times_the_root_of_the_width():
    model = make(positions="sinusoid")
    ids = torch.randint(3, V, (B, S))
    table = model.source_embed.weight
    place, channel = torch.arange(S, dtype=torch.float64), torch.arange(M)
    angle = place[:, None] / 10000 ** ((channel - channel % 2) / M)
    waves = torch.where(channel % 2 == 0, angle.sin(), angle.cos())
    assert_close(model.encoder.embed(ids, table), table[ids] * M**0.5 + waves)


@pytest.mark.parametrize("attention", SCORES)
@pytest.mark.parametrize("positions", POSITIONS)
def test_step_by_step_equals_the_whole_target_with_every_position_and_score(positions, attention):
    model = make(positions=positions, attention=attention, decoder_layers=2)
    source, target = draw_batch()
    with torch.no_grad():
        wanted, steps = model(source, target), model.begin(source)
        assert isinstance(steps, DecoderState)
        assert steps.attention() is None
        found = [steps(part) for part in target.split([1, 1, 2, 1, 1], 1)]
    assert_close(torch.stack(found, 1), wanted[:, [0, 1, 3, 4, 5]], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_rows_of_a_padded_batch_equal_single_sentences(positions, order):
    model = make(positions=positions, order=order)
    source, target = draw_batch()
    together = model(source, target)
    for row in range(B):
        length = int((source[row] != 0).sum())
        alone = model(source[row : row + 1, :length], target[row : row + 1, :4])
        assert_close(together[row : row + 1, :4], alone, rtol=1e-10, atol=1e-10)


def test_rows_may_change_places_be_dropped_and_be_repeated_between_steps():
    model = make()
    source, target = draw_batch()
    with torch.no_grad():
        steps = model.begin(source)
        order = torch.tensor([3, 0, 0, 4, 1, 1, 2])
        steps.reorder(order)  # before anything was written, as beams do
        source, target = source[order], target[order]
        steps(target[:, :1])
        for step, index in enumerate([[1, 0, 2, 3, 5, 4, 6], [6, 5, 0, 3], [2, 2, 1], [0, 2]], start=1):
            looked = steps.attention()
            steps.reorder(torch.tensor(index))
            assert_close(steps.attention(), looked[index])
            source, target = source[index], target[index]
            assert_close(steps(target[:, step : step + 1]), model(source, target)[:, step], rtol=1e-10, atol=1e-10)
    assert steps.mask is None or len(steps.lengths) == 2


def test_beams_that_change_places_leave_the_memory_where_it_is():
    model = make()
    source, target = draw_batch()
    steps = model.begin(source)
    steps.reorder(torch.arange(B).repeat_interleave(2))
    steps(target.repeat_interleave(2, 0)[:, :1])
    kept = [others.keys for _, others in steps.caches]
    assert all(len(keys) == B for keys in kept), "one memory serves both beams of a sentence"
    steps.reorder(torch.arange(2 * B).view(B, 2).flip(1).flatten())
    assert all(others.keys.data_ptr() == was.data_ptr() for (_, others), was in zip(steps.caches, kept, strict=True))


def test_beams_that_share_a_memory_look_at_it_as_rows_of_their_own_would():
    model = make()
    source, target = draw_batch()
    with torch.no_grad():
        steps = model.begin(source)
        for step, index in enumerate([[0, 0, 0, 1, 1, 1, 3, 3, 3], [2, 0, 1, 6, 8, 8], [5, 3, 4]]):
            steps.reorder(torch.tensor(index))
            source, target = source[index], target[index]
            first = 0 if step == 0 else step + 1  # two tokens at once, then one each
            found = steps(target[:, first : step + 2])
            assert_close(found, model(source, target)[:, step + 1], rtol=1e-10, atol=1e-10)
            with listen() as heard:
                model(source, target[:, : step + 2])
            assert_close(steps.attention(), heard[-1][1].weights.dense().mean(1)[:, -1])
    assert len(steps.memory) == 1


def test_attention_is_the_mean_over_the_heads_of_the_last_layer():
    model = make()
    source, target = draw_batch()
    with torch.no_grad(), listen() as heard:
        model(source, target)
    maps = [attended.weights for module, attended in heard if module is model.decoder.blocks[-1].cross_attention]
    wanted = maps[0].dense().mean(1)  # b t s
    with torch.no_grad():
        steps, found = model.begin(source), []
        for ids in target.split(1, 1):
            steps(ids)
            found.append(steps.attention())
    assert_close(torch.stack(found, 1), wanted)
    assert (wanted * (source == 0)[:, None]).sum() == 0


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_logits_are_the_hidden_states_times_the_head_and_everything_learns(shared, tied):
    model = TranslatorConfig(
        N, N, M, H, ENCODERS, hidden=HIDDEN, shared=shared, tied=tied, positions="learned", dropout=0.1
    ).build()
    source, target = draw_batch()
    assert len(model.state_dict()) == len(list(model.parameters()))  # nothing is stored twice
    model.eval()
    hidden = model.hidden(source, target)
    assert hidden.shape == (B, T, M)
    assert model.head_weight.shape == (N, M)
    assert model.head_bias is None
    assert_close(model(source, target), hidden @ model.head_weight.T)
    model.train()(source, target).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for name, p in model.named_parameters() if "to_k.bias" not in name)
    tables = {id(model.source_embed.weight), id(model.target_table), id(model.head_weight)}
    assert len(tables) == 3 - shared - tied


def test_no_mask_is_made_where_nothing_is_padded(monkeypatch):
    model = make()
    source, target = draw_batch()
    wanted = model(source[:1], target[:1])
    monkeypatch.setattr("regard.models.encoder_decoder.padding", lambda lengths: pytest.fail("a mask was made"))
    assert_close(model(source[:1], target[:1]), wanted)


def test_a_watch_shows_encoder_decoder_and_cross_with_padding_hidden():
    model = make(decoder_layers=2)
    source, target = draw_batch()
    with torch.no_grad(), regard.watch(model) as trace:
        model(source, target)
    names = [
        *(("encoder.blocks.0.attention", "self", (S, S)), ("encoder.blocks.1.attention", "self", (S, S))),
        *(("decoder.blocks.0.self_attention", "self", (T, T)), ("decoder.blocks.0.cross_attention", "cross", (T, S))),
        *(("decoder.blocks.1.self_attention", "self", (T, T)), ("decoder.blocks.1.cross_attention", "cross", (T, S))),
    ]
    assert [(layer.name, layer.kind, layer.weights.shape[-2:]) for layer in trace.layers] == names
    assert trace.verify(), trace.verify()
    for layer in trace.layers:
        weights, keys = layer.weights.dense(), (target if layer.weights.shape[-1] == T else source)
        assert [tokens.ids for tokens in layer.keys] == [tuple(row) for row in keys.tolist()]
        if keys is source:
            assert not weights[(source == 0)[:, None, None].expand(weights.shape)].any()
        else:
            assert not weights.triu(1).any()


def test_steps_are_stitched_to_one_map_per_layer():
    model = make(decoder_layers=2)
    source, target = draw_batch()
    with torch.no_grad(), regard.watch(model) as whole:
        model(source, target)
    with torch.no_grad(), regard.watch(model) as trace:
        steps = model.begin(source)
        for ids in target.split(1, 1):
            steps(ids)
    wanted, found = ({layer.name: layer for layer in each.layers} for each in (whole, trace))
    decoders = [name for name in wanted if name.startswith("decoder")]
    assert [name for name in found if name.startswith("decoder")] == decoders
    for name in decoders:
        assert_close(found[name].weights.dense(), wanted[name].weights.dense())
        assert [tokens.ids for tokens in found[name].queries] == [tuple(row) for row in target.tolist()]
    assert trace.verify(), trace.verify()


def test_weights_start_where_the_field_starts_them():
    model = TranslatorConfig(4001, 3001, 128, 4, 1, dropout=0.1).build()
    assert model.source_embed.weight.std().item() == pytest.approx(128**-0.5, rel=0.02)
    to_hidden = model.encoder.blocks[0].feed_forward.to_hidden.weight
    assert to_hidden.abs().max().item() == pytest.approx((6 / (128 + 512)) ** 0.5, rel=0.01)
    packed = nn.MultiheadAttention(128, 4).in_proj_weight.abs().max().item()
    assert model.decoder.blocks[0].cross_attention.to_q.weight.abs().max().item() == pytest.approx(packed, rel=0.01)


def test_a_config_builds_what_it_says():
    config = TranslatorConfig(V, N, M, H, 2, decoder_layers=1, hidden=9, order="post", positions="rotary", tied=False)
    model = config.build()
    assert (len(model.encoder.blocks), len(model.decoder.blocks), model.head.weight.shape) == (2, 1, (N, M))
    assert isinstance(model.encoder.norm, nn.Identity)
    assert model.encoder.blocks[0].feed_forward.to_hidden.out_features == 9


def test_what_cannot_be_read_is_refused_in_one_sentence():
    model = make(positions="learned", context=8)
    source, target = draw_batch()
    for given, error, sentence in [
        ((source.float(), target), DtypeError, "the source came as torch.float32, wanted whole numbers"),
        ((source, target[0]), ShapeError, r"the target came with shape \(6,\), wanted \(b, t\)"),
        ((source[:, :0], target), ShapeError, r"the source came with shape \(5, 0\)"),
        ((source, target + 20), ShapeError, "an id of the target is .*, but this model knows 29 tokens there"),
        ((source[:2], target), ShapeError, "a source of 2 rows and a target of 5 came"),
        ((source.flip(1), target), ShapeError, "padding stands on the right"),
        ((source * 0, target), ShapeError, "row 0 of the source is padding alone"),
        ((source.repeat_interleave(2, 1).clamp(min=1), target), PositionError, "positions 0 to 13 came"),
    ]:
        with pytest.raises(error, match=sentence):
            model(*given)
    for options, error, sentence in [
        ({"shared": True}, ShapeError, "vocabularies of 23 and 29 tokens, but one table serves both sides"),
        ({"positions": "polar"}, ValueError, "positions is 'polar'; choose one of 'sinusoid'"),
        ({"attention": "loud"}, ValueError, "attention is 'loud'; choose one of 'scaled dot'"),
        ({"order": "mid"}, ValueError, "order is 'mid'"),
        ({"decoder_layers": 0}, ShapeError, "decoder_layers is 0, but a model has at least one"),
    ]:
        with pytest.raises(error, match=sentence):
            make(**options)


def test_it_learns_to_turn_a_sequence_round():
    torch.manual_seed(1)
    model = TranslatorConfig(12, 12, 32, 4, 1, hidden=64, shared=True).build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(150):
        ids = torch.randint(3, 12, (64, 5))
        source = F.pad(ids, (0, 1), value=2)
        target, wanted = F.pad(ids.flip(1), (1, 0), value=1), F.pad(ids.flip(1), (0, 1), value=2)
        loss = F.cross_entropy(model(source, target).flatten(0, 1), wanted.flatten())
        optimizer.param_groups[0]["lr"] = 3e-3 * min(1, (step + 1) / 30)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.3, loss
