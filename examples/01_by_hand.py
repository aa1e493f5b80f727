"""Attention on five tokens: the formula in NumPy, the same from PyTorch's kernels, and who may look where.

Run it: python examples/01_by_hand.py
"""

import numpy as np
import torch

import regard

X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])

# By the formula: softmax(q kᵀ / √d) v. Each stage is kept.
plain = regard.reference.attend(X, X, X)
print("scores of the first token: ", plain.scores[0])
print("its weights:               ", plain.weights[0].round(4))
print("its mix:                   ", plain.mix[0].round(4))

# The mix comes from the fastest kernel that applies. The weights are not stored: any part is computed on demand.
x = torch.from_numpy(X)
fast = regard.attend(x, x, x)
print("the same by path", repr(fast.path) + ":", fast.weights[0].numpy().round(4))
np.testing.assert_allclose(fast.weights.dense(), plain.weights, rtol=1e-12)
np.testing.assert_allclose(fast.mix, plain.mix, rtol=1e-12)

# A mask says who may look. True = may look.
past = regard.attend(x, x, x, mask=regard.causal())
print("the third token, seeing only the past:", past.weights[2].numpy().round(4))
