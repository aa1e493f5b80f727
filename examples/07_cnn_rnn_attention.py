"""Convolution, recurrence, attention: cost, steps one after another, longest path; the theory beside measurements.

The table is that of Vaswani et al. 2017 (table 1), for n tokens of width d and a convolution over k neighbours.

Run it: python examples/07_cnn_rnn_attention.py [folder for the picture]
"""

import math
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import nn

import regard

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
torch.manual_seed(0)
torch.set_num_threads(1)  # so that processor time is the time of one core
d, k = 64, 3


class Convolution(nn.Module):
    """Each token sees itself and the k − 1 before it, `dilation` apart."""

    def __init__(self, dilation=1):
        super().__init__()
        self.of, self.before = nn.Conv1d(d, d, k, dilation=dilation), (k - 1) * dilation

    def forward(self, x):  # b n d
        return self.of(F.pad(x.mT, (self.before, 0))).mT


class Recurrence(nn.Module):
    """A GRU, one step at a time, which remembers `remembered` steps back when gradients are asked for."""

    def __init__(self):
        super().__init__()
        self.step = nn.GRUCell(d, d)

    def forward(self, x, remembered=None):
        state, states = x.new_zeros(x.shape[0], d), []
        for i, token in enumerate(x.unbind(1)):
            if remembered is not None and i == x.shape[1] - remembered:
                state = state.detach()
            state = self.step(token, state)
            states.append(state)
        return torch.stack(states, 1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.of = regard.MultiHead(d, 4)

    def forward(self, x):
        return self.of(x, mask=regard.causal())


# 1. Cost: processor time against n, and its slope where both axes are logarithms: 1 grows as n, 2 as n².
LENGTHS = [256, 512, 1024, 2048, 4096]


def seconds(layer, x, rounds=3):
    """The least time of one forward pass."""
    found = []
    for _ in range(rounds):
        first = time.process_time()
        layer(x)
        found.append(time.process_time() - first)
    return min(found)


def slope(times):
    """Of the last two doublings: before, what every call costs still shows."""
    return math.log2(times[-1] / times[-3]) / math.log2(LENGTHS[-1] / LENGTHS[-3])


layers = {"convolution": Convolution(), "recurrence": Recurrence(), "attention": Attention()}
with torch.no_grad():
    times = {name: [seconds(layer, torch.randn(1, n, d)) for n in LENGTHS] for name, layer in layers.items()}


# 2. Steps one after another: calls of a layer that wait for what the call before gave.
def steps(layer, n):
    calls = []
    inner = layer.step if isinstance(layer, Recurrence) else layer.of
    hook = inner.register_forward_hook(lambda *_: calls.append(1))
    layer(torch.randn(1, n, d))
    hook.remove()
    return len(calls)


# 3. Longest path: how many layers, or steps, until a gradient of the last output reaches the first input.
PATHS = [9, 17, 33, 65]


def arrives(n, model):
    """How large the gradient of the last output is at the first input."""
    x = torch.randn(1, n, d, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x)[0, -1].sum(), x)
    return gradient[0, 0].norm().item()


def fewest(n, made):
    """The least depth at which anything arrives, and how much."""
    for depth in range(1, n + 1):
        gradient = arrives(n, made(depth))
        if gradient:
            return depth, gradient
    raise AssertionError(f"nothing arrived over {n} tokens")


def stack(make):
    """Models of more and more layers."""
    return lambda depth: nn.Sequential(*(make(i) for i in range(depth))).double()


recurrence = Recurrence().double()
deeper = {
    "convolution": stack(lambda i: Convolution()),
    "dilated": stack(lambda i: Convolution(dilation=k**i)),
    "recurrence": lambda depth: lambda x: recurrence(x, remembered=depth),
    "attention": stack(lambda i: Attention()),
}
paths = {name: [fewest(n, made) for n in PATHS] for name, made in deeper.items()}
theory = {
    "convolution": [math.ceil((n - 1) / (k - 1)) for n in PATHS],
    "dilated": [math.ceil(math.log(n, k) - 1e-9) for n in PATHS],
    "recurrence": PATHS,
    "attention": [1] * len(PATHS),
}
for name, expected in theory.items():
    assert [depth for depth, _ in paths[name]] == list(expected), name
assert [steps(layer, 40) for layer in layers.values()] == [1, 40, 1]

# The table.
said = {
    "convolution": ("k·n·d²", "1", "(n − 1) / (k − 1)"),
    "dilated": ("k·n·d²", "1", "log_k n"),
    "recurrence": ("n·d²", "n", "n"),
    "attention": ("n²·d", "1", "1"),
}
last = PATHS[-1]
print(
    f"{'':12} {'cost':8} {'measured':>16}   {'steps':5} {'n = 40':>6}   {'path':18} {f'n = {last}':>6}  gradient there"
)
for name, (cost, in_turn, path) in said.items():
    kind = layers.get(name, layers["convolution"])
    found = f"n^{slope(times[name]):.2f}, {times[name][-1] * 1e3:.0f} ms" if name in times else "the same"
    depth, gradient = paths[name][-1]
    print(f"{name:12} {cost:8} {found:>16}   {in_turn:5} {steps(kind, 40):6}   {path:18} {depth:6}  {gradient:.0e}")
print(
    f"\nmeasured: n = {LENGTHS[-3]} to {LENGTHS[-1]}, d = {d}, k = {k}; time of one forward pass at n = {LENGTHS[-1]}"
)
print("Attention's time holds its four projections, which grow as n: n² shows when n is well beyond 4·d.")
print("A path of one step is what it pays n² for: over many, a gradient has faded when it arrives.")

figure = Figure(figsize=(9, 3.8), dpi=150, layout="constrained")
left, right = figure.subplots(1, 2)
for name, found in times.items():
    left.plot(LENGTHS, [1e3 * t for t in found], "o-", label=f"{name}: n^{slope(found):.2f}")
for name, found in paths.items():
    (line,) = right.plot(PATHS, [depth for depth, _ in found], "o", label=name)
    right.plot(PATHS, theory[name], "-", color=line.get_color(), linewidth=1)
left.set(xlabel="tokens", title="milliseconds of one forward pass", xscale="log", yscale="log")
right.set(xlabel="tokens", title="layers or steps from first to last (line: theory)", xscale="log", yscale="log")
for axes, ticks in ((left, LENGTHS), (right, PATHS)):
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig(folder / "cnn_rnn_attention.svg")
print(f"\nBoth against n: {folder / 'cnn_rnn_attention.svg'}")
