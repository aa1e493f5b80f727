"""Regression by kernels, as attention."""

import numpy as np
import torch
from torch.testing import assert_close

import regard
from regard import reference
from tests.attention.cases import array


def test_kernel_regression_equals_the_plain_version_and_learns_its_width():
    torch.manual_seed(0)
    keys, _ = torch.sort(torch.rand(40, dtype=torch.float64) * 5)
    values = 2 * torch.sin(keys) + keys**0.8 + torch.randn(40, dtype=torch.float64) * 0.3
    x = torch.arange(0, 5, 0.2, dtype=torch.float64)
    a = regard.nadaraya_watson(x, keys, values, width=0.7)
    plain = reference.nadaraya_watson(array(x), array(keys), array(values), 0.7)
    prediction = plain.mix if hasattr(plain, "mix") else plain
    assert_close(a.mix, torch.tensor(np.asarray(prediction)).reshape(-1))
    assert a.weights.shape == (25, 40)
    model = regard.KernelRegression(width=2.0).double()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(60):
        loss = (model(keys=keys, values=values) - values).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
    assert 0.05 < next(model.parameters()).item() < 1.0  # looking at itself, it would shrink towards 0
    assert model.attend(keys=keys, values=values).weights.dense().diagonal().eq(0).all()
    assert model.attend(keys, keys=keys, values=values).weights.dense().diagonal().eq(0).all()
    assert model.eval().attend(keys, keys=keys, values=values).weights.dense().diagonal().gt(0).all()
