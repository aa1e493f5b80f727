"""A Performer is the textbook product of features, in linear time, and approaches exact attention."""

import copy
import math
from itertools import product

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.mask import allowed, blocked, causal, documents, padding, window
from regard.attention.matrix_free import Performer, prefix
from regard.attention.matrix_free.features import KINDS, features
from regard.errors import ConfigError, PathError, ShapeError, Stale
from tests.child import in_child

B, H, G, D, E = 2, 6, 3, 5, 4
K = 23
HOLES = torch.rand(B, K, generator=torch.Generator().manual_seed(4)) < 0.7
BY_HEAD = torch.rand(1, H, 1, K, generator=torch.Generator().manual_seed(5)) < 0.7

MASKS = {
    "everything": lambda: None,
    "causal": lambda: causal(),
    "causal from the first": lambda: causal(align="first"),
    "padded": lambda: padding([17, K]),
    "nothing to see": lambda: padding([0, 4]),
    "padded in front": lambda: padding([9, 20], side="left"),
    "causal and padded": lambda: causal() & padding([17, 4]),
    "causal and padded in front": lambda: padding([9, 20], side="left") & causal(),
    "holes": lambda: allowed(HOLES, axes="b k"),
    "no holes": lambda: blocked(HOLES, axes="b k") & causal(),
    "by head": lambda: allowed(BY_HEAD),
    "either": lambda: padding([3, 9]) | padding([2, 4], side="left"),
    "twice causal": lambda: causal() & causal(align="first"),
}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def small(monkeypatch):
    """Several chunks in few rows."""
    monkeypatch.setattr(prefix, "CHUNK", 4)
    monkeypatch.setattr(prefix, "TRIANGLE", 3)
    monkeypatch.setattr(prefix, "height_of", lambda sums, most: most)


def drawn(q=K, k=K, size=0.8, dtype=torch.float64):
    generator = seeded(q + k)
    shapes = ((B, H, q, D), (B, G, k, D), (B, G, k, E))
    return [(torch.randn(s, dtype=dtype, generator=generator) * size).requires_grad_() for s in shapes]


def textbook(performer, q, k, v, seen):
    """Feature products as the paper has them, over a matrix that is all there."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    directions, root = performer.directions.to(q.dtype), q.shape[-1] ** -0.25
    of_q, of_k = (features(x * root, directions, performer.kind) for x in (q, k))
    weights = (of_q @ of_k.mT).masked_fill(~seen, 0.0)
    total = weights.sum(-1, keepdim=True)
    weights = torch.where(total == 0, 0.0, weights / torch.where(total == 0, 1.0, total))
    return weights, weights @ v


def seen_of(mask, q, k):
    return torch.ones(B, H, q, k, dtype=torch.bool) if mask is None else mask.dense(q, k, batch=B, heads=H)


@pytest.mark.parametrize(("name", "kind"), list(product(MASKS, KINDS)))
@pytest.mark.parametrize("q", [K, 16, 29])
def test_the_mix_and_the_map_are_those_of_the_textbook(small, name, kind, q):
    mask, performer = MASKS[name](), Performer(D, 7, kind=kind)
    tensors = drawn(q)
    a = regard.attend(*tensors, mask=mask, by=performer)
    weights, mix = textbook(performer, *tensors, seen_of(mask, q, K))
    assert (a.path, a.weights.kind, a.mix.shape) == ("performer", "implied", (B, H, q, E))
    assert_close(a.mix, mix)
    assert_close(a.weights.dense(), weights)
    assert_close(a.weights[1, 4, 3:9], weights[1, 4, 3:9])
    assert_close(a.weights[:, [5, 0]][0].rows([2, 1]), weights[0][[5, 0]][:, [2, 1]])
    assert a.weights.allowed[...].equal(seen_of(mask, q, K))
    ours = torch.autograd.grad(a.mix.square().sum(), tensors)
    assert_close(ours, torch.autograd.grad(mix.square().sum(), tensors))


@pytest.mark.parametrize("kind", KINDS)
def test_heads_and_batch_axes_may_be_absent_or_many(kind):
    performer = Performer(D, 9, kind=kind)
    q, k, v = (x.detach() for x in drawn())
    whole = regard.attend(q, k, v, mask=causal(), by=performer)
    one = regard.attend(q[1, 4], k[1, 2], v[1, 2], mask=causal(), by=performer)
    heads = regard.attend(q[1], k[1], v[1], mask=causal(), by=performer)
    many = regard.attend(q[:, None], k[:, None], v[:, None], mask=causal(), by=performer)
    assert_close(one.mix, whole.mix[1, 4])
    assert_close(heads.mix, whole.mix[1])
    assert_close(many.mix, whole.mix[:, None])
    assert_close(one.weights[3], whole.weights[1, 4, 3])
    assert_close(heads.weights[4, 3], whole.weights[1, 4, 3])
    assert_close(many.weights[1, 0, 4, 3], whole.weights[1, 4, 3])
    shared = regard.attend(q, k[:1, :1], v[:1, :1], by=performer)
    assert_close(
        shared.mix, regard.attend(q, k[:1, :1].expand(B, H, -1, -1), v[:1, :1].expand(B, H, -1, -1), by=performer).mix
    )


def test_causal_is_a_prefix_of_the_whole():
    q, k, v = (x.detach() for x in drawn())
    performer = Performer(D, 8)
    along = regard.attend(q, k, v, mask=causal(), by=performer).mix
    for n in (1, 9, K):
        everything = regard.attend(q[:, :, :n], k[:, :, :n], v[:, :, :n], by=performer).mix
        assert_close(along[:, :, n - 1], everything[:, :, -1])


@pytest.mark.parametrize("kind", KINDS)
def test_reading_step_by_step_is_the_causal_form(kind):
    performer = Performer(D, 8, kind=kind)
    q, k, v = (x.detach() for x in drawn())
    k = k * torch.linspace(0.1, 3, K)[:, None].double()  # exponents that grow, so that sums are lowered on the way
    expected = regard.attend(q, k, v, mask=causal() & padding([K - 3, K], side="left"), by=performer).mix
    running, parts = performer.begin(), []
    there = padding([K - 3, K], side="left").dense(1, K, batch=B, heads=1)[:, :, 0]
    for first, stop in ((0, 11), (11, 12), (12, 13), (13, K)):
        some = (x[:, :, first:stop] for x in (q, k, v))
        parts.append(running.step(*some, keys=there[..., first:stop]))
    assert_close(torch.cat(parts, -2), expected)
    assert running.seen == K
    running.reorder(torch.tensor([1, 1, 0]))
    again = running.step(*(x[[1, 1, 0]][:, :, :1] for x in (q, k, v)))
    assert again.shape == (3, H, 1, E)
    assert_close(again[0], again[1])


@pytest.mark.parametrize(("kind", "mask"), list(product(KINDS, ["everything", "causal and padded"])))
def test_gradients_are_those_of_finite_differences(small, kind, mask):
    performer = Performer(D, 6, kind=kind)
    q, k, v = (x.detach()[:1, :, :5] for x in drawn())
    tensors = [x.requires_grad_() for x in (q[:, :2], k[:, :1], v[:, :1])]
    visible = None if mask == "everything" else causal() & padding([4])
    assert torch.autograd.gradcheck(lambda *x: regard.attend(*x, mask=visible, by=performer).mix, tensors)


def test_what_is_hidden_reaches_neither_the_mix_nor_a_gradient():
    q, k, v = (x.detach() for x in drawn())
    mask = causal() & padding([17, K])
    k[0, :, 17:], v[0, :, 17:] = torch.nan, torch.inf
    tensors = [x.requires_grad_() for x in (q, k, v)]
    mix = regard.attend(*tensors, mask=mask, by=Performer(D, 8)).mix
    assert mix.isfinite().all()
    assert all(x.isfinite().all() for x in torch.autograd.grad(mix.sum(), tensors))


@pytest.mark.parametrize("kind", ["positive", "hyperbolic"])
@pytest.mark.parametrize("mask", [None, causal(), padding([0, 30])])
def test_numbers_of_any_size_give_a_mix_within_the_values(kind, mask):
    generator = seeded(3)
    q, k, v = (torch.randn(B, H, 300, 16, generator=generator) for _ in range(3))
    for size in (1.0, 30.0, 1000.0):
        a = regard.attend(q * size, k * size, v, mask=mask, by=Performer(16, 32, kind=kind))
        assert a.mix.isfinite().all()
        assert a.mix.abs().max() <= v.abs().max() * 1.001
        assert a.weights[0, 0].dense().sum(-1).max() < 1.001


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mask", [None, causal()])
@in_child
def test_half_precision_loses_only_what_rounding_the_input_loses(dtype, mask):
    generator = seeded(1)
    q, k, v = ((torch.randn(1, 2, 3000, 16, generator=generator) * 3).to(dtype) for _ in range(3))
    performer = Performer(16, 64)
    half = regard.attend(q, k, v, mask=mask, by=performer).mix
    full = regard.attend(q.double(), k.double(), v.double(), mask=mask, by=performer).mix
    assert half.dtype == dtype
    assert_close(half.double(), full, atol=2e-2 if dtype == torch.bfloat16 else 3e-3, rtol=1e-2)
    with torch.autocast("cpu", torch.bfloat16):
        cast = regard.attend(q.float(), k.float(), v.float(), mask=mask, by=performer).mix
    assert cast.equal(regard.attend(q.bfloat16(), k.bfloat16(), v.bfloat16(), mask=mask, by=performer).mix)


def test_the_error_falls_as_one_over_the_root_of_the_features():
    q, k, v = (torch.randn(1, 8, 128, 16, generator=seeded(seed)) / 4 for seed in range(3))
    sizes = [64, 256, 1024, 4096]
    errors = []
    for m in sizes:
        draws = (Performer(16, m, orthogonal=False, generator=seeded(seed)) for seed in range(50, 56))
        errors.append(sum(regard.attend(q, k, v, by=one).error().mix for one in draws) / 6)
    slope = (math.log(errors[-1]) - math.log(errors[0])) / (math.log(sizes[-1]) - math.log(sizes[0]))
    assert -0.6 < slope < -0.4


def output_error(kind, orthogonal, *, m, length, size, heads=1, draws=15):
    """Mean squared error of the mix over draws of input and directions, as in figure 4, with m numbers a vector."""
    found = []
    for seed in range(draws):
        generator = seeded(900 + seed)
        q, k, v = (torch.randn(1, heads, length, 16, generator=generator) for _ in range(3))
        q, k = q * size, k * size
        directions = m if kind == "positive" else m // 2
        performer = Performer(16, directions, kind=kind, orthogonal=orthogonal, generator=seeded(50 + seed))
        exact = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        found.append((regard.attend(q, k, v, by=performer).mix - exact).square().mean().item())
    return sum(found) / draws


def test_figure_4_orthogonal_directions_before_independent_ones():
    for kind in KINDS:
        right, any_way = (output_error(kind, o, m=128, length=512, size=0.25, heads=4) for o in (True, False))
        assert right < 0.85 * any_way


@pytest.mark.parametrize("m", [16, 128])
def test_figure_4_positive_features_before_trigonometric_ones(m):
    """On standard normal input. On input so small that all weights are alike it is the other way, as lemma 2 says."""
    for orthogonal in (True, False):
        positive, other = (
            output_error(kind, orthogonal, m=m, length=512, size=1.0) for kind in ("positive", "trigonometric")
        )
        assert positive < other / 100
    positive, other = (output_error(kind, True, m=m, length=128, size=0.25) for kind in ("positive", "trigonometric"))
    assert positive > other


@pytest.mark.slow
def test_figure_4_at_its_own_size():
    for m in (32, 64, 128, 192):
        right, any_way = (output_error("positive", o, m=m, length=4096, size=0.25) for o in (True, False))
        assert right < any_way
        positive, other = (
            output_error(kind, True, m=m, length=4096, size=1.0) for kind in ("positive", "trigonometric")
        )
        assert positive < other


def test_the_tolerances_of_the_authors_own_tests_hold():
    """google-research, performer: 10,000 tokens of width 8 with 1000 features; here 2500 of the queries."""
    generator = seeded(0)
    q, k, v = (torch.randn(1, 1, 10_000, 8, generator=generator) for _ in range(3))
    q = q[:, :, ::4]
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    found = regard.attend(q, k, v, by=Performer(8, 1000, generator=generator)).mix
    assert (found - exact).abs().max() < 0.5


def test_directions_are_in_the_state_and_are_redrawn_on_request_only():
    state = torch.random.get_rng_state()
    one, other = Performer(D, 8), Performer(D, 8, generator=seeded(9))
    assert list(one.state_dict()) == ["directions"]
    assert one.directions.equal(Performer(D, 8).directions)
    assert not one.directions.equal(other.directions)
    other.load_state_dict(one.state_dict())
    assert other.directions.equal(one.directions)
    twin = copy.deepcopy(one)
    q, k, v = drawn()
    before = regard.attend(q, k, v, by=one)
    first = before.weights[0, 0, 0]
    one.redraw(seeded(3))
    assert not one.directions.equal(twin.directions)
    assert_close(before.weights[0, 0, 0], first)  # a map keeps the directions that it was made with
    assert_close(regard.attend(q, k, v, by=twin).mix, before.mix)
    assert torch.random.get_rng_state().equal(state)
    after = regard.attend(q, k, v, by=one)
    one.load_state_dict(twin.state_dict())
    with pytest.raises(Stale, match="the directions"):
        after.weights[0, 0, 0]


@pytest.mark.parametrize(
    "mask", [window(3), documents([0] * 9 + [1] * (K - 9)), padding([[4] * K] * B), window(2) & causal()]
)
def test_masks_that_cannot_be_honoured_are_refused_by_name(mask):
    part = mask.left if hasattr(mask, "left") else mask
    with pytest.raises(PathError, match=r"Performer adds keys up .* leave by= out") as refused:
        regard.attend(*drawn(), mask=mask, by=Performer(D, 8))
    assert repr(part) in str(refused.value)


def test_arbitrary_tensors_are_refused():
    with pytest.raises(PathError, match="not allowed"):
        regard.attend(*drawn(), mask=torch.rand(B, H, K, K) < 0.5, by=Performer(D, 8))


def test_bad_sizes_are_refused_with_advice():
    with pytest.raises(ShapeError, match="features is 0"):
        Performer(D, 0)
    with pytest.raises(
        ShapeError, match=r"width 5, but this Performer has directions of width 8; make it as Performer\(5\)"
    ):
        regard.attend(*drawn(), by=Performer(8))
    with pytest.raises(ConfigError, match="kind is 'cosine'"):
        Performer(D, kind="cosine")


def test_empty_inputs_are_no_trouble():
    performer = Performer(D, 8)
    q, k, v = (x.detach() for x in drawn())
    assert regard.attend(q[:, :, :0], k, v, by=performer).mix.shape == (B, H, 0, E)
    nothing = regard.attend(q, k[:, :, :0], v[:, :, :0], by=performer)
    assert not nothing.mix.any()
    assert nothing.weights.dense().shape == (B, H, K, 0)
    assert not regard.attend(q, k[:, :, :0], v[:, :, :0], mask=causal(), by=performer).mix.any()


def test_a_scale_may_be_given_and_even_negative():
    q, k, v = drawn()
    performer = Performer(D, 4000, orthogonal=False)
    for scale in (0.1, -0.3):
        assert regard.attend(q, k, v, scale=scale, by=performer).error().mix < 0.15


def test_a_million_features_of_queries_are_never_held_at_once():
    """Costs: linear in n, and less than the matrix where it matters."""
    performer = Performer(64, 256)
    short, long = performer.cost(2048), performer.cost(4096)
    assert long.time == 2 * short.time
    assert long.memory == short.memory
    assert performer.cost(8192, gradients=True).memory < 8192**2 / 10
    assert long.text == "O(n·m·d) time, O(m·d) memory, with n = 4096, m = 256, d = 64"
    assert performer.cost(4096, causal=True).time > long.time
