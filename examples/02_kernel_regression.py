"""Attention before it had a name: predict by looking at the examples that are near, and draw who looks at whom.

Run it: python examples/02_kernel_regression.py [folder for the pictures]
"""

import sys
from pathlib import Path

import torch

import regard

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
torch.manual_seed(0)


def truth(x):
    return 2 * torch.sin(x) + x**0.8


keys, _ = torch.sort(torch.rand(50) * 5)
values = truth(keys) + torch.randn(50) * 0.5
x = torch.arange(0, 5, 0.1)

# Fixed: every example weighs in by how near it is, with a kernel of width 1.
fixed = regard.nadaraya_watson(x, keys, values, width=1.0)
print(f"width 1.00: mean squared error {(fixed.mix - truth(x)).square().mean():.3f}")
fixed.weights.draw(title="width 1", to=folder / "kernel_fixed.svg")

# Learned: in training no point may look at itself, or the best width would be 0.
model = regard.KernelRegression(width=1.0)
optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(200):
    loss = (model(keys=keys, values=values) - values).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

learned = model.eval().attend(x, keys=keys, values=values)
width = model.score.width.item()
print(f"width {width:.2f}: mean squared error {(learned.mix - truth(x)).square().mean():.3f}, learned")
learned.weights.draw(title=f"width {width:.2f}, learned", to=folder / "kernel_learned.svg")
