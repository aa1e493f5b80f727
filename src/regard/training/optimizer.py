"""Which optimiser a run learns by."""

import torch
from torch import nn
from torch.optim import Optimizer

from regard.training.settings import Settings

STATE = ("step", "exp_avg", "exp_avg_sq", "momentum_buffer")  # what optimisers remember of a weight


def make_optimizer(model: nn.Module, settings: Settings, *, fused: bool) -> Optimizer:
    """AdamW, or SGD with momentum.

    AdamW moves the embedding of a rare word as far as that of a common one, so that a small data set is soon learned
    by heart; SGD moves each as far as its gradient is.

    >>> type(make_optimizer(nn.Linear(2, 3), Settings(optimizer="sgd", lr=0.1), fused=False)).__name__
    'SGD'
    """
    weights, lr, decay = model.parameters(), settings.lr, settings.weight_decay
    if settings.optimizer == "sgd":
        return torch.optim.SGD(weights, lr=lr, momentum=settings.momentum, weight_decay=decay, fused=fused)
    return torch.optim.AdamW(weights, lr=lr, betas=settings.betas, weight_decay=decay, fused=fused)
