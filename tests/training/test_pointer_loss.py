"""The loss of a mixture against the same written down plainly, which autograd differentiates."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.errors import ConfigError, PathError
from regard.models.pointer_generator import Mixture
from regard.models.pointer_mixture import mix_log_probs
from regard.training import pointer_loss as module
from regard.training.pointer_loss import pointer_loss

B, T, S, M, N = 3, 5, 7, 11, 17


def draw():
    """Leaves of the graph, and ids in which tokens repeat; some targets are copied, some are not, some are padding."""
    leaves = {
        "hidden": torch.randn(B, T, M, dtype=torch.float64),
        "weight": torch.randn(N, M, dtype=torch.float64),
        "gate": torch.randn(B, T, dtype=torch.float64),
        "scores": torch.randn(B, T, S, dtype=torch.float64),
    }
    source, targets = torch.randint(2, 8, (B, S)), torch.randint(2, N, (B, T))
    source[1, 4:], source[2, 5:] = 0, 0
    targets[0, :3], targets[1, 2:] = source[0, :3], 0
    return {name: leaf.requires_grad_() for name, leaf in leaves.items()}, source, targets


def mixture_of(leaves, source):
    copy = leaves["scores"].masked_fill(source[:, None] == 0, -torch.inf).softmax(-1)
    coverage = copy.cumsum(1) - copy
    return Mixture(leaves["hidden"], leaves["gate"], copy, coverage)


def plain(leaves, source, targets, smoothing, coverage):
    """Equations 6, 9, 12 and 13 over whole tables of log-probabilities."""
    mixture = mixture_of(leaves, source)
    log_probs = mix_log_probs(F.linear(leaves["hidden"], leaves["weight"]), mixture.gate, mixture.copy, source)
    counted = targets != 0
    right = -log_probs.gather(2, targets[..., None]).squeeze(-1)
    spread = -log_probs.mean(-1)
    twice = torch.minimum(mixture.copy, mixture.coverage).sum(-1)
    each = (1 - smoothing) * right + smoothing * spread + coverage * twice
    return each[counted].sum(), right[counted].sum()


@pytest.mark.parametrize("chunk", [1, 10**6])
@pytest.mark.parametrize("coverage", [0.0, 0.7])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_loss_and_gradients_equal_those_of_autograd(monkeypatch, smoothing, coverage, chunk):
    monkeypatch.setattr(module, "CHUNK", chunk * N)
    leaves, source, targets = draw()
    loss = pointer_loss(
        mixture_of(leaves, source), leaves["weight"], source, targets, smoothing=smoothing, coverage=coverage
    )
    wanted, nll = plain(leaves, source, targets, smoothing, coverage)
    assert loss.count == int((targets != 0).sum())
    assert_close(loss.sum, wanted, rtol=1e-10, atol=1e-10)
    assert_close(loss.nll, nll, rtol=1e-10, atol=1e-10)
    found = torch.autograd.grad(3 * loss.sum, list(leaves.values()))
    right = torch.autograd.grad(3 * wanted, list(leaves.values()))
    for name, mine, theirs in zip(leaves, found, right):
        assert_close(mine, theirs, rtol=1e-9, atol=1e-10, msg=lambda said, name=name: f"{name}: {said}")


def test_float32_is_close_and_finite_where_nothing_is_likely():
    leaves, source, targets = draw()
    with torch.no_grad():
        leaves["gate"].fill_(-60.0)
        leaves["scores"][..., 0] += 300.0
    small = {name: leaf.detach().float().requires_grad_() for name, leaf in leaves.items()}
    loss = pointer_loss(mixture_of(small, source), small["weight"], source, targets, smoothing=0.1)
    wanted, _ = plain(leaves, source, targets, 0.1, 0.0)
    assert_close(loss.sum.double(), wanted, rtol=1e-5, atol=1e-5)
    assert all(grad.isfinite().all() for grad in torch.autograd.grad(loss.sum, list(small.values())))


def test_a_batch_of_padding_alone_costs_nothing():
    leaves, source, targets = draw()
    loss = pointer_loss(mixture_of(leaves, source), leaves["weight"], source, torch.zeros_like(targets), coverage=1.0)
    assert (loss.sum.item(), loss.count, loss.nll.item()) == (0.0, 0, 0.0)
    assert all((grad == 0).all() for grad in torch.autograd.grad(loss.sum, list(leaves.values())))


def test_one_table_of_the_size_of_the_vocabulary_is_made_and_written_over(monkeypatch):
    leaves, source, targets = draw()
    monkeypatch.setattr(module, "CHUNK", 64 * N)
    made = []

    class Sizes(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor) and out.shape[-1:] == (N,) and out.shape[:-1] != (M,) and out.dim() > 1:
                made.append((function.__name__, out.untyped_storage().data_ptr()))
            return out

    mixture = mixture_of(leaves, source)
    with Sizes():
        pointer_loss(mixture, leaves["weight"], source, targets, smoothing=0.1)
    assert len({place for _, place in made}) == 1, made


def test_what_cannot_be_is_refused():
    leaves, source, targets = draw()
    mixture = mixture_of(leaves, source)
    with pytest.raises(ConfigError, match="smoothing is 2"):
        pointer_loss(mixture, leaves["weight"], source, targets, smoothing=2)
    with pytest.raises(ConfigError, match="coverage -1"):
        pointer_loss(mixture, leaves["weight"], source, targets, coverage=-1)
    loss = pointer_loss(mixture, leaves["weight"], source, targets)
    with pytest.raises(PathError, match="no second derivative"):
        torch.autograd.grad(loss.sum, leaves["hidden"], create_graph=True)
