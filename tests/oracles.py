"""Attention in plain loops, as the papers write it: per batch, head, query and key.

These are slow and obvious on purpose, and a hidden key is never touched. They take NumPy arrays (…, q, d) of
equal leading axes, masks and biases that broadcast to (…, q, k), sinks that broadcast to (…, q, 1), and
compute in float64.
"""

import math

import numpy as np


def loop_attend(q, k, v, mask=None, scale=None, bias=None, softcap=None, sink=None, score=None):
    """Weights (…, q, k) and mix (…, q, e), one cell at a time. `score(q_i, k_j)` replaces the dot product."""
    lead, rows, cols = q.shape[:-2], q.shape[-2], k.shape[-2]
    mask = np.broadcast_to(True if mask is None else mask, (*lead, rows, cols))
    bias = np.broadcast_to(0.0 if bias is None else bias, (*lead, rows, cols))
    sink = np.broadcast_to(-math.inf if sink is None else sink, (*lead, rows, 1))
    if scale is None:
        scale = 1.0 if score or not q.shape[-1] else 1 / math.sqrt(q.shape[-1])
    score = score or dot
    weights, mixed = np.zeros((*lead, rows, cols)), np.zeros((*lead, rows, v.shape[-1]))
    for at in np.ndindex(*lead, rows):
        head = at[:-1]
        logits = {}
        for j in range(cols):
            if mask[at][j]:
                logit = score(q[at], k[head][j]) * scale
                if softcap is not None:
                    logit = softcap * math.tanh(logit / softcap)
                logits[j] = logit + bias[at][j]
        if all(logit == -math.inf for logit in logits.values()):
            continue  # nothing to look at: weights and mix stay 0
        top = max([*logits.values(), sink[at][0]])
        total = sum(math.exp(logit - top) for logit in logits.values()) + math.exp(sink[at][0] - top)
        for j, logit in logits.items():
            weights[at][j] = math.exp(logit - top) / total
            for c in range(v.shape[-1]):
                mixed[at][c] += weights[at][j] * v[head][j][c]
    return weights, mixed


def dot(a, b):
    """The sum of products, one after the other."""
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def loop_additive(q, k, w1, w2, v):
    """vᵀ tanh(W₁ q + W₂ k) of one query and one key."""
    hidden = [math.tanh(dot(w1[i], q) + dot(w2[i], k)) for i in range(len(v))]
    return dot(v, hidden)


def loop_bilinear(q, k, w):
    """qᵀ W k of one query and one key."""
    return sum(float(q[i]) * float(w[i][j]) * float(k[j]) for i in range(len(q)) for j in range(len(k)))


def loop_cosine(q, k, eps=1e-6):
    """The cosine of the angle between one query and one key."""
    return dot(q, k) / (max(math.sqrt(dot(q, q)), eps) * max(math.sqrt(dot(k, k)), eps))


def loop_gaussian(q, k, width=1.0):
    """Minus the squared distance of one query and one key, over 2·width²."""
    return -sum((float(x) - float(y)) ** 2 for x, y in zip(q, k, strict=True)) / (2 * width**2)


def loop_scores(q, k, score):
    """`score` of every query with every key, (…, q, k)."""
    out = np.zeros((*q.shape[:-1], k.shape[-2]))
    for at in np.ndindex(*out.shape):
        out[at] = score(q[at[:-1]], k[at[:-2]][at[-1]])
    return out


def bisect_entmax(scores, mask=None, alpha=1.5):
    """[(α−1) s − τ]₊^(1/(α−1)) row by row, τ by halving, without sorting; alpha 2 is sparsemax."""
    mask = np.broadcast_to(True if mask is None else mask, scores.shape)
    weights = np.zeros(scores.shape)
    for row in np.ndindex(*scores.shape[:-1]):
        seen = [j for j in range(scores.shape[-1]) if mask[row][j] and scores[row][j] != -math.inf]
        if not seen:
            continue
        z = [(alpha - 1) * float(scores[row][j]) for j in seen]
        low, high = max(z) - 1, max(z)

        def share(x, tau):
            return max(x - tau, 0.0) ** (1 / (alpha - 1))

        for _ in range(200):
            tau = (low + high) / 2
            if sum(share(x, tau) for x in z) >= 1:
                low = tau
            else:
                high = tau
        for j, x in zip(seen, z, strict=True):
            weights[row][j] = share(x, low)
    return weights
