"""A Linformer attends to mixtures of what may be seen, and with the identity as mixtures it is exact."""

import copy
import math
from itertools import product

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.attention.mask import allowed, causal, padding, window
from regard.attention.matrix_free import Linformer
from regard.errors import ConfigError, PathError, ShapeError, Stale
from tests.child import in_child

B, H, G, D, E = 2, 6, 3, 5, 4
Q, K, LENGTH, RANK = 11, 23, 29, 7
HOLES = torch.rand(B, K, generator=torch.Generator().manual_seed(4)) < 0.7
BY_HEAD = torch.rand(1, H, 1, K, generator=torch.Generator().manual_seed(5)) < 0.7

MASKS = {
    "everything": lambda: None,
    "padded": lambda: padding([17, K]),
    "padded in front": lambda: padding([9, 20], side="left"),
    "nothing to see": lambda: padding([0, 4]),
    "holes": lambda: allowed(HOLES, axes="b k"),
    "by head": lambda: allowed(BY_HEAD),
}
WAYS = list(product([None, G, H], ["key-value", "none"]))


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def drawn(q=Q, k=K):
    generator = seeded(q + k)
    shapes = ((B, H, q, D), (B, G, k, D), (B, G, k, E))
    return [torch.randn(s, dtype=torch.float64, generator=generator).requires_grad_() for s in shapes]


def made(heads=None, share="none", **more):
    return Linformer(LENGTH, RANK, heads=heads, share=share, generator=seeded(1), **more).double()


def textbook(linformer, q, k, v, seen):
    """One head at a time, as the paper writes it, hidden keys left out."""
    weights = torch.zeros(B, H, q.shape[2], k.shape[2], dtype=q.dtype)
    for b, h in product(range(B), range(H)):
        g, there = h // (H // G), seen[b, h, 0]
        e, f = (x if x.ndim == 2 else x[g if len(x) == G else h] for x in (linformer.of_keys, linformer.of_values))
        e, f = e[:, : k.shape[2]][:, there], f[:, : k.shape[2]][:, there]
        if not there.any():
            continue
        rows = (q[b, h] @ (e @ k[b, g][there]).T / math.sqrt(D)).softmax(-1) @ f
        weights[b, h] = weights[b, h].index_copy(1, there.nonzero()[:, 0], rows)
    return weights, weights @ v.repeat_interleave(H // G, 1)


@pytest.mark.parametrize(("name", "way"), list(product(MASKS, WAYS)))
def test_the_mix_and_the_map_are_those_of_the_textbook(name, way):
    mask, linformer, tensors = MASKS[name](), made(*way), drawn()
    seen = torch.ones(B, H, Q, K, dtype=torch.bool) if mask is None else mask.dense(Q, K, batch=B, heads=H)
    a = regard.attend(*tensors, mask=mask, by=linformer)
    weights, mix = textbook(linformer, *tensors, seen)
    assert (a.path, a.weights.kind, a.mix.shape) == ("linformer", "implied", (B, H, Q, E))
    assert_close(a.mix, mix)
    assert_close(a.weights.dense(), weights)
    assert_close(a.weights[1, 4, 3:9], weights[1, 4, 3:9])
    assert_close(a.weights[:, [5, 0]][0].rows([2, 1]), weights[0][[5, 0]][:, [2, 1]])
    assert a.weights.allowed[...].equal(seen)
    everything = [*tensors, *linformer.parameters()]
    ours = torch.autograd.grad(a.mix.square().sum(), everything)
    assert_close(ours, torch.autograd.grad(mix.square().sum(), everything))


@pytest.mark.parametrize("way", WAYS)
def test_gradients_are_those_of_finite_differences(way):
    linformer = made(*way)
    tensors = [x.detach()[:1, :, :4].requires_grad_() for x in drawn()]
    names = [name for name, _ in linformer.named_parameters()]
    small = [p.detach()[..., :4].clone().requires_grad_() for p in linformer.parameters()]

    def mix(q, k, v, *parameters):
        here = copy.copy(linformer)
        here._parameters = linformer._parameters | dict(zip(names, parameters))
        here.length = 4
        return regard.attend(q, k, v, mask=padding([3]), by=here).mix

    assert torch.autograd.gradcheck(mix, [*tensors, *small], fast_mode=True)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("rank", [LENGTH, LENGTH + 4])
def test_the_identity_is_exact_attention(name, rank):
    mask, (q, k, v) = MASKS[name](), drawn()
    linformer = Linformer(LENGTH, rank).double()
    linformer.of_keys = nn.Parameter(torch.eye(rank, LENGTH, dtype=torch.float64))
    a, exact = regard.attend(q, k, v, mask=mask, by=linformer), regard.attend(q, k, v, mask=mask)
    assert_close(a.mix, exact.mix)
    assert_close(a.weights.dense(), exact.weights.dense())
    error = a.error()
    assert error.mix < 1e-12
    assert error.weights.largest < 1e-12


def test_a_padded_sequence_gets_what_it_gets_alone():
    linformer, (q, k, v) = made(), drawn()
    together = regard.attend(q, k, v, mask=padding([4, 17]), by=linformer).mix
    for b, n in enumerate((4, 17)):
        alone = regard.attend(q[b], k[b, :, :n], v[b, :, :n], by=linformer).mix
        assert_close(together[b], alone)


def test_what_is_hidden_reaches_neither_the_mix_nor_a_gradient():
    q, k, v = (x.detach() for x in drawn())
    k[0, :, 17:], v[0, :, 17:] = torch.nan, torch.inf
    tensors, linformer = [x.requires_grad_() for x in (q, k, v)], made()
    mix = regard.attend(*tensors, mask=padding([17, K]), by=linformer).mix
    assert mix.isfinite().all()
    found = torch.autograd.grad(mix.sum(), [*tensors, *linformer.parameters()])
    assert all(x.isfinite().all() for x in found)


def test_heads_and_batch_axes_may_be_absent_or_many():
    q, k, v = (x.detach() for x in drawn())
    for linformer in (made(), made(H), made(G)):
        whole = regard.attend(q, k, v, by=linformer)
        heads = regard.attend(q[1], k[1], v[1], by=linformer)
        many = regard.attend(q[:, None], k[:, None], v[:, None], by=linformer)
        assert_close(heads.mix, whole.mix[1])
        assert_close(many.mix, whole.mix[:, None])
        assert_close(many.weights[1, 0, 4, 3], whole.weights[1, 4, 3])
        assert_close(heads.weights[4, 3], whole.weights[1, 4, 3])
    one = regard.attend(q[1, 4], k[1, 2], v[1, 2], by=made())
    assert_close(one.mix, regard.attend(q, k, v, by=made()).mix[1, 4])
    assert_close(one.weights[3], regard.attend(q, k, v, by=made()).weights[1, 4, 3])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@in_child
def test_half_precision_is_summed_in_float32(dtype):
    q, k, v = (torch.randn(1, 2, 4000, 16, generator=seeded(n)).to(dtype) for n in range(3))
    linformer = Linformer(4096, 32)
    half = regard.attend(q, k, v, by=linformer).mix
    full = regard.attend(q.float(), k.float(), v.float(), by=linformer).mix
    assert half.dtype == dtype
    assert_close(half, full.to(dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert regard.attend(q.float(), k.float(), v.float(), by=linformer).mix.dtype == torch.bfloat16


def test_causal_is_refused_with_the_reason():
    for mask in (causal(), causal() & padding([3, 4])):
        with pytest.raises(PathError, match="each of its mixtures holds all positions, so every query would see later"):
            regard.attend(*drawn(), mask=mask, by=made())
    with pytest.raises(PathError, match=r"but not window\(3, 0\); leave by= out"):
        regard.attend(*drawn(), mask=window(3), by=made())


def test_bad_sizes_are_refused_with_advice():
    with pytest.raises(ShapeError, match="there are 30 keys, but this Linformer mixes at most 29"):
        regard.attend(*drawn(Q, 30), by=made())
    with pytest.raises(ShapeError, match="mixes for 4; make it with heads=3"):
        regard.attend(*drawn(), by=made(4))
    with pytest.raises(ShapeError, match="rank is 0"):
        Linformer(5, 0)
    with pytest.raises(ConfigError, match="share is 'layers'"):
        Linformer(5, share="layers")


def test_empty_inputs_are_no_trouble():
    q, k, v = (x.detach() for x in drawn())
    assert regard.attend(q[:, :, :0], k, v, by=made()).mix.shape == (B, H, 0, E)
    nothing = regard.attend(q, k[:, :, :0], v[:, :, :0], by=made())
    assert not nothing.mix.any()
    assert nothing.weights.dense().shape == (B, H, Q, 0)


def test_projections_are_in_the_state_and_a_map_is_not_asked_after_they_changed():
    state = torch.random.get_rng_state()
    one, shared = made(), made(share="key-value")
    assert [name for name, _ in one.named_parameters()] == ["of_keys", "own_of_values"]
    assert [name for name, _ in shared.named_parameters()] == ["of_keys"]
    assert shared.of_values is shared.of_keys
    assert made().of_keys.equal(one.of_keys)
    assert not one.of_values.equal(one.of_keys)
    other = Linformer(LENGTH, RANK, share="none").double()
    other.load_state_dict(one.state_dict())
    tensors = drawn()
    a = regard.attend(*tensors, by=one)
    assert regard.attend(*tensors, by=other).mix.equal(a.mix)
    assert regard.attend(*tensors, by=copy.deepcopy(one)).mix.equal(a.mix)
    assert torch.random.get_rng_state().equal(state)
    with torch.no_grad():
        one.of_values.mul_(2)
    with pytest.raises(Stale, match="the projection of the values was written to"):
        a.weights[0, 0, 0]


def projection_error(p, w, rank, draws):
    """‖P Rᵀ R w − P w‖ / ‖P w‖ for R of normal numbers of variance 1 / rank, theorem 1's projection."""
    length, found = p.shape[-1], []
    for seed in range(draws):
        r = Linformer(length, rank, generator=seeded(90 + seed)).double().of_keys.detach() * (length / rank) ** 0.5
        found.append(((p @ (r.mT @ (r @ w)) - p @ w).norm(dim=0) / (w.norm(dim=0) * p.norm())).mean().item())
    return sum(found) / draws


def test_theorem_1_the_projection_error_falls_as_one_over_the_root_of_the_rank():
    """Wang et al. 2020, theorems 1 and 2: k = 5 log n / (ε² − ε³) mixtures keep P w to ε, whatever n."""
    n, d = 384, 16
    q, k = (torch.randn(n, d, dtype=torch.float64, generator=seeded(seed)) for seed in range(2))
    p = regard.attend(q, k, k).weights.dense()
    w = torch.randn(n, 8, dtype=torch.float64, generator=seeded(3))
    ranks = [16, 64, 256]
    errors = [projection_error(p, w, rank, 6) for rank in ranks]
    slope = (math.log(errors[-1]) - math.log(errors[0])) / (math.log(ranks[-1]) - math.log(ranks[0]))
    assert -0.6 < slope < -0.4
    epsilon = 0.5
    rank = math.ceil(5 * math.log(n) / (epsilon**2 - epsilon**3))
    assert projection_error(p, w, rank, 6) < epsilon


def test_the_cost_is_linear_in_n():
    linformer = Linformer(8192, 256)
    short, long = linformer.cost(2048), linformer.cost(4096)
    assert long.time == 2 * short.time
    assert long.memory == short.memory
    assert linformer.cost(4096, gradients=True).memory == long.memory + 4096
    assert long.text == "O(n·k·d) time, O(k·d) memory, with n = 4096, k = 256, d = 64"
