"""Random features against the closed forms of the paper that proposed them (Choromanski et al. 2021)."""

import math

import pytest
import torch

from regard.attention.matrix_free.features import KINDS, draw, features

D = 5
DRAWS = 400_000


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def pair(seed=1, size=0.5, width=D):
    x, y = torch.randn(2, width, dtype=torch.float64, generator=seeded(seed)) * size
    return x, y


def estimates(x, y, kind, drawn):
    """φ(x)·φ(y) for many draws of m directions, (draws, m, d)."""
    return torch.stack([(features(x[None], one, kind) @ features(y[None], one, kind).mT).squeeze() for one in drawn])


def alone(x, y, kind, draws=DRAWS, seed=2):
    """The same for one direction each: the textbook, vectorised."""
    omega = torch.randn(draws, len(x), dtype=torch.float64, generator=seeded(seed))
    a, b = omega @ x, omega @ y
    sizes = (x @ x + y @ y) / 2
    if kind == "positive":
        return (a + b - sizes).exp()
    if kind == "hyperbolic":
        return ((a + b).exp() + (-a - b).exp()) / 2 * (-sizes).exp()
    return (a - b).cos() * sizes.exp()


def closed(x, y, kind):
    """The mean squared error of one direction, lemma 2."""
    plus, minus, kernel = ((x + y) @ (x + y)).exp(), -((x - y) @ (x - y)), (x @ y).exp()
    positive = plus * kernel**2 * (1 - 1 / plus)
    if kind == "positive":
        return positive
    if kind == "hyperbolic":
        return positive * (1 - 1 / plus) / 2
    return plus / kernel**2 * (1 - minus.exp()) ** 2 / 2


@pytest.mark.parametrize("kind", KINDS)
def test_lemma_1_the_product_of_features_is_the_kernel_on_average(kind):
    x, y = pair()
    directions = draw(DRAWS, D, orthogonal=False, generator=seeded(3), dtype=torch.float64)
    found = (features(x[None], directions, kind) @ features(y[None], directions, kind).mT).item()
    spread = (closed(x, y, kind) / DRAWS).sqrt().item()
    assert abs(found - (x @ y).exp().item()) < 4 * spread


@pytest.mark.parametrize("kind", KINDS)
def test_lemma_1_holds_for_orthogonal_directions_too(kind):
    x, y = pair()
    drawn = draw(D * 20_000, D, orthogonal=True, generator=seeded(3), dtype=torch.float64)
    products = features(x[None], drawn, kind) * features(y[None], drawn, kind) * len(drawn)
    found = products.reshape(-1, 20_000, D).sum(0).mean(-1)  # one estimate for each block of directions
    assert abs(found.mean() - (x @ y).exp()) < 4 * found.std() / math.sqrt(len(found))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_lemma_2_the_mean_squared_error_has_the_closed_form(kind, seed):
    x, y = pair(seed, 0.25)
    errors = (alone(x, y, kind) - (x @ y).exp()) ** 2
    tolerance = 5 * (errors.std() / math.sqrt(DRAWS)).item()
    assert tolerance < 0.15 * closed(x, y, kind)
    assert abs(errors.mean() - closed(x, y, kind)) < tolerance


@pytest.mark.parametrize("kind", KINDS)
def test_our_features_of_one_direction_are_the_formulas(kind):
    x, y = pair()
    omega = torch.randn(20, D, dtype=torch.float64, generator=seeded(2))
    torch.testing.assert_close(estimates(x, y, kind, omega[:, None]), alone(x, y, kind, draws=20))


@pytest.mark.parametrize("m", [2, 4, 6])
def test_theorem_2_orthogonal_directions_lower_the_error_by_at_least_this_much(m):
    width, draws = 6, 60_000
    x, y = pair(7, 0.6, width)
    blocks = draw(draws * width, width, orthogonal=True, generator=seeded(4), dtype=torch.float64)
    blocks = blocks.reshape(draws, width, width)[:, :m]
    products = (blocks @ (x + y) - (x @ x + y @ y) / 2).exp().mean(-1)
    errors = (products - (x @ y).exp()) ** 2
    gain = 2 * (m - 1) / (m * (width + 2)) * ((x @ y).exp() - (-(x @ x + y @ y) / 2).exp()) ** 2
    assert gain > 0
    assert errors.mean() - 3 * errors.std() / math.sqrt(draws) <= closed(x, y, "positive") / m - gain


def test_orthogonal_directions_stand_at_right_angles_in_blocks_and_have_the_lengths_of_normal_ones():
    directions = draw(4000, 7, orthogonal=True, generator=seeded(0), dtype=torch.float64)
    assert directions.shape == (4000, 7)
    block = directions[7:14]
    torch.testing.assert_close(block @ block.mT, torch.diag((block @ block.mT).diagonal()))
    assert abs((directions**2).sum(-1).mean() - 7) < 0.3
    assert directions.mean(0).abs().max() < 0.06  # every way is as likely
    torch.testing.assert_close(directions.mT @ directions / 4000, torch.eye(7).double(), atol=0.08, rtol=0)


def test_draws_depend_on_their_generator_alone():
    state = torch.random.get_rng_state()
    one, same, other = (draw(9, 4, orthogonal=True, generator=seeded(seed)) for seed in (1, 1, 2))
    assert one.equal(same)
    assert not one.equal(other)
    assert torch.random.get_rng_state().equal(state)
