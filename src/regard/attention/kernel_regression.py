"""Where attention began: kernel regression, queries that look at examples (Nadaraya 1964, Watson 1964)."""

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.attend import Attended, attend
from regard.attention.mask import Mask, rule
from regard.attention.score import Gaussian
from regard.errors import ShapeError

Points = Float[Tensor, "..."]


def nadaraya_watson(x: Points, keys: Points, values: Points, *, width: float | Tensor = 1.0) -> Attended:
    r"""Predict at each x the mean of the values, weighted by how near their keys are.

    $\hat y(x) = \sum_i \mathrm{softmax}_i(-\lVert x - k_i\rVert^2 / 2\,\mathrm{width}^2)\, y_i$ (Nadaraya 1964,
    Watson 1964). x and keys are (n,) or (…, n, d), values (n,) or (…, n, e). The mix is the prediction, the
    weights are the map of which example each prediction rests on.

    >>> import torch
    >>> a = nadaraya_watson(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 4.0]))
    >>> a.mix
    tensor([0.6590, 2.6446])
    >>> a.weights[0]
    tensor([0.5741, 0.3482, 0.0777])
    """
    return regress(x, keys, values, Gaussian(width), None)


class KernelRegression(nn.Module):
    """Kernel regression whose width is learned.

    Called with x it predicts there. Called without x it predicts at the keys themselves, each without using its
    own key: a point that could look at itself would learn the width 0. In training that also holds for x that *is*
    the keys.

    >>> import torch
    >>> keys, values = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 4.0])
    >>> model = KernelRegression(width=1.0)
    >>> model(keys=keys, values=values)
    tensor([1.5473, 2.0000, 0.8176], grad_fn=<...>)
    """

    def __init__(self, *, width: float = 1.0) -> None:
        super().__init__()
        self.score = Gaussian(width, learned=True)

    def attend(self, x: Points | None = None, *, keys: Points, values: Points) -> Attended:
        """The prediction with its weight map."""
        alone = x is None or (self.training and x is keys)
        return regress(keys if x is None else x, keys, values, self.score, others() if alone else None)

    def forward(self, x: Points | None = None, *, keys: Points, values: Points) -> Points:
        """The prediction."""
        return self.attend(x, keys=keys, values=values).mix


def others() -> Mask:
    """Every key but a query's own."""
    return rule(lambda b, h, q, k: q != k)


def regress(x: Points, keys: Points, values: Points, score: Gaussian, mask: Mask | None) -> Attended:
    for name, given in (("x", x), ("keys", keys), ("values", values)):
        if given.ndim == 0:
            raise ShapeError(f"{name} is a single number; give (n,) or (…, n, d)")
    if x.ndim == 1 or keys.ndim == 1:
        if x.ndim != keys.ndim:
            raise ShapeError(
                f"x is {tuple(x.shape)} and keys are {tuple(keys.shape)}; give both as (n,) or both as (…, n, d)"
            )
        x, keys = x[:, None], keys[:, None]
    flat = values.ndim == 1
    a = attend(x, keys, values[:, None] if flat else values, score=score, mask=mask)
    return a._replace(mix=a.mix.squeeze(-1)) if flat else a
