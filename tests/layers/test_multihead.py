"""MultiHead against torch's own layer, against a hand-written one, and against laws."""

import math

import pytest
import torch
from torch import nn
from torch.autograd import grad
from torch.testing import assert_close

import regard
from regard.errors import PositionError, ShapeError
from regard.layers.check import must_end_in, must_fit

B, Q, K, M, H = 2, 5, 7, 12, 3


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def by_hand(layer, x, source, mask=None):
    """The paper's formula, one head at a time, for grouped heads too."""
    q, k, v = layer.to_q(x), layer.to_k(source), layer.to_v(source)
    d, group, mixed = layer.head_width, layer.heads // layer.kv_heads, []
    for h in range(layer.heads):
        g = h // group
        scores = q[..., h * d : (h + 1) * d] @ k[..., g * d : (g + 1) * d].mT / math.sqrt(d)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        mixed.append(scores.softmax(-1) @ v[..., g * d : (g + 1) * d])
    return layer.to_out(torch.cat(mixed, -1))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("key_width", "value_width"), [(None, None), (7, None), (7, 10)])
def test_a_layer_from_torch_gives_equal_outputs_and_gradients(bias, key_width, value_width):
    theirs = nn.MultiheadAttention(
        M, H, bias=bias, kdim=key_width, vdim=value_width, batch_first=False, dtype=torch.float64
    )
    for p in theirs.parameters():  # torch starts its biases at 0, where mistakes do not show
        nn.init.normal_(p)
    ours = regard.MultiHead.from_torch(theirs)
    x, source, values = draw(B, Q, M), draw(B, K, key_width or M), draw(B, K, value_width or M)
    x.requires_grad_()
    found = ours(x, source, values=values)
    wanted, weights = theirs(*(y.transpose(0, 1) for y in (x, source, values)), average_attn_weights=False)
    assert_close(found, wanted.transpose(0, 1))
    assert_close(ours.attend(x, source, values=values).weights.dense(), weights)
    assert_close(grad(found.square().sum(), x), grad(wanted.square().sum(), x))

    back = ours.to_torch()
    assert back.batch_first
    assert_close(dict(back.state_dict()), dict(theirs.state_dict()))
    assert_close(back(x, source, values)[0], wanted.transpose(0, 1))


def test_a_torch_mask_means_the_same_through_blocked():
    theirs = nn.MultiheadAttention(M, H, batch_first=True, dtype=torch.float64)
    ours, x = regard.MultiHead.from_torch(theirs), draw(B, Q, M)
    hidden = torch.ones(Q, Q, dtype=torch.bool).triu(1)
    wanted = theirs(x, x, x, attn_mask=hidden)[0]
    assert_close(ours(x, mask=regard.blocked(hidden, axes="q k")), wanted)
    assert_close(ours(x, mask=regard.causal()), wanted)
    padded = torch.arange(Q) >= torch.tensor([[3], [2]])
    wanted = theirs(x, x, x, key_padding_mask=padded)[0]
    assert_close(ours(x, mask=regard.padding([3, 2])), wanted)


def test_without_a_batch_it_equals_torch_too():
    theirs = nn.MultiheadAttention(M, H, dtype=torch.float64)
    ours, x, source = regard.MultiHead.from_torch(theirs), draw(Q, M), draw(K, M)
    assert_close(ours(x, source), theirs(x, source, source)[0])


def test_mode_dropout_and_dtype_come_along_from_torch():
    theirs = nn.MultiheadAttention(M, H, dropout=0.25, dtype=torch.float64).eval()
    ours = regard.MultiHead.from_torch(theirs)
    assert (ours.dropout, ours.training, ours.to_q.weight.dtype) == (0.25, False, torch.float64)
    assert ours.to_torch().dropout == 0.25
    ours.to_q.weight.data.zero_()  # a copy: theirs stays
    assert theirs.in_proj_weight.abs().sum() > 0


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_what_ours_cannot_express_is_refused_by_name(option):
    with pytest.raises(ValueError, match=f"made with {option}=True, which MultiHead has no counterpart for"):
        regard.MultiHead.from_torch(nn.MultiheadAttention(M, H, **{option: True}))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kv_heads": 1}, "1 key heads shared by 3 heads"),
        ({"head_width": 5}, "heads of width 5 that do not add up to width 12"),
        ({"positions": regard.Rotary(4)}, "positions=Rotary"),
        ({"qk_norm": True}, "qk_norm=True"),
        ({"score": regard.Cosine()}, "score=Cosine"),
        ({"scale": 1.0}, "scale=1.0"),
        ({"softcap": 30.0}, "softcap=30.0"),
        ({"sinks": True}, "sinks=True"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_torch_cannot_express_is_refused_by_name(options, words):
    with pytest.raises(ValueError, match=f"nn.MultiheadAttention cannot express {words}"):
        regard.MultiHead(M, H, **options).to_torch()


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_grouped_heads_equal_the_formula_head_by_head(kv_heads):
    layer = regard.MultiHead(M, 4, kv_heads=kv_heads, head_width=5, key_width=9, value_width=9).double()
    x, source = draw(B, Q, M), draw(B, K, 9)
    assert layer.to_k.weight.shape == (kv_heads * 5, 9)
    assert_close(layer(x, source), by_hand(layer, x, source))


def test_source_defaults_to_x_and_values_may_come_from_elsewhere():
    layer = regard.MultiHead(M, H).double()
    x, values = draw(B, Q, M), draw(B, Q, M)
    assert_close(layer(x), by_hand(layer, x, x))
    assert torch.equal(layer(x), layer(x, x))
    assert torch.equal(layer(x, values=values), layer(x, x, values=values))
    assert not torch.allclose(layer(x), layer(x, values=values))


@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (2, 0)], ids=str)
def test_any_number_of_leading_axes_and_the_shape_stays(lead):
    layer = regard.MultiHead(M, H, positions=regard.Rotary(4)).double()
    x = draw(*lead, Q, M)
    found = layer(x, mask=regard.causal())
    assert found.shape == x.shape
    attended = layer.attend(x, mask=regard.causal())
    assert attended.mix.shape == (*lead, H, Q, 4)
    assert attended.weights.shape == (*lead, H, Q, Q)
    alone = [layer(one, mask=regard.causal()) for one in x.reshape(-1, Q, M)]
    assert_close(found.reshape(-1, Q, M), torch.stack(alone) if alone else x.reshape(-1, Q, M))


def test_qk_norm_comes_before_the_turn_and_over_each_head():
    layer = regard.MultiHead(M, H, qk_norm=True, positions=regard.Rotary(4)).double()
    for norm in (layer.q_norm, layer.k_norm):
        nn.init.normal_(norm.weight)
    x = draw(B, Q, M)
    q, k, v = (to(x).view(B, Q, H, 4).transpose(1, 2) for to in (layer.to_q, layer.to_k, layer.to_v))
    q, k = (
        layer.positions(y / (y.square().mean(-1, keepdim=True) + 1e-6).sqrt() * norm.weight)
        for y, norm in ((q, layer.q_norm), (k, layer.k_norm))
    )
    mixed = nn.functional.scaled_dot_product_attention(q, k, v)
    assert_close(layer(x), layer.to_out(mixed.transpose(1, 2).reshape(B, Q, M)))


def test_sinks_take_a_share_and_learn():
    layer = regard.MultiHead(M, H, sinks=True).double()
    x = draw(B, Q, M)
    q, k, v = (to(x).view(B, Q, H, 4).transpose(1, 2) for to in (layer.to_q, layer.to_k, layer.to_v))
    layer.sink_logits.data = draw(H)
    scores = torch.cat((q @ k.mT / 2, layer.sink_logits[:, None, None].expand(B, H, Q, 1)), -1)
    wanted = scores.softmax(-1)[..., :-1] @ v
    assert_close(layer.attend(x).mix, wanted)
    layer(x).sum().backward()
    assert layer.sink_logits.grad.abs().min() > 0


def test_score_scale_and_softcap_go_to_attend():
    x = draw(B, Q, M)
    additive = regard.Additive(query=4, key=4, hidden=6).double()
    for options in ({"score": additive}, {"scale": 0.3}, {"softcap": 1.5}, {"score": regard.Cosine()}):
        layer = regard.MultiHead(M, H, **options).double()
        q, k, v = (to(x).view(B, Q, H, 4).transpose(1, 2) for to in (layer.to_q, layer.to_k, layer.to_v))
        assert_close(layer.attend(x).mix, regard.attend(q, k, v, **options).mix)
    assert any(name.startswith("score.") for name, _ in regard.MultiHead(M, H, score=additive).named_parameters())


def test_a_learned_scale_learns():
    layer = regard.MultiHead(M, H, scale=nn.Parameter(torch.tensor(0.3))).double()
    layer(draw(B, Q, M)).square().sum().backward()
    assert layer.scale.grad is not None


def test_a_bias_is_added_to_the_scores_and_learns():
    buckets = regard.Buckets(H).double()
    nn.init.normal_(buckets.embedding.weight)
    layer, x = regard.MultiHead(M, H, positions=buckets).double(), draw(B, Q, M)
    q, k, v = (to(x).view(B, Q, H, 4).transpose(1, 2) for to in (layer.to_q, layer.to_k, layer.to_v))
    at = torch.arange(Q)
    wanted = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=buckets.block(at, at)[None])
    assert_close(layer.attend(x).mix, wanted)
    layer(x).square().sum().backward()
    assert buckets.embedding.weight.grad.abs().sum() > 0


def test_rotary_sees_only_distances_so_shifted_places_change_nothing():
    layer, x = regard.MultiHead(M, H, positions=regard.Rotary(4)).double(), draw(B, Q, M)
    shifted = torch.arange(Q) + 1000
    rows = shifted + torch.tensor([[0], [77]])
    wanted = layer(x)
    assert_close(layer(x, places=shifted), wanted)
    assert_close(layer(x, places=rows), wanted)
    assert not torch.allclose(layer(x, places=2 * shifted), wanted)
    assert not torch.allclose(regard.MultiHead.forward(layer, x.flip(1)).flip(1), wanted)


def test_self_attention_hands_views_to_attend():
    layer, x = regard.MultiHead(M, H), torch.randn(B, Q, M)
    seen = {}
    layer.to_k.register_forward_hook(lambda module, args, out: seen.update(k=out))
    k = layer.attend(x).weights.source.k
    assert k.data_ptr() == seen["k"].data_ptr()


def test_dropout_is_on_in_training_only_and_seeded():
    layer, x = regard.MultiHead(M, H, dropout=0.5).double(), draw(B, Q, M)
    assert not torch.equal(layer(x), layer(x))
    torch.manual_seed(3)
    first = layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)
    layer.eval()
    assert torch.equal(layer(x), layer(x))
    assert_close(layer(x), by_hand(layer, x, x))
    gone = regard.MultiHead(M, H, dropout=1.0).double()
    assert_close(gone(x), gone.to_out.bias.expand(B, Q, M))


def test_a_sequence_without_anything_to_see_gives_the_output_bias():
    layer, x = regard.MultiHead(M, H).double(), draw(B, Q, M)
    found = layer(x, mask=regard.padding([0, 4]))
    assert_close(found[0], layer.to_out.bias.expand(Q, M))
    found.sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: regard.MultiHead(100, 3), r"width 100 does not split into 3 equal heads \(1 left over\)"),
        (lambda: regard.MultiHead(12, 0), "heads is 0, but a layer has at least one head"),
        (lambda: regard.MultiHead(12, 4, kv_heads=3), "choose kv_heads that divide 4"),
        (lambda: regard.MultiHead(12, 4, kv_heads=0), "4 heads do not share 0 key heads"),
        (lambda: regard.MultiHead(12, 3, positions=regard.Rotary(6)), r"heads are 4 wide; give Rotary\(4\)"),
        (lambda: regard.MultiHead(12, 3, positions=regard.ALiBi(4)), "ALiBi is for 4 heads, but there are 3"),
        (lambda: regard.MultiHead(12, 3)(torch.ones(2, 5, 9)), r"x has shape \(2, 5, 9\), .* wants \(…, t, 12\)"),
        (lambda: regard.MultiHead(12, 3)(torch.ones(2, 5, 12), torch.ones(2, 5, 9)), "with key_width=9"),
        (
            lambda: regard.MultiHead(12, 3, key_width=9)(torch.ones(2, 5, 12), torch.ones(2, 5, 9)),
            r"the source of the values has shape \(2, 5, 9\).*value_width=9",
        ),
        (lambda: regard.MultiHead(12, 3)(torch.ones(2, 5, 12), torch.ones(5, 12)), "the same number of axes"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_advice(build, words):
    with pytest.raises(ShapeError, match=words):
        build()


@pytest.mark.parametrize("positions", [regard.Sinusoid(12), regard.Learned(9, 12)], ids=lambda p: type(p).__name__)
def test_positions_that_belong_to_embeddings_are_refused_with_advice(positions):
    with pytest.raises(TypeError, match=f"positions is {type(positions).__name__}, .* added to the embeddings before"):
        must_fit(positions, heads=3, head_width=4)


def test_places_without_rotary_are_refused():
    with pytest.raises(PositionError, match="only Rotary turns tokens by their place and positions= is none"):
        regard.MultiHead(12, 3)(torch.ones(5, 12), places=torch.arange(5))
    with pytest.raises(PositionError, match="positions= is ALiBi"):
        regard.MultiHead(12, 3, positions=regard.ALiBi(3))(torch.ones(5, 12), places=torch.arange(5))


def test_dropout_beyond_one_is_refused():
    with pytest.raises(ValueError, match=r"dropout is 1\.5, but it is a share"):
        regard.MultiHead(12, 3, dropout=1.5)


def test_nested_tensors_are_refused_with_the_padded_alternative():
    nested = torch.nested.nested_tensor([torch.ones(5, M), torch.ones(3, M)], layout=torch.jagged)
    with pytest.raises(ShapeError, match=r"x is a nested tensor; pad it to \(b, t, 12\)"):
        must_end_in("x", nested, M, "width")
    with pytest.raises((ShapeError, TypeError)):
        regard.MultiHead(M, H)(nested)
