"""A tensor of a run, kept as it was: a reference where writes to it are noticed, a copy elsewhere."""

import torch
from torch import Tensor

from regard.eager import is_owned, version
from regard.errors import Stale


class KeptTensor:
    """A tensor that is what it was when it was kept, or says that it was written to.

    >>> x = torch.ones(2)
    >>> kept = KeptTensor(x)
    >>> kept.value()
    tensor([1., 1.])
    >>> _ = x.zero_()
    >>> kept.value()
    Traceback (most recent call last):
    regard.errors.Stale: a tensor of the residual stream was written to after the run; run the model again
    """

    def __init__(self, x: Tensor, *, weight: bool = False) -> None:
        x = x.detach()
        self.weight = weight
        self.tensor = x if weight or is_owned(x) else x.clone(memory_format=torch.contiguous_format)
        self.version = version(self.tensor)

    def copy(self) -> None:
        """Before somebody writes to the tensor: from here on a copy is kept."""
        if version(self.tensor) == self.version:
            self.tensor = self.tensor.clone()
            self.version = version(self.tensor)

    def value(self) -> Tensor:
        if version(self.tensor) != self.version:
            what = "the model's weights were" if self.weight else "a tensor of the residual stream was"
            raise Stale(f"{what} written to after the run; run the model again")
        return self.tensor
